/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local - S5's local user: part of a CPU, and now and then a long system call.
 *
 * Not an MPI program. It computes --share of each 10 ms, then sleeps out the
 * rest; at exponential intervals (mean 500 ms of its own nominal time) it writes
 * and reads back 1-10 MB. Work, instants and sizes follow from the seed alone,
 * so each run does the same, however long it takes. What a user feels is
 * reported: the latency of the calls and the wall clock, beside the nominal one.
 */
#include "common.h"
#include <sys/types.h>
#include <unistd.h>

#define PERIOD_S 0.010
#define CALL_MIN_BYTES 1000000
#define CALL_MAX_BYTES 10000000

static double share = 0.5, nominal_s = 10, mean_ms = 500;
static uint64_t spins, seed = 1;

struct calls {
	uint64_t nr, bytes, checksum;
	double sum_s, max_s;
};

/* splitmix64, as a number in [0, 1). */
static double random_unit(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double exponential_s(uint64_t *state)
{
	return -mean_ms * 1e-3 * log(1 - random_unit(state));
}

static __attribute__((noreturn)) void fail(const char *what)
{
	fprintf(stderr, "local: cannot %s a temporary file: %s; set TMPDIR to a directory with "
		"10 MB free\n", what, strerror(errno));
	exit(3);
}

static int open_scratch(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/local-XXXXXX", dir && *dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0 || unlink(path))
		fail("make");
	return fd;
}

/* All of it, by as many system calls as that takes. */
static void transfer(int fd, char *data, size_t size, bool out)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = out ? pwrite(fd, data + done, size - done, (off_t)done)
				: pread(fd, data + done, size - done, (off_t)done);

		if (n <= 0)
			fail(out ? "write" : "read");
		done += (size_t)n;
	}
}

static void call(int fd, char *data, uint64_t *state, struct calls *c)
{
	size_t size = CALL_MIN_BYTES +
		      (size_t)(random_unit(state) * (CALL_MAX_BYTES - CALL_MIN_BYTES + 1));
	double begin_s = wl_wall_s(), took_s;

	memset(data, (int)(c->nr & 0x7f), size);
	transfer(fd, data, size, true);
	transfer(fd, data, size, false);
	took_s = wl_wall_s() - begin_s;
	c->checksum = wl_hash(c->checksum, data, size);
	c->sum_s += took_s;
	c->max_s = fmax(c->max_s, took_s);
	c->bytes += size;
	c->nr++;
}

static void sleep_until(double at_s)
{
	struct timespec ts = { (time_t)at_s, (long)((at_s - floor(at_s)) * 1e9) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static struct calls live(int fd, char *data)
{
	uint64_t periods = (uint64_t)llround(nominal_s / PERIOD_S), state = seed;
	struct calls c = { .checksum = WL_HASH };
	double next_call_s = exponential_s(&state);

	for (uint64_t i = 0; i < periods; i++) {
		double begin_s = wl_wall_s();

		wl_work(spins, i);
		for (; next_call_s < (double)(i + 1) * PERIOD_S; next_call_s += exponential_s(&state))
			call(fd, data, &state, &c);
		sleep_until(begin_s + PERIOD_S);
	}
	return c;
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "share", WL_REAL, &share, "of a CPU, while it computes; 0 to 1" },
		{ "seconds", WL_REAL, &nominal_s, "nominal length: what it takes alone" },
		{ "mean-ms", WL_REAL, &mean_ms, "mean interval of the system calls" },
		{ "spins", WL_COUNT, &spins, "loop turns per 10 ms; 0: calibrate" },
		{ "seed", WL_COUNT, &seed, "of intervals and sizes" },
		{ 0 },
	};
	double begin_s, cpu_s;
	char *data = malloc(CALL_MAX_BYTES);
	struct calls c;
	int fd;

	wl_options(argc, argv, "A local user: computing, sleeping, files.", options);
	if (share > 1)
		wl_usage("must be 0 to 1", "--share");
	if (mean_ms < 1)
		wl_usage("must be at least 1", "--mean-ms");
	if (!data)
		fail("buffer");
	if (!spins)
		spins = wl_calibrate(share * PERIOD_S * 1e6);
	fd = open_scratch();
	begin_s = wl_wall_s();
	cpu_s = wl_cpu_s();
	c = live(fd, data);
	free(data);
	printf("{\"workload\":\"local\",\"elapsed_s\":%.6f,\"cpu_s\":%.6f,\"nominal_s\":%g,"
	       "\"calls\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"call_mean_ms\":%.3f,"
	       "\"call_max_ms\":%.3f,\"spins\":%" PRIu64 ",\"checksum\":\"%016" PRIx64 "\"}\n",
	       wl_wall_s() - begin_s, wl_cpu_s() - cpu_s, nominal_s, c.nr, c.bytes,
	       c.nr ? 1e3 * c.sum_s / (double)c.nr : 0, 1e3 * c.max_s, spins, c.checksum);
	return 0;
}
