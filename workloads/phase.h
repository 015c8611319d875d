/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.h - the measured phase of an MPI workload, and its result.
 *
 * It lasts from after a first barrier to after a last one. Its CPU time is
 * summed over the ranks and spans the same time as its wall clock, so that both
 * may be divided. Rank 0 prints; the checksum depends on what the ranks were
 * told by messages and on nothing else, so runs can be compared.
 */
#ifndef WORKLOAD_PHASE_H
#define WORKLOAD_PHASE_H

#include "common.h"
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <unistd.h>

struct phase {
	int rank, ranks;
	double begin_s, elapsed_s;	/* of this rank */
	double cpu_s;			/* at the begin; after phase_end() of all ranks */
	uint64_t checksum;		/* of this rank; after phase_end() of all ranks */
};

WL_FN void phase_init(struct phase *p, int *argc, char ***argv)
{
	*p = (struct phase){ .checksum = WL_HASH };
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &p->ranks);
}

/* All ranks refuse alike, and one says why. */
WL_FN __attribute__((noreturn)) void phase_refuse(const struct phase *p, const char *why)
{
	if (!p->rank)
		fprintf(stderr, "%s: cannot run on %d rank(s): %s\n",
			program_invocation_short_name, p->ranks, why);
	MPI_Finalize();
	exit(2);
}

/* The same count for all ranks: rank 0's, where none was given. */
WL_FN void phase_calibrate(uint64_t *spins, double grain_us)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!*spins && !rank)
		*spins = wl_calibrate(grain_us);
	MPI_Bcast(spins, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
}

/*
 * For programs that begin together with others: rank 0 waits until who opened the FIFO at @path to
 * write, which tells that this rank is there, closes it. The others meet it in phase_begin().
 */
WL_FN void phase_gate(const struct phase *p, const char *path)
{
	char byte;
	int gate;

	if (p->rank || !path)
		return;
	gate = open(path, O_RDONLY);
	if (gate < 0) {
		fprintf(stderr, "%s: cannot open the FIFO %s: %s\n",
			program_invocation_short_name, path, strerror(errno));
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	while (read(gate, &byte, 1) > 0)
		;
	close(gate);
}

WL_FN void phase_begin(struct phase *p)
{
	MPI_Barrier(MPI_COMM_WORLD);
	p->cpu_s = wl_cpu_s();
	p->begin_s = wl_wall_s();
}

WL_FN void phase_end(struct phase *p)
{
	double cpu_s;
	uint64_t checksum = p->checksum;

	MPI_Barrier(MPI_COMM_WORLD);
	p->elapsed_s = wl_wall_s() - p->begin_s;
	cpu_s = wl_cpu_s() - p->cpu_s;
	MPI_Reduce(&cpu_s, &p->cpu_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&checksum, &p->checksum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* Rank 0 prints the JSON line; @more holds further members, `"key":value,...`. */
WL_FN __attribute__((format(printf, 3, 4)))
void phase_report(const struct phase *p, const char *workload, const char *more, ...)
{
	va_list args;

	if (!p->rank) {
		printf("{\"workload\":\"%s\",\"ranks\":%d,\"elapsed_s\":%.6f,\"cpu_s\":%.6f,",
		       workload, p->ranks, p->elapsed_s, p->cpu_s);
		va_start(args, more);
		vprintf(more, args);
		va_end(args);
		printf(",\"checksum\":\"%016" PRIx64 "\"}\n", p->checksum);
	}
	MPI_Finalize();
}

#endif
