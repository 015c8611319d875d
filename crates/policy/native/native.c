/* SPDX-License-Identifier: Apache-2.0 */
/* native.c - one body for each function of native.h. */
#include "native.h"

void native_observe(const struct cos_params *params, const struct cos_obs *obs,
		    struct cos_task *task, struct cos_job *job)
{
	cos_observe(params, obs, task, job);
}

void native_wait(const struct cos_params *params, const struct cos_obs *obs,
		 struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	cos_wait(params, obs, task, job, out);
}
