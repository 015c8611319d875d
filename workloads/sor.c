/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sor - red-black successive over-relaxation: S1's nearest-neighbour workload.
 *
 * An N x N grid in blocks of rows, its upper edge held at 1 and the others at 0.
 * Before each half sweep neighbours exchange their edge rows; every tenth
 * iteration all ranks sum the residual. Red points need only black ones, so the
 * grid after k iterations is the same, bit for bit, for any number of ranks; the
 * checksum covers every point of it. The residual is printed, not acted upon.
 */
#include "phase.h"

#define RESIDUAL_EVERY 10

static uint64_t size = 128, iterations = 300000;
static const char *gate;

/* Rows 1..nr are ours, 0 and nr + 1 the neighbours'; columns 0 and size + 1 edges. */
struct block {
	double *cell;
	size_t width;
	int first, nr;			/* our rows of the whole grid, from 1 */
	int above, below;		/* ranks, or MPI_PROC_NULL */
	double omega;
};

static double *row(const struct block *b, int i)
{
	return b->cell + (size_t)i * b->width;
}

static struct block block_of(const struct phase *p)
{
	int n = (int)size, share = n / p->ranks, rest = n % p->ranks;
	struct block b = {
		.width = size + 2,
		.first = 1 + p->rank * share + (p->rank < rest ? p->rank : rest),
		.nr = share + (p->rank < rest),
		.above = p->rank ? p->rank - 1 : MPI_PROC_NULL,
		.below = p->rank + 1 < p->ranks ? p->rank + 1 : MPI_PROC_NULL,
		.omega = 2 / (1 + sin(acos(-1) / (double)size)),
	};

	b.cell = calloc((size_t)b.nr + 2, b.width * sizeof(double));
	if (!b.cell) {
		fprintf(stderr, "sor: no memory for %d rows of %zu; lower --size\n", b.nr, b.width);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	if (!p->rank)
		for (size_t j = 0; j < b.width; j++)
			row(&b, 0)[j] = 1;
	return b;
}

static void exchange(const struct block *b)
{
	int width = (int)b->width;

	MPI_Sendrecv(row(b, 1), width, MPI_DOUBLE, b->above, 0,
		     row(b, b->nr + 1), width, MPI_DOUBLE, b->below, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(row(b, b->nr), width, MPI_DOUBLE, b->below, 1,
		     row(b, 0), width, MPI_DOUBLE, b->above, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Relaxes the points where row + column is odd or even; returns the residual. */
static double half_sweep(const struct block *b, int colour)
{
	double sum = 0;

	for (int i = 1; i <= b->nr; i++) {
		const double *up = row(b, i - 1), *down = row(b, i + 1);
		double *here = row(b, i);

		for (size_t j = 1 + (size_t)((b->first + i + colour) & 1); j + 1 < b->width; j += 2) {
			double change = (up[j] + down[j] + here[j - 1] + here[j + 1]) / 4 - here[j];

			here[j] += b->omega * change;
			sum += change * change;
		}
	}
	return sum;
}

static double solve(const struct block *b)
{
	double residual = 0;

	for (uint64_t i = 1; i <= iterations; i++) {
		double sum = 0;

		for (int colour = 0; colour < 2; colour++) {
			exchange(b);
			sum += half_sweep(b, colour);
		}
		if (i % RESIDUAL_EVERY == 0)
			MPI_Allreduce(&sum, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	return sqrt(residual);
}

/* A sum over points, so that it does not depend on how rows are dealt out. */
static uint64_t checksum(const struct block *b)
{
	uint64_t sum = 0;

	for (int i = 1; i <= b->nr; i++)
		for (size_t j = 1; j + 1 < b->width; j++) {
			uint64_t at[2] = { (uint64_t)(b->first + i - 1), j };
			uint64_t hash = wl_hash(WL_HASH, at, sizeof(at));

			sum += wl_hash(hash, &row(b, i)[j], sizeof(double));
		}
	return sum;
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "size", WL_COUNT, &size, "rows and columns of the grid" },
		{ "iterations", WL_COUNT, &iterations, "sweeps over the grid" },
		{ "gate", WL_TEXT, &gate, "a FIFO: begin when its writer closes it" },
		{ 0 },
	};
	struct phase p;
	struct block b;
	double residual;

	wl_options(argc, argv, "Red-black SOR, rows dealt out to the ranks.", options);
	if (size < 1 || size > 100000)
		wl_usage("must be 1 to 100000", "--size");
	phase_init(&p, &argc, &argv);
	if (size < (uint64_t)p.ranks)
		phase_refuse(&p, "each needs a row of the grid; raise --size");
	b = block_of(&p);
	phase_gate(&p, gate);
	phase_begin(&p);
	residual = solve(&b);
	p.checksum = checksum(&b);
	phase_end(&p);
	free(b.cell);
	phase_report(&p, "sor", "\"size\":%" PRIu64 ",\"iterations\":%" PRIu64 ",\"residual\":%.9e",
		     size, iterations, residual);
	return 0;
}
