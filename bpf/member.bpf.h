/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * member.bpf.h - KNOW: who joins a job and who leaves it.
 *
 * coschedd lets processes join (the program `join`); whatever they start is in
 * the same job. A task leaves when it ends, or when its job does: then its
 * serial is nobody's.
 *
 * Ends are told twice: by a tracepoint, and by sched_ext or the last switch; where we schedule so are beginnings. A
 * program at a tracepoint can be preempted (seen on Linux 7.2), and until it goes on the kernel leaves the same program
 * out for everybody else on that CPU: of two ranks that end together there one would stay in its job for ever.
 */
#ifndef COS_MEMBER_BPF_H
#define COS_MEMBER_BPF_H

#include "decide.bpf.h"
#include "state.bpf.h"

struct join_request {
	u32 tid, job;
	u64 serial;
};

/* Who takes the number out counts it out: only one of two that are told. */
static __always_inline void leave(struct task_state *t)
{
	struct cos_kernel_job *job;
	u64 serial = t->serial;
	u32 number;

	leave_queue(t);
	number = __sync_lock_test_and_set(&t->job, 0);
	job = number ? bpf_map_lookup_elem(&jobs, &number) : NULL;
	if (job && job->serial == serial)
		add(&job->nr_tasks, -1ULL);
}

static __always_inline void enter(struct task_state *t, u32 number, struct cos_kernel_job *job)
{
	u64 now_ns = bpf_ktime_get_ns();

	leave(t);
	t->serial = job->serial;
	t->job = number;
	t->accounted_at_ns = now_ns;
	__builtin_memset(&t->policy, 0, sizeof(t->policy));
	add(&job->nr_tasks, 1);
	add(&job->nr_joined, 1);
	learn_of(t, job, t->cpu, COS_EV_JOB_BEGIN, now_ns);
}

/* Returns 0, or what to tell: -3 no such task, -22 no such job, -12 no memory, 1 in it already. */
SEC("syscall")
int join(struct join_request *request)
{
	u32 number = request->job;
	struct cos_kernel_job *job = bpf_map_lookup_elem(&jobs, &number);
	struct task_struct *p;
	struct task_state *t;
	int told = -12;

	if (!number || !job || job->serial != request->serial)
		return -22;
	p = bpf_task_from_pid(request->tid);
	if (!p)
		return -3;
	t = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (p->flags & PF_EXITING) {
		told = -3;
	} else if (t && job_of(t) == job) {
		told = 1;
	} else if (t) {
		enter(t, number, job);
		told = 0;
	}
	bpf_task_release(p);
	return told;
}

/* @child is in the job that @parent is in. */
static __always_inline void inherit(struct task_struct *parent, struct task_struct *child)
{
	struct task_state *of_parent = state_of(parent), *t;
	struct cos_kernel_job *job = of_parent ? job_of(of_parent) : NULL;

	if (!job)
		return;
	t = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		count(COS_COUNT_LOST_TASKS);
	else if (job_of(t) != job)
		enter(t, of_parent->job, job);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	inherit(parent, child);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p)
{
	struct task_state *t = state_of(p);
	struct cos_kernel_job *job = t ? job_of(t) : NULL;

	if (!job)
		return 0;
	learn_of(t, job, t->cpu, COS_EV_JOB_END, bpf_ktime_get_ns());
	leave(t);
	return 0;
}

/* One line a rank, for `cosched jobs`. */
SEC("iter/task")
int list_members(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *p = ctx->task;
	struct task_state *t;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&tasks, p, 0, 0);
	if (!t || !job_of(t))
		return 0;
	BPF_SEQ_PRINTF(seq, "%d %d %u %u %u %llu %llu %llu ", p->pid, p->tgid, t->job, t->cpu,
		       t->running, t->ran_ns, t->wanted_ns, t->due_ns);
	BPF_SEQ_PRINTF(seq, "%llu %llu %u %s\n", t->nr_boosts, t->nr_denied, t->last_reason,
		       p->comm);
	return 0;
}

#endif
