/* SPDX-License-Identifier: Apache-2.0 */
/* called - a library that calls MPI, for programs that load it at run time. */
#include <mpi.h>

int sum_of_ranks(void)
{
	int rank, sum = -1;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}
