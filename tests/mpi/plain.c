/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain - no MPI: calls all that cosched wraps, for a comparison of system calls. Each
 * process says with getppid() that it is loaded.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void wait_for_nothing(void)
{
	struct timeval zero = { 0, 0 };
	struct pollfd in = { 0, POLLIN, 0 };
	struct epoll_event event;
	int epoll = epoll_create1(0);

	sched_yield();
	poll(&in, 1, 0);
	select(0, NULL, NULL, NULL, &zero);
	epoll_wait(epoll, &event, 1, 0);
	close(epoll);
}

static void start_others(char *self)
{
	char *args[] = { self, "child", NULL };
	pid_t pid = fork();

	if (!pid) {
		sched_yield();
		execv(self, args);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	if (!posix_spawn(&pid, self, NULL, NULL, args, environ))
		waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	getppid();
	wait_for_nothing();
	if (argc == 1)
		start_others(argv[0]);
	return 0;
}
