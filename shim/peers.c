/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - whom do we await, and whom must we ring?
 *
 * Both are sets of slots, folded into 64 bits (slot % 64): exact up to 64 ranks on a
 * node, a superset above. Each call is with peers that may send us data (`from`) and
 * peers that we send data to (`to`):
 *
 *   to      the destination;  from  the source;  both  the members of a communicator,
 *   or anyone; and the peers of outstanding requests
 *
 * A waiter publishes both: data from `from` may end its wait, and so may an answer of
 * `to` (a rendezvous). A ringer rings whom it may have sent data, if that one awaits
 * its data; and whom it may have answered, if that one awaits its answer. So a rank that
 * waits for a third is left asleep, and a receiver that only took a small message
 * does not wake its sender. What a Sendrecv sends is, where it is small, on its way at the
 * first empty pass, and is rung for only then: its receiver may have gone on and await what
 * this rank sends next.
 *
 * The ranks of a communicator are translated to slots by the MPI library itself
 * (Group_translate_ranks, a local call) after the first successful call on it: until then,
 * and for ranks that this node does not know, everyone is meant. Each thread has a
 * small cache of its own, so there is no lock.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../abi/wire.h"
#include "doorbell.h"
#include "peers.h"

#define NR_COMMS 64			/* communicators remembered per thread */
#define SMALL_BYTES 2048		/* no library announces these first; Open MPI does from 4096 on */
#define POSTS_PER_AGE 64		/* a peer of an outstanding request is remembered this long */

static __thread struct comm comms[NR_COMMS];
static __thread u32 comms_age;
static u32 age;				/* of all handles: raised when one is freed */

static __thread struct { long type; int size; } sent;	/* of the latest Sendrecv */

static struct cos_peers posted_now, posted_before, persistent;
static u32 nr_posts;

static struct {
	int size, rank;
	long group;
	int *slot;			/* by world rank */
	u32 named;
} world;

static u64 bit_of(u32 slot)
{
	return 1ULL << (slot % 64);
}

/* ---- communicators ---------------------------------------------------------------- */

static long comm_world(void)
{
	void *open_mpi = data_symbol("ompi_mpi_comm_world");

	return open_mpi ? (long)open_mpi : 0x44000000;	/* MPICH's constant, all versions */
}

static void learn_world(void)
{
	struct cos_page *page = cos_shim.page;
	u32 nr_used = (u32)min_u64(__atomic_load_n(&page->nr_used, __ATOMIC_ACQUIRE),
				   cos_shim.nr_slots);

	world.named = __atomic_load_n(&page->nr_named, __ATOMIC_ACQUIRE);
	for (u32 s = 0; s < nr_used; s++) {
		struct cos_slot *slot = &page->slot[s];

		if (slot->job == cos_shim.me->job && slot->state != COS_RANK_NONE &&
		    slot->world_rank < (u32)world.size)
			world.slot[slot->world_rank] = (int)s;
	}
}

#define PMPI(name, ...) \
	(((int (*)())NEXT_PMPI(name))(__VA_ARGS__))
#define NEXT_PMPI(name) ({ \
	static void *next; \
	if (!next) \
		next = next_symbol("PMPI_" #name); \
	next; })

void peers_start(void)
{
	long handle = comm_world();

	PMPI(Comm_size, handle, &world.size);
	PMPI(Comm_rank, handle, &world.rank);
	PMPI(Comm_group, handle, &world.group);
	world.slot = malloc((size_t)world.size * sizeof(int));
	if (!world.slot)
		world.size = 0;
	for (int i = 0; i < world.size; i++)
		world.slot[i] = -1;
	cos_shim.me->world_rank = (u32)world.rank;
	__atomic_store_n(&cos_shim.me->state, COS_RANK_COMPUTING, __ATOMIC_RELEASE);
	__atomic_fetch_add(&cos_shim.page->nr_named, 1, __ATOMIC_RELEASE);
}

static long group_of(long handle, int *inter)
{
	long group = 0;

	PMPI(Comm_test_inter, handle, inter);
	if (*inter)
		PMPI(Comm_remote_group, handle, &group);
	else
		PMPI(Comm_group, handle, &group);
	return group;
}

/* World ranks of @group's members into @out, by the library; false where it cannot. */
static bool translate(long group, int size, int *out)
{
	int *own = malloc((size_t)size * sizeof(int));
	int rc;

	if (!own)
		return false;
	for (int i = 0; i < size; i++)
		own[i] = i;
	rc = PMPI(Group_translate_ranks, group, size, own, world.group, out);
	free(own);
	return !rc;
}

static void fill(struct comm *comm, int size, int inter)
{
	comm->size = (u32)size;
	comm->complete = true;
	comm->members = inter ? COS_AWAITS_ANY : 0;
	comm->group = inter ? 0 : collective_group(comm->slot, comm->size);
	for (int i = 0; i < size; i++) {
		int rank = comm->slot[i];

		comm->slot[i] = rank >= 0 && rank < world.size ? world.slot[rank] : -1;
		if (comm->slot[i] >= 0)
			comm->members |= bit_of((u32)comm->slot[i]);
		else
			comm->complete = false;
	}
}

