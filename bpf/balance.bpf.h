/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * balance.bpf.h - ACT: who runs on another CPU than the one in whose queue it waits?
 *
 * A CPU that has nothing to do takes from the longest queue; one that has less
 * than another looks now and then. Only dispatch calls what is here. Ranks stay
 * where their job put them, as long as it has no more of them there than here.
 */
#ifndef COS_BALANCE_BPF_H
#define COS_BALANCE_BPF_H

#include "act.bpf.h"
#include "state.bpf.h"

/* Of so many looks for a longer queue, from the last pull on, one that is longer by one will do in the last few. */
#define LOOKS_PER_ROTATION 16
#define ROTATING_LOOKS 4

/* The longest queue but @cpu's; -1 where that is not longer than @mine by @by. */
APART int longest(u32 cpu, s32 mine, s32 by)
{
	struct cos_kernel_config *is = configuration();
	u32 other, nr = is ? is->nr_cpus : 0;
	s32 most = mine + by - 1, found = -1;

	bpf_for(other, 0, nr) {
		s32 queued = other == cpu ? 0 : scx_bpf_dsq_nr_queued(other);

		if (queued > most) {
			most = queued;
			found = other;
		}
	}
	return found;
}

/*
 * The first in @from's queue that may run on @cpu. A rank stays, unless its job too has more
 * there than here by @by: what its job was given, a CPU each, is not undone. Who came by a pull after the one that
 * runs there lets that one go first, when it waits: or the same would have a turn with each of the others.
 */
APART int pull(u32 from, u32 cpu, u32 by)
{
	struct cpu_state *theirs = cpu_at(from);
	struct task_struct *p;
	struct task_state *t;
	u32 looks = max_looks();
	int taken = 0;

	bpf_for_each(scx_dsq, p, from, 0) {
		if (!looks--)
			break;
		t = bpf_task_storage_get(&tasks, p, 0, 0);
		if (!t || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (by == 1 && theirs && t->pulled_at_ns > theirs->run_pulled_at_ns)
			continue;
		if (t->job && nr_of_job(t->job, from) < nr_of_job(t->job, cpu) + by)
			continue;
		t->pulled_at_ns = bpf_ktime_get_ns();
		taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
		if (theirs)
			theirs->nr_balances = 0;
		break;
	}
	return taken;
}

/*
 * A queue that is longer by two gives one away. One that is longer by one does so now and then,
 * or three hogs on two CPUs would have a half, a quarter and a quarter for ever.
 */
static __always_inline bool balance(struct cpu_state *c, u32 cpu,
				    const struct cos_kernel_config *is, u64 now_ns)
{
	u32 by;
	s32 from;

	if (now_ns - c->balanced_at_ns < is->balance_ns)
		return false;
	c->balanced_at_ns = now_ns;
	by = ++c->nr_balances % LOOKS_PER_ROTATION < LOOKS_PER_ROTATION - ROTATING_LOOKS ? 2 : 1;
	from = longest(cpu, scx_bpf_dsq_nr_queued(cpu), by);
	if (from < 0 || !pull(from, cpu, by))
		return false;
	c->nr_balances = 0;
	count(COS_COUNT_BALANCED);
	return true;
}

static __always_inline bool steal(u32 cpu)
{
	s32 from = longest(cpu, 0, 1);

	if (from < 0 || !scx_bpf_dsq_move_to_local(from))
		return false;
	count(COS_COUNT_STOLEN);
	return true;
}

#endif
