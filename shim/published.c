/* SPDX-License-Identifier: Apache-2.0 */
/*
 * published.c - is a rank on a CPU? as the kernel body publishes it.
 *
 * The programs of coschedd write which rank is on each CPU into an array that we map
 * (abi/kernel.h), at every switch, also where they only observe. A question is a few loads: the
 * entry of the CPU where the peer last was, and, when it is not there, those of the
 * others, since who computes may be moved and cannot say so.
 *
 * When coschedd dies the array stays as it was, for ever. We know better of one entry: we run, so
 * that of our CPU must name us, and since after our latest sleep. Else nothing of it is
 * believed. Where a pid namespace or a thread that is not MPI_Init's makes our number another one
 * than the kernel's it never names us, so there the array is not used, and peers are told so.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../abi/kernel.h"
#include "../abi/wire.h"
#include "shim.h"

#define FRESH_TRIES 3			/* we may be moved between two loads */

static const struct cos_oncpu *published;	/* COS_MAX_CPUS of them */
static u32 nr_cpus;
static __thread u32 own_tid;		/* of the thread that called MPI_Init, else 0 */

/* Such an array never shrinks: no access to it can fault. */
static bool is_map(int fd)
{
	char path[64], kind[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, kind, sizeof(kind) - 1);
	kind[length > 0 ? length : 0] = 0;
	return !strcmp(kind, "anon_inode:bpf-map");
}

void published_start(void)
{
	int fd = page_peer_fd(COS_ASK_ONCPU, cos_shim.slot);
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	void *map = MAP_FAILED;

	if (fd < 0)
		return;
	if (is_map(fd))
		map = mmap(NULL, COS_MAX_CPUS * sizeof(*published), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return;
	nr_cpus = (u32)min_u64(nr > 0 ? (u64)nr : 0, COS_MAX_CPUS);
	own_tid = (u32)syscall(SYS_gettid);
	published = map;
	published_tell();
}

static bool names(u32 cpu, u32 tid)
{
	return cpu < COS_MAX_CPUS && __atomic_load_n(&published[cpu].tid, __ATOMIC_RELAXED) == tid;
}

/* What is published is of now. */
static bool is_fresh(void)
{
	if (!own_tid)
		return false;
	for (u32 i = 0; i < FRESH_TRIES; i++) {
		u32 cpu = current_cpu();

		if (names(cpu, own_tid))
			return __atomic_load_n(&published[cpu].since_ns, __ATOMIC_RELAXED) >=
			       cos_self.slept_at_ns;
		if (cpu == current_cpu())
			return false;
	}
	return false;
}

/* We begin, or begin to wait: tell peers whether they find us by our slot's number. */
void published_tell(void)
{
	u16 *watchable = &cos_shim.me->watchable;
	bool told = published_told();

	if (!published || is_fresh() == told)
		return;
	__atomic_fetch_xor(watchable, COS_WATCH_PUBLISHED, __ATOMIC_RELAXED);
}

bool published_told(void)
{
	return __atomic_load_n(&cos_shim.me->watchable, __ATOMIC_RELAXED) & COS_WATCH_PUBLISHED;
}

static bool is_anywhere(u32 tid)
{
	for (u32 cpu = 0; cpu < nr_cpus; cpu++)
		if (names(cpu, tid))
			return true;
	return false;
}

/* enum cos_peer_state; 0 = it is not told. */
u32 published_state(const struct cos_slot *peer)
{
	u32 tid = peer->tid;

	if (!(__atomic_load_n(&peer->watchable, __ATOMIC_RELAXED) & COS_WATCH_PUBLISHED) ||
	    !published || !is_fresh())
		return 0;
	return names(peer->cpu, tid) || is_anywhere(tid) ? COS_PEER_ON_CPU : COS_PEER_OFF_CPU;
}
