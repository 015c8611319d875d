/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * policy.h - the contract between policy and the bodies that ask it.
 *
 * A policy is an answer to seven questions (wait, arrival, fairness, periodic,
 * order, quantum, allocation). A body (shim, kernel, simulator) SEES and KNOWS;
 * it fills a cos_obs, asks, and ACTS on the verdict. Policy never acts.
 *
 *   state   cos_task and cos_job are memory that the body owns and only policy
 *           writes; all zero is their initial value.
 *   params  cos_params are bytes, compiled from a preset's TOML, the same for
 *           the shim's page, a BPF map and the simulator.
 *   unknown is never zero: a field of cos_obs counts only where its bit in
 *           `known` is set.
 *   verdict cos_out, zeroed first; valid until `until_ns` or one of the events
 *           in `watch`. `reason` is counted by every body alike.
 *
 * Each question is one header, each answer one function; the dispatching
 * functions all have the type cos_decide (cos_observe has cos_learn, and the
 * slow path of allocation cos_plan_fn). Answer 0 of every question but `wait`
 * is "as the local scheduler does", which needs no code.
 */
#ifndef COS_POLICY_H
#define COS_POLICY_H

#include "types.h"

#define COS_POLICY_ABI 1
#define COS_NR_ARGS 6

enum cos_question {
	COS_Q_WAIT,		/* how does a rank wait? */
	COS_Q_ARRIVAL,		/* a message for one who is not running? */
	COS_Q_FAIRNESS,		/* may it be boosted now? */
	COS_Q_PERIODIC,		/* and between arrivals? */
	COS_Q_ORDER,		/* who is next? */
	COS_Q_QUANTUM,		/* for how long? */
	COS_Q_ALLOCATION,	/* where? */
	COS_NR_QUESTIONS,
};

enum cos_wait_answer {
	COS_WAIT_SPIN,		/* poll for ever */
	COS_WAIT_BLOCK,		/* sleep at once */
	COS_WAIT_SPIN_BLOCK,	/* poll for arg[0] ns, then sleep */
	COS_WAIT_SPIN_YIELD,	/* poll for arg[0] ns, then yield at each empty poll */
	COS_WAIT_ADAPTIVE,	/* spin only while it pays */
	COS_NR_WAIT_ANSWERS,
};

enum cos_event {
	COS_EV_ARRIVAL,		/* a message reached this task's node */
	COS_EV_SEND,		/* it sent one */
	COS_EV_CONSUME,		/* it received one */
	COS_EV_WAIT,		/* it began to wait */
	COS_EV_WAKE,		/* it runs again after a block; wake_cost_ns is known */
	COS_EV_RUN,		/* it runs again after a yield or preemption; waited_ns = time away */
	COS_EV_STOP,		/* it left the CPU */
	COS_EV_PEER_CHANGED,	/* the awaited peer came on or went off its CPU */
	COS_EV_PERIOD,
	COS_EV_EPOCH,
	COS_EV_JOB_BEGIN,
	COS_EV_JOB_END,
	COS_NR_EVENTS,
};

enum cos_peer_state {
	COS_PEER_ON_CPU = 1,
	COS_PEER_OFF_CPU,	/* runnable or asleep, but not running */
	COS_PEER_WAKING,	/* it slept, was rung, and has not run yet */
};

/* Bits of cos_obs.known and cos_out.watch. */
enum cos_field {
	COS_F_WAITED		= 1u << 0,
	COS_F_WAKE_COST		= 1u << 1,
	COS_F_RAN		= 1u << 2,
	COS_F_LAST_RAN_AT	= 1u << 3,
	COS_F_LOCAL_KEY		= 1u << 4,
	COS_F_RQ_BYTES		= 1u << 5,
	COS_F_SQ_BYTES		= 1u << 6,
	COS_F_L1_MISS		= 1u << 7,
	COS_F_L2_MISS		= 1u << 8,
	COS_F_LAG		= 1u << 9,
	COS_F_NR_RUNNABLE	= 1u << 10,
	COS_F_NR_RUNNABLE_AVG	= 1u << 11,
	COS_F_NR_PENDING	= 1u << 12,
	COS_F_NR_SAME_JOB_HERE	= 1u << 13,
	COS_F_PEER_STATE	= 1u << 14,
	COS_F_INTERACTIVE	= 1u << 15,
	COS_F_OUTSIDERS		= 1u << 16,
};

