/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * main.bpf.c - a scheduler for the whole machine that coschedules.
 *
 * For everybody: one queue a CPU in the order of vtime (vtime.bpf.h), an idle
 * CPU where there is one (the kernel's own choice knows caches and SMT), wake-up preemption
 * for who is far enough behind, stealing by idle CPUs, and now and then a look for a
 * longer queue. Slices are counted by the kernel and end at its ticks.
 *
 * For ranks on top: an arrival (arrival.bpf.h, and below: a wake-up by a rank of
 * the same job, a yield, a mate that comes on its CPU) asks policy/, and a boosted rank goes
 * first. A yielding rank is passed over in the choice that it yields to, because it is not
 * queued yet, and keeps its credit.
 *
 * Journey of a message: on_arrival -> arrive -> ask_arrival -> kick -> dispatch ->
 * take_boosted -> running.
 */
#include "act.bpf.h"
#include "arrival.bpf.h"
#include "balance.bpf.h"
#include "ledger.bpf.h"
#include "member.bpf.h"
#include "observe.bpf.h"

char _license[] SEC("license") = "GPL";

#define OP(name, ...) SEC("struct_ops/" #name) BPF_PROG(cos_##name, ##__VA_ARGS__)
#define OP_SLEEPS(name, ...) SEC("struct_ops.s/" #name) BPF_PROG(cos_##name, ##__VA_ARGS__)

/* A woken rank: who woke it, and shall it run at once? */
static __always_inline bool is_boosted_by_waking(struct task_state *t, u32 cpu, u64 now_ns)
{
	struct cos_kernel_job *job = job_of(t);
	struct task_state *waker;
	u32 woken = t->woken;

	t->woken = 0;
	if (!job)
		return false;
	if (!woken) {
		waker = state_of(bpf_get_current_task_btf());
		if (!waker || waker == t || waker->job != t->job)
			return false;
		woken = COS_SEEN_WAKE + 1;
	}
	return ask_arrival(t, job, cpu, woken - 1, now_ns);
}

s32 OP(select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct cos_kernel_config *is = configuration();
	struct task_state *t = state_of(p);
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	struct cpu_state *c = cpu_at(cpu);

	if (t)
		t->woken_sync = !!(wake_flags & SCX_WAKE_SYNC);
	if (!idle || !t || !c || !is)
		return cpu;
	place(t, c, cpu, (s64)is->credit_ns);
	t->woken = 0;
	count(COS_COUNT_IDLE_STARTS);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, is->slice_ns, 0);
	return cpu;
}

/*
 * Shall @t, who woke, run at once? Where it is first and far enough behind who runs. Whose waker is about to sleep
 * leaves a turn alone that has just begun: the waker may wake others yet, and all would pay with a switch each.
 */
static __always_inline bool preempts(const struct task_state *t, const struct cpu_state *c, s64 first,
				     const struct cos_kernel_config *is, u64 now_ns)
{
	return c->run_weight && !c->run_spared && !c->run_pinned_kthread && t->vtime <= first &&
	       run_vtime(c, now_ns) - t->vtime > (s64)is->granularity_ns &&
	       (!t->woken_sync || now_ns - c->run_at_ns >= is->granularity_ns);
}