static struct comm *cached(long handle)
{
	struct comm *comm = &comms[((u64)handle * 0x9e3779b97f4a7c15ULL) >> 58];

	if (unlikely(comms_age != __atomic_load_n(&age, __ATOMIC_RELAXED)))
		return NULL;
	if (comm->handle != handle || !comm->slot)
		return NULL;
	if (!comm->complete &&
	    comm->named != __atomic_load_n(&cos_shim.page->nr_named, __ATOMIC_RELAXED))
		return NULL;
	return comm;
}

static void forget_all(void)
{
	for (u32 i = 0; i < NR_COMMS; i++)
		free(comms[i].slot);
	memset(comms, 0, sizeof(comms));
	comms_age = __atomic_load_n(&age, __ATOMIC_RELAXED);
}

/* After a successful call on it: outside the library, the handle is valid. */
static struct comm *remember(long handle)
{
	struct comm *comm = &comms[((u64)handle * 0x9e3779b97f4a7c15ULL) >> 58];
	int inter = 0, size = 0;
	long group;

	if (comms_age != __atomic_load_n(&age, __ATOMIC_RELAXED))
		forget_all();
	if (world.named != __atomic_load_n(&cos_shim.page->nr_named, __ATOMIC_RELAXED))
		learn_world();
	group = group_of(handle, &inter);
	PMPI(Group_size, group, &size);
	free(comm->slot);
	comm->slot = size > 0 ? malloc((size_t)size * sizeof(int)) : NULL;
	if (comm->slot && translate(group, size, comm->slot)) {
		comm->handle = handle;
		comm->named = world.named;
		fill(comm, size, inter);
	} else {
		free(comm->slot);
		comm->slot = NULL;
	}
	PMPI(Group_free, &group);
	return comm->slot ? comm : NULL;
}

/* ---- sets of peers ---------------------------------------------------------------- */

/* Slot of @rank in @comm, or -1: a wildcard or nobody (each MPI has its own negative
 * numbers), or not known to this node. */
static int slot_of(const struct comm *comm, int rank)
{
	return comm && rank >= 0 && (u32)rank < comm->size ? comm->slot[rank] : -1;
}

static u64 members_of(const struct comm *comm)
{
	return comm ? comm->members : COS_AWAITS_ANY;
}

static u64 peer_set(const struct comm *comm, int rank)
{
	int slot = slot_of(comm, rank);

	return slot < 0 ? COS_AWAITS_ANY : bit_of((u32)slot);
}

/* A negative destination is MPI_PROC_NULL; a negative source may be a wildcard. */
static bool sends(const struct cos_call *call)
{
	return call->tags & SEND && call->peer >= 0;
}

static int source_of(const struct cos_call *call)
{
	return call->tags & SEND ? call->peer2 : call->peer;
}

static struct cos_peers named_peers(const struct cos_call *call, const struct comm *comm)
{
	struct cos_peers peers = { 0, 0 };
	u64 both = 0;

	if (sends(call))
		peers.to = peer_set(comm, call->peer);
	if (call->tags & RECV)
		peers.from = peer_set(comm, source_of(call));
	if (call->tags & COLLECTIVE)
		both |= members_of(comm);
	if (call->tags & ANYONE)
		both = COS_AWAITS_ANY;
	return (struct cos_peers){ peers.from | both, peers.to | both };
}

static struct cos_peers outstanding(void)
{
	return (struct cos_peers){
		posted_now.from | posted_before.from | persistent.from,
		posted_now.to | posted_before.to | persistent.to,
	};
}

static void add(struct cos_peers *set, struct cos_peers more)
{
	set->from |= more.from;
	set->to |= more.to;
}

struct cos_peers peers_awaited(const struct cos_call *call)
{
	struct cos_peers set = named_peers(call, cached(call->comm));

	add(&set, outstanding());
	if (!(set.from | set.to))
		set.from = set.to = COS_AWAITS_ANY;
	return set;
}

static void remember_posted(const struct cos_call *call, const struct comm *comm)
{
	struct cos_peers peers = named_peers(call, comm);

	if (call->tags & PERSIST) {
		add(&persistent, peers);
		return;
	}
	add(&posted_now, peers);
	if (++nr_posts % POSTS_PER_AGE == 0) {
		posted_before = posted_now;
		posted_now = (struct cos_peers){ 0, 0 };
	}
}

/* ---- ringing ---------------------------------------------------------------------- */

