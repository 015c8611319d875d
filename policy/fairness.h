/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * fairness.h - may this task be boosted now?
 *
 * Asked by arrival and periodic before every boost. A boost that is granted is
 * noted here, so a body must carry it out. A refusal says in until_ns when the
 * same question would be answered otherwise, if nothing else changes. Answers:
 *
 *   none         no boost is fair
 *   always       every boost is (Periodic Boost of S2 limits itself by its period)
 *   queue_cycle  S1 section 3.3.3 equation 1, S3 section 2.2.2:
 *                2^E * (Tc - Tp) + C >= Tq * R
 *   lag          the local scheduler's own account: it may be max_debt ahead of
 *                its fair share, alone or as the sum over its job's ranks here
 *                (S1 section 5.3, "some form of shared priority")
 *   epoch        several parallel jobs (S1 section 5.3, "epoch numbers")
 *   calibrated   ours: an account of its own, no parameter to be tuned (S1
 *                section 5.3: "an automatic mechanism is clearly required")
 *
 * Deviations. queue_cycle: Tp is the last boost granted (S1 says "attempt"; a
 * refusal that moved it would starve who is sent to often); the first boost is
 * free. S1 keeps one Tp a node and has one job, so ours is one a job and node,
 * or one a task as in S3. Whether R counts the running task and the target is
 * said nowhere: `less` are taken off. epoch: S1 names the mechanism of its
 * reference 16 without its rule. Here a CPU's epoch grows by one at each switch
 * that the local scheduler makes by itself, messages carry the epoch of their
 * sender's CPU, and a boost sets the receiver's to the message's: one choice
 * spreads from node to node once, and two jobs cannot preempt each other in
 * turns. The body keeps and carries these numbers.
 *
 * It does not see whether the task is running; arrival and periodic do.
 */
#ifndef COS_FAIRNESS_H
#define COS_FAIRNESS_H

#include "contract.h"

enum cos_queue_cycle_arg {
	COS_QUEUE_CYCLE_E,		/* two's complement */
	COS_QUEUE_CYCLE_C_NS,
	COS_QUEUE_CYCLE_TQ_NS,
	COS_QUEUE_CYCLE_AVERAGE,	/* 0: R of this moment; 1: R on average */
	COS_QUEUE_CYCLE_PER_TASK,	/* 0: Tp of its job on this node; 1: its own */
	COS_QUEUE_CYCLE_LESS,		/* taken off R */
};

enum cos_lag_arg {
	COS_LAG_MAX_DEBT_NS,
	COS_LAG_SHARED,			/* 0: its own lag; 1: the sum over its job's ranks here */
};

enum cos_calibrated_arg {
	COS_CALIBRATED_MAX_DEBT_NS,	/* however long its turns are; and no more credit than this */
	COS_CALIBRATED_MEMORY_NS,	/* no debt is remembered beyond */
};

/* R of equation 1 in 1/256; 0 = unknown. */
COS_FN u64 cos_cycle_length_q8(const u64 *arg, const struct cos_obs *obs)
{
	u64 less_q8 = min_u64(arg[COS_QUEUE_CYCLE_LESS], 1 << 20) << 8;

	if (arg[COS_QUEUE_CYCLE_AVERAGE])
		return cos_knows(obs, COS_F_NR_RUNNABLE_AVG) ?
			sat_sub(obs->nr_runnable_avg_q8, less_q8) : 0;
	return cos_knows(obs, COS_F_NR_RUNNABLE) ?
		sat_sub((u64)obs->nr_runnable << 8, less_q8) : 0;
}

/* How long after the last boost 2^e times that is at least @need_ns. */
COS_FN u64 cos_cycle_ns(u64 need_ns, s64 e)
{
	if (!need_ns)
		return 0;
	return e < 0 ? sat_pow2(need_ns, -e) : sat_add(sat_pow2(need_ns - 1, -e), 1);
}

