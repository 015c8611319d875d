/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.h - ranks of a job without MPI: forked here, pinned where asked for.
 *
 * They share the memory that was mapped before they were forked. They meet once,
 * asleep, so that who was forked first spends nothing of its share by waiting
 * for the last. How they talk after that is the workload's matter. One that fails
 * ends all: the others would wait for it for ever.
 */
#ifndef WORKLOAD_WORKERS_H
#define WORKLOAD_WORKERS_H

#include "common.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORKERS 64

static pthread_barrier_t *workers_begin;

WL_FN __attribute__((noreturn)) void workers_fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: cannot %s: %s\n", program_invocation_short_name, what, why);
	exit(3);
}

/* Zeroed memory of all workers; before they are forked. */
WL_FN void *workers_share(size_t size)
{
	void *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		workers_fail("share memory", strerror(errno));
	return all;
}

/* Worker @i alone on the i-th of the CPUs that it may use. */
WL_FN void workers_pin(int i)
{
	cpu_set_t may, only;
	int cpu = 0, left;

	if (sched_getaffinity(0, sizeof(may), &may))
		workers_fail("read the CPU affinity", strerror(errno));
	left = i % CPU_COUNT(&may);
	while (!CPU_ISSET(cpu, &may) || left--)
		cpu++;
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	if (sched_setaffinity(0, sizeof(only), &only))
		workers_fail("pin a worker to its CPU", strerror(errno));
}

/* Returns in all workers when all have come. */
WL_FN void workers_meet(void)
{
	pthread_barrier_wait(workers_begin);
}

WL_FN void workers_prepare(unsigned nr)
{
	pthread_barrierattr_t shared;

	workers_begin = workers_share(sizeof(*workers_begin));
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(workers_begin, &shared, nr);
	fflush(stdout);
}

/* All workers end by themselves, or with this process. */
WL_FN void workers_wait(uint64_t nr)
{
	int status;

	while (nr--) {
		pid_t pid = wait(&status);

		if (pid < 0)
			workers_fail("wait for a worker", strerror(errno));
		if (status) {
			fprintf(stderr, "%s: worker %d ended with %s %d; the others are ended too\n",
				program_invocation_short_name, (int)pid,
				WIFSIGNALED(status) ? "signal" : "exit code",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			exit(1);
		}
	}
}

/* Runs body(i) in worker i of @nr; returns here when all have ended. */
WL_FN void workers_run(uint64_t nr, bool pin, void (*body)(int worker))
{
	pid_t parent = getpid();

	workers_prepare((unsigned)nr);
	for (int i = 0; i < (int)nr; i++) {
		pid_t pid = fork();

		if (pid < 0)
			workers_fail("fork a worker", strerror(errno));
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		if (pin)
			workers_pin(i);
		body(i);
		_exit(0);
	}
	workers_wait(nr);
}

#endif
