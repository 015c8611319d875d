/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * contract.h - the contract between policy and the bodies that ask it.
 *
 * A policy is an answer to seven questions (wait, arrival, fairness, periodic,
 * order, quantum, allocation). A body (shim, kernel, simulator) SEES and KNOWS;
 * it fills a cos_obs, asks, and ACTS on the verdict. Policy never acts.
 *
 *   state   cos_task (one a task) and cos_job (one a job and node: nodes do not
 *           talk to each other) are memory that the body owns and only policy
 *           writes; all zero is their initial value. Who uses which word is
 *           said once, in enum cos_task_word and cos_job_word.
 *   params  cos_params are bytes, compiled from a preset's TOML, the same for
 *           the shim's page, a BPF map and the simulator.
 *   unknown is never zero: a field of cos_obs counts only where its bit in
 *           `known` is set. An answer that lacks what it needs leaves the local
 *           scheduler alone, with the reason `unknown`.
 *   verdict cos_out, zeroed first; valid until `until_ns` or one of the events
 *           in `watch`. `reason` is counted by every body alike.
 *
 * Each question is one header, each answer one function; the dispatching
 * functions all have the type cos_decide (cos_observe has cos_learn, and the
 * slow path of allocation cos_plan_fn):
 *
 *   cos_observe   learns; call it at each event that the body sees, before it asks
 *   cos_wait      SPIN | YIELD | BLOCK: a progress pass found nothing
 *   cos_arrival   NONE | BOOST | MARK_RUNNING: a message for this task arrived
 *   cos_fairness  NONE | BOOST: may it be boosted now; asked by the two around it
 *   cos_periodic  NONE | BOOST | BEAT: each rank, whenever its until_ns is over
 *   cos_order     NONE | BIAS | REPLACE | VETO: one candidate for the CPU
 *   cos_quantum   NONE, and slice_ns: it gets the CPU
 *   cos_admit     RUN | NONE: may this rank run now, until when
 *   cos_plan      which of the waiting jobs get CPUs
 *
 * Answer 0 of every question but `wait` is "as the local scheduler does".
 */
#ifndef COS_CONTRACT_H
#define COS_CONTRACT_H

#include "types.h"

#define COS_POLICY_ABI 2
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

enum cos_arrival_answer {
	COS_ARRIVAL_NONE,
	COS_ARRIVAL_BOOST,	/* all threads of the receiving process */
	COS_NR_ARRIVAL_ANSWERS,
};

enum cos_fairness_answer {
	COS_FAIRNESS_NONE,	/* no boost is fair */
	COS_FAIRNESS_ALWAYS,	/* every boost is */
	COS_FAIRNESS_QUEUE_CYCLE, /* one in so many cycles of the run queue */
	COS_FAIRNESS_LAG,	/* up to a debt, by the local scheduler's own account */
	COS_FAIRNESS_EPOCH,	/* only what is newer than the last choice here */
	COS_FAIRNESS_CALIBRATED, /* up to a debt that it measures itself */
	COS_NR_FAIRNESS_ANSWERS,
};

enum cos_periodic_answer {
	COS_PERIODIC_NONE,
	COS_PERIODIC_BOOST_PENDING, /* who has unconsumed messages */
	COS_PERIODIC_HEARTBEAT,	/* a rank that sends nothing sends an empty message */
	COS_NR_PERIODIC_ANSWERS,
};

enum cos_order_answer {
	COS_ORDER_LOCAL,
	COS_ORDER_FREQUENCY,	/* sooner, the more it sends and receives */
	COS_ORDER_RECEIVE_FREQUENCY, /* ... receives */
	COS_ORDER_PENDING,	/* most unconsumed messages first */
	COS_ORDER_ROUND_ROBIN,	/* who has not run for longest */
	COS_ORDER_VETO,		/* may only refuse a choice */
	COS_NR_ORDER_ANSWERS,
};

enum cos_quantum_answer {
	COS_QUANTUM_LOCAL,
	COS_QUANTUM_FIXED,	/* arg[0] ns */
	COS_QUANTUM_MATCH,	/* ends with the slice of who sent to it */
	COS_NR_QUANTUM_ANSWERS,
};

