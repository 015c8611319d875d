/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * observe.bpf.h - SEE: who comes on a CPU and who leaves it.
 *
 * The same for both: ops.running and ops.stopping where we schedule, the
 * tracepoint of context switches where we only observe. It publishes who is on which CPU,
 * keeps the account of ranks, and lets policy learn.
 */
#ifndef COS_OBSERVE_BPF_H
#define COS_OBSERVE_BPF_H

#include "act.bpf.h"
#include "ledger.bpf.h"
#include "member.bpf.h"

/* Every user may read it: who is in no job is not named, and comes and goes unseen. */
static __always_inline void publish(u32 cpu, u32 tid, u32 tgid, u32 job, u64 now_ns)
{
	struct cos_oncpu *on = bpf_map_lookup_elem(&oncpu, &cpu);

	if (!on || !(job || on->job))
		return;
	on->since_ns = now_ns;
	on->tid = job ? tid : 0;
	on->tgid = job ? tgid : 0;
	on->job = job;
}

/* A rank left @cpu. Its job stays the one that was there last, which is asked when a rank is moved. */
static __always_inline void unpublish(u32 cpu)
{
	struct cos_oncpu *on = bpf_map_lookup_elem(&oncpu, &cpu);

	if (on)
		on->tid = on->tgid = 0;
}

/* @p comes on @cpu. A rank that does is the only sign of one that spins: its mates hear of it. */
static __always_inline void see_run(struct task_struct *p, struct task_state *t, struct cpu_state *c,
			   u32 cpu, u64 now_ns)
{
	struct cos_kernel_job *job = job_of(t);
	u64 delay_ns;

	t->running = 1;
	t->on_at_ns = now_ns;
	t->on_cpu_ns = cpu_time_ns(p);
	count(COS_COUNT_SWITCHES);
	publish(cpu, p->pid, p->tgid, job ? t->job : 0, now_ns);
	if (!job)
		return;
	count(COS_COUNT_RANK_SWITCHES);
	if (t->ran_on && t->ran_on != cpu + 1)
		add(&job->nr_migrations, 1);
	t->ran_on = cpu + 1;
	account(t, job, cpu, now_ns);
	delay_ns = account_delay(t, job, now_ns);
	if (delay_ns)
		learn_cost(t, job, cpu, delay_ns, now_ns);
	end_boost(t, job, c, now_ns);
	learn_of(t, job, cpu, COS_EV_RUN, now_ns);
	if (job->params.answer[COS_Q_ARRIVAL])
		boost_mates(t->job, cpu, 0, COS_SEEN_MATE, now_ns);
}

static __always_inline void see_stop(struct task_struct *p, struct task_state *t, u32 cpu, u64 now_ns)
{
	struct cos_kernel_job *job = job_of(t);

	t->running = 0;
	if (!job)
		return;
	unpublish(cpu);
	account(t, job, cpu, now_ns);
	account_run(p, t, job);
	learn_of(t, job, cpu, COS_EV_STOP, now_ns);
}

/* Observe only: ranks alone have a state. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *t = state_of(prev);
	struct cpu_state *c = cpu_at(cpu);

	if (!c)
		return 0;
	if (t) {
		t->cpu = cpu;
		see_stop(prev, t, cpu, now_ns);
		t->wants = !prev_state;
		if (prev_state & TASK_DEAD)
			leave(t);
	}
	t = state_of(next);
	if (t)
		see_run(next, t, c, cpu, now_ns);
	else
		publish(cpu, next->pid, next->tgid, 0, now_ns);
	return 0;
}

/* Observe only: a rank that waits for its CPU wants it. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	struct task_state *t = state_of(p);
	struct cos_kernel_job *job = t ? job_of(t) : NULL;

	if (!job)
		return 0;
	account(t, job, t->cpu, bpf_ktime_get_ns());
	t->wants = 1;
	return 0;
}

#endif
