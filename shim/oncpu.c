/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oncpu.c - is the awaited peer on a CPU? who else wants ours?
 *
 * A preempted rank cannot say that it is. The sources, best first:
 *
 *   published what the kernel body publishes, where coschedd gives it (published.c): some
 *             loads, and it costs a rank nothing more at its switches
 *   switches  each rank opens the kernel's record of its own context switches (a perf
 *             software event; an ordinary user may where perf_event_paranoid <= 2)
 *             and lets its peers map it. Every switch appends one 8-byte record, so the
 *             parity of the record's head tells on or off: one load, no call
 *   same CPU  it last ran on mine, and I am running
 *   beat      a spinning peer writes the time now and then
 *   /proc     schedstat's run count minus the context switches is one more while it
 *             runs: 20 us, so at most once per wait
 *
 * Of several awaited peers the worst counts: a wait for all ends with the last.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../abi/wire.h"
#include "shim.h"

#define SWITCH_RECORD_BYTES 8
#define BEAT_FRESH_NS 20000
#define BEAT_STALE_NS 60000
#define PROC_LOOK_AFTER_NS 40000
#define MOST_PEERS_LOOKED_AT 8

typedef struct perf_event_mmap_page switches;

static switches **watched;		/* by slot; MAP_FAILED = not to be had */
static size_t record_bytes;
static int own_record = -1;

static switches *map_record(int fd)
{
	return mmap(NULL, record_bytes, PROT_READ, MAP_SHARED, fd, 0);
}

