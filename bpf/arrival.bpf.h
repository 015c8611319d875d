/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arrival.bpf.h - SEE: a message reached this node, and whose is it?
 *
 * The kernel knows a socket, policy wants a task. Who receives from a socket is
 * remembered in it (sock_recv_length); when data comes (sk_data_ready) that one
 * is the receiver. TCP, UDP and Unix sockets pass both tracepoints; a receiver
 * that polls without a wake-up is seen all the same. The other threads of its process
 * that are queued are boosted too, as in S1 figure 2.
 *
 * Runs in interrupts: it marks and kicks, nothing else. A receiver that sleeps
 * is asked about when it is woken (main.bpf.c); here it is only noted.
 */
#ifndef COS_ARRIVAL_BPF_H
#define COS_ARRIVAL_BPF_H

#include "act.bpf.h"

struct socket_owner {
	u32 tid, tgid, job, pad;
	u64 serial;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct socket_owner);
} sockets SEC(".maps");

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int ret, int flags)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_state *t = state_of(p);
	struct socket_owner *owner;

	if (!t || !job_of(t))
		return 0;
	owner = bpf_sk_storage_get(&sockets, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!owner)
		return 0;
	owner->tid = p->pid;
	owner->tgid = p->tgid;
	owner->job = t->job;
	owner->serial = t->serial;
	return 0;
}

/*
 * The receiver itself runs, or sleeps, or is queued, or is on its way from its CPU to the queue: nobody
 * would find it there. The kick comes after that.
 */
static __always_inline void arrive(struct task_struct *p, const struct socket_owner *owner, u64 now_ns)
{
	struct task_state *t = state_of(p);
	struct cos_kernel_job *job = t ? job_of(t) : NULL;

	if (!job || t->job != owner->job)
		return;
	if (!t->wants)
		t->woken = COS_SEEN_SOCKET + 1;
	else if (ask_arrival(t, job, t->cpu, COS_SEEN_SOCKET, now_ns))
		kick_for_boost(t->cpu, now_ns);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_arrival, struct sock *sk)
{
	struct socket_owner *owner = bpf_sk_storage_get(&sockets, sk, 0, 0);
	u64 now_ns = bpf_ktime_get_ns();
	struct task_struct *p;
	bool has_threads;

	if (!owner) {
		count(COS_COUNT_NO_OWNER);
		return 0;
	}
	count(COS_COUNT_ARRIVALS);
	p = bpf_task_from_pid(owner->tid);
	if (!p)
		return 0;
	arrive(p, owner, now_ns);
	has_threads = p->signal->nr_threads > 1;
	bpf_task_release(p);
	if (has_threads)
		boost_mates(owner->job, COS_MAX_CPUS, (u64)owner->tgid << 32 | owner->tid,
			    COS_SEEN_SOCKET, now_ns);
	return 0;
}

#endif
