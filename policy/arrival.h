/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * arrival.h - a message arrived for this task: shall it run at once?
 *
 * Dynamic coscheduling (S1 section 3.3.2 and figure 2, S3 section 2.2): if the
 * receiver is not running, and it would be fair to, raise it to the front and
 * preempt who runs. A body asks once for each message, about the task that it is
 * for, and boosts all threads of that process (S1 figure 2): were each asked about,
 * a boost that counts against the whole job would refuse the others. Answers:
 *
 *   none    the local scheduler's own wake-up is all
 *   boost   if fairness grants it
 *
 * Deviations. S1's boost lasts until the priority has decayed; here a boost
 * that was not served within `lasts` is void, and one that is served ends with
 * its slice. `mark` and `again` are ours, and 0 in the papers' presets: a
 * receiver that loses its CPU just after a message counts as one that was off
 * it, and a refusal is asked again when it would be granted.
 *
 * Whether the receiver runs is what the body sees: in S1 a sample that is up to
 * 1 ms old, checked again in the driver.
 */
#ifndef COS_ARRIVAL_H
#define COS_ARRIVAL_H

#include "contract.h"
#include "fairness.h"

enum cos_boost_arg {
	COS_BOOST_SLICE_NS,	/* 0 = the local scheduler's own */
	COS_BOOST_LASTS_NS,
	COS_BOOST_MARK_NS,
	COS_BOOST_AGAIN,	/* 1: a refusal's until_ns is when to ask again */
};

COS_FN void cos_arrival_boost(const struct cos_params *params, const struct cos_obs *obs,
			      struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	const u64 *arg = params->arg[COS_Q_ARRIVAL];

	if (cos_is_running(obs)) {
		cos_verdict(out, arg[COS_BOOST_MARK_NS] ? COS_ACT_MARK_RUNNING : COS_ACT_NONE,
			    COS_WHY_RUNNING, sat_add(obs->now_ns, arg[COS_BOOST_MARK_NS]));
		return;
	}
	cos_fairness(params, obs, task, job, out);
	if (out->act == COS_ACT_BOOST) {
		out->slice_ns = arg[COS_BOOST_SLICE_NS];
		out->until_ns = sat_add(obs->now_ns, arg[COS_BOOST_LASTS_NS]);
	} else if (!arg[COS_BOOST_AGAIN]) {
		out->until_ns = COS_NEVER_NS;
	}
}

COS_FN void cos_arrival(const struct cos_params *params, const struct cos_obs *obs,
			struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	if (params->answer[COS_Q_ARRIVAL] == COS_ARRIVAL_BOOST)
		cos_arrival_boost(params, obs, task, job, out);
	else
		cos_verdict(out, COS_ACT_NONE, COS_WHY_PRESET, COS_NEVER_NS);
}

#endif
