/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.c - who cannot have sent what a member of a collective waits for?
 *
 * Whom a member sends to is the library's secret: each may have sent to each. But all members
 * call the blocking collectives of a communicator in the same order, so a rank counts them,
 * publishes its place (which group, which count) as it enters, and a ringer in a collective
 * leaves asleep who waits in one of the same group that
 *
 *   the ringer has not entered: nothing it did can be for that one;
 *   some other member has not entered, and which needs all: a barrier cannot end before its last
 *   member came, which rings everyone. Until then the woken would only sleep again
 *
 * No wake-up is lost: once all have entered, everyone sees that, and the last to enter rings after
 * it has sent, with a full fence between its place and its look at the others'. Who
 * is last on another communicator is not known to be late, and nobody is left asleep for it.
 *
 * Groups, not communicators, are counted, since handles differ between processes: the
 * duplicates of one communicator share a count, which a correct program calls in one order too.
 * What breaks the count (a call that failed in some ranks only) shows in sleeps that the
 * safety net ends: then this rank tells its place no more, and is rung by everyone.
 * Several threads have no order: a rank of MPI_THREAD_MULTIPLE never tells.
 */
#include "peers.h"

#define NR_GROUPS 256			/* counted; those above are not told */
#define MISS_WEIGHS 16			/* sleeps that end as they should */
#define MOST_MISSES 4

static struct { u32 group, count; } counted[NR_GROUPS];
static u32 mistrust;

static u64 place_of(u32 group, u32 count, bool needs_all)
{
	return (u64)group << COS_PLACE_GROUP_SHIFT | (u64)count << COS_PLACE_COUNT_SHIFT |
	       (needs_all ? COS_PLACE_NEEDS_ALL : 0);
}

static u32 group_of(u64 place)
{
	return (u32)(place >> COS_PLACE_GROUP_SHIFT);
}

/* Of places of one group: is @a before @b? Counts wrap. */
static bool before(u64 a, u64 b)
{
	return (int)((u32)(a >> COS_PLACE_COUNT_SHIFT) - (u32)(b >> COS_PLACE_COUNT_SHIFT)) < 0;
}

/* 30 bits of FNV-1a, never 0, of the ranks in MPI_COMM_WORLD, which all members know. */
u32 collective_group(const int *world_rank, u32 size)
{
	u64 hash = FNV_EMPTY;

	for (u32 i = 0; i < size; i++) {
		if (world_rank[i] < 0)
			return 0;
		hash = fnv(hash, (u32)world_rank[i]);
	}
	return (u32)(hash >> COS_PLACE_GROUP_SHIFT) | 1;
}

/* Where @group is counted, or NULL: its neighbours in the table are full. */
static u32 *count_of(u32 group)
{
	for (u32 i = 0; group && i < NR_GROUPS; i++) {
		u32 at = (group + i) % NR_GROUPS;

		if (!counted[at].group)
			counted[at].group = group;
		if (counted[at].group == group)
			return &counted[at].count;
	}
	return NULL;
}

static void tell(u64 place)
{
	__atomic_store_n(&cos_shim.me->place, place, __ATOMIC_RELAXED);
}

void collective_enter(const struct comm *comm, bool needs_all)
{
	u32 *count = comm ? count_of(comm->group) : NULL;

	if (!count || cos_shim.threaded || mistrust > MOST_MISSES * MISS_WEIGHS)
		tell(0);
	else
		tell(place_of(comm->group, *count + 1, needs_all));
}

void collective_over(const struct comm *comm)
{
	u32 *count = count_of(comm->group);

	if (count)
		++*count;
}

/* Armed in a collective, or in another call since. */
void collective_wait(bool in_one)
{
	u64 place = cos_shim.me->place & ~COS_PLACE_WAITING;

	tell(place && in_one ? place | COS_PLACE_WAITING : place);
}

void collective_slept(bool missed)
{
	if (mistrust <= MOST_MISSES * MISS_WEIGHS)
		mistrust = missed ? mistrust + MISS_WEIGHS : mistrust - !!mistrust;
}

/* Has a member of @comm certainly not entered @theirs? */
static bool someone_is_late(const struct comm *comm, u64 theirs)
{
	for (u32 i = 0; i < comm->size; i++) {
		u64 place;

		if (comm->slot[i] < 0)
			continue;
		place = __atomic_load_n(&cos_shim.page->slot[comm->slot[i]].place, __ATOMIC_RELAXED);
		if (group_of(place) == comm->group && before(place, theirs))
			return true;
	}
	return false;
}

/* We are in a collective of @comm, and fenced: can that not concern the rank in @slot? */
bool collective_in_vain(const struct comm *comm, u32 slot)
{
	u64 theirs = __atomic_load_n(&cos_shim.page->slot[slot].place, __ATOMIC_RELAXED);
	u64 ours = cos_shim.me->place;

	if (!(theirs & COS_PLACE_WAITING) || !comm->group || group_of(theirs) != comm->group ||
	    group_of(ours) != comm->group)
		return false;
	return before(ours, theirs) ||
	       (theirs & COS_PLACE_NEEDS_ALL && someone_is_late(comm, theirs));
}
