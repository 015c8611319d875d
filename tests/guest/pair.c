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
#include <arpa/inet.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct shared {
	_Atomic unsigned int turn, stop;
} *shared;

static int sockets[2];
static struct sockaddr_in ends[2];

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
		sendto(sockets[me], "t", 1, 0, (void *)&ends[!me], sizeof(ends[0]));
}

static void play(const char *mode, unsigned int me, double until_s)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(me, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
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

static void open_sockets(void)
{
	for (int i = 0; i < 2; i++) {
		socklen_t length = sizeof(ends[i]);

		ends[i] = (struct sockaddr_in){ .sin_family = AF_INET };
		ends[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (bind(sockets[i], (void *)&ends[i], length) ||
		    getsockname(sockets[i], (void *)&ends[i], &length))
			exit(1);
	}
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