/* An idle CPU comes and takes what cannot run here at once. */
static __always_inline void call_idle(struct task_struct *p, u32 cpu)
{
	s32 idle;

	if (scx_bpf_test_and_clear_cpu_idle(cpu)) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	if (p->nr_cpus_allowed == 1)
		return;
	idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

/*
 * Who yields is in no queue for a moment. A mate that yielded meanwhile did not find it there, and
 * both would wait for what the other has.
 */
static __always_inline bool is_boosted_by_crossing(struct task_struct *p, struct task_state *t,
						   u32 cpu, u64 now_ns)
{
	struct cos_kernel_job *job = t->yielded ? job_of(t) : NULL;

	if (!job || job->yielded_at_ns <= t->yielded_at_ns || job->yielded_by == (u64)p->pid)
		return false;
	return ask_arrival(t, job, cpu, COS_SEEN_YIELD, now_ns);
}

/* Lost its CPU although a mark says that something arrived a moment before. */
static __always_inline bool is_boosted_by_mark(struct task_state *t, u32 cpu, u64 now_ns)
{
	struct cos_kernel_job *job = job_of(t);

	if (!job || t->mark_until_ns <= now_ns)
		return false;
	t->mark_until_ns = 0;
	return ask_arrival(t, job, cpu, COS_SEEN_AGAIN, now_ns);
}

/*
 * Its place in the queue. Who yields is at most `credit` behind the first; who was preempted within
 * its slice counts `granularity` less, so that it goes on soon.
 */
static __always_inline s64 key_of(const struct task_struct *p, struct task_state *t, s64 first,
				  u64 enq_flags, const struct cos_kernel_config *is)
{
	if (enq_flags & SCX_ENQ_WAKEUP)
		return t->vtime;
	if (t->yielded) {
		if (first != NOBODYS_KEY && t->vtime < first - (s64)is->credit_ns)
			t->vtime = first - (s64)is->credit_ns;
		return t->vtime;
	}
	if (turn_ns(p, t) < is->slice_ns)
		return t->vtime - (s64)is->granularity_ns;
	return t->vtime;
}

void OP(enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cos_kernel_config *is = configuration();
	u32 cpu = scx_bpf_task_cpu(p);
	struct task_state *t = state_of(p);
	struct cpu_state *c = cpu_at(cpu);
	u64 now_ns = bpf_ktime_get_ns();
	bool boosted, wakes = enq_flags & SCX_ENQ_WAKEUP;
	s64 first;

	if (!is || !t || !c || is_pinned_kthread(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, is ? is->slice_ns : 0,
				   enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	first = advance(c, cpu, now_ns);
	place(t, c, cpu, (s64)is->credit_ns);
	if (t->spared_ns && !wakes) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, t->spared_ns, enq_flags);
		return;
	}
	boosted = wakes ? is_boosted_by_waking(t, cpu, now_ns) :
			  is_boosted_by_mark(t, cpu, now_ns);
	if (wakes && !boosted && preempts(t, c, first, is, now_ns)) {
		count(COS_COUNT_WAKE_KICKS);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, is->slice_ns, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	t->queued_at_ns = now_ns;
	if (t->job)
		enter_queue(t, cpu);
	scx_bpf_dsq_insert_vtime(p, cpu, is->slice_ns,
				 (u64)key_of(p, t, first, enq_flags, is), enq_flags);
	if (boosted || is_boosted_by_crossing(p, t, cpu, now_ns))
		kick_for_boost(cpu, now_ns);
	call_idle(p, cpu);
}

void OP(dequeue, struct task_struct *p, u64 deq_flags)
{
	struct task_state *t = state_of(p);

	if (t)
		leave_queue(t);
}

/* It goes on, since nobody else wants the CPU or nobody is further behind. */
static __always_inline void keep(struct task_struct *prev, struct task_state *t,
				 const struct cos_kernel_config *is)
{
	t->yielded = 0;
	set_slice(prev, is->slice_ns);
	count(COS_COUNT_KEPT);
}

void OP(dispatch, s32 cpu, struct task_struct *prev)
{
	struct cos_kernel_config *is = configuration();
	struct cpu_state *c = cpu_at(cpu);
	struct task_state *t = prev ? state_of(prev) : NULL;
	bool goes_on = t && t->running && (prev->scx.flags & SCX_TASK_QUEUED);
	u64 now_ns = bpf_ktime_get_ns();
	s64 first;

	if (!is || !c)
		return;
	if (t && t->running) {
		charge(prev, t);
		c->run_vtime = t->vtime;
		c->run_at_ns = now_ns;
	}
	first = advance(c, cpu, now_ns);
	if (c->wanted && take_boosted(cpu, now_ns))
		return;
	if (now_ns - c->looked_at_ns >= STARVING_LOOK_NS && take_starving(cpu, now_ns))
		return;
	if (balance(c, cpu, is, now_ns))
		return;
	if (prev && goes_on && !t->yielded && t->vtime <= first)
		keep(prev, t, is);
	else if (scx_bpf_dsq_move_to_local(cpu))
		return;
	else if (prev && goes_on)
		keep(prev, t, is);
	else
		steal(cpu);
}

/* From now on @p wants its CPU, or no longer does. */
static __always_inline void note_wants(struct task_struct *p, struct task_state *t, u32 wants)
{
	struct cos_kernel_job *job = job_of(t);

	if (job)
		account(t, job, scx_bpf_task_cpu(p), bpf_ktime_get_ns());
	t->wants = wants;
}

void OP(runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_state *t = state_of(p);

	if (!t)
		return;
	note_wants(p, t, 1);
	group_runnable(p, t);
}

/* For a sleep, or only for a moment: its CPUs or its priority change. Then nothing is forgiven. */
void OP(quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_state *t = state_of(p);

	if (!t)
		return;
	note_wants(p, t, 0);
	group_quiescent(p, t);
	if (deq_flags & SCX_DEQ_SLEEP)
		go_away(t);
}

/* To another scheduling class. */
void OP(disable, struct task_struct *p)
{
	struct task_state *t = state_of(p);

	if (t)
		go_away(t);
}

void OP(running, struct task_struct *p)
{
	struct cos_kernel_config *is = configuration();
	u32 cpu = scx_bpf_task_cpu(p);
	struct task_state *t = state_of(p);
	struct cpu_state *c = cpu_at(cpu);
	u64 now_ns = bpf_ktime_get_ns();

	if (!is || !t || !c)
		return;
	place(t, c, cpu, (s64)is->credit_ns);
	leave_queue(t);
	t->yielded = 0;
	t->charged_ns = cpu_time_ns(p);
	c->run_vtime = t->vtime;
	c->run_at_ns = now_ns;
	refresh_weight(p, t);
	c->run_weight = t->weight;
	c->run_pulled_at_ns = t->pulled_at_ns;
	c->run_pinned_kthread = is_pinned_kthread(p);
	c->run_boosted = 0;
	c->run_spared = t->spared_ns > 0;
	advance(c, cpu, now_ns);
	see_run(p, t, c, cpu, now_ns);
}

/* A rank's turn, by the clock and not by a yield or a boost of somebody else. */
static __always_inline bool is_turn_over(const struct task_struct *p, const struct task_state *t)
{
	struct cos_kernel_config *is = configuration();
	struct cos_kernel_job *job = job_of(t);

	return is && job && job->params.answer[COS_Q_ARRIVAL] && !t->yielded &&
	       turn_ns(p, t) >= is->slice_ns;
}

void OP(stopping, struct task_struct *p, bool runnable)
{
	struct task_state *t = state_of(p);
	u32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_at(cpu);
	u64 now_ns = bpf_ktime_get_ns();

	if (!t || !c)
		return;
	charge(p, t);
	c->run_vtime = t->vtime;
	c->run_at_ns = now_ns;
	advance(c, cpu, now_ns);
	see_stop(p, t, cpu, now_ns);
	t->spared_ns = runnable && !t->yielded ? sat_sub(t->spared_ns, turn_ns(p, t)) : 0;
	if (runnable && is_turn_over(p, t))
		choose_again(t->job, cpu);
	c->run_weight = 0;
}

/*
 * Its CPU to others, and to whom it waits for a boost; unless policy would rather spin: what it
 * waits for comes sooner than it could come back.
 */
bool OP(yield, struct task_struct *from, struct task_struct *to)
{
	struct task_state *t = state_of(from);
	struct cos_kernel_job *job = t ? job_of(t) : NULL;
	u64 now_ns = bpf_ktime_get_ns();

	if (job) {
		add(&job->nr_yields, 1);
		if (ask_wait(t, job, t->cpu, now_ns) == COS_ACT_SPIN) {
			add(&job->nr_stayed, 1);
			return false;
		}
		__sync_lock_test_and_set(&job->yielded_by, (u64)from->pid);
		__sync_lock_test_and_set(&job->yielded_at_ns, now_ns);
	}
	if (t)
		t->yielded = 1;
	set_slice(from, 0);
	if (job)
		boost_mates(t->job, COS_MAX_CPUS, 0, COS_SEEN_YIELD, now_ns);
	return false;
}

s32 OP(init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_state *t = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -12;
	t->away = 1;
	t->weight = WEIGHT_OF_NICE_0;
	t->cpu = scx_bpf_task_cpu(p);
	if (args->fork)
		inherit(bpf_get_current_task_btf(), p);
	return 0;
}

/* It ends, or its fork fails; or we go, and it stays what it is. */
void OP(exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_state *t = state_of(p);

	if (!t)
		return;
	if (args->cancelled || (p->flags & PF_EXITING))
		leave(t);
	else
		leave_queue(t);
}

s32 OP(cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct group_state *group = bpf_cgrp_storage_get(&groups, cgrp, 0,
							 BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!group)
		return -12;
	group->weight = args->weight;
	return 0;
}

void OP(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct group_state *group = bpf_cgrp_storage_get(&groups, cgrp, 0, 0);

	if (group)
		group->weight = weight;
}

s32 OP_SLEEPS(init)
{
	struct cos_kernel_config *is = configuration();
	u32 cpu, nr = is ? is->nr_cpus : 0;
	s32 failed;

	bpf_for(cpu, 0, nr) {
		failed = scx_bpf_create_dsq(cpu, -1) ?: init_alarm(cpu);
		if (failed)
			return failed;
	}
	return 0;
}

/* Why it was taken away; coschedd reads it. */
void OP(exit, struct scx_exit_info *info)
{
	u32 zero = 0;
	struct cos_kernel_exit *told = bpf_map_lookup_elem(&exits, &zero);

	if (!told)
		return;
	bpf_probe_read_kernel_str(told->reason, sizeof(told->reason), info->reason);
	bpf_probe_read_kernel_str(told->message, sizeof(told->message), info->msg);
	told->code = info->exit_code;
	told->kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops cosched_ops = {
	.select_cpu	= (void *)cos_select_cpu,
	.enqueue	= (void *)cos_enqueue,
	.dequeue	= (void *)cos_dequeue,
	.dispatch	= (void *)cos_dispatch,
	.runnable	= (void *)cos_runnable,
	.running	= (void *)cos_running,
	.stopping	= (void *)cos_stopping,
	.quiescent	= (void *)cos_quiescent,
	.yield		= (void *)cos_yield,
	.init_task	= (void *)cos_init_task,
	.disable	= (void *)cos_disable,
	.exit_task	= (void *)cos_exit_task,
	.cgroup_init	= (void *)cos_cgroup_init,
	.cgroup_set_weight = (void *)cos_cgroup_set_weight,
	.init		= (void *)cos_init,
	.exit		= (void *)cos_exit,
	/* The kernel's most: where real-time tasks leave a twentieth, as it grants, all else is as much slower. */
	.timeout_ms	= 30000,
	.name		= "cosched",
};
