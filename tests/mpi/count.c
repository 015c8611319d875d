/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count - a profiler as PMPI wants it: counts calls and says how many at the end. Linked
 * into a program or preloaded, before or after other libraries.
 */
#include <mpi.h>
#include <stdio.h>

static int sends, receives, barriers;

int MPI_Send(const void *data, int nr, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	sends++;
	return PMPI_Send(data, nr, type, to, tag, comm);
}

int MPI_Recv(void *data, int nr, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	     MPI_Status *status)
{
	receives++;
	return PMPI_Recv(data, nr, type, from, tag, comm, status);
}

int MPI_Barrier(MPI_Comm comm)
{
	barriers++;
	return PMPI_Barrier(comm);
}

int MPI_Finalize(void)
{
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!rank)
		printf("counted %d sends, %d receives, %d barriers\n", sends, receives, barriers);
	fflush(stdout);
	return PMPI_Finalize();
}
