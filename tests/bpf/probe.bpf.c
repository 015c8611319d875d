/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe.bpf.c - policy, compiled for BPF and asked as often as a test wants.
 *
 * The test fills `cases`, runs the program once and reads the same entries back:
 * each was learned from (cos_observe), then asked (cos_wait). COS_MUTANT_LATE
 * makes it wrong by one nanosecond, to show that the test would see it.
 *
 * It includes nothing but policy: what it needs of BPF is declared here.
 */
#include "policy.h"

#define SEC(name) __attribute__((section(name), used))
#define NR_CASES 1024

struct probe_case {
	struct cos_params params;
	struct cos_obs obs;
	struct cos_task task;
	struct cos_job job;
	struct cos_out out;
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

static long ask(u32 i, void *ctx)
{
	struct probe_case *c = bpf_map_lookup_elem(&cases, &i);

	(void)ctx;
	if (!c)
		return 1;
#ifdef COS_MUTANT_LATE
	c->obs.waited_ns++;
#endif
	cos_observe(&c->params, &c->obs, &c->task, &c->job);
	cos_wait(&c->params, &c->obs, &c->task, &c->job, &c->out);
	return 0;
}

/* Returns how many cases were asked. */
SEC("syscall") int probe(void *ctx)
{
	(void)ctx;
	return (int)bpf_loop(NR_CASES, ask, 0, 0);
}
