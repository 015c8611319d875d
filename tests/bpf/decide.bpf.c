/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decide.bpf.c - each decision as a program of its own, so that its instructions can be
 * counted. What a program needs besides (finding its case in the map) counts too.
 */
#include "policy.h"

#define SEC(name) __attribute__((section(name), used))

struct decide_case {
	struct cos_params params;
	struct cos_obs obs;
	struct cos_task task;
	struct cos_job job;
	struct cos_out out;
};

struct {
	int (*type)[2];			/* BPF_MAP_TYPE_ARRAY */
	int (*max_entries)[1];
	u32 *key;
	struct decide_case *value;
} cases SEC(".maps");

/* A helper by its number in the kernel's ABI. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

#define PROGRAM(name, ...)						\
	SEC("syscall") int name(void *ctx)				\
	{								\
		u32 zero = 0;						\
		struct decide_case *c = bpf_map_lookup_elem(&cases, &zero);	\
									\
		(void)ctx;						\
		if (c)							\
			cos_##name(&c->params, &c->obs, &c->task, &c->job __VA_ARGS__);	\
		return 0;						\
	}
#define DECISION(name) PROGRAM(name, , &c->out)

PROGRAM(observe)
DECISION(wait)
DECISION(arrival)
DECISION(fairness)
DECISION(periodic)
DECISION(order)
DECISION(quantum)
DECISION(admit)