enum cos_allocation_answer {
	COS_ALLOCATION_SHARED,	/* all on all CPUs, up to a multiprogramming level */
	COS_ALLOCATION_GANG,	/* a job's ranks at once, jobs in turn, by the clock */
	COS_ALLOCATION_FCFS_SPACE, /* CPUs of its own, first come first served */
	COS_ALLOCATION_BATCH,	/* one job after another */
	COS_NR_ALLOCATION_ANSWERS,
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
	COS_EV_PERIOD,		/* until_ns of cos_periodic is over */
	COS_EV_EPOCH,		/* the local scheduler gave out new slices */
	COS_EV_JOB_BEGIN,	/* this rank joined its job */
	COS_EV_JOB_END,		/* this rank left it */
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
	COS_F_RUNNING		= 1u << 17,
	COS_F_LEFT		= 1u << 18,
	COS_F_SENDER_LEFT	= 1u << 19,
	COS_F_EPOCHS		= 1u << 20,	/* both */
	COS_F_NR_PENDING_HERE	= 1u << 21,
	COS_F_SLOT		= 1u << 22,	/* and nr_slots */
	COS_F_NR_OF_JOB_HERE	= 1u << 23,
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
	u64 local_key;				/* the local scheduler's own weight, more is sooner, in ns */
	u64 rq_bytes, sq_bytes;			/* unread, unsent */
	u64 l1_miss, l2_miss;
	s64 lag_ns;				/* > 0: behind its fair share */
	u32 nr_runnable;			/* want its CPU: the running one, and itself even asleep, included */
	u32 nr_runnable_avg_q8;
	u32 nr_pending;				/* unconsumed messages */
	u32 nr_same_job_here;			/* other ranks of its job that want its CPU */
	u32 peer_state;				/* enum cos_peer_state, of the awaited peer */
	u32 interactive;
	u32 nr_outsiders_q8;			/* tasks of others that compete for its CPU, average */
	u32 running;				/* it is on its CPU, as far as the body sees */
	u64 left_ns;				/* of its own slice; 0 = used up in this epoch */
	u64 sender_left_ns;			/* ARRIVAL: of the sender's slice, carried by the message */
	u64 message_epoch, cpu_epoch;		/* ARRIVAL: see fairness.h */
	u32 nr_pending_here;			/* unconsumed messages of all who want its CPU */
	u32 slot, nr_slots;			/* as cos_plan gave them to its job */
	u32 nr_of_job_here;			/* other ranks of its job on its CPU, asleep or not */
};

struct cos_task { u64 w[16]; };
struct cos_job  { u64 w[16]; };

/* Who uses which word of cos_task ... */
enum cos_task_word {
	COS_W_WAKE_COST_NS,	/* wait: learned, from doorbell to running */
	COS_W_VAIN_YIELDS,	/* wait: in a row, nobody took the CPU */
	COS_W_BOOSTED_AT_NS,	/* fairness, queue_cycle: the last boost granted */
	COS_W_LAG_NS,		/* fairness, lag: its part of COS_WJ_LAG_NS */
	COS_W_CREDIT_NS,	/* fairness, calibrated: CPU time due - got, signed */
	COS_W_ACCOUNTED_AT_NS,	/* fairness, calibrated: as of when */
	COS_W_TURN_NS,		/* fairness, calibrated: learned, one turn on the CPU */
	COS_W_SENT_AT_NS,	/* periodic, heartbeat */
	COS_W_NR_FREQUENCY,	/* order: samples so far, up to 4 */
	COS_W_FREQUENCY_Q16,	/* order: packets, average */
	COS_W_LAST_Q16,		/* order, learned P: the last sample */
	COS_W_PAST_ERROR_Q16,	/* order, learned P: of the average as a forecast */
	COS_W_LAST_ERROR_Q16,	/* order, learned P: of the last sample as one */
	COS_W_SENDER_UNTIL_NS,	/* quantum, match: when the sender's slice ends */
	COS_NR_TASK_WORDS,
};

/* ... and of cos_job. */
enum cos_job_word {
	COS_WJ_BOOSTED_AT_NS,	/* fairness, queue_cycle per node */
	COS_WJ_LAG_NS,		/* fairness, lag shared: sum over its ranks here, signed */
	COS_NR_JOB_WORDS,
};

enum cos_act {
	COS_ACT_NONE,
	COS_ACT_SPIN,
	COS_ACT_YIELD,
	COS_ACT_BLOCK,
	COS_ACT_BOOST,		/* run it now, for slice_ns; void if it has not run by until_ns */
	COS_ACT_MARK_RUNNING,	/* if it loses its CPU before until_ns, ask again as at an arrival */
	COS_ACT_BEAT,		/* send an empty message to who it last sent to */
	COS_ACT_BIAS,		/* key is added to the local key: ns, less is sooner */
	COS_ACT_REPLACE,	/* key stands for the local key; equal: who ran least recently, least id */
	COS_ACT_VETO,		/* not this one, if the local scheduler has another to propose */
	COS_ACT_RUN,		/* it may run */
};

