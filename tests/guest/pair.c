/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair MODE SECONDS: two processes, one on CPU 0 and one on CPU 1, that wait for each other.
 *
 *   spin    a token goes to and fro in shared memory; who has it not polls
 *   yield   the same with sched_yield() in the poll
 *   futex   the same, and who has it not sleeps on a futex
 *   udp     the same by datagrams on the loopback, polled without sleeping
 *
 * Prints how often the token went. No MPI, no library: what the kernel body sees of it
 * is what it can see of any program.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "two.h"

static struct shared {
	_Atomic unsigned int turn, stop;
} *shared;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void work(void)
{
	for (volatile int i = 0; i < 2000; i++)
		;
}

static void wait_by(const char *mode, unsigned int me)
{
	unsigned int seen;
	char byte;

	if (!strcmp(mode, "udp")) {
		while (!shared->stop && recv(sockets[me], &byte, 1, MSG_DONTWAIT) != 1)
			;
		return;
	}
	while (!shared->stop && ((seen = shared->turn) & 1) != me) {
		if (!strcmp(mode, "yield"))
			sched_yield();
		if (!strcmp(mode, "futex"))
			syscall(SYS_futex, &shared->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
	}
}

static void pass(const char *mode, unsigned int me)
{
	shared->turn++;
	if (!strcmp(mode, "futex"))
		syscall(SYS_futex, &shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (!strcmp(mode, "udp"))
		send_datagram(!me, "t", 1);
}

static void play(const char *mode, unsigned int me, double until_s)
{
	pin((int)me);
	if (!strcmp(mode, "udp") && !me)
		pass(mode, 1);
	while (!shared->stop) {
		wait_by(mode, me);
		work();
		pass(mode, me);
		if (now_s() > until_s)
			shared->stop = 1;
	}
	pass(mode, me);
	_exit(0);
}

int main(int argc, char **argv)
{
	double until_s;

	if (argc != 3)
		return 2;
	until_s = now_s() + atof(argv[2]);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	open_sockets();
	for (unsigned int me = 0; me < 2; me++)
		if (!fork())
			play(argv[1], me, until_s);
	while (wait(NULL) > 0)
		;
	printf("%u\n", shared->turn);
	return 0;
}
