/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self.c - a rank that exchanges a token with itself, argv[1] times: never waits, so
 * what cosched adds to a call is all that differs.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0, token = 7, back = 0;

	MPI_Init(&argc, &argv);
	for (int i = 0; i < rounds; i++)
		MPI_Sendrecv(&token, 1, MPI_INT, 0, 0, &back, 1, MPI_INT, 0, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	printf("%d\n", back);
	return 0;
}
