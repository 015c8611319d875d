/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * quantum.h - for how long does it get the CPU?
 *
 * Asked when the local scheduler gives a task a new slice; slice_ns 0 leaves it
 * as it is. Answers:
 *
 *   local   the local scheduler's own
 *   fixed   one length for all (S5's STATICQ, section 3)
 *   match   S1 section 5.3, "time slice size matching": ranks that start
 *           together should stop together, or who goes on spins for who is gone
 *           (section 5.1). A message carries what is left of its sender's slice,
 *           and its receiver's slice ends at the same instant.
 *
 * Deviation. S1 names matching without a rule; this one needs no clock in
 * common. Of several senders the one that runs longest counts.
 */
#ifndef COS_QUANTUM_H
#define COS_QUANTUM_H

#include "contract.h"

enum cos_fixed_arg {
	COS_FIXED_SLICE_NS,
};

enum cos_match_arg {
	COS_MATCH_MIN_NS,
	COS_MATCH_MAX_NS,
};

COS_FN void cos_slice(struct cos_out *out, u64 slice_ns, u32 reason)
{
	cos_verdict(out, COS_ACT_NONE, reason, COS_NEVER_NS);
	out->slice_ns = slice_ns;
}

COS_FN void cos_quantum_match(const u64 *arg, const struct cos_obs *obs,
			      const struct cos_task *task, struct cos_out *out)
{
	u64 left_ns = sat_sub(task->w[COS_W_SENDER_UNTIL_NS], obs->now_ns);

	if (!left_ns) {
		cos_slice(out, 0, COS_WHY_UNKNOWN);
		return;
	}
	left_ns = min_u64(max_u64(left_ns, arg[COS_MATCH_MIN_NS]), arg[COS_MATCH_MAX_NS]);
	cos_slice(out, left_ns, COS_WHY_MATCHED);
}

COS_FN void cos_quantum(const struct cos_params *params, const struct cos_obs *obs,
			struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	const u64 *arg = params->arg[COS_Q_QUANTUM];

	(void)job;
	switch (params->answer[COS_Q_QUANTUM]) {
	case COS_QUANTUM_FIXED:
		cos_slice(out, arg[COS_FIXED_SLICE_NS], COS_WHY_PRESET);
		return;
	case COS_QUANTUM_MATCH:
		cos_quantum_match(arg, obs, task, out);
		return;
	default:
		cos_slice(out, 0, COS_WHY_PRESET);
	}
}

COS_FN void cos_quantum_observe(const struct cos_params *params, const struct cos_obs *obs,
				struct cos_task *task)
{
	u64 *until_ns = &task->w[COS_W_SENDER_UNTIL_NS];

	if (params->answer[COS_Q_QUANTUM] == COS_QUANTUM_MATCH &&
	    obs->event == COS_EV_ARRIVAL && cos_knows(obs, COS_F_SENDER_LEFT))
		*until_ns = max_u64(*until_ns, sat_add(obs->now_ns, obs->sender_left_ns));
}

#endif
