/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe.bpf.c - policy, compiled for BPF and asked as often as a test wants.
 *
 * One program for each function of policy.h that is asked on a hot path (cos_plan
 * is not). The test fills `cases`, runs the programs it wants, in the order it
 * wants, and reads the same entries back: each has learned (cos_observe) or been
 * asked once by each program that ran. COS_MUTANT_LATE makes all of them wrong by
 * one nanosecond, to show that the test would see it.
 *
 * It includes nothing but policy: what it needs of BPF is declared here.
 */
#include "policy.h"

#define SEC(name) __attribute__((section(name), used))
#define NR_CASES 1024

enum probe_decision {
	PROBE_WAIT,
	PROBE_ARRIVAL,
	PROBE_FAIRNESS,
	PROBE_PERIODIC,
	PROBE_ORDER,
	PROBE_QUANTUM,
	PROBE_ADMIT,
	PROBE_NR_DECISIONS,
};

struct probe_case {
	struct cos_params params;
	struct cos_obs obs;
	struct cos_task task;
	struct cos_job job;
	struct cos_out out[PROBE_NR_DECISIONS];
};

struct {
	int (*type)[2];			/* BPF_MAP_TYPE_ARRAY */
	int (*max_entries)[NR_CASES];
	u32 *key;
	struct probe_case *value;
} cases SEC(".maps");

/* Helpers by their number in the kernel's ABI. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_loop)(u32 nr, void *call, void *ctx, u64 flags) = (void *)181;

static inline __attribute__((always_inline)) struct probe_case *case_at(u32 i)
{
	struct probe_case *c = bpf_map_lookup_elem(&cases, &i);

#ifdef COS_MUTANT_LATE
	if (c) {
		c->obs.now_ns++;
		c->obs.left_ns++;
	}
#endif
	return c;
}

static long ask_observe(u32 i, void *ctx)
{
	struct probe_case *c = case_at(i);

	(void)ctx;
	if (c)
		cos_observe(&c->params, &c->obs, &c->task, &c->job);
	return !c;
}

/* Returns how many cases were asked. */
SEC("syscall") int observe(void *ctx)
{
	(void)ctx;
	return (int)bpf_loop(NR_CASES, ask_observe, 0, 0);
}

#define PROBE(question, decision)						\
	static long ask_##question(u32 i, void *ctx)				\
	{									\
		struct probe_case *c = case_at(i);				\
										\
		(void)ctx;							\
		if (c)								\
			cos_##question(&c->params, &c->obs, &c->task, &c->job,	\
				       &c->out[decision]);			\
		return !c;							\
	}									\
										\
	SEC("syscall") int question(void *ctx)					\
	{									\
		(void)ctx;							\
		return (int)bpf_loop(NR_CASES, ask_##question, 0, 0);		\
	}

PROBE(wait, PROBE_WAIT)
PROBE(arrival, PROBE_ARRIVAL)
PROBE(fairness, PROBE_FAIRNESS)
PROBE(periodic, PROBE_PERIODIC)
PROBE(order, PROBE_ORDER)
PROBE(quantum, PROBE_QUANTUM)
PROBE(admit, PROBE_ADMIT)