/* Every reason there is. Those of `wait` come first: abi/page.h counts them. */
enum cos_reason {
	COS_WHY_PRESET,		/* the preset says so, whatever is seen */
	COS_WHY_PAYS,		/* spinning is still cheaper than a wake-up */
	COS_WHY_LIMIT,		/* the spin limit is reached */
	COS_WHY_PEER_OFF,	/* the awaited peer is off its CPU */
	COS_WHY_SAME_JOB,	/* the CPU goes to a rank of the same job */
	COS_NR_WAIT_REASONS,
	COS_WHY_UNKNOWN = COS_NR_WAIT_REASONS, /* what the answer needs is not known here */
	COS_WHY_RUNNING,	/* it is on its CPU already */
	COS_WHY_CYCLE_OVER,	/* the run queue went round since its last boost */
	COS_WHY_CYCLE_OPEN,	/* ... has not yet */
	COS_WHY_IN_CREDIT,	/* it is not further ahead than it may be */
	COS_WHY_IN_DEBT,	/* it is */
	COS_WHY_NEW_EPOCH,	/* the message is newer than the last choice here */
	COS_WHY_OLD_EPOCH,	/* ... is not */
	COS_WHY_PENDING,	/* it has unconsumed messages */
	COS_WHY_NONE_PENDING,	/* it has none */
	COS_WHY_QUIET,		/* it has sent nothing for a period */
	COS_WHY_TALKS,		/* it has, or is not one that sends */
	COS_WHY_FREQUENCY,	/* as often as it communicates */
	COS_WHY_USED_UP,	/* its slice is used up in this epoch */
	COS_WHY_MATCHED,	/* as long as its sender runs */
	COS_WHY_ITS_SLOT,
	COS_WHY_OTHER_SLOT,
	COS_NR_REASONS,
};

struct cos_out {
	u32 act;				/* enum cos_act */
	u32 reason;				/* enum cos_reason */
	u64 until_ns;				/* instant; COS_NEVER_NS = until an event */
	u64 slice_ns;				/* 0 = the local scheduler's own; of WAIT: its CPU is to choose again so often */
	s64 key;				/* less is sooner */
	u32 watch;				/* enum cos_field: ask again when one changes */
	u32 boost_peer;				/* BLOCK: ask for a boost of the awaited peer too, and again at until_ns */
};

_Static_assert(sizeof(struct cos_params) == 424, "params are an ABI");
_Static_assert(sizeof(struct cos_obs) == 176, "observations are an ABI");
_Static_assert(sizeof(struct cos_task) == 128 && sizeof(struct cos_job) == 128,
	       "policy state is an ABI");
_Static_assert(COS_NR_TASK_WORDS <= 16 && COS_NR_JOB_WORDS <= 16, "each use has a word");
_Static_assert(sizeof(struct cos_out) == 40, "verdicts are an ABI");

/* A job as allocation sees it (slow path, native only). */
struct cos_alloc_job {
	u64 id;
	u32 nr_ranks;
	u32 first_cpu;		/* gang: the body puts it on first_cpu and the nr_cpus - 1 after it */
	u32 nr_cpus;		/* out: CPUs granted; 0 = must wait */
	u32 slot, nr_slots;	/* out, gang: to be handed back in each cos_obs */
	u32 pad;
};

#define COS_MAX_PLAN 256	/* jobs; later ones wait */

/* The shape of every question's dispatching function ... */
typedef void cos_decide(const struct cos_params *, const struct cos_obs *,
			struct cos_task *, struct cos_job *, struct cos_out *);
/* ... of cos_observe, which only learns ... */
typedef void cos_learn(const struct cos_params *, const struct cos_obs *,
		       struct cos_task *, struct cos_job *);
/*
 * ... and of allocation: all jobs in order of arrival, those that run included,
 * whenever one arrives or ends; who runs is granted again. Returns how many are.
 */
typedef int cos_plan_fn(const struct cos_params *, struct cos_alloc_job *,
			u32 nr_jobs, u32 nr_cpus);

COS_FN void cos_verdict(struct cos_out *out, u32 act, u32 reason, u64 until_ns)
{
	*out = (struct cos_out){ .act = act, .reason = reason, .until_ns = until_ns };
}

COS_FN u32 cos_knows(const struct cos_obs *obs, u32 fields)
{
	return (obs->known & fields) == fields;
}

COS_FN u32 cos_is_running(const struct cos_obs *obs)
{
	return cos_knows(obs, COS_F_RUNNING) && obs->running;
}

/* How many want its CPU, in 1/256: the average where that is known; 0 = unknown. */
COS_FN u64 cos_runnable_q8(const struct cos_obs *obs)
{
	if (cos_knows(obs, COS_F_NR_RUNNABLE_AVG))
		return max_u64(obs->nr_runnable_avg_q8, 256);
	if (cos_knows(obs, COS_F_NR_RUNNABLE))
		return max_u64(obs->nr_runnable, 1) << 8;
	return 0;
}

#endif
