/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * act.bpf.h - ACT: the only code that changes who runs.
 *
 * A boost is a mark on the task and a kick of the CPU in whose queue it waits;
 * dispatch then takes the marked one first. Tracing programs only mark and kick, and
 * only dispatch takes from queues. One victim per kick: a CPU is kicked at most once
 * in `kick_gap`, and never while it runs a boosted rank, one that had starved, or a pinned kernel thread; the
 * mark stays, and the next choice of that CPU sees it.
 */
#ifndef COS_ACT_BPF_H
#define COS_ACT_BPF_H

#include "decide.bpf.h"
#include "state.bpf.h"
#include "vtime.bpf.h"

static __always_inline void kick_for_boost(u32 cpu, u64 now_ns)
{
	struct cos_kernel_config *is = configuration();
	struct cpu_state *c = cpu_at(cpu);

	if (!c || !schedules(is))
		return;
	c->wanted = 1;
	if (c->run_boosted || c->run_spared || c->run_pinned_kthread ||
	    now_ns - c->kicked_at_ns < is->kick_gap_ns) {
		count(COS_COUNT_CLAIMED);
		return;
	}
	c->kicked_at_ns = now_ns;
	count(COS_COUNT_BOOST_KICKS);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * Something arrived for the ranks of job @number in @cpu's queue: for the other threads of
 * @pid_tgid, or for all where that is 0. Kicks once.
 */
APART int boost_queued(u32 number, u32 cpu, u64 pid_tgid, u32 seen, u64 now_ns)
{
	struct cos_kernel_job *job;
	struct task_struct *p;
	struct task_state *t;
	bool boosted = false;
	u32 looks = max_looks();

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (!looks--)
			break;
		t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (!t || t->job != number)
			continue;
		if (pid_tgid && ((u32)p->tgid != pid_tgid >> 32 || (u32)p->pid == (u32)pid_tgid))
			continue;
		job = job_of(t);
		if (job && ask_arrival(t, job, cpu, seen, now_ns))
			boosted = true;
	}
	bpf_rcu_read_unlock();
	if (boosted)
		kick_for_boost(cpu, now_ns);
	return 0;
}

/* The same on every CPU but @but (COS_MAX_CPUS: on every one) where ranks of the job are queued. */
static __always_inline void boost_mates(u32 number, u32 but, u64 pid_tgid, u32 seen, u64 now_ns)
{
	struct cos_kernel_config *is = configuration();
	u32 cpu, nr = is ? is->nr_cpus : 0;

	if (!schedules(is) || nr > COS_MAX_CPUS)
		return;
	bpf_for(cpu, 0, nr) {
		u32 *queued = presence_of(number, cpu);

		if (cpu != but && queued && *queued)
			boost_queued(number, cpu, pid_tgid, seen, now_ns);
	}
}

/*
 * A rank of job @number used up its slice on @but: who goes on now spins for who is gone (S1 5.1),
 * so the CPUs of its mates choose again. A mate that is still the furthest behind stays.
 */
APART int choose_again(u32 number, u32 but)
{
	struct cos_kernel_config *is = configuration();
	u32 cpu, nr = is ? is->nr_cpus : 0;

	if (!schedules(is) || nr > COS_MAX_CPUS)
		return 0;
	bpf_for(cpu, 0, nr) {
		struct cos_oncpu *on = bpf_map_lookup_elem(&oncpu, &cpu);

		if (!on || cpu == but || on->job != number)
			continue;
		count(COS_COUNT_MATCHED);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

/* Whether @t may be taken before its turn on @c. */
static __always_inline bool is_boosted(const struct task_state *t, const struct cpu_state *c,
			      const struct cos_kernel_config *is, u64 now_ns)
{
	if (t->boost_until_ns <= now_ns)
		return false;
	if (t->vtime - c->vtime <= (s64)is->max_debt_ns)
		return true;
	count(COS_COUNT_BEYOND_DEBT);
	return false;
}

/* Refusals in @cpu's queue that are over are asked about again; of the others the next one's end is waited for. */
APART int ask_refused(u32 cpu, u64 now_ns)
{
	struct cos_kernel_job *job;
	struct task_struct *p;
	struct task_state *t;
	bool boosted = false;
	u32 looks = max_looks();

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (!looks--)
			break;
		t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (!t || !t->again_at_ns)
			continue;
		if (t->again_at_ns > now_ns) {
			set_alarm(cpu, t->again_at_ns, now_ns);
			continue;
		}
		t->again_at_ns = 0;
		job = job_of(t);
		if (job && ask_arrival(t, job, cpu, COS_SEEN_AGAIN, now_ns))
			boosted = true;
	}
	bpf_rcu_read_unlock();
	if (boosted)
		kick_for_boost(cpu, now_ns);
	return 0;
}

/* The alarm of a CPU's queue rings, on whatever CPU. */
static int on_alarm(void *map, u32 *cpu, struct alarm *alarm)
{
	struct cpu_state *c = cpu_at(*cpu);

	if (c)
		c->alarm_at_ns = 0;
	ask_refused(*cpu, bpf_ktime_get_ns());
	return 0;
}

/* It is there already where the same object is attached again. */
static __always_inline s32 init_alarm(u32 cpu)
{
	struct cpu_state *c = cpu_at(cpu);
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &cpu);
	s32 failed;

	if (!alarm || !c)
		return 0;
	c->alarm_at_ns = 0;
	failed = bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	if (failed && failed != -EBUSY)
		return failed;
	return bpf_timer_set_callback(&alarm->timer, on_alarm);
}