COS_FN void cos_fairness_queue_cycle(const u64 *arg, const struct cos_obs *obs,
				     u64 *boosted_at_ns, struct cos_out *out)
{
	s64 e = clamp_ns((s64)arg[COS_QUEUE_CYCLE_E], -64, 64);
	u64 cycle_ns = scale_q8(arg[COS_QUEUE_CYCLE_TQ_NS], cos_cycle_length_q8(arg, obs));
	u64 need_ns = sat_sub(cycle_ns, arg[COS_QUEUE_CYCLE_C_NS]);
	u32 needs = arg[COS_QUEUE_CYCLE_AVERAGE] ? COS_F_NR_RUNNABLE_AVG : COS_F_NR_RUNNABLE;

	if (!cos_knows(obs, needs)) {
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
	} else if (!*boosted_at_ns ||
		   sat_pow2(sat_sub(obs->now_ns, *boosted_at_ns), e) >= need_ns) {
		*boosted_at_ns = max_u64(obs->now_ns, 1);
		cos_verdict(out, COS_ACT_BOOST, COS_WHY_CYCLE_OVER, COS_NEVER_NS);
	} else {
		cos_verdict(out, COS_ACT_NONE, COS_WHY_CYCLE_OPEN,
			    sat_add(*boosted_at_ns, cos_cycle_ns(need_ns, e)));
	}
}

/*
 * Granted as long as @credit_ns is at least -@max_debt_ns. A debt is paid back
 * at one part in R of the time, if it does not run meanwhile.
 */
COS_FN void cos_fairness_debt(const struct cos_obs *obs, s64 credit_ns, u64 max_debt_ns,
			      struct cos_out *out)
{
	s64 beyond_ns = -signed_ns(max_debt_ns) - credit_ns;
	u64 wait_ns;

	if (beyond_ns <= 0) {
		cos_verdict(out, COS_ACT_BOOST, COS_WHY_IN_CREDIT, COS_NEVER_NS);
		return;
	}
	wait_ns = sat_add(scale_q8((u64)beyond_ns, cos_runnable_q8(obs)), 1);
	cos_verdict(out, COS_ACT_NONE, COS_WHY_IN_DEBT,
		    cos_runnable_q8(obs) ? sat_add(obs->now_ns, wait_ns) : COS_NEVER_NS);
}

COS_FN s64 cos_lag_of(const struct cos_obs *obs)
{
	return clamp_ns(obs->lag_ns, -COS_MAX_NS, COS_MAX_NS);
}

COS_FN s64 cos_signed_word(u64 word)
{
	return clamp_ns((s64)word, -COS_MAX_NS, COS_MAX_NS);
}

COS_FN void cos_fairness_lag(const u64 *arg, const struct cos_obs *obs,
			     const struct cos_job *job, struct cos_out *out)
{
	if (!cos_knows(obs, COS_F_LAG)) {
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
		return;
	}
	cos_fairness_debt(obs, arg[COS_LAG_SHARED] ? cos_signed_word(job->w[COS_WJ_LAG_NS]) :
						     cos_lag_of(obs),
			  arg[COS_LAG_MAX_DEBT_NS], out);
}

/* What this task adds to its job's sum follows its lag, and ends with it. */
COS_FN void cos_lag_observe(const struct cos_obs *obs, struct cos_task *task,
			    struct cos_job *job)
{
	s64 lag_ns = obs->event == COS_EV_JOB_END ? 0 : cos_lag_of(obs);

	if (!cos_knows(obs, COS_F_LAG) && obs->event != COS_EV_JOB_END)
		return;
	job->w[COS_WJ_LAG_NS] += (u64)lag_ns - task->w[COS_W_LAG_NS];
	task->w[COS_W_LAG_NS] = (u64)lag_ns;
}

COS_FN void cos_fairness_epoch(const struct cos_obs *obs, struct cos_out *out)
{
	if (!cos_knows(obs, COS_F_EPOCHS))
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
	else if (obs->message_epoch > obs->cpu_epoch)
		cos_verdict(out, COS_ACT_BOOST, COS_WHY_NEW_EPOCH, COS_NEVER_NS);
	else
		cos_verdict(out, COS_ACT_NONE, COS_WHY_OLD_EPOCH, COS_NEVER_NS);
}

/*
 * Calibrated: credit is the CPU time that was due (one part in R of all time
 * since the task was first seen) less what it got. It may be ahead by one of its
 * own turns, which is what the local scheduler itself lets a task be: 200 ms
 * under Solaris, 3 ms under EEVDF, 50 us for a rank that blocks so often. Where
 * the local scheduler knows the lag, that is the account.
 *
 * No more credit is kept than max_debt, so that who slept does not return as a
 * tyrant; nor more debt than memory, so that each refusal ends. R is taken as it
 * is when an event comes, for all the time since the one before.
 */
