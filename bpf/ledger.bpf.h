/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ledger.bpf.h - KNOW: what a rank got, and what was due to it.
 *
 * At each event of a rank the time since the one before is put down: as wanted
 * if it ran or could have, and of that one part in R as due, R being how many
 * want its CPU at the event (known where we schedule). F of a job is ran / due (DESIGN, "The measure of
 * truth"); weights are not in it. Sums are kept for the task and for its job.
 */
#ifndef COS_LEDGER_BPF_H
#define COS_LEDGER_BPF_H

#include "state.bpf.h"

static __always_inline void account(struct task_state *t, struct cos_kernel_job *job, u32 cpu, u64 now_ns)
{
	u64 since_ns = now_ns - t->accounted_at_ns, due_ns;
	u32 nr = nr_runnable(cpu);

	if (t->wants && t->accounted_at_ns && now_ns > t->accounted_at_ns) {
		due_ns = nr ? since_ns / nr : 0;
		t->wanted_ns += since_ns;
		t->due_ns += due_ns;
		add(&job->wanted_ns, since_ns);
		add(&job->due_ns, due_ns);
	}
	t->accounted_at_ns = now_ns;
}

static __always_inline void account_run(const struct task_struct *p, struct task_state *t,
					struct cos_kernel_job *job)
{
	u64 ran_ns = turn_ns(p, t);

	if (!t->on_at_ns)
		return;
	t->ran_ns += ran_ns;
	add(&job->ran_ns, ran_ns);
}

/* How long ago the first arrival was that it has not run since; 0 = there was none. */
static __always_inline u64 account_delay(struct task_state *t, struct cos_kernel_job *job,
					 u64 now_ns)
{
	u64 delay_ns = now_ns - t->arrival_at_ns;
	u32 bucket = 0, i;

	if (!t->arrival_at_ns)
		return 0;
	t->arrival_at_ns = 0;
	bpf_for(i, 0, COS_NR_RUN_DELAYS - 1) {
		if (delay_ns < 1024ULL << i)
			break;
		bucket = i + 1;
	}
	if (bucket < COS_NR_RUN_DELAYS)
		add(&job->run_delay[bucket], 1);
	return delay_ns;
}

#endif
