/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * periodic.h - what happens between arrivals?
 *
 * Asked of each rank, first when it joins its job and then whenever until_ns is
 * over. Where several on one CPU are to be boosted, the least key goes first.
 * Answers:
 *
 *   none
 *   boost_pending  Periodic Boost (S2 sections 2 and 3.2): who has unconsumed
 *                  messages and is off its CPU is boosted until the next period
 *   heartbeat      S1 section 5.3, "artificially increasing communication
 *                  frequency": a running rank that has sent nothing for a
 *                  period sends an empty message to who it last sent to; its
 *                  arrival there is asked of arrival.h like any other
 *
 * Deviations. S2 cites Periodic Boost without its rule of choice; the most
 * unconsumed messages first is S2's own (Msg). The paper checks no fairness:
 * its preset says `always`; other answers count a boost as given even to one
 * that another on the same CPU comes before.
 */
#ifndef COS_PERIODIC_H
#define COS_PERIODIC_H

#include "arrival.h"
#include "contract.h"
#include "fairness.h"

enum cos_periodic_arg {
	COS_PERIODIC_PERIOD_NS,
	COS_PERIODIC_SLICE_NS,		/* boost_pending: 0 = the local scheduler's own */
};

COS_FN void cos_periodic_boost_pending(const struct cos_params *params,
				       const struct cos_obs *obs, struct cos_task *task,
				       struct cos_job *job, struct cos_out *out)
{
	if (!cos_knows(obs, COS_F_NR_PENDING))
		cos_verdict(out, COS_ACT_NONE, COS_WHY_UNKNOWN, 0);
	else if (!obs->nr_pending)
		cos_verdict(out, COS_ACT_NONE, COS_WHY_NONE_PENDING, 0);
	else if (cos_is_running(obs))
		cos_verdict(out, COS_ACT_NONE, COS_WHY_RUNNING, 0);
	else
		cos_fairness(params, obs, task, job, out);
	if (out->act == COS_ACT_BOOST) {
		out->slice_ns = params->arg[COS_Q_PERIODIC][COS_PERIODIC_SLICE_NS];
		out->key = -(s64)obs->nr_pending;
	}
}

COS_FN void cos_periodic_heartbeat(u64 period_ns, const struct cos_obs *obs,
				   struct cos_task *task, struct cos_out *out)
{
	u64 sent_at_ns = task->w[COS_W_SENT_AT_NS];

	if (!sent_at_ns || !cos_is_running(obs) ||
	    sat_sub(obs->now_ns, sent_at_ns) < period_ns) {
		cos_verdict(out, COS_ACT_NONE, COS_WHY_TALKS, 0);
		return;
	}
	cos_verdict(out, COS_ACT_BEAT, COS_WHY_QUIET, 0);
	task->w[COS_W_SENT_AT_NS] = max_u64(obs->now_ns, 1);
}

COS_FN void cos_periodic(const struct cos_params *params, const struct cos_obs *obs,
			 struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	/* A period of 0 would be asked for ever at one instant. */
	u64 period_ns = max_u64(params->arg[COS_Q_PERIODIC][COS_PERIODIC_PERIOD_NS], 1000);

	switch (params->answer[COS_Q_PERIODIC]) {
	case COS_PERIODIC_BOOST_PENDING:
		cos_periodic_boost_pending(params, obs, task, job, out);
		break;
	case COS_PERIODIC_HEARTBEAT:
		cos_periodic_heartbeat(period_ns, obs, task, out);
		break;
	default:
		cos_verdict(out, COS_ACT_NONE, COS_WHY_PRESET, COS_NEVER_NS);
		return;
	}
	out->until_ns = sat_add(obs->now_ns, period_ns);
}

COS_FN void cos_periodic_observe(const struct cos_params *params, const struct cos_obs *obs,
				 struct cos_task *task)
{
	if (params->answer[COS_Q_PERIODIC] == COS_PERIODIC_HEARTBEAT &&
	    obs->event == COS_EV_SEND)
		task->w[COS_W_SENT_AT_NS] = max_u64(obs->now_ns, 1);
}

#endif
