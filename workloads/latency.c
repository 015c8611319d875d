/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency - S3's workload: a 128-byte token between the ranks of a pair.
 *
 * Ranks 0 and 1, 2 and 3, ... throw a token to and fro; each round trip goes
 * into a histogram, since the tail decides: one lost slice costs more than ten
 * thousand round trips. Up to 1000 us a bin is 1 us wide, above it a quarter of
 * an octave. Percentiles are upper bounds of their bin; mean and maximum exact.
 * An odd last rank only takes part in the first and last barrier.
 */
#include "phase.h"

#define NR_LINEAR 1000
#define NR_LOG 128
#define NR_BINS (NR_LINEAR + NR_LOG)
#define TOKEN_BYTES 128

static uint64_t round_trips = 1000000;
static const char *histogram_path;
static uint64_t bins[NR_BINS];

static int bin_of(double us)
{
	if (us < NR_LINEAR)
		return (int)us;
	return NR_LINEAR + (int)fmin(NR_LOG - 1, 4 * log2(us / NR_LINEAR));
}

/* Where bin @i begins; that of i + 1 is its upper bound. */
static double bin_from_us(int i)
{
	return i < NR_LINEAR ? i : NR_LINEAR * exp2((i - NR_LINEAR) / 4.0);
}

static double percentile_us(uint64_t total, double q)
{
	uint64_t seen = 0;
	int i = 0;

	while (i < NR_BINS - 1 && (double)(seen += bins[i]) < q * (double)total)
		i++;
	return bin_from_us(i + 1);
}

/* Sums up to [0] = total and [1] = maximum, in us. */
static void serve(struct phase *p, double took_us[2])
{
	uint64_t token[TOKEN_BYTES / sizeof(uint64_t)] = { 0 };
	int peer = p->rank + 1;

	for (uint64_t i = 0; i < round_trips; i++) {
		double begin_s = wl_wall_s(), us;

		token[0] = i;
		MPI_Send(token, TOKEN_BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
		MPI_Recv(token, TOKEN_BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		us = 1e6 * (wl_wall_s() - begin_s);
		bins[bin_of(us)]++;
		took_us[0] += us;
		took_us[1] = fmax(took_us[1], us);
		p->checksum = wl_hash(p->checksum, token, 2 * sizeof(token[0]));
	}
}

static void reply(int peer)
{
	uint64_t token[TOKEN_BYTES / sizeof(uint64_t)];

	for (uint64_t i = 0; i < round_trips; i++) {
		MPI_Recv(token, TOKEN_BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token[1] = token[0] + 1;
		MPI_Send(token, TOKEN_BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
	}
}

static void write_histogram(void)
{
	FILE *file = fopen(histogram_path, "w");

	if (file) {
		fprintf(file, "from_us,to_us,count\n");
		for (int i = 0; i < NR_BINS; i++)
			if (bins[i])
				fprintf(file, "%.1f,%.1f,%" PRIu64 "\n", bin_from_us(i),
					bin_from_us(i + 1), bins[i]);
	}
	if (!file || fclose(file)) {
		fprintf(stderr, "latency: cannot write the histogram to %s: %s\n",
			histogram_path, strerror(errno));
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "iterations", WL_COUNT, &round_trips, "round trips of each pair" },
		{ "histogram", WL_TEXT, &histogram_path, "write the histogram of all pairs as CSV" },
		{ 0 },
	};
	double took_us[2] = { 0 }, sum_us = 0, max_us = 0;
	uint64_t mine[NR_BINS], total;
	struct phase p;

	wl_options(argc, argv, "Round trips of a token between pairs of ranks.", options);
	phase_init(&p, &argc, &argv);
	if (p.ranks < 2)
		phase_refuse(&p, "it takes two; start it with mpirun -n 2");
	phase_begin(&p);
	if (p.rank % 2)
		reply(p.rank - 1);
	else if (p.rank + 1 < p.ranks)
		serve(&p, took_us);
	phase_end(&p);
	memcpy(mine, bins, sizeof(mine));
	MPI_Reduce(mine, bins, NR_BINS, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&took_us[0], &sum_us, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&took_us[1], &max_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	total = round_trips * (uint64_t)(p.ranks / 2);
	if (histogram_path && !p.rank)
		write_histogram();
	phase_report(&p, "latency",
		     "\"round_trips\":%" PRIu64 ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,"
		     "\"mean_us\":%.3f",
		     total, percentile_us(total, 0.5), percentile_us(total, 0.99), max_us,
		     total ? sum_us / (double)total : 0);
	return 0;
}