static void ring_eventfd(u32 slot)
{
	static const u64 one = 1;
	int fd = page_peer_fd(COS_ASK_BELL, slot);

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

/* @to, @from: may we have sent it data, may we have answered it? */
static void ring_slot(u32 s, bool to, bool from)
{
	struct cos_slot *peer = &cos_shim.page->slot[s];
	u64 awaits = 0;
	u32 how;

	if (likely(!bell_load(&peer->armed)))
		return;
	if (to)
		awaits |= __atomic_load_n(&peer->awaits, __ATOMIC_RELAXED);
	if (from)
		awaits |= __atomic_load_n(&peer->awaits_answer, __ATOMIC_RELAXED);
	if (!(awaits & cos_shim.bit))
		return;
	__atomic_store_n(&peer->rung_at_ns, (u32)now_ns(), __ATOMIC_RELAXED);
	how = bell_ring(peer);
	if (how == COS_DISARMED)
		return;
	cos_shim.me->nr_rings++;
	if (how == COS_ARMED_POLL)
		ring_eventfd(s);
}

/* All armed members of a set; from within a collective of @comm those whom it may concern. */
static void ring_set(struct cos_peers set, const struct comm *comm)
{
	u32 nr_used = (u32)min_u64(__atomic_load_n(&cos_shim.page->nr_used, __ATOMIC_RELAXED),
				   cos_shim.nr_slots);

	for (u32 word = 0; word * 64 < nr_used; word++) {
		u64 armed = __atomic_load_n(&cos_shim.page->armed[word], __ATOMIC_RELAXED);

		armed &= set.from | set.to;
		if (word == cos_shim.slot / 64)
			armed &= ~cos_shim.bit;
		for (; armed; armed &= armed - 1) {
			u32 s = word * 64 + (u32)__builtin_ctzll(armed);

			if (s < nr_used && !(comm && collective_in_vain(comm, s)))
				ring_slot(s, set.to & bit_of(s), set.from & bit_of(s));
		}
	}
}

static void ring_peer(const struct comm *comm, int rank, bool to)
{
	int slot = slot_of(comm, rank);

	if (slot >= 0)
		ring_slot((u32)slot, to, !to);
	else
		ring_set((struct cos_peers){ to ? 0 : COS_AWAITS_ANY,
					     to ? COS_AWAITS_ANY : 0 }, NULL);
}

/*
 * A Sendrecv sends no more than the library puts away at once (its size is known from an earlier
 * one that waited), unless requests are outstanding, behind which it may be put off.
 */
static bool sends_little(const struct cos_call *call)
{
	return call->type && call->type == sent.type &&
	       call->count * sent.size <= SMALL_BYTES && !outstanding().to;
}

/*
 * Its destination was rung for this message, which had left; unless what holds for most does not
 * for that one, which misses more than the promise of one in a thousand.
 */
static bool rung_before(const struct cos_call *call, const struct comm *comm)
{
	int s = slot_of(comm, call->peer);
	const struct cos_slot *peer = s < 0 ? NULL : &cos_shim.page->slot[s];

	return cos_self.rang && peer && sends_little(call) &&
	       peer->nr_missed * 1000ULL <= peer->nr_blocks;
}

static void ring_for(const struct cos_call *call, const struct comm *comm)
{
	u32 tags = call->tags;

	bell_fence();
	if (tags & (COLLECTIVE | ANYONE)) {
		ring_set(named_peers(call, comm), in_collective(call) ? comm : NULL);
		return;
	}
	if (sends(call) && !rung_before(call, comm))
		ring_peer(comm, call->peer, true);
	if (tags & RECV)
		ring_peer(comm, source_of(call), false);
	if (tags & PENDING)
		ring_set(outstanding(), NULL);
}

/* From within the call. */
void peers_ring(const struct cos_call *call)
{
	ring_for(call, cached(call->comm));
	cos_self.rang = true;
}

void peers_enter(const struct cos_call *call)
{
	collective_enter(cached(call->comm), call->tags & NEEDS_ALL);
}

/* The outermost call is over, and succeeded: its communicator is valid. */
void peers_call_over(const struct cos_call *call)
{
	struct comm *comm = NULL;
	u32 tags = call->tags;

	if (unlikely(tags & FREES))
		__atomic_fetch_add(&age, 1, __ATOMIC_RELAXED);
	else if (tags & (SEND | RECV | COLLECTIVE)) {
		comm = cached(call->comm);
		if (unlikely(!comm))
			comm = remember(call->comm);
	}
	if (tags & (POST | PERSIST))
		remember_posted(call, comm);
	ring_for(call, comm);
	if (call->type && unlikely(cos_self.rang)) {
		sent.type = call->type;
		PMPI(Type_size, call->type, &sent.size);
	}
	if (in_collective(call) && comm)
		collective_over(comm);
}

/* Other threads of this process: ours may have done their work. */
void peers_ring_own(void)
{
	bell_fence();
	if (bell_ring(cos_shim.me) == COS_ARMED_POLL)
		(void)!write(cos_shim.eventfd, &(u64){ 1 }, sizeof(u64));
}
