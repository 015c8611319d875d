/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.bpf.h - what cosched uses of the kernel, and nothing more.
 *
 * No vmlinux.h: only the fields that are read are declared, and CO-RE finds
 * them on the running kernel. So the object is the same for every kernel, and
 * this file is the whole list of what may break. Functions of sched_ext are
 * weak: where the kernel has none, the programs that call them are not loaded
 * and the others (observe only) still are. Names without ___v2 exist from 6.13 on.
 */
#ifndef COS_KERNEL_BPF_H
#define COS_KERNEL_BPF_H

#include "../abi/kernel.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef int s32;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
};
#define BPF_F_NO_PREALLOC	1
#define BPF_F_MMAPABLE		1024
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1

#define CLOCK_MONOTONIC	1
#define EBUSY 16

struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define __core __attribute__((preserve_access_index))
/*
 * A function that the verifier takes by itself, once, whatever its callers know:
 * what holds a loop or asks policy is one, or the ways through it would multiply.
 */
#define APART __attribute__((noinline))

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80

struct cpumask {
	unsigned long bits[1];
};

struct cgroup {
	int level;
} __core;

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
} __core;

struct sched_entity {
	u64 sum_exec_runtime;
} __core;

struct signal_struct {
	int nr_threads;
} __core;

struct task_struct {
	int pid, tgid;
	unsigned int flags;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	int rcu_read_lock_nesting;	/* where readers can be preempted */
	struct signal_struct *signal;
	struct sched_entity se;
	struct sched_ext_entity scx;
	char comm[16];
} __core;

struct sock {
	u16 sk_protocol;
} __core;

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} __core;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __core;

struct scx_init_task_args {
	bool fork;
} __core;
struct scx_exit_task_args {
	bool cancelled;
} __core;
struct scx_cgroup_init_args {
	u32 weight;
} __core;

enum scx_exit_kind { SCX_EXIT_NONE };

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
} __core;

enum scx_ent_flags { SCX_TASK_QUEUED = 1 };
enum scx_wake_flags { SCX_WAKE_SYNC = 0x10 };
enum scx_enq_flags { SCX_ENQ_WAKEUP = 1 };
enum scx_deq_flags { SCX_DEQ_SLEEP = 1 };
#define SCX_ENQ_PREEMPT		(1ULL << 32)
#define SCX_DSQ_LOCAL		(1ULL << 63 | 2)
#define SCX_DSQ_LOCAL_ON	(3ULL << 62)
#define SCX_DSQ_ITER_REV	(1ULL << 16)
#define SCX_KICK_IDLE		1ULL
#define SCX_KICK_PREEMPT	2ULL

/*
 * Members are matched by name; what is left out here is left to the kernel. `flags` comes first, where
 * the loader finds it.
 */
struct sched_ext_ops {
	u64 flags;
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*disable)(struct task_struct *p);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 timeout_ms;
	char name[128];
};

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

/* The iterator of the bpf_for_each() around. */
#define BPF_FOR_EACH_ITER (&___it)

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym __weak;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym __weak;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym __weak;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym __weak;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym __weak;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice) __ksym __weak;
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id) __ksym __weak;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym __weak;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym __weak;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym __weak;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym __weak;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags) __ksym __weak;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym __weak;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym __weak;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym __weak;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym __weak;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;

/* From 6.19 on by a function; before that by hand. */
static __always_inline void set_slice(struct task_struct *p, u64 slice_ns)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice_ns);
	else
		p->scx.slice = slice_ns;
}

#endif
