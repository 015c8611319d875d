/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * kernel.h - what crosses between coschedd and its BPF programs.
 *
 * Arrays that both map, indexed by small numbers; nothing here is reached by a
 * user, but `oncpu`, which ranks map too: coschedd freezes it, so that nobody but the
 * programs can write it. coschedd writes a job's entry before it lets a task join, and params
 * when they change; all else is written by BPF and only read outside. Counters
 * only grow; two CPUs may count at once, so they are added to atomically.
 *
 *   config    one entry, before attach
 *   jobs      by job number, 1 .. COS_MAX_JOBS - 1; 0 means "no job"
 *   oncpu     by CPU: which rank runs there
 *   counts    by CPU: enum cos_count (counts.def says what each means)
 *   exits     one entry: why sched_ext took the scheduler away
 */
#ifndef COS_KERNEL_H
#define COS_KERNEL_H

#include "../policy/policy.h"

#define COS_KERNEL_ABI 1
#define COS_MAX_JOBS 64
#define COS_MAX_CPUS 1024

/* How a body learned that a task has something to do. */
enum cos_seen {
	COS_SEEN_SOCKET,	/* a packet or datagram for a socket that it reads */
	COS_SEEN_WAKE,		/* a rank of its job woke it: futex, pipe, signal */
	COS_SEEN_YIELD,		/* a rank of its job waits by sched_yield() */
	COS_SEEN_MATE,		/* a rank of its job came on a CPU: the only sign of one that spins */
	COS_SEEN_AGAIN,		/* refused or running then; asked again */
	COS_NR_SEEN,
};

enum cos_count {
#define COS_COUNT(name, word, meaning) COS_COUNT_##name,
#include "counts.def"
#undef COS_COUNT
	COS_NR_COUNTS,
};

struct cos_kernel_config {
	u32 abi;			/* COS_KERNEL_ABI */
	u32 nr_cpus;			/* possible CPUs, at most COS_MAX_CPUS */
	u32 schedules;			/* 1: sched_ext; 0: observe only */
	u32 max_looks;			/* so many of a queue are looked at */
	u64 slice_ns;			/* of a turn */
	u64 max_debt_ns;		/* a boosted task may be so far ahead */
	u64 credit_ns;			/* a sleeper or yielder keeps so much of what it is owed */
	u64 granularity_ns;		/* who wakes preempts from so far behind; a sync wake-up, a turn so long */
	u64 kick_gap_ns;		/* least time between two boosting kicks of a CPU */
	u64 balance_ns;			/* least time between two looks of a CPU for a longer queue */
};

#define COS_NR_RUN_DELAYS 32		/* bucket i: below 2^(i+10) ns; the last: above */

struct cos_kernel_job {
	u64 serial;			/* 0 = free; no two jobs since attach have the same */
	u64 boost_gap_ns;		/* least time between two boosts; 0 = no limit */
	struct cos_params params;
	struct cos_job state;
	u64 boosted_at_ns;
	u64 nr_tasks;			/* that are in it now */
	u64 nr_joined;			/* ever */
	u64 ran_ns;			/* CPU time of its tasks */
	u64 wanted_ns;			/* time that they ran or could have */
	u64 due_ns;			/* their fair part of that */
	u64 nr_seen[COS_NR_SEEN];
	u64 nr_boosts;			/* marked to run next */
	u64 nr_served;			/* ... that did run in time */
	u64 nr_expired;			/* ... that did not */
	u64 yielded_at_ns;		/* the latest, and by whom */
	u64 yielded_by;
	u64 nr_yields;
	u64 nr_stayed;			/* ... that kept their CPU */
	u64 nr_migrations;
	u64 why_boosted[COS_NR_REASONS];	/* verdicts BOOST, by reason */
	u64 why_denied[COS_NR_REASONS];		/* all others */
	u64 run_delay[COS_NR_RUN_DELAYS];	/* arrival to run */
};

/* As the kernel says; 0 = still there. */
struct cos_kernel_exit {
	u64 kind;
	u64 code;
	char reason[128];
	char message[1024];
};

/*
 * Which rank runs on a CPU; a cache line of its own. Who is in no job is not named, since
 * every user may read this.
 */
struct cos_oncpu {
	u64 since_ns;			/* it came; CLOCK_MONOTONIC */
	u32 tid, tgid;			/* 0 = no rank; as the first pid namespace counts */
	u32 job;			/* of who is there or, where we schedule, was last; 0 = none */
	u32 pad[11];
};

_Static_assert(sizeof(struct cos_oncpu) == 64, "a cache line");
_Static_assert(sizeof(struct cos_kernel_config) == 64, "an ABI");
_Static_assert(sizeof(struct cos_kernel_job) % 8 == 0, "an ABI");

#endif