COS_FN u64 cos_calibrated_got_ns(const struct cos_obs *obs, u64 since_ns)
{
	u32 came = obs->event == COS_EV_RUN || obs->event == COS_EV_WAKE;

	if (obs->event != COS_EV_STOP && (came || !cos_is_running(obs)))
		return 0;
	return cos_knows(obs, COS_F_RAN) ? min_u64(obs->ran_ns, since_ns) : since_ns;
}

COS_FN void cos_calibrated_observe(const u64 *arg, const struct cos_obs *obs,
				   struct cos_task *task)
{
	u64 runnable_q8 = cos_runnable_q8(obs), *at_ns = &task->w[COS_W_ACCOUNTED_AT_NS];
	u64 since_ns = *at_ns ? sat_sub(obs->now_ns, *at_ns) : 0;
	u64 due_ns = div_or(sat_mul(since_ns, 256), runnable_q8, 0);
	u64 got_ns = cos_calibrated_got_ns(obs, since_ns);
	u64 max_debt_ns = arg[COS_CALIBRATED_MAX_DEBT_NS];
	s64 credit_ns = cos_signed_word(task->w[COS_W_CREDIT_NS]);

	if (!runnable_q8)
		return;
	*at_ns = max_u64(obs->now_ns, 1);
	credit_ns = clamp_ns(credit_ns + signed_ns(due_ns), -COS_MAX_NS, COS_MAX_NS);
	credit_ns = clamp_ns(credit_ns - signed_ns(got_ns),
			     -signed_ns(arg[COS_CALIBRATED_MEMORY_NS]), signed_ns(max_debt_ns));
	task->w[COS_W_CREDIT_NS] = (u64)credit_ns;
	if (obs->event == COS_EV_STOP && cos_knows(obs, COS_F_RAN) && runnable_q8 > 256)
		task->w[COS_W_TURN_NS] = learn(task->w[COS_W_TURN_NS],
					       min_u64(obs->ran_ns, max_debt_ns), 3);
}

COS_FN void cos_fairness_calibrated(const u64 *arg, const struct cos_obs *obs,
				    const struct cos_task *task, struct cos_out *out)
{
	u64 turn_ns = min_u64(task->w[COS_W_TURN_NS], arg[COS_CALIBRATED_MAX_DEBT_NS]);

	if (cos_knows(obs, COS_F_LAG))
		cos_fairness_debt(obs, cos_lag_of(obs), turn_ns, out);
	else if (cos_runnable_q8(obs))
		cos_fairness_debt(obs, cos_signed_word(task->w[COS_W_CREDIT_NS]), turn_ns, out);
	else
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, COS_NEVER_NS);
}

COS_FN void cos_fairness(const struct cos_params *params, const struct cos_obs *obs,
			 struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	const u64 *arg = params->arg[COS_Q_FAIRNESS];

	switch (params->answer[COS_Q_FAIRNESS]) {
	case COS_FAIRNESS_ALWAYS:
		cos_verdict(out, COS_ACT_BOOST, COS_WHY_PRESET, COS_NEVER_NS);
		return;
	case COS_FAIRNESS_QUEUE_CYCLE:
		cos_fairness_queue_cycle(arg, obs, arg[COS_QUEUE_CYCLE_PER_TASK] ?
					 &task->w[COS_W_BOOSTED_AT_NS] :
					 &job->w[COS_WJ_BOOSTED_AT_NS], out);
		return;
	case COS_FAIRNESS_LAG:
		cos_fairness_lag(arg, obs, job, out);
		return;
	case COS_FAIRNESS_EPOCH:
		cos_fairness_epoch(obs, out);
		return;
	case COS_FAIRNESS_CALIBRATED:
		cos_fairness_calibrated(arg, obs, task, out);
		return;
	default:
		cos_verdict(out, COS_ACT_NONE, COS_WHY_PRESET, COS_NEVER_NS);
	}
}

COS_FN void cos_fairness_observe(const struct cos_params *params, const struct cos_obs *obs,
				 struct cos_task *task, struct cos_job *job)
{
	const u64 *arg = params->arg[COS_Q_FAIRNESS];
	u32 answer = params->answer[COS_Q_FAIRNESS];

	if (answer == COS_FAIRNESS_LAG && arg[COS_LAG_SHARED])
		cos_lag_observe(obs, task, job);
	if (answer == COS_FAIRNESS_CALIBRATED)
		cos_calibrated_observe(arg, obs, task);
}

#endif
