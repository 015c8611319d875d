/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * allocation.h - which jobs get CPUs, how many, and when may they run?
 *
 * cos_plan is asked when a job arrives or ends, cos_admit when a rank would
 * run. Answers:
 *
 *   shared      all jobs on all CPUs: up to max_mpl ranks a CPU (S2 sections 3.2
 *               and 4.2, "controls the maximum MPL"), 0 = no limit
 *   gang        Ousterhout's matrix: ranks of a job run in the same slot of a
 *               clock, jobs that share no CPU in the same slot (S1 section 1 and
 *               S2 section 2 cite it); each node goes by its own clock
 *   fcfs_space  as many CPUs as ranks, rigid, first come first served: FIFO of
 *               S2 section 4
 *   batch       one job after another, the baseline of S1 section 4.2.2
 *
 * Nobody overtakes: the first job that does not fit makes all later ones wait.
 * The first in line always runs, on all CPUs if it
 * has more ranks than there are. Which CPUs a job gets is
 * the body's to choose; for gang it has chosen before (first_cpu).
 *
 * Deviations. The papers leave to others what a gang does with CPUs that its slot
 * leaves idle; here nobody else runs there. Local work that is to have a slot of
 * its own is passed to cos_plan as a job.
 */
#ifndef COS_ALLOCATION_H
#define COS_ALLOCATION_H

#include "contract.h"

enum cos_shared_arg {
	COS_SHARED_MAX_MPL,
};

enum cos_gang_arg {
	COS_GANG_SLOT_NS,
};

COS_FN u64 cos_remainder(u64 n, u64 d)
{
	return n - div_or(n, d, 0) * d;
}

COS_FN void cos_admit_gang(u64 slot_ns, const struct cos_obs *obs, struct cos_out *out)
{
	u64 nr_slots = obs->nr_slots, now, distance;

	if (!cos_knows(obs, COS_F_SLOT) || !slot_ns) {
		cos_verdict(out, COS_ACT_RUN, COS_WHY_UNKNOWN, COS_NEVER_NS);
		return;
	}
	if (nr_slots <= 1) {
		cos_verdict(out, COS_ACT_RUN, COS_WHY_ITS_SLOT, COS_NEVER_NS);
		return;
	}
	now = div_or(obs->now_ns, slot_ns, 0);
	distance = cos_remainder(cos_remainder(obs->slot, nr_slots) + nr_slots -
				 cos_remainder(now, nr_slots), nr_slots);
	if (distance)
		cos_verdict(out, COS_ACT_NONE, COS_WHY_OTHER_SLOT,
			    sat_mul(sat_add(now, distance), slot_ns));
	else
		cos_verdict(out, COS_ACT_RUN, COS_WHY_ITS_SLOT,
			    sat_mul(sat_add(now, 1), slot_ns));
}

COS_FN void cos_admit(const struct cos_params *params, const struct cos_obs *obs,
		      struct cos_task *task, struct cos_job *job, struct cos_out *out)
{
	(void)task;
	(void)job;
	if (params->answer[COS_Q_ALLOCATION] == COS_ALLOCATION_GANG)
		cos_admit_gang(params->arg[COS_Q_ALLOCATION][COS_GANG_SLOT_NS], obs, out);
	else
		cos_verdict(out, COS_ACT_RUN, COS_WHY_PRESET, COS_NEVER_NS);
}

COS_FN u64 cos_width(const struct cos_alloc_job *job, u32 nr_cpus)
{
	return min_u64(job->nr_ranks, nr_cpus);
}

/* Grants in order as long as the sum of ranks stays within @room; 0 ranks never run. */
COS_FN int cos_plan_in_order(struct cos_alloc_job *jobs, u32 nr_jobs, u32 nr_cpus, u64 room)
{
	u64 taken = 0;
	u32 i;

	for (i = 0; i < nr_jobs; i++) {
		taken += jobs[i].nr_ranks;
		if (taken > room && i)
			break;
		jobs[i].nr_cpus = (u32)cos_width(&jobs[i], nr_cpus);
		jobs[i].nr_slots = 1;
	}
	return (int)i;
}

COS_FN u32 cos_share_a_cpu(const struct cos_alloc_job *a, const struct cos_alloc_job *b)
{
	return (u64)a->first_cpu < (u64)b->first_cpu + b->nr_cpus &&
	       (u64)b->first_cpu < (u64)a->first_cpu + a->nr_cpus;
}

/* The first slot in which no job before @i shares a CPU with it. */
COS_FN u32 cos_free_slot(const struct cos_alloc_job *jobs, u32 i)
{
	u64 used[COS_MAX_PLAN / 64] = { 0 };
	u32 j, slot = 0;

	for (j = 0; j < i; j++)
		if (cos_share_a_cpu(&jobs[j], &jobs[i]))
			used[jobs[j].slot / 64] |= 1ULL << (jobs[j].slot % 64);
	while (used[slot / 64] >> (slot % 64) & 1)
		slot++;
	return slot;
}

COS_FN int cos_plan_gang(struct cos_alloc_job *jobs, u32 nr_jobs, u32 nr_cpus)
{
	u32 i, nr_slots = 0;

	for (i = 0; i < nr_jobs; i++) {
		jobs[i].nr_cpus = (u32)cos_width(&jobs[i], nr_cpus);
		jobs[i].slot = cos_free_slot(jobs, i);
		nr_slots = (u32)max_u64(nr_slots, jobs[i].slot + 1);
	}
	for (i = 0; i < nr_jobs; i++)
		jobs[i].nr_slots = nr_slots;
	return (int)nr_jobs;
}

COS_FN int cos_plan(const struct cos_params *params, struct cos_alloc_job *jobs,
		    u32 nr_jobs, u32 nr_cpus)
{
	u64 max_mpl = params->arg[COS_Q_ALLOCATION][COS_SHARED_MAX_MPL];
	u32 i;

	for (i = 0; i < nr_jobs; i++)
		jobs[i].nr_cpus = jobs[i].slot = jobs[i].nr_slots = 0;
	nr_jobs = (u32)min_u64(nr_jobs, COS_MAX_PLAN);
	switch (params->answer[COS_Q_ALLOCATION]) {
	case COS_ALLOCATION_GANG:
		return cos_plan_gang(jobs, nr_jobs, nr_cpus);
	case COS_ALLOCATION_FCFS_SPACE:
		return cos_plan_in_order(jobs, nr_jobs, nr_cpus, nr_cpus);
	case COS_ALLOCATION_BATCH:
		return cos_plan_in_order(jobs, nr_jobs, nr_cpus, 0);
	default:
		return cos_plan_in_order(jobs, nr_jobs, nr_cpus,
					 max_mpl ? sat_mul(max_mpl, nr_cpus) : COS_NEVER_NS);
	}
}

#endif
