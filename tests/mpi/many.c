/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many RANKS - a token goes round all ranks, twice, between barriers. Every rank waits
 * long for its one predecessor: each step is one wake-up of exactly one rank.
 */
#include <stdio.h>
#include <stdlib.h>

#include "toy.h"

#define ROUNDS 1

static int add_rank(int token, int rank)
{
	return (token * 31 + rank) % 1000003;
}

/* What rank 0 must get back. */
static int expected(int ranks)
{
	int token = 0;

	for (int rank = 0; rank < ranks; rank++)
		token = add_rank(token, rank);
	return token;
}

static int round_trip(int rank, int ranks)
{
	int token = 0, before = (rank + ranks - 1) % ranks;

	if (rank)
		MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, NULL);
	token = add_rank(token, rank);
	MPI_Send(&token, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
	if (!rank)
		MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, NULL);
	return token;
}

int main(int argc, char **argv)
{
	int rank, ranks, failed = 0;

	toy_launch(argc > 1 ? atoi(argv[1]) : 2);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < ROUNDS; i++) {
		int token;

		MPI_Barrier(MPI_COMM_WORLD);
		token = round_trip(rank, ranks);
		failed |= !rank && token != expected(ranks);
	}
	MPI_Finalize();
	if (!rank)
		printf("token %s\n", failed ? "wrong" : "ok");
	return failed;
}
