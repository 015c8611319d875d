/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * state.bpf.h - KNOW: who is that, whose job is it in, what is its share?
 *
 * One struct a task (task storage: it lives and dies with the task), one a CPU,
 * and the jobs of abi/kernel.h. Two CPUs may meet in a job's entry or in a task
 * that is just woken; sums are added atomically, all else is a hint that the
 * next event repairs. Nothing is decided here and nothing is done.
 */
#ifndef COS_STATE_BPF_H
#define COS_STATE_BPF_H

#include "kernel.bpf.h"

struct task_state {
	/* membership, and what only policy writes */
	u32 job;			/* 0 = none */
	u64 serial;			/* of that job */
	struct cos_task policy;

	/* the fair rule: vtime.bpf.h */
	s64 vtime;			/* weighted CPU time, on the scale of its CPU */
	s64 lag;			/* while away: its CPU's vtime less its own, when it left */
	s64 left_at;			/* ... and that CPU's vtime then */
	u32 weight;			/* among all that run, in 1/1024: group.bpf.h */
	u32 active_weight;		/* what it counts in its cgroup */
	u64 charged_ns;			/* CPU time, as of which vtime is */
	u64 on_at_ns;			/* it came on its CPU */
	u64 on_cpu_ns;			/* ... with so much CPU time */
	u32 cpu;			/* whose scale vtime is on */
	u32 ran_on;			/* CPU + 1; 0 = nowhere yet */
	u32 away;			/* neither queued nor running */
	u32 yielded;			/* gives its CPU away in this choice */
	u64 yielded_at_ns;
	u64 yield_gap_ns;		/* learned: between two yields of one wait */
	u64 wait_since_ns;
	u32 running;
	u64 queued_at_ns;
	u64 pulled_at_ns;		/* from a longer queue: balance.bpf.h */
	u32 queued_on;			/* CPU + 1 whose queue it is counted in (presence) */
	u32 woken;			/* enum cos_seen + 1: has not been asked about since */
	u32 woken_sync;			/* by one that is about to sleep, as it said */
	u64 spared_ns;			/* CPU time that nobody shall cut short: its wait was beyond patience */

	/* boosts: act.bpf.h */
	u64 boost_until_ns;		/* 0 = not boosted */
	u64 boost_slice_ns;
	u64 mark_until_ns;		/* losing its CPU before is as an arrival */
	u64 again_at_ns;		/* refused; 0 = not to be asked again */
	u64 arrival_at_ns;		/* the first that it has not run since */

	/* the account: ledger.bpf.h */
	u64 accounted_at_ns;
	u64 ran_ns, wanted_ns, due_ns;
	u64 nr_boosts, nr_denied;
	u32 last_reason;
	u32 wants;			/* it runs or could */
};

struct cpu_state {
	s64 vtime;			/* the least of all that want this CPU; never goes back */
	s64 run_vtime;			/* of who runs, as of run_at_ns */
	u64 run_at_ns;
	s64 sum;			/* of mean_beyond() as asked on this CPU, and of its weights */
	u64 weights;
	u64 kicked_at_ns;		/* for a boost */
	u64 balanced_at_ns;
	u64 looked_at_ns;		/* for who starves */
	u64 alarm_at_ns;		/* its alarm rings; 0 = it is not set */
	u64 run_pulled_at_ns;		/* of who runs */
	u32 run_weight;
	u32 wanted;			/* somebody queued here may be boosted */
	u32 run_boosted;		/* this turn is a boost: nobody else's preempts it */
	u32 run_pinned_kthread;
	u32 run_spared;			/* this turn ends a wait beyond patience: nobody who wakes preempts it */
	u32 nr_balances;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

#define ARRAY(name, value_type, nr)			\
	struct {					\
		__uint(type, BPF_MAP_TYPE_ARRAY);	\
		__uint(max_entries, nr);		\
		__type(key, u32);			\
		__type(value, value_type);		\
	} name SEC(".maps")

struct alarm {
	struct bpf_timer timer;
};

struct cpu_counts {
	u64 nr[COS_NR_COUNTS];
};

ARRAY(config, struct cos_kernel_config, 1);
ARRAY(exits, struct cos_kernel_exit, 1);
ARRAY(jobs, struct cos_kernel_job, COS_MAX_JOBS);
ARRAY(cpus, struct cpu_state, COS_MAX_CPUS);
/* Of a CPU's queue: its next refusal ends. */
ARRAY(alarms, struct alarm, COS_MAX_CPUS);
ARRAY(counts, struct cpu_counts, COS_MAX_CPUS);
/* How many ranks of a job are in a CPU's queue. */
ARRAY(presence, u32, COS_MAX_JOBS * COS_MAX_CPUS);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, COS_MAX_CPUS);
	__type(key, u32);
	__type(value, struct cos_oncpu);
} oncpu SEC(".maps");