/* dispatch: the first boosted one in @cpu's queue goes to its CPU. */
APART int take_boosted(u32 cpu, u64 now_ns)
{
	struct cos_kernel_config *is = configuration();
	struct cpu_state *c = cpu_at(cpu);
	struct task_struct *p;
	struct task_state *t;
	bool taken = false;
	u32 looks = max_looks(), left = 0;

	if (!is || !c)
		return false;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (!looks--)
			break;
		t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (!t || !t->job)
			continue;
		left |= t->boost_until_ns > now_ns;
		if (!is_boosted(t, c, is, now_ns))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, t->boost_slice_ns ?: is->slice_ns);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			taken = true;
			break;
		}
	}
	if (taken)
		count(COS_COUNT_BOOST_FIRST);
	else if (!left)
		c->wanted = 0;
	return taken;
}

/* Who has waited so long comes next: far from what the kernel's watchdog bears. */
#define PATIENCE_NS 3000000000ULL
/* The same of one that all of RCU waits for. The kernel bears 21 s, and such a section may take several turns. */
#define READER_PATIENCE_NS 100000000ULL
/* How often one is looked for. */
#define STARVING_LOOK_NS 100000000ULL

/* Until one that was preempted within a read-side critical section runs again, no grace period ends. */
static __always_inline u64 patience_ns(const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_lock_nesting) && p->rcu_read_lock_nesting > 0 ?
	       READER_PATIENCE_NS : PATIENCE_NS;
}

/*
 * dispatch: who waits in @cpu's queue beyond patience goes to its CPU, and what it was ahead is forgiven, unless
 * it goes for RCU's sake. Fair it would be to wait for minutes: a turn of a hundredth of the weight costs a hundred
 * turns of each other. Such are at the queue's end. Once there is one it is looked for in each choice. Its turn is
 * spared: all that wake are far behind it, and would end it at once.
 */
APART int take_starving(u32 cpu, u64 now_ns)
{
	struct cos_kernel_config *is = configuration();
	struct cpu_state *c = cpu_at(cpu);
	struct task_struct *p;
	struct task_state *t;
	u32 looks = max_looks();
	bool starves;

	if (!c || !is)
		return false;
	bpf_for_each(scx_dsq, p, cpu, SCX_DSQ_ITER_REV) {
		if (!looks--)
			break;
		t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (!t || now_ns - t->queued_at_ns < patience_ns(p) ||
		    !scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			continue;
		starves = now_ns - t->queued_at_ns >= PATIENCE_NS;
		if (starves)
			t->vtime = sooner(t->vtime, c->vtime);
		t->spared_ns = is->slice_ns;
		count(starves ? COS_COUNT_STARVING : COS_COUNT_READERS);
		return true;
	}
	c->looked_at_ns = now_ns;
	return false;
}

/* @t comes on its CPU: a boost is worth one slice. */
static __always_inline void end_boost(struct task_state *t, struct cos_kernel_job *job,
			     struct cpu_state *c, u64 now_ns)
{
	c->run_boosted = t->boost_until_ns > now_ns;
	if (c->run_boosted)
		add(&job->nr_served, 1);
	else if (t->boost_until_ns)
		add(&job->nr_expired, 1);
	t->boost_until_ns = 0;
	t->again_at_ns = 0;
}

#endif
