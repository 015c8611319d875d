/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barrier - S1's fine-grained workload: a root that lets all ranks pass.
 *
 * The root sends "passed" to every other rank, each computes for a grain (78 us
 * in the paper), then tells the root "at barrier"; 10^5 times. The root computes
 * too. With --mpi the same grain between two MPI_Barrier(). The worst case of
 * waiting: each rank needs each other rank once per grain.
 */
#include "phase.h"

#define TAG_PASSED 1
#define TAG_AT_BARRIER 2

static uint64_t iterations = 100000, spins;
static double grain_us = 78;
static bool use_mpi;

static void root(struct phase *p)
{
	for (uint64_t i = 0; i < iterations; i++) {
		uint64_t at;

		for (int r = 1; r < p->ranks; r++)
			MPI_Send(&i, 1, MPI_UINT64_T, r, TAG_PASSED, MPI_COMM_WORLD);
		wl_work(spins, i);
		for (int r = 1; r < p->ranks; r++) {
			MPI_Recv(&at, 1, MPI_UINT64_T, r, TAG_AT_BARRIER, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			p->checksum = wl_hash(p->checksum, &at, sizeof(at));
		}
	}
}

static void leaf(struct phase *p)
{
	for (uint64_t i = 0; i < iterations; i++) {
		uint64_t at;

		MPI_Recv(&at, 1, MPI_UINT64_T, 0, TAG_PASSED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wl_work(spins, at);
		at += (uint64_t)p->rank;
		MPI_Send(&at, 1, MPI_UINT64_T, 0, TAG_AT_BARRIER, MPI_COMM_WORLD);
	}
}

static void collective(void)
{
	for (uint64_t i = 0; i < iterations; i++) {
		wl_work(spins, i);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "iterations", WL_COUNT, &iterations, "barriers" },
		{ "grain-us", WL_REAL, &grain_us, "CPU time between two barriers" },
		{ "spins", WL_COUNT, &spins, "loop turns per grain; 0: calibrate" },
		{ "mpi", WL_FLAG, &use_mpi, "MPI_Barrier instead of messages to a root" },
		{ 0 },
	};
	struct phase p;

	wl_options(argc, argv, "A barrier after each grain of computing.", options);
	phase_init(&p, &argc, &argv);
	phase_calibrate(&spins, grain_us);
	phase_begin(&p);
	if (use_mpi)
		collective();
	else if (p.rank)
		leaf(&p);
	else
		root(&p);
	phase_end(&p);
	phase_report(&p, "barrier", "\"iterations\":%" PRIu64 ",\"mpi\":%s,\"spins\":%" PRIu64,
		     iterations, use_mpi ? "true" : "false", spins);
	return 0;
}
