/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endings - what interrupts or ends a rank that is blocked: handlers of signals, a
 * signal without one, another rank's MPI_Abort.
 */
#include "check.h"

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t nr_alarms;
static volatile pid_t peer;
static sigset_t usr2;			/* waited for, so blocked in all threads */

static int receive(int from)
{
	int got = -1;

	MPI_Recv(&got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return got;
}

static void send(int value, int to)
{
	MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
}

static void answer(int signal)
{
	(void)signal;
	kill(peer, SIGUSR2);
}

static void count(int signal)
{
	(void)signal;
	nr_alarms++;
}

/* Rank 0 is blocked; the message comes only after its handler has answered. */
static void handler_runs(void)
{
	signal(SIGUSR1, answer);
	if (!rank) {
		peer = receive(1);
		send(getpid(), 1);
		CHECK(receive(1) == 42);
	} else {
		int got;

		send(getpid(), 0);
		peer = receive(0);
		usleep(100000);
		kill(peer, SIGUSR1);
		sigwait(&usr2, &got);
		send(42, 0);
	}
	passed("handler");
}

/* Were they held back they would come as one. */
static void alarms_run(void)
{
	struct itimerval every = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };

	signal(SIGALRM, count);
	if (!rank) {
		setitimer(ITIMER_REAL, &every, NULL);
		CHECK(receive(1) == 43);
		CHECK(nr_alarms >= 5);
		setitimer(ITIMER_REAL, &never, NULL);
	} else {
		usleep(300000);
		send(43, 0);
	}
	passed("alarms");
}

/* Rank 0 and all others but the last wait for what never comes. */
static void end_while_blocked(int by_abort)
{
	pid_t first = getpid();

	MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == ranks - 1) {
		usleep(200000);
		if (by_abort)
			MPI_Abort(MPI_COMM_WORLD, 7);
		kill(first, SIGTERM);
	}
	receive(MPI_ANY_SOURCE);
}

int main(int argc, char **argv)
{
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	MPI_Init(&argc, &argv);
	start();
	if (!strcmp(argv[1], "signals")) {
		handler_runs();
		alarms_run();
	} else {
		end_while_blocked(!strcmp(argv[1], "abort"));
	}
	MPI_Finalize();
	return 0;
}
