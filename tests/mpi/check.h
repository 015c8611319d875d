/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what the MPI programs of the tests share: they know their own results, stop
 * the job where one is wrong, and rank 0 says what was right.
 */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

#define CHECK(what) do { \
	if (!(what)) { \
		fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, rank, #what); \
		MPI_Abort(MPI_COMM_WORLD, 9); \
	} \
} while (0)

static inline void start(void)
{
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* All ranks came this far. */
static inline void passed(const char *what)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		printf("%s ok\n", what);
		fflush(stdout);
	}
}

#endif
