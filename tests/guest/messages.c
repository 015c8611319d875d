/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages PROGRAM WAIT SECONDS GRAIN_US: S1's programs for two nodes, each node a CPU.
 *
 *   latency   a message of 128 bytes goes to and fro (S1 4.1.2)
 *   barrier   both compute for GRAIN_US, then meet at rank 0 (S1 4.1.2)
 *   poll      rank 1 computes in pieces of GRAIN_US and looks for a message between two;
 *             it never waits and never sleeps
 *   threads   latency, but in rank 1 another thread answers than the one that receives;
 *             it hears of the message in memory
 *
 * Messages are datagrams on the loopback: the kernel sees them come, as S1's network card
 * did, also for who only polls. WAIT is `spin`, or `block`: spin for 1600 us, then
 * sleep, as S1's message library does. What is run beside it is nothing of its
 * business.
 *
 * Prints: rounds, us, median, 99th percentile and longest round in us, CPU time and system
 * time of both ranks in us, waits that slept. Rounds above 4 ms are told by octave.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "two.h"

#define SPIN_NS 1600000ull
#define NR_LINEAR 4096
#define NR_BINS (NR_LINEAR + 24)
#define LONG_BYTES 128
#define SHORT_BYTES 16

static struct shared {
	_Atomic int nr_ready, go, stop;
	_Atomic unsigned int handed, answered;
	_Atomic long cpu_us[2], system_us[2], blocks[2];
	unsigned long laps, took_us, longest_us, bins[NR_BINS];
} *shared;

static unsigned long spins_per_us;
static int may_block;

static unsigned long long clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec;
}

static unsigned long long now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void spin(unsigned long n)
{
	for (volatile unsigned long i = 0; i < n; i++)
		;
}

static void compute(unsigned long us)
{
	spin(us * spins_per_us);
}

/* By CPU time, since others may run here already. */
static void calibrate(void)
{
	unsigned long long begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), took_ns;

	spin(2000000);
	took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
	spins_per_us = (unsigned long)(2000000ull * 1000 / took_ns) + 1;
}

static void send_to(int peer, size_t bytes)
{
	static const char message[LONG_BYTES];

	send_datagram(peer, message, bytes);
}

static int look(int me, int flags)
{
	char message[LONG_BYTES];

	return recv(sockets[me], message, sizeof(message), flags) > 0;
}

/* 0: it is over. */
static int receive(int me)
{
	unsigned long long begun_ns = now_ns();

	while (!shared->stop) {
		if (look(me, MSG_DONTWAIT))
			return 1;
		if (!may_block || now_ns() - begun_ns < SPIN_NS)
			continue;
		shared->blocks[me]++;
		if (look(me, 0))
			return 1;
	}
	return 0;
}

static void note_lap(unsigned long long lap_ns)
{
	unsigned long us = (unsigned long)(lap_ns / 1000);
	int bin = us < NR_LINEAR ? (int)us : NR_LINEAR;

	for (unsigned long rest = us / NR_LINEAR; rest > 1 && bin < NR_BINS - 1; rest /= 2)
		bin++;
	shared->bins[bin]++;
	shared->laps++;
	if (us > shared->longest_us)
		shared->longest_us = us;
}

/* Where @q of all laps end, from below. */
static unsigned long quantile_us(double q)
{
	unsigned long seen = 0;
	int bin = 0;

	while (bin < NR_BINS - 1 &&
	       (double)(seen += shared->bins[bin]) < q * (double)shared->laps)
		bin++;
	return bin < NR_LINEAR ? (unsigned long)bin
			       : (unsigned long)NR_LINEAR << (bin - NR_LINEAR);
}

/* One round of rank 0. */
static int lead(int is_barrier, unsigned long grain_us)
{
	if (!is_barrier) {
		send_to(1, LONG_BYTES);
		return receive(0);
	}
	compute(grain_us);
	if (!receive(0))
		return 0;
	send_to(1, SHORT_BYTES);
	return 1;
}

static void rank_0(int is_barrier, unsigned long grain_us, double seconds)
{
	unsigned long long begun_ns = now_ns(), lap_ns = begun_ns, ns;

	for (;;) {
		int whole = lead(is_barrier, grain_us);

		ns = now_ns();
		if (whole)
			note_lap(ns - lap_ns);
		lap_ns = ns;
		if ((double)(ns - begun_ns) * 1e-9 > seconds)
			break;
	}
	shared->took_us = (unsigned long)((ns - begun_ns) / 1000);
	shared->stop = 1;
	send_to(1, SHORT_BYTES);
}

static void rank_1(const char *program, unsigned long grain_us)
{
	while (!shared->stop) {
		if (!strcmp(program, "barrier")) {
			compute(grain_us);
			send_to(0, SHORT_BYTES);
			receive(1);
		} else if (!strcmp(program, "poll")) {
			compute(grain_us);
			if (look(1, MSG_DONTWAIT))
				send_to(0, LONG_BYTES);
		} else if (receive(1)) {
			if (!strcmp(program, "threads"))
				shared->handed++;
			else
				send_to(0, LONG_BYTES);
		}
	}
}

static void *answer(void *unused)
{
	prctl(PR_SET_NAME, "other");
	while (!shared->stop)
		if (shared->handed != shared->answered) {
			shared->answered++;
			send_to(0, LONG_BYTES);
		}
	return unused;
}

static long system_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return used.ru_stime.tv_sec * 1000000l + used.ru_stime.tv_usec;
}

static void play(int me, char **argv)
{
	unsigned long grain_us = strtoul(argv[4], NULL, 10);
	unsigned long long cpu_ns;
	pthread_t other;
	long in_system_us;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(me);
	calibrate();
	if (me && !strcmp(argv[1], "threads") && pthread_create(&other, NULL, answer, NULL))
		_exit(1);
	shared->nr_ready++;
	while (!shared->go)
		sched_yield();
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	in_system_us = system_us();
	if (me)
		rank_1(argv[1], grain_us);
	else
		rank_0(!strcmp(argv[1], "barrier"), grain_us, atof(argv[3]));
	shared->cpu_us[me] = (long)((clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns) / 1000);
	shared->system_us[me] = system_us() - in_system_us;
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	may_block = !strcmp(argv[2], "block");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	open_sockets();
	for (int me = 0; me < 2; me++)
		if (!fork())
			play(me, argv);
	while (shared->nr_ready < 2)
		usleep(1000);
	shared->go = 1;
	while (wait(NULL) > 0)
		;
	printf("%lu %lu %lu %lu %lu %ld %ld %ld\n", shared->laps, shared->took_us,
	       quantile_us(0.5), quantile_us(0.99), shared->longest_us,
	       shared->cpu_us[0] + shared->cpu_us[1],
	       shared->system_us[0] + shared->system_us[1], shared->blocks[0] + shared->blocks[1]);
	return 0;
}
