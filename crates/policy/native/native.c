/* SPDX-License-Identifier: Apache-2.0 */
/* native.c - one body for each function of native.h. */
#include "native.h"

#define NATIVE(question)								\
	void native_##question(const struct cos_params *params, const struct cos_obs *obs,	\
			       struct cos_task *task, struct cos_job *job,		\
			       struct cos_out *out)					\
	{										\
		cos_##question(params, obs, task, job, out);				\
	}

NATIVE(wait)
NATIVE(arrival)
NATIVE(fairness)
NATIVE(periodic)
NATIVE(order)
NATIVE(quantum)
NATIVE(admit)

void native_observe(const struct cos_params *params, const struct cos_obs *obs,
		    struct cos_task *task, struct cos_job *job)
{
	cos_observe(params, obs, task, job);
}

int native_plan(const struct cos_params *params, struct cos_alloc_job *jobs, u32 nr_jobs,
		u32 nr_cpus)
{
	return cos_plan(params, jobs, nr_jobs, nr_cpus);
}
