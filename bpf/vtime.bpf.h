/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vtime.bpf.h - the fair rule: who has had how much, on which scale?
 *
 * A task's vtime grows with the CPU time that the kernel measured, divided by its
 * weight; never with what is left of a slice, so who is preempted or yields pays
 * for what it had. Each CPU has a scale of its own: its vtime is the least of
 * all that want it, and never goes back. Who comes from another CPU keeps its
 * distance to that. A sleeper comes back owed up to `credit`; a debt stays until
 * the CPU's vtime has made up for it. The simulator has the same rule
 * (crates/sim/src/local/cosched.rs), with its laws as tests.
 */
#ifndef COS_VTIME_BPF_H
#define COS_VTIME_BPF_H

#include "group.bpf.h"
#include "state.bpf.h"

static __always_inline s64 weighted(u64 ns, u32 weight)
{
	return (s64)(ns * WEIGHT_OF_NICE_0 / (weight ? weight : 1));
}

/* Of an empty queue: beyond that of any task. */
#define NOBODYS_KEY ((s64)(~0ULL >> 1))

/* vtime of who runs on @c, now. */
static __always_inline s64 run_vtime(const struct cpu_state *c, u64 now_ns)
{
	u64 at_ns = c->run_at_ns;

	return c->run_vtime + (now_ns > at_ns ? weighted(now_ns - at_ns, c->run_weight) : 0);
}

static __always_inline s64 sooner(s64 a, s64 b)
{
	return a < b ? a : b;
}

/* The key of the first in @cpu's queue, if there is one. From 6.19 on a look takes no lock. */
APART int first_key(u32 cpu, s64 *key __arg_nonnull)
{
	struct task_struct *p;

	bpf_rcu_read_lock();
	if (bpf_ksym_exists(scx_bpf_dsq_peek)) {
		p = scx_bpf_dsq_peek(cpu);
		if (p)
			*key = (s64)p->scx.dsq_vtime;
		bpf_rcu_read_unlock();
		return 0;
	}
	bpf_for_each(scx_dsq, p, cpu, 0) {
		*key = (s64)p->scx.dsq_vtime;
		break;
	}
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * The CPU's vtime is the least of all that want it. Returns the key of the first in its queue, beyond
 * all others where that is empty.
 */
static __always_inline s64 advance(struct cpu_state *c, u32 cpu, u64 now_ns)
{
	s64 first = NOBODYS_KEY, least;

	first_key(cpu, &first);
	least = first;
	if (c->run_weight)
		least = sooner(first, run_vtime(c, now_ns));
	if (least != NOBODYS_KEY && least > c->vtime)
		c->vtime = least;
	return first;
}

/* Measured CPU time, since it was last charged. */
static __always_inline void charge(const struct task_struct *p, struct task_state *t)
{
	u64 ns = cpu_time_ns(p);

	if (ns > t->charged_ns)
		t->vtime += weighted(ns - t->charged_ns, t->weight);
	t->charged_ns = ns;
}

/* It left: how far behind is it, and behind what? */
static __always_inline void go_away(struct task_state *t)
{
	struct cpu_state *c = cpu_at(t->cpu);

	if (!c)
		return;
	t->lag = c->vtime - t->vtime;
	t->left_at = c->vtime;
	t->away = 1;
}

/* What it is owed: what it was and what it missed meanwhile, up to the credit. */
static __always_inline s64 owed(const struct task_state *t, const struct cpu_state *left, s64 credit)
{
	s64 missed = left->vtime - t->left_at;
	s64 due = t->lag + (missed > 0 ? missed : 0);

	return due < credit ? due : credit;
}

/* On the scale of @cpu, whose state is @c. */
static __always_inline void place(struct task_state *t, struct cpu_state *c, u32 cpu, s64 credit)
{
	struct cpu_state *left = t->cpu == cpu ? c : cpu_at(t->cpu);

	if (t->away)
		t->vtime = c->vtime - (left ? owed(t, left, credit) : 0);
	else if (t->cpu != cpu && left)
		t->vtime += c->vtime - left->vtime;
	t->away = 0;
	t->cpu = cpu;
}

/* Towards zero; BPF's division knows no sign. */
static __always_inline s64 mean_of(s64 sum, u64 weights)
{
	weights = weights ?: 1;
	return sum < 0 ? -(s64)((u64)-sum / weights) : (s64)((u64)sum / weights);
}

/*
 * How far the mean of all that want @cpu, by their weights, is beyond the least of them, which is the CPU's vtime. Of
 * a long queue the part that is behind counts. Sums are kept in a map, so that the verifier follows none through the
 * loop; an interrupt that asks meanwhile spoils one answer.
 */
APART s64 mean_beyond(u32 cpu, u64 now_ns)
{
	struct cpu_state *c = cpu_at(cpu), *here = cpu_at(bpf_get_smp_processor_id());
	u32 looks = max_looks();
	struct task_struct *p;
	struct task_state *t;

	if (!c || !here)
		return 0;
	here->weights = c->run_weight;
	here->sum = c->run_weight ? (run_vtime(c, now_ns) - c->vtime) * (s64)c->run_weight : 0;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (!looks--)
			break;
		t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (!t)
			continue;
		here->weights += t->weight;
		here->sum += (t->vtime - c->vtime) * (s64)t->weight;
	}
	bpf_rcu_read_unlock();
	return mean_of(here->sum, here->weights);
}

/* > 0: behind its fair share of @c. */
static __always_inline s64 lag_of(const struct task_state *t, const struct cpu_state *c, s64 credit)
{
	return t->away ? owed(t, c, credit) : c->vtime - t->vtime;
}

#endif
