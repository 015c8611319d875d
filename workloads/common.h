/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common.h - what every workload shares: options, clocks, a grain of work.
 *
 * A workload is a program to measure with, so it must do the same work in each
 * run. A grain of computing is a count of loop turns, never a loop around the
 * wall clock: a rank that lost its CPU half way must not get the rest for free.
 * The count for a wanted time is calibrated once per run, by CPU time; --spins
 * fixes it for a series of runs.
 *
 * Exit codes: 0 done; 2 usage. What went wrong is one line on stderr.
 */
#ifndef WORKLOAD_COMMON_H
#define WORKLOAD_COMMON_H

#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WL_FN static inline __attribute__((unused))
#define WL_MAX_OPTIONS 16

/* The type of value[]'s target follows from the kind. */
enum wl_kind {
	WL_FLAG,			/* bool */
	WL_COUNT,			/* uint64_t */
	WL_REAL,			/* double */
	WL_TEXT,			/* const char * */
};

struct wl_option {
	const char *name;		/* without the dashes; NULL ends the table */
	enum wl_kind kind;
	void *value;			/* holds the default until the option is given */
	const char *help;
};

WL_FN __attribute__((noreturn)) void wl_usage(const char *what, const char *on)
{
	fprintf(stderr, "%s: %s: %s; see --help\n", program_invocation_short_name, on, what);
	exit(2);
}

WL_FN void wl_print_default(const struct wl_option *o)
{
	if (o->kind == WL_COUNT)
		printf(" [%" PRIu64 "]", *(const uint64_t *)o->value);
	else if (o->kind == WL_REAL)
		printf(" [%g]", *(const double *)o->value);
}

WL_FN __attribute__((noreturn)) void wl_help(const char *about, const struct wl_option *options)
{
	static const char *const operand[] = { "", " N", " X", " FILE" };

	printf("Usage: %s [OPTIONS]\n\n%s\n\nOptions:\n", program_invocation_short_name, about);
	for (const struct wl_option *o = options; o->name; o++) {
		int width = printf("  --%s%s", o->name, operand[o->kind]);

		printf("%*s%s", width < 24 ? 24 - width : 1, "", o->help);
		wl_print_default(o);
		printf("\n");
	}
	printf("  --help                this text\n\n"
	       "The last line on stdout is one JSON object.\n");
	exit(0);
}

WL_FN void wl_set(const struct wl_option *o, const char *text)
{
	char *end = NULL;

	errno = 0;
	switch (o->kind) {
	case WL_FLAG:
		*(bool *)o->value = true;
		return;
	case WL_TEXT:
		*(const char **)o->value = text;
		return;
	case WL_COUNT:
		if (text[0] < '0' || text[0] > '9')
			wl_usage("not a whole number", text);
		*(uint64_t *)o->value = strtoull(text, &end, 10);
		break;
	case WL_REAL:
		*(double *)o->value = strtod(text, &end);
		if (!isfinite(*(double *)o->value) || *(double *)o->value < 0)
			wl_usage("not a number from 0 on", text);
		break;
	}
	if (end == text || *end || errno)
		wl_usage("not a number", text);
}

/* Before MPI_Init, so that --help needs no launcher. */
WL_FN void wl_options(int argc, char **argv, const char *about, const struct wl_option *options)
{
	struct option longs[WL_MAX_OPTIONS + 2] = { 0 };
	int nr = 0, c;

	for (; options[nr].name; nr++) {
		int takes = options[nr].kind == WL_FLAG ? no_argument : required_argument;

		longs[nr] = (struct option){ options[nr].name, takes, NULL, nr };
	}
	longs[nr] = (struct option){ "help", no_argument, NULL, nr };
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == '?')
			exit(2);
		if (c == nr)
			wl_help(about, options);
		wl_set(&options[c], optarg);
	}
	if (optind < argc)
		wl_usage("unexpected argument", argv[optind]);
}

WL_FN double wl_clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

WL_FN double wl_wall_s(void)
{
	return wl_clock_s(CLOCK_MONOTONIC);
}

/* Of all threads of this process. */
WL_FN double wl_cpu_s(void)
{
	return wl_clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

/* One chain of dependent multiplications: its time does not depend on caches. */
WL_FN uint64_t wl_work(uint64_t spins, uint64_t seed)
{
	uint64_t x = seed;

	for (uint64_t i = 0; i < spins; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/*
 * Loop turns that take @us of CPU time: the best of a few tries, since whatever
 * disturbs a try makes it longer.
 */
WL_FN uint64_t wl_calibrate(double us)
{
	const uint64_t spins = 2000000;
	double best_s = INFINITY;

	for (int try = 0; try < 9; try++) {
		double begin_s = wl_cpu_s();

		wl_work(spins, (uint64_t)try);
		best_s = fmin(best_s, wl_cpu_s() - begin_s);
	}
	return (uint64_t)fmax(1, us * 1e-6 * (double)spins / best_s);
}

/* FNV-1a, 64 bits; start with WL_HASH. */
#define WL_HASH 0xcbf29ce484222325ULL
WL_FN uint64_t wl_hash(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3ULL;
	return hash;
}

#endif
