/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hogs SECONDS CPU[:NICE][@GROUP]...: as many processes that compute, each on its CPU
 * (-1: any), in the cgroup of that name.
 *
 * Prints the CPU time of each in milliseconds, in the same order: who shares a CPU
 * fairly has had as much as the others there. Until standard input ends, where SECONDS is 0.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_HOGS 256

static void enter(const char *group)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", group);
	file = fopen(path, "w");
	if (!file || fprintf(file, "0") < 0 || fclose(file))
		exit(1);
}

static void burn(const char *how)
{
	const char *priority = strchr(how, ':'), *group = strchr(how, '@');
	int cpu = atoi(how);
	cpu_set_t cpus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&cpus);
	CPU_SET(cpu < 0 ? 0 : cpu, &cpus);
	if (cpu >= 0)
		sched_setaffinity(0, sizeof(cpus), &cpus);
	if (group)
		enter(group + 1);
	if (priority)
		setpriority(PRIO_PROCESS, 0, atoi(priority + 1));
	for (volatile long i = 0;; i++)
		;
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
	pid_t hogs[MAX_HOGS];
	int nr = argc - 2;

	if (nr < 1 || nr > MAX_HOGS)
		return 2;
	for (int i = 0; i < nr; i++) {
		hogs[i] = fork();
		if (!hogs[i])
			burn(argv[i + 2]);
	}
	sleep_or_read((unsigned int)atoi(argv[1]));
	for (int i = 0; i < nr; i++)
		kill(hogs[i], SIGSTOP);
	for (int i = 0; i < nr; i++) {
		struct rusage used;

		kill(hogs[i], SIGKILL);
		wait4(hogs[i], NULL, 0, &used);
		printf("%ld ", used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000);
	}
	printf("\n");
	return 0;
}