static __always_inline struct cos_kernel_config *configuration(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&config, &zero);
}

/* A constant to the verifier where the kernel has no sched_ext: what is behind it is not there. */
static __always_inline bool schedules(const struct cos_kernel_config *is)
{
	return bpf_ksym_exists(scx_bpf_kick_cpu) && is && is->schedules;
}

/*
 * So many of a queue are looked at: in its order, so the most behind. Read, and not a constant, so
 * that the verifier does not follow each number that is left.
 */
static __always_inline u32 max_looks(void)
{
	struct cos_kernel_config *is = configuration();

	return is ? is->max_looks : 0;
}

static __always_inline struct task_state *state_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

static __always_inline struct cpu_state *cpu_at(u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* The job that @t is in; none where that has ended. */
static __always_inline struct cos_kernel_job *job_of(const struct task_state *t)
{
	u32 number = t->job;
	struct cos_kernel_job *job;

	if (!number)
		return NULL;
	job = bpf_map_lookup_elem(&jobs, &number);
	return job && job->serial == t->serial ? job : NULL;
}

static __always_inline void add(u64 *sum, u64 n)
{
	__sync_fetch_and_add(sum, n);
}

static __always_inline void count(enum cos_count what)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_counts *mine = bpf_map_lookup_elem(&counts, &cpu);

	if (mine && what < COS_NR_COUNTS)
		add(&mine->nr[what], 1);
}

static __always_inline u32 *presence_of(u32 job, u32 cpu)
{
	u32 at = job * COS_MAX_CPUS + cpu;

	return bpf_map_lookup_elem(&presence, &at);
}

/* @t is in no CPU's queue (any more). */
static __always_inline void leave_queue(struct task_state *t)
{
	u32 on = t->queued_on;
	u32 *nr = on ? presence_of(t->job, on - 1) : NULL;

	if (nr)
		__sync_fetch_and_add(nr, -1);
	t->queued_on = 0;
}

static __always_inline void enter_queue(struct task_state *t, u32 cpu)
{
	u32 *nr;

	leave_queue(t);
	nr = t->job ? presence_of(t->job, cpu) : NULL;
	if (!nr)
		return;
	__sync_fetch_and_add(nr, 1);
	t->queued_on = cpu + 1;
}

/* How many of job @number want @cpu. */
static __always_inline u32 nr_of_job(u32 number, u32 cpu)
{
	u32 *queued = presence_of(number, cpu);
	struct cos_oncpu *on = bpf_map_lookup_elem(&oncpu, &cpu);

	return (queued ? *queued : 0) + (on && on->job == number);
}

/* How many want @cpu, the running one included; 0 = not known, where we only observe. */
static __always_inline u32 nr_runnable(u32 cpu)
{
	struct cos_kernel_config *is = configuration();
	struct cpu_state *c = cpu_at(cpu);
	s32 queued, next;

	if (!schedules(is) || !c)
		return 0;
	queued = scx_bpf_dsq_nr_queued(cpu);
	/* Chosen already, while the one before is still on its way out. */
	next = scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu);
	return (queued > 0 ? queued : 0) + (next > 0 ? next : 0) + (c->run_weight ? 1 : 0) ?: 1;
}

/*
 * CPU time as the kernel counts it for slices, priorities and rusage. The clock would also count
 * what interrupts took from it: a rank that sends datagrams would pay for them with turns that others have.
 */
static __always_inline u64 cpu_time_ns(const struct task_struct *p)
{
	return p->se.sum_exec_runtime;
}

/* CPU time of its turn so far, or of its last one. */
static __always_inline u64 turn_ns(const struct task_struct *p, const struct task_state *t)
{
	return cpu_time_ns(p) - t->on_cpu_ns;
}

static __always_inline bool is_pinned_kthread(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

#endif
