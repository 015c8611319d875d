/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yielders - workers on a queue in shared memory that wait in sched_yield().
 *
 * What the workers of one model do on a node under vLLM (its shm_broadcast):
 * worker 0 tells the others what is next, through a ring of messages with one
 * writer and a mark for each reader; all compute for a grain; each answers
 * through a ring of its own; --rounds times. Who waits calls sched_yield() at
 * each poll, and never sleeps. Each needs each other once per grain, as in
 * `barrier`, but there is no MPI, no library to be hooked, and no system call
 * that says who waits for whom.
 */
#include "workers.h"
#include <stdatomic.h>

#define NR_SLOTS 10
#define MESSAGE_WORDS 32

/* Message i is in slot i % NR_SLOTS; marks hold i + 1, so that zero is "never". */
struct slot {
	_Alignas(64) _Atomic uint64_t written;
	_Atomic uint64_t read[MAX_WORKERS];
	_Alignas(64) uint64_t message[MESSAGE_WORDS];
};

struct ring {
	int nr_readers;
	struct slot slot[NR_SLOTS];
};

struct result {
	double elapsed_s, cpu_s;
	uint64_t yields, checksum;
};

static struct shared {
	struct ring tasks;			/* of worker 0 */
	struct ring answers[MAX_WORKERS];	/* of each other one, read by worker 0 */
	struct result result[MAX_WORKERS];
} *shared;

static uint64_t workers = 2, rounds = 100000, spins;
static double grain_us = 78;
static bool pin;
static uint64_t yields;				/* of this worker */

/* Until @mark is at least @wanted. */
static void await(_Atomic uint64_t *mark, uint64_t wanted)
{
	while (atomic_load_explicit(mark, memory_order_acquire) < wanted) {
		yields++;
		sched_yield();
	}
}

/* A slot is free when all readers have read what was in it. */
static void put(struct ring *ring, uint64_t i, const uint64_t *message)
{
	struct slot *slot = &ring->slot[i % NR_SLOTS];

	for (int r = 0; r < ring->nr_readers && i >= NR_SLOTS; r++)
		await(&slot->read[r], i + 1 - NR_SLOTS);
	memcpy(slot->message, message, sizeof(slot->message));
	atomic_store_explicit(&slot->written, i + 1, memory_order_release);
}

static void get(struct ring *ring, int reader, uint64_t i, uint64_t *message)
{
	struct slot *slot = &ring->slot[i % NR_SLOTS];

	await(&slot->written, i + 1);
	memcpy(message, slot->message, sizeof(slot->message));
	atomic_store_explicit(&slot->read[reader], i + 1, memory_order_release);
}

/* The checksum follows from what it is answered. */
static uint64_t drive(void)
{
	uint64_t message[MESSAGE_WORDS] = { 0 }, checksum = WL_HASH;

	for (uint64_t i = 0; i < rounds; i++) {
		message[i % MESSAGE_WORDS] = i;
		put(&shared->tasks, i, message);
		wl_work(spins, i);
		for (uint64_t w = 1; w < workers; w++) {
			uint64_t answer[MESSAGE_WORDS];

			get(&shared->answers[w], 0, i, answer);
			checksum = wl_hash(checksum, answer, sizeof(answer));
		}
	}
	return checksum;
}

static void serve(int worker)
{
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t message[MESSAGE_WORDS];

		get(&shared->tasks, worker - 1, i, message);
		wl_work(spins, i);
		message[0] += (uint64_t)worker;
		put(&shared->answers[worker], i, message);
	}
}

static void work(int worker)
{
	struct result *mine = &shared->result[worker];
	double begin_s, begin_cpu_s;

	workers_meet();
	begin_s = wl_wall_s();
	begin_cpu_s = wl_cpu_s();
	if (worker)
		serve(worker);
	else
		mine->checksum = drive();
	mine->elapsed_s = wl_wall_s() - begin_s;
	mine->cpu_s = wl_cpu_s() - begin_cpu_s;
	mine->yields = yields;
}

static void report(void)
{
	struct result all = { .checksum = shared->result[0].checksum };

	for (uint64_t w = 0; w < workers; w++) {
		all.elapsed_s = fmax(all.elapsed_s, shared->result[w].elapsed_s);
		all.cpu_s += shared->result[w].cpu_s;
		all.yields += shared->result[w].yields;
	}
	printf("{\"workload\":\"yielders\",\"ranks\":%" PRIu64 ",\"elapsed_s\":%.6f,\"cpu_s\":%.6f,"
	       "\"rounds\":%" PRIu64 ",\"yields\":%" PRIu64 ",\"spins\":%" PRIu64
	       ",\"checksum\":\"%016" PRIx64 "\"}\n",
	       workers, all.elapsed_s, all.cpu_s, rounds, all.yields, spins, all.checksum);
}

int main(int argc, char **argv)
{
	const struct wl_option options[] = {
		{ "workers", WL_COUNT, &workers, "processes" },
		{ "pin", WL_FLAG, &pin, "worker i on the i-th CPU that it may use" },
		{ "rounds", WL_COUNT, &rounds, "messages to all, and answers" },
		{ "grain-us", WL_REAL, &grain_us, "CPU time of each worker in a round" },
		{ "spins", WL_COUNT, &spins, "loop turns per grain; 0: calibrate" },
		{ 0 },
	};

	wl_options(argc, argv, "Workers that wait for each other in sched_yield; no MPI.", options);
	if (workers < 2 || workers > MAX_WORKERS)
		wl_usage("must be 2 to 64", "--workers");
	if (!spins)
		spins = wl_calibrate(grain_us);
	shared = workers_share(sizeof(*shared));
	shared->tasks.nr_readers = (int)workers - 1;
	for (uint64_t w = 1; w < workers; w++)
		shared->answers[w].nr_readers = 1;
	workers_run(workers, pin, work);
	report();
	return 0;
}
