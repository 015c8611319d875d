/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wait.h - how does a rank wait?
 *
 * Asked when a progress pass of the MPI library found nothing inside a blocking
 * call, and again when the verdict's time is over. Answers:
 *
 *   spin         what every MPI library does
 *   block        what PVM does (S4, S5 call it LINUX)
 *   spin_block   spin for a fixed time, then sleep: implicit coscheduling
 *                (S1 section 3 takes 1600 us, S2 800 and 1200 us)
 *   spin_yield   spin, then sched_yield() at each empty poll (S1 section 5.3, a
 *                wish; Open MPI's mpi_yield_when_idle with arg 0)
 *   adaptive     ours: never spin longer than a learned limit, and not at all
 *                where the peer is off its CPU or a rank of the same job
 *                would get ours
 *
 * The spin limit of implicit coscheduling is "the round trip plus two context
 * switches" of an idle machine, a constant. Adaptive asks who would get the CPU:
 *
 *   nobody       spinning costs nobody anything: up to the longest limit
 *   our own job  alone on the machine: yield, which costs one switch and no
 *                wake-up; a rank that still waits after a while blocks, so that
 *                it is not switched to in vain
 *   outsiders    a yield would cost one of their slices. Spinning pays as long
 *                as it costs less than sleeping and being woken; the cost of
 *                being woken is what this rank measured itself (doorbell to
 *                running) and grows where competitors delay it. A peer that is off its
 *                CPU cannot send: then block at once, and ask for its boost
 *                as long as we sleep (S1's boost on arrival, seen from the waiter:
 *                who is waited for has something to do). Where ranks of the job
 *                share the CPU it is to choose again each millisecond instead:
 *                docs/design.md, "More ranks than CPUs, and outsiders"
 *
 * It does not see messages, and does not decide who runs instead.
 */
#ifndef COS_WAIT_H
#define COS_WAIT_H

#include "contract.h"

/* Arguments of adaptive: arg[COS_Q_WAIT][...]. */
enum cos_adaptive_arg {
	COS_ADAPTIVE_FACTOR_Q8,		/* spin limit / wake-up cost; 512 = twice */
	COS_ADAPTIVE_MIN_NS,		/* limit before and below what was learned */
	COS_ADAPTIVE_MAX_NS,
	COS_ADAPTIVE_SHARED_NS,		/* limit where a rank of our own job wants the CPU */
	COS_ADAPTIVE_YIELD_NS,		/* yield to it so long before blocking */
	COS_ADAPTIVE_BOOST_NS,		/* first interval of asking for the peer's boost; 0 = never */
};

/* Where several ranks of the job share a CPU with outsiders, it is to choose again so often. */
#define COS_CROWDED_SLICE_NS 1000000ULL

/* A peer that is off its CPU for longer is asleep rather than preempted. */
#define COS_BOOST_FOR_NS 20000000ULL

/* More than a tenth of a competitor counts as one. */
#define COS_OUTSIDER_Q8 26

/* A yield that is over so soon switched to nobody. */
#define COS_VAIN_YIELD_NS 1000
#define COS_VAIN_YIELDS 64

COS_FN void cos_wait_observe(const struct cos_obs *obs, struct cos_task *task)
{
	if (obs->event == COS_EV_WAKE && (obs->known & COS_F_WAKE_COST))
		task->w[COS_W_WAKE_COST_NS] =
			learn(task->w[COS_W_WAKE_COST_NS], obs->wake_cost_ns, 3);
	if (obs->event == COS_EV_RUN && (obs->known & COS_F_WAITED))
		task->w[COS_W_VAIN_YIELDS] = obs->waited_ns < COS_VAIN_YIELD_NS ?
			sat_add(task->w[COS_W_VAIN_YIELDS], 1) : 0;
}

/* Spin until @limit_ns of waiting are over, then @act. */
COS_FN void cos_wait_limited(const struct cos_obs *obs, u64 limit_ns, u32 act,
			     struct cos_out *out)
{
	u64 left_ns = sat_sub(limit_ns, obs->waited_ns);

	if (left_ns)
		cos_verdict(out, COS_ACT_SPIN, COS_WHY_PRESET,
			    sat_add(obs->now_ns, left_ns));
	else
		cos_verdict(out, act, COS_WHY_PRESET, COS_NEVER_NS);
}

COS_FN u32 cos_peer_is_off(const struct cos_obs *obs)
{
	return (obs->known & COS_F_PEER_STATE) && obs->peer_state == COS_PEER_OFF_CPU;
}

COS_FN u32 cos_same_job_wants_cpu(const struct cos_obs *obs)
{
	return (obs->known & COS_F_NR_SAME_JOB_HERE) && obs->nr_same_job_here;
}

/* Nobody but our own job wants this CPU. */
COS_FN void cos_wait_among_us(const u64 *arg, const struct cos_obs *obs,
			      const struct cos_task *task, struct cos_out *out)
{
	u64 yield_ns = task->w[COS_W_VAIN_YIELDS] < COS_VAIN_YIELDS ?
		arg[COS_ADAPTIVE_YIELD_NS] : arg[COS_ADAPTIVE_MAX_NS];

	if (cos_same_job_wants_cpu(obs)) {
		cos_verdict(out, COS_ACT_YIELD, COS_WHY_SAME_JOB, COS_NEVER_NS);
		if (obs->waited_ns >= yield_ns)
			out->act = COS_ACT_BLOCK;
	} else if (cos_peer_is_off(obs)) {
		cos_verdict(out, COS_ACT_BLOCK, COS_WHY_PEER_OFF, COS_NEVER_NS);
	} else {
		cos_wait_limited(obs, arg[COS_ADAPTIVE_MAX_NS], COS_ACT_BLOCK, out);
		out->reason = COS_WHY_LIMIT;
	}
}

COS_FN void cos_wait_among_outsiders(const u64 *arg, const struct cos_obs *obs,
				     const struct cos_task *task, struct cos_out *out)
{
	u64 limit_ns = scale_q8(task->w[COS_W_WAKE_COST_NS],
				arg[COS_ADAPTIVE_FACTOR_Q8]);
	u32 why = COS_WHY_LIMIT;

	limit_ns = min_u64(max_u64(limit_ns, arg[COS_ADAPTIVE_MIN_NS]),
			   arg[COS_ADAPTIVE_MAX_NS]);
	if (cos_same_job_wants_cpu(obs)) {
		limit_ns = min_u64(limit_ns, arg[COS_ADAPTIVE_SHARED_NS]);
		why = COS_WHY_SAME_JOB;
	}
	if (cos_peer_is_off(obs)) {
		limit_ns = 0;
		why = COS_WHY_PEER_OFF;
	}
	cos_wait_limited(obs, limit_ns, COS_ACT_BLOCK, out);
	out->reason = why;
	if (cos_knows(obs, COS_F_NR_OF_JOB_HERE) && obs->nr_of_job_here)
		out->slice_ns = COS_CROWDED_SLICE_NS;
	else if (out->act == COS_ACT_BLOCK && arg[COS_ADAPTIVE_BOOST_NS] &&
	    obs->waited_ns < COS_BOOST_FOR_NS) {
		out->boost_peer = 1;
		out->until_ns = sat_add(obs->now_ns, arg[COS_ADAPTIVE_BOOST_NS]);
	}
}

COS_FN void cos_wait_adaptive(const u64 *arg, const struct cos_obs *obs,
			      const struct cos_task *task, struct cos_out *out)
{
	if ((obs->known & COS_F_OUTSIDERS) && obs->nr_outsiders_q8 >= COS_OUTSIDER_Q8)
		cos_wait_among_outsiders(arg, obs, task, out);
	else
		cos_wait_among_us(arg, obs, task, out);
	if (out->act == COS_ACT_SPIN)
		out->reason = COS_WHY_PAYS;
	out->watch = COS_F_PEER_STATE | COS_F_NR_SAME_JOB_HERE;
}

COS_FN void cos_wait(const struct cos_params *params, const struct cos_obs *obs,
		     struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	const u64 *arg = params->arg[COS_Q_WAIT];

	(void)job;
	switch (params->answer[COS_Q_WAIT]) {
	case COS_WAIT_BLOCK:
		cos_verdict(out, COS_ACT_BLOCK, COS_WHY_PRESET, COS_NEVER_NS);
		return;
	case COS_WAIT_SPIN_BLOCK:
		cos_wait_limited(obs, arg[0], COS_ACT_BLOCK, out);
		return;
	case COS_WAIT_SPIN_YIELD:
		cos_wait_limited(obs, arg[0], COS_ACT_YIELD, out);
		return;
	case COS_WAIT_ADAPTIVE:
		cos_wait_adaptive(arg, obs, task, out);
		return;
	default:
		cos_verdict(out, COS_ACT_SPIN, COS_WHY_PRESET, COS_NEVER_NS);
	}
}

#endif
