/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * group.bpf.h - KNOW: what is a task's weight among all that run?
 *
 * CPU time is shared between cgroups first, and in each between its tasks and
 * child cgroups, by weight. A task counts with its own weight times, for each
 * cgroup that it is in, that cgroup's weight by the sum of what is active in it:
 * so two tasks in one cgroup together count as much as one in another. Sums are
 * over the machine, as EEVDF's shares are in effect; tasks of the root count for themselves.
 *
 * Weights are in 1/1024 of those that users see (100 = nice 0).
 */
#ifndef COS_GROUP_BPF_H
#define COS_GROUP_BPF_H

#include "state.bpf.h"

#define WEIGHT_SHIFT 10
#define WEIGHT_OF_NICE_0 (100ULL << WEIGHT_SHIFT)

/* Deeper ones count with the weight that they have so far. */
#define MAX_DEPTH 16

struct group_state {
	u64 weight;
	s64 active;			/* weights of its runnable tasks and active children */
	s64 nr_active;
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct group_state);
} groups SEC(".maps");

/* @nr (1 or -1) tasks of @weight begin or cease to be active in @cgroup, and so maybe it in its parent. */
static __always_inline void change_active(struct cgroup *cgroup, s64 weight, s64 nr)
{
	u32 depth = cgroup->level, i;

	bpf_for(i, 0, MAX_DEPTH) {
		struct cgroup *at;
		struct group_state *group;
		bool passes = false;

		if (i >= depth)
			break;
		at = bpf_cgroup_ancestor(cgroup, depth - i);
		if (!at)
			break;
		group = bpf_cgrp_storage_get(&groups, at, 0, 0);
		if (group) {
			__sync_fetch_and_add(&group->active, nr * weight);
			passes = __sync_fetch_and_add(&group->nr_active, nr) == (nr > 0 ? 0 : 1);
			weight = (s64)group->weight;
		}
		bpf_cgroup_release(at);
		if (!passes)
			break;
	}
}

/* Its part of the machine's weight, as it is now. */
static __always_inline u32 weight_of(struct task_struct *p, struct cgroup *cgroup)
{
	u64 weight = (u64)p->scx.weight << WEIGHT_SHIFT;
	u32 depth = cgroup->level, i;

	bpf_for(i, 0, MAX_DEPTH) {
		struct cgroup *at;
		struct group_state *group;

		if (i >= depth)
			break;
		at = bpf_cgroup_ancestor(cgroup, depth - i);
		if (!at)
			break;
		group = bpf_cgrp_storage_get(&groups, at, 0, 0);
		if (group && group->active > 0)
			weight = weight * group->weight / (u64)group->active;
		bpf_cgroup_release(at);
	}
	return weight ? (u32)min_u64(weight, 1ULL << 30) : 1;
}

static __always_inline void group_runnable(struct task_struct *p, struct task_state *t)
{
	struct cgroup *cgroup = scx_bpf_task_cgroup(p);

	if (!cgroup)
		return;
	t->active_weight = p->scx.weight;
	change_active(cgroup, t->active_weight, 1);
	bpf_cgroup_release(cgroup);
}

static __always_inline void group_quiescent(struct task_struct *p, struct task_state *t)
{
	struct cgroup *cgroup = scx_bpf_task_cgroup(p);

	if (!cgroup)
		return;
	change_active(cgroup, t->active_weight, -1);
	bpf_cgroup_release(cgroup);
}

static __always_inline void refresh_weight(struct task_struct *p, struct task_state *t)
{
	struct cgroup *cgroup = scx_bpf_task_cgroup(p);

	if (!cgroup)
		return;
	t->weight = weight_of(p, cgroup);
	bpf_cgroup_release(cgroup);
}

#endif
