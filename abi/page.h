/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * page.h - the job page: what the ranks of one node tell each other.
 *
 * A sealed memfd of fixed size, allocated when it is made: it cannot shrink, so
 * no access faults, and it has no name, so there is nothing to sweep. `cosched
 * run` makes it (on the other nodes of a job a keeper does) and hands it to
 * each rank over a socket (wire.h). One header, then one slot per rank.
 *
 * Everything here is a hint from an unprivileged process. A reader bounds-checks
 * and survives any value; a wrong one costs at most a late wake-up, which the
 * bounded sleep repairs.
 *
 * A slot is four cache lines, by who writes them:
 *   line 0  the doorbell: its rank when it arms, a ringer when it rings
 *   line 1  what its rank is doing; its rank, at the start and end of waits
 *   line 2  its counters; its rank only
 *   line 3  its wake-up delays and the reasons of its verdicts; its rank only
 */
#ifndef COS_PAGE_H
#define COS_PAGE_H

#include "../policy/policy.h"

#define COS_PAGE_MAGIC 0x45474150534f43ULL	/* "COSPAGE" */
#define COS_PAGE_VERSION 3
#define COS_MAX_SLOTS 2048
#define COS_NO_SLOT (~0u)
#define COS_AWAITS_ANY (~0ULL)

enum cos_rank_state {
	COS_RANK_NONE,			/* the slot is free, or its rank is passive */
	COS_RANK_COMPUTING,
	COS_RANK_SPINNING,
	COS_RANK_BLOCKED,
	COS_RANK_YIELDING,
	COS_RANK_DONE,			/* MPI_Finalize was reached */
};

enum cos_armed {
	COS_DISARMED,
	COS_ARMED_FUTEX,		/* ring = seq++ and FUTEX_WAKE */
	COS_ARMED_POLL,			/* ring = the same and its eventfd */
};

/* What ended a wait inside the library; bits of cos_slot.hook. */
enum cos_hook {
	COS_HOOK_YIELD	= 1u << 0,	/* sched_yield(): Open MPI */
	COS_HOOK_UCP	= 1u << 1,	/* ucp_worker_progress(): MPICH ch4:ucx */
	COS_HOOK_POLL	= 1u << 2,	/* zero-timeout poll, epoll_wait or select */
};

/* How peers may learn whether its rank is on a CPU; bits of cos_slot.watchable. */
enum cos_watchable {
	COS_WATCH_PUBLISHED = 1u << 0,	/* `tid` is who waits, by the number that the kernel body publishes */
	COS_WATCH_SWITCHES = 1u << 1,	/* its switch record may be had */
};

/* Which source told that the awaited peer is on or off its CPU. */
enum cos_source {
	COS_SRC_PUBLISHED,		/* what the kernel body publishes (kernel.h) */
	COS_SRC_SWITCHES,		/* the peer's context-switch record (perf) */
	COS_SRC_SAME_CPU,		/* it last ran on mine */
	COS_SRC_BEAT,			/* heartbeat of a spinning peer */
	COS_SRC_PROC,			/* /proc schedstat minus switches */
	COS_SRC_UNKNOWN,
	COS_NR_SOURCES,
};

/* A place: which group, its how manieth blocking collective, and two flags. */
#define COS_PLACE_WAITING 1ULL		/* armed in it */
#define COS_PLACE_NEEDS_ALL 2ULL	/* nobody can leave it before all have entered it */
#define COS_PLACE_COUNT_SHIFT 2
#define COS_PLACE_GROUP_SHIFT 34

#define COS_NR_DELAYS 11		/* bucket i: below 2^(i+2) us, so 4 us to 2 ms; the last: above */

typedef unsigned short u16;

struct cos_slot {
	/* line 0: written by its rank when it arms, by ringers when they ring */
	u32 armed;			/* enum cos_armed */
	u32 seq;			/* the futex word */
	u64 awaits;			/* bit (slot % 64) of each peer whose data may end the wait */
	u64 awaits_answer;		/* ... and of each that may only answer: the receivers of its sends */
	u64 place;			/* the latest blocking collective it entered (COS_PLACE_...); 0 = not told */
	u64 job;			/* key of the MPI job on this node; 0 = free slot */
	u32 world_rank;
	u32 pid, tid;
	u32 boost;			/* futex word of the thread that boosts it (boost.c) */
	u32 nr_wakes;			/* sleeps ended by a doorbell or packet */
	u32 rung_at_ns;			/* CLOCK_MONOTONIC of the latest ring, its low half */

	/* line 1: written by its rank */
	_Alignas(64) u32 state;		/* enum cos_rank_state */
	u32 cpu;			/* where it was when it last said so */
	u64 beat_at_ns;			/* while it spins */
	u64 begin_ns, end_ns;		/* MPI_Init returned, MPI_Finalize entered */
	u64 cpu_ns;			/* CPU time of the process between the two */
	u64 nr_calls;			/* of MPI */
	u16 hook;			/* enum cos_hook, those that fired */
	u16 watchable;			/* enum cos_watchable */
	u32 slice_us;			/* read back; 0 = the scheduler's own */
	u32 nr_gave;			/* test loops that gave way */
	u32 nr_boosts;			/* asked for its awaited peers */

	/* line 2: written by its rank */
	_Alignas(64) u64 spin_ns;	/* waiting and on the CPU or wanting it */
	u64 blocked_ns;			/* waiting asleep */
	u32 nr_blocks;			/* sleeps begun */
	u32 nr_timeouts;		/* sleeps ended by the safety net */
	u32 nr_missed;			/* ... that then found a message */
	u32 nr_spurious;		/* rung, and the next pass found nothing */
	u32 nr_rings;			/* doorbells rung at others */
	u32 nr_yields;
	u32 source[COS_NR_SOURCES];	/* enum cos_source, looks answered */

	/* line 3: written by its rank */
	_Alignas(64) u32 delay[COS_NR_DELAYS];	/* doorbell to running */
	u32 why[COS_NR_WAIT_REASONS];	/* verdicts that ended spinning, by reason */
};

struct cos_page {
	u64 magic;
	u32 version;
	u32 nr_slots;			/* capacity */
	u32 nr_used;			/* slots given out; written by the keeper */
	u32 nr_named;			/* ranks that know their world rank; written by them */
	u32 slice_us;			/* asked of the kernel for each rank; 0 = none */
	struct cos_params params;
	_Alignas(64) u64 armed[COS_MAX_SLOTS / 64];	/* bitmap by slot */
	_Alignas(4096) struct cos_slot slot[];
};

_Static_assert(sizeof(struct cos_slot) == 256, "at most 256 bytes per rank");
_Static_assert(sizeof(struct cos_page) == 4096, "the header is one page");

#endif
