/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hogs SECONDS CPU[:NICE][@GROUP]...: as many processes that compute, each on its CPU
 * (-1: any), in the cgroup of that name.
 *
 * Prints the CPU time of each in milliseconds, in the same order: who shares a CPU
 * fairly has had as much as the others there. Until standard input ends, where SECONDS is 0.
 * Time counts from when all are there until the end is called out; each reads its own
 * clock, so that nobody gains by being started first or ended last on a slow machine.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pin.h"

#define MAX_HOGS 256

static struct shared {
	_Atomic int nr_ready, go, stop;
	_Atomic long got_ms[MAX_HOGS];
} *shared;

static void enter(const char *group)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", group);
	file = fopen(path, "w");
	if (!file || fprintf(file, "0") < 0 || fclose(file))
		exit(1);
}

static void prepare(const char *how)
{
	const char *priority = strchr(how, ':'), *group = strchr(how, '@');
	int cpu = atoi(how);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cpu >= 0)
		pin(cpu);
	if (group)
		enter(group + 1);
	if (priority)
		setpriority(PRIO_PROCESS, 0, atoi(priority + 1));
}

static long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void burn(const char *how, _Atomic long *got_ms)
{
	long from_ms;

	prepare(how);
	shared->nr_ready++;
	while (!shared->go)
		sched_yield();
	from_ms = cpu_ms();
	while (!shared->stop)
		for (volatile int i = 0; i < 10000; i++)
			;
	*got_ms = cpu_ms() - from_ms;
	_exit(0);
}

static void sleep_or_read(unsigned int seconds)
{
	char byte;

	if (seconds)
		sleep(seconds);
	else
		while (read(0, &byte, 1) > 0)
			;
}

int main(int argc, char **argv)
{
	int nr = argc - 2;

	if (nr < 1 || nr > MAX_HOGS)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < nr; i++)
		if (!fork())
			burn(argv[i + 2], &shared->got_ms[i]);
	while (shared->nr_ready < nr)
		usleep(1000);
	shared->go = 1;
	sleep_or_read((unsigned int)atoi(argv[1]));
	shared->stop = 1;
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < nr; i++)
		printf("%ld ", shared->got_ms[i]);
	printf("\n");
	return 0;
}