struct cos_params {
	u32 abi;				/* COS_POLICY_ABI */
	u32 answer[8];				/* by enum cos_question; [7] is spare */
	u32 pad;
	u64 arg[8][COS_NR_ARGS];		/* of that answer; ns, counts or q8 */
};

struct cos_obs {
	u64 now_ns;
	u32 event;				/* enum cos_event */
	u32 known;				/* enum cos_field, one bit per field below */
	u64 waited_ns;				/* since the wait began */
	u64 wake_cost_ns;			/* from doorbell to running, this time */
	u64 ran_ns;				/* since it last came on its CPU */
	u64 last_ran_at_ns;
	u64 local_key;				/* the local scheduler's own */
	u64 rq_bytes, sq_bytes;			/* unread, unsent */
	u64 l1_miss, l2_miss;
	s64 lag_ns;				/* > 0: behind its fair share */
	u32 nr_runnable;			/* on its CPU, itself included */
	u32 nr_runnable_avg_q8;
	u32 nr_pending;				/* unconsumed messages */
	u32 nr_same_job_here;			/* other ranks of its job that want its CPU */
	u32 peer_state;				/* enum cos_peer_state, of the awaited peer */
	u32 interactive;
	u32 nr_outsiders_q8;			/* tasks of others that compete for its CPU, average */
	u32 pad;
};

struct cos_task { u64 w[16]; };
struct cos_job  { u64 w[16]; };

enum cos_act {
	COS_ACT_NONE,
	COS_ACT_SPIN,
	COS_ACT_YIELD,
	COS_ACT_BLOCK,
	COS_ACT_BOOST,
	COS_ACT_MARK_RUNNING,
};

enum cos_reason {
	COS_WHY_PRESET,		/* the preset says so, whatever is seen */
	COS_WHY_PAYS,		/* spinning is still cheaper than a wake-up */
	COS_WHY_LIMIT,		/* the spin limit is reached */
	COS_WHY_PEER_OFF,	/* the awaited peer is off its CPU */
	COS_WHY_SAME_JOB,	/* the CPU goes to a rank of the same job */
	COS_NR_REASONS,
};

struct cos_out {
	u32 act;				/* enum cos_act */
	u32 reason;				/* enum cos_reason */
	u64 until_ns;				/* instant; COS_NEVER_NS = until an event */
	u64 slice_ns;				/* 0 = the local scheduler's own */
	s64 key;
	u32 watch;				/* enum cos_field: ask again when one changes */
	u32 boost_peer;				/* BLOCK: ask for a boost of the awaited peer too, and again at until_ns */
};

_Static_assert(sizeof(struct cos_params) == 424, "params are an ABI");
_Static_assert(sizeof(struct cos_obs) == 128, "observations are an ABI");
_Static_assert(sizeof(struct cos_task) == 128 && sizeof(struct cos_job) == 128,
	       "policy state is an ABI");
_Static_assert(sizeof(struct cos_out) == 40, "verdicts are an ABI");

/* A waiting job as allocation sees it (slow path, native only). */
struct cos_alloc_job {
	u64 id;
	u32 nr_ranks, nr_cpus_min, nr_cpus_max;
	u32 nr_cpus;				/* out: CPUs granted; 0 = must wait */
};

/* The shape of every question's dispatching function ... */
typedef void cos_decide(const struct cos_params *, const struct cos_obs *,
			struct cos_task *, struct cos_job *, struct cos_out *);
/* ... of cos_observe, which only learns ... */
typedef void cos_learn(const struct cos_params *, const struct cos_obs *,
		       struct cos_task *, struct cos_job *);
/* ... and of allocation: at most 256 jobs; returns how many were granted CPUs. */
typedef int cos_plan_fn(const struct cos_params *, struct cos_alloc_job *,
			u32 nr_jobs, u32 nr_cpus);

COS_FN void cos_verdict(struct cos_out *out, u32 act, u32 reason, u64 until_ns)
{
	*out = (struct cos_out){ .act = act, .reason = reason, .until_ns = until_ns };
}

#include "wait.h"

#endif
