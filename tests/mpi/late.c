/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late - rank 0 waits for a peer that is 300 ms late, in each way that is named in
 * the arguments. It must sleep, and be woken; what it was sent must be right.
 */
#include "check.h"

#define LARGE (1 << 20)			/* ints: a rendezvous */

static int late;			/* the last rank */
static int *large;

static void be_late(void)
{
	if (rank == late)
		usleep(300000);
}

static void to_zero(int value)
{
	if (rank == late)
		MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

static void expect(int value, int from)
{
	int got = 0;

	MPI_Recv(&got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(got == value);
}

static void by_recv(void)
{
	to_zero(17);
	if (!rank)
		expect(17, late);
}

/* After a long wait, between two marks: short ones. */
static void soon(void)
{
	by_recv();
	getsid(0);
	for (int i = 0; i < 8; i++) {
		if (rank) {
			expect(i, 0);
			usleep(1000);
		}
		MPI_Send(&i, 1, MPI_INT, rank ? 0 : late, 1, MPI_COMM_WORLD);
		if (!rank)
			expect(i, late);
	}
	getsid(0);
}

static void by_probe(void)
{
	MPI_Status status;

	to_zero(18);
	if (!rank) {
		MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
		CHECK(status.MPI_SOURCE == late);
		expect(18, late);
	}
}

static void by_wait(void)
{
	MPI_Request request;
	int got = 0;

	to_zero(19);
	if (!rank) {
		MPI_Irecv(&got, 1, MPI_INT, late, 1, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		CHECK(got == 19);
	}
}

static void by_ssend(void)
{
	int value = 20;

	if (!rank)
		MPI_Ssend(&value, 1, MPI_INT, late, 1, MPI_COMM_WORLD);
	if (rank == late)
		expect(value, 0);
}

static void by_rendezvous(void)
{
	for (int i = 0; i < LARGE; i++)
		large[i] = rank ? 0 : i;
	if (!rank)
		MPI_Send(large, LARGE, MPI_INT, late, 1, MPI_COMM_WORLD);
	if (rank == late) {
		MPI_Recv(large, LARGE, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < LARGE; i++)
			CHECK(large[i] == i);
	}
}

static void by_barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void by_allreduce(void)
{
	int one = 1, sum = 0;

	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(sum == ranks);
}

static const struct { const char *name; void (*wait)(void); } ways[] = {
	{ "recv", by_recv },		{ "probe", by_probe },
	{ "wait", by_wait },		{ "ssend", by_ssend },
	{ "rendezvous", by_rendezvous },{ "barrier", by_barrier },
	{ "allreduce", by_allreduce },	{ "soon", soon },
};

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	start();
	getsid(0);			/* a mark for who traces system calls */
	late = ranks - 1;
	large = calloc(LARGE, sizeof(*large));
	for (int a = 1; a < argc; a++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++)
			if (!strcmp(argv[a], ways[w].name)) {
				be_late();
				ways[w].wait();
				passed(argv[a]);
			}
	finish();
	return 0;
}
