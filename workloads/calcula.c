/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calcula - pure CPU: S4's local load, and our measure of the fair share.
 *
 * Each rank computes and says nothing to the others meanwhile. Started as the
 * job is (launcher, pins, limits, competitors), the share of a CPU that it gets
 * is the job's fair share. It ends after --for-s of wall clock (measures the
 * share), after --seconds of work (a count of units, the same in each run with
 * --spins), or on SIGTERM (a load). The result has each rank's share, over its
 * own time only: ranks that are done wait in MPI, which is not measured.
 * For a job without MPI it forks its ranks as that job does (--workers).
 */
#include "phase.h"
#include "workers.h"

#define UNIT_US 100

static double work_s, for_s;
static uint64_t spins, workers;
static bool pin;
static volatile sig_atomic_t stop;

static struct got {
	double wall_s, cpu_s;
	uint64_t units;
} *forked;					/* of each worker */

static void on_term(int signal)
{
	(void)signal;
	stop = 1;
}

static struct got compute(void)
{
	uint64_t wanted = work_s > 0 ? (uint64_t)ceil(work_s * 1e6 / UNIT_US) : UINT64_MAX;
	double begin_s = wl_wall_s(), begin_cpu_s = wl_cpu_s();
	double end_s = for_s > 0 ? begin_s + for_s : INFINITY;
	uint64_t units = 0;

	while (!stop && units < wanted && wl_wall_s() < end_s)
		wl_work(spins, units++);
	return (struct got){ wl_wall_s() - begin_s, wl_cpu_s() - begin_cpu_s, units };
}

/* "a":[x,y,...] of one member of each rank's result. */
static void print_list(const char *name, const struct got *all, int nr,
		       double (*member)(const struct got *))
{
	printf("\"%s\":[", name);
	for (int r = 0; r < nr; r++)
		printf("%s%.6f", r ? "," : "", member(&all[r]));
	printf("],");
}

static double share(const struct got *g)
{
	return g->wall_s > 0 ? g->cpu_s / g->wall_s : 0;
}

static double wall(const struct got *g)
{
	return g->wall_s;
}

static double cpu(const struct got *g)
{
	return g->cpu_s;
}

/* The job's line: sums and the mean share, then each rank. */
static void report(const struct got *all, int ranks)
{
	struct got sum = { 0 };
	double shares = 0;

	for (int r = 0; r < ranks; r++) {
		sum.wall_s = fmax(sum.wall_s, all[r].wall_s);
		sum.cpu_s += all[r].cpu_s;
		sum.units += all[r].units;
		shares += share(&all[r]);
	}
	printf("{\"workload\":\"calcula\",\"ranks\":%d,\"elapsed_s\":%.6f,\"cpu_s\":%.6f,",
	       ranks, sum.wall_s, sum.cpu_s);
	printf("\"share\":%.6f,", shares / ranks);
	print_list("rank_share", all, ranks, share);
	print_list("rank_wall_s", all, ranks, wall);
	print_list("rank_cpu_s", all, ranks, cpu);
	printf("\"units\":%" PRIu64 ",\"spins\":%" PRIu64 "}\n", sum.units, spins);
}

static void by_mpi(int argc, char **argv)
{
	struct got mine, *all = NULL;
	struct phase p;

	phase_init(&p, &argc, &argv);
	phase_calibrate(&spins, UNIT_US);
	if (!p.rank)
		all = calloc((size_t)p.ranks, sizeof(*all));
	if (!p.rank && !all) {
		fprintf(stderr, "calcula: no memory for the results of %d ranks\n", p.ranks);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	mine = compute();
	MPI_Gather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (!p.rank)
		report(all, p.ranks);
	free(all);
	MPI_Finalize();
}

static void work(int worker)
{
	workers_meet();
	forked[worker] = compute();
}

static void by_fork(void)
{
	if (workers > MAX_WORKERS)
		wl_usage("must be 1 to 64", "--workers");
	if (!spins)
		spins = wl_calibrate(UNIT_US);
	forked = workers_share(workers * sizeof(*forked));
	workers_run(workers, pin, work);
	report(forked, (int)workers);
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "seconds", WL_REAL, &work_s, "stop after this much work, in CPU s; 0: endless" },
		{ "for-s", WL_REAL, &for_s, "stop after this wall clock; 0: endless" },
		{ "spins", WL_COUNT, &spins, "loop turns per unit of work; 0: calibrate to 100 us" },
		{ "workers", WL_COUNT, &workers, "fork so many instead of being ranks of MPI" },
		{ "pin", WL_FLAG, &pin, "worker i on the i-th CPU that it may use" },
		{ 0 },
	};

	wl_options(argc, argv, "Pure computing; the share of a CPU that each rank gets.", options);
	if (pin && !workers)
		wl_usage("goes with --workers; mpirun pins ranks", "--pin");
	signal(SIGTERM, on_term);
	if (workers)
		by_fork();
	else
		by_mpi(argc, argv);
	return 0;
}
