/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * policy.h - all of policy: the contract, the seven questions, and learning.
 *
 * A body includes this file. What it may ask, and what crosses between it and
 * policy, is contract.h; what each answer does is the header of its question.
 */
#ifndef COS_POLICY_H
#define COS_POLICY_H

#include "allocation.h"
#include "arrival.h"
#include "contract.h"
#include "fairness.h"
#include "order.h"
#include "periodic.h"
#include "quantum.h"
#include "wait.h"

COS_FN void cos_observe(const struct cos_params *params, const struct cos_obs *obs,
			struct cos_task *task, struct cos_job *job)
{
	cos_wait_observe(obs, task);
	cos_fairness_observe(params, obs, task, job);
	cos_periodic_observe(params, obs, task);
	cos_quantum_observe(params, obs, task);
}

#endif
