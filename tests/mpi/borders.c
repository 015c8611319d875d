/* SPDX-License-Identifier: Apache-2.0 */
/*
 * borders [ROUNDS] - neighbours in a row exchange borders by MPI_Sendrecv, small and large ones;
 * without an argument a second time, while so many messages are under way already that the
 * library may have to put off what is sent.
 */
#include "check.h"

#define ROUNDS 300
#define BACKLOG 100
#define LARGEST 4096			/* ints */

static int out[LARGEST], in[LARGEST];

static int value(int of, int round, int i)
{
	return of * 1000003 + round * 1009 + i;
}

static void exchange(int round, int nr, int to, int from)
{
	for (int i = 0; i < nr; i++)
		out[i] = value(rank, round, i);
	MPI_Sendrecv(out, nr, MPI_INT, to, 0, in, nr, MPI_INT, from, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (int i = 0; from != MPI_PROC_NULL && i < nr; i++)
		CHECK(in[i] == value(from, round, i));
}

static void both_ways(int round, int above, int below)
{
	int nr = 1 << round % 13;

	exchange(round, nr, above, below);
	exchange(round, nr, below, above);
}

static void borders(int rounds, int above, int below)
{
	for (int round = 0; round < rounds; round++)
		both_ways(round, above, below);
}

static void beside_a_backlog(int above, int below)
{
	static int sent[BACKLOG], got[BACKLOG];
	MPI_Request request[BACKLOG];
	MPI_Status status[BACKLOG];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BACKLOG; i++) {
			sent[i] = value(rank, round, i);
			MPI_Isend(&sent[i], 1, MPI_INT, below, 1, MPI_COMM_WORLD, &request[i]);
		}
		both_ways(round, above, below);
		for (int i = 0; i < BACKLOG; i++)
			MPI_Recv(&got[i], 1, MPI_INT, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Waitall(BACKLOG, request, status);
		for (int i = 0; above != MPI_PROC_NULL && i < BACKLOG; i++)
			CHECK(got[i] == value(above, round, i));
	}
}

int main(int argc, char **argv)
{
	int above, below;

	MPI_Init(&argc, &argv);
	start();
	above = rank ? rank - 1 : MPI_PROC_NULL;
	below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
	borders(argc > 1 ? atoi(argv[1]) : ROUNDS, above, below);
	passed("borders");
	if (argc == 1) {
		beside_a_backlog(above, below);
		passed("beside a backlog");
	}
	finish();
	return 0;
}