static int open_record(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY, .context_switch = 1,
		.exclude_kernel = 1, .exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * Only a rank with competitors does it, since it makes each of its switches dearer. Mapped
 * by ourselves first, while we run: the record then begins with our next switch, which
 * is off, so an even count means on.
 */
void oncpu_offer(void)
{
	if (own_record < 0) {
		own_record = open_record();
		if (own_record < 0 || map_record(own_record) == MAP_FAILED ||
		    !page_offer(own_record))
			return;
	}
	ioctl(own_record, PERF_EVENT_IOC_ENABLE, 0);
	__atomic_fetch_or(&cos_shim.me->watchable, COS_WATCH_SWITCHES, __ATOMIC_RELEASE);
}

/* The competitors left: switches are cheap again. We run, so the count stays even. */
void oncpu_withdraw(void)
{
	__atomic_fetch_and(&cos_shim.me->watchable, ~COS_WATCH_SWITCHES, __ATOMIC_RELEASE);
	if (own_record >= 0)
		ioctl(own_record, PERF_EVENT_IOC_DISABLE, 0);
}

void oncpu_start(void)
{
	record_bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
	watched = calloc(cos_shim.nr_slots, sizeof(*watched));
}

static switches *record_of(u32 slot)
{
	u32 how = __atomic_load_n(&cos_shim.page->slot[slot].watchable, __ATOMIC_ACQUIRE);
	int fd;

	if (!watched || !(how & COS_WATCH_SWITCHES))
		return MAP_FAILED;
	if (!watched[slot]) {
		fd = page_peer_fd(COS_ASK_WATCH, slot);
		watched[slot] = fd < 0 ? MAP_FAILED : map_record(fd);
		if (fd >= 0)
			close(fd);
	}
	return watched[slot];
}

/* ---- /proc -------------------------------------------------------------------------- */

bool read_proc(u32 pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t nr;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	nr = read(fd, text, size - 1);
	close(fd);
	text[nr > 0 ? nr : 0] = 0;
	return nr > 0;
}

static u64 number_after(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static u32 look_in_proc(u32 pid)
{
	char schedstat[128], status[4096];
	u64 ran = 0, switched;

	if (!read_proc(pid, "schedstat", schedstat, sizeof(schedstat)) ||
	    sscanf(schedstat, "%*u %*u %llu", &ran) != 1 ||
	    !read_proc(pid, "status", status, sizeof(status)))
		return 0;
	switched = number_after(status, "\nvoluntary_ctxt_switches:") +
		   number_after(status, "\nnonvoluntary_ctxt_switches:");
	return ran == switched + 1 ? COS_PEER_ON_CPU : COS_PEER_OFF_CPU;
}

/* ---- the awaited peers ----------------------------------------------------------------- */

static u32 answered(enum cos_source source, u32 state)
{
	cos_self.source = source;
	return state;
}

static u32 seen_by_switches(switches *record)
{
	u64 head = __atomic_load_n(&record->data_head, __ATOMIC_RELAXED);

	return head / SWITCH_RECORD_BYTES % 2 ? COS_PEER_OFF_CPU : COS_PEER_ON_CPU;
}

static u32 seen_by_beat(const struct cos_slot *peer)
{
	u64 silent_ns = sat_sub(now_ns(), __atomic_load_n(&peer->beat_at_ns, __ATOMIC_RELAXED));

	return silent_ns < BEAT_FRESH_NS ? COS_PEER_ON_CPU :
	       silent_ns > BEAT_STALE_NS ? COS_PEER_OFF_CPU : 0;
}

static u32 on_or_off(u32 s, u64 waited_ns)
{
	struct cos_slot *peer = &cos_shim.page->slot[s];
	u32 state = published_state(peer);
	switches *record;

	if (state)
		return answered(COS_SRC_PUBLISHED, state);
	record = record_of(s);
	if (record != MAP_FAILED)
		return answered(COS_SRC_SWITCHES, seen_by_switches(record));
	if (peer->cpu == cos_shim.me->cpu)
		return answered(COS_SRC_SAME_CPU, COS_PEER_OFF_CPU);
	if (peer->state == COS_RANK_SPINNING && (state = seen_by_beat(peer)))
		return answered(COS_SRC_BEAT, state);
	if (waited_ns >= PROC_LOOK_AFTER_NS && !cos_self.looked_in_proc) {
		cos_self.looked_in_proc = true;
		state = look_in_proc(peer->pid);
		if (state)
			return answered(COS_SRC_PROC, state);
	}
	return answered(COS_SRC_UNKNOWN, 0);
}

static u32 one_peer(u32 s, u64 waited_ns)
{
	struct cos_slot *peer = &cos_shim.page->slot[s];
	u32 state = on_or_off(s, waited_ns);

	if (state == COS_PEER_OFF_CPU &&
	    __atomic_load_n(&peer->state, __ATOMIC_RELAXED) == COS_RANK_BLOCKED &&
	    !__atomic_load_n(&peer->armed, __ATOMIC_RELAXED))
		return COS_PEER_WAKING;
	return state;
}

/* The awaited slots, we ourselves not; none where they are too many, or folded, to look at. */
static u64 few_awaited(const struct cos_peers *awaits)
{
	u32 nr_used = (u32)min_u64(cos_shim.page->nr_used, cos_shim.nr_slots);
	u64 set = awaits->from | awaits->to;

	if (nr_used > 64)
		return 0;
	set &= ~cos_shim.bit & (nr_used == 64 ? ~0ULL : (1ULL << nr_used) - 1);
	return __builtin_popcountll(set) > MOST_PEERS_LOOKED_AT ? 0 : set;
}

/* The worst of all awaited: off, else waking, else unknown, else on. */
u32 oncpu_awaited(const struct cos_peers *awaits, u64 waited_ns)
{
	u64 set = few_awaited(awaits);
	bool waking = false, unknown = false;

	if (!set)
		return answered(COS_SRC_UNKNOWN, 0);
	for (; set; set &= set - 1) {
		u32 s = (u32)__builtin_ctzll(set);
		u32 state;

		if (cos_shim.page->slot[s].state == COS_RANK_DONE)
			continue;
		state = one_peer(s, waited_ns);
		if (state == COS_PEER_OFF_CPU)
			return state;
		waking |= state == COS_PEER_WAKING;
		unknown |= !state;
	}
	return waking ? COS_PEER_WAKING : unknown ? 0 : COS_PEER_ON_CPU;
}

/* Ask the CPUs of the awaited peers that could run, and do not, to choose again. */
void oncpu_boost_awaited(const struct cos_peers *awaits)
{
	for (u64 set = few_awaited(awaits); set; set &= set - 1) {
		u32 s = (u32)__builtin_ctzll(set);
		struct cos_slot *peer = &cos_shim.page->slot[s];

		if (peer->state == COS_RANK_DONE || __atomic_load_n(&peer->armed, __ATOMIC_RELAXED) ||
		    on_or_off(s, 0) != COS_PEER_OFF_CPU)
			continue;
		boost(s);
	}
}

/* ---- others on our CPU ------------------------------------------------------------------ */

static bool wants_cpu(const struct cos_slot *slot)
{
	switch (__atomic_load_n(&slot->state, __ATOMIC_RELAXED)) {
	case COS_RANK_COMPUTING:
	case COS_RANK_SPINNING:
	case COS_RANK_YIELDING:
		return true;
	case COS_RANK_BLOCKED:
		return !__atomic_load_n(&slot->armed, __ATOMIC_RELAXED);
	default:
		return false;
	}
}

/* Counted at most every 20 us: each slot costs a cache miss. */
struct cos_company oncpu_company(u64 now)
{
	static __thread u64 counted_at_ns;
	static __thread struct cos_company here;
	struct cos_page *page = cos_shim.page;
	u32 nr_used = (u32)min_u64(page->nr_used, cos_shim.nr_slots);

	if (now - counted_at_ns < 20000)
		return here;
	counted_at_ns = now;
	here = (struct cos_company){ 0 };
	for (u32 s = 0; s < nr_used; s++) {
		struct cos_slot *slot = &page->slot[s];

		if (s == cos_shim.slot || slot->cpu != cos_shim.me->cpu ||
		    slot->job != cos_shim.me->job || slot->state == COS_RANK_DONE)
			continue;
		here.nr++;
		here.nr_want_cpu += wants_cpu(slot);
	}
	return here;
}
