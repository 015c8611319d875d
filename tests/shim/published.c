/* SPDX-License-Identifier: Apache-2.0 */
/*
 * published - shim/published.c against an array that we write ourselves.
 *
 * The array ends where memory ends, so that a look beyond it is a fault. Prints the name of
 * what is wrong, and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../shim/published.c"

struct cos_shim cos_shim;
__thread struct cos_thread cos_self;

static struct cos_slot me, peer;
static struct cos_oncpu *array;
static u32 here;			/* the CPU that we are on */
static u32 moving;			/* ... and are not at the next look */
static int offered = -1, nr_wrong;

u32 current_cpu(void)
{
	return moving ? here + moving-- : here;
}

int page_peer_fd(u32 kind, u32 slot)
{
	return kind == COS_ASK_ONCPU && slot == cos_shim.slot ? offered : -1;
}

static void check(bool right, const char *what)
{
	if (right)
		return;
	puts(what);
	nr_wrong++;
}

/* We are on CPU 1 since 1000, the peer was last on CPU 2, of 4. */
static void set_up(void)
{
	memset(array, 0, COS_MAX_CPUS * sizeof(*array));
	published = array;
	nr_cpus = 4;
	own_tid = 77;
	here = 1;
	moving = 0;
	cos_self.slept_at_ns = 900;
	array[1] = (struct cos_oncpu){ .since_ns = 1000, .tid = 77 };
	me = (struct cos_slot){ .tid = 77 };
	peer = (struct cos_slot){ .tid = 88, .cpu = 2, .watchable = COS_WATCH_PUBLISHED };
}

static void tells_on_from_off(void)
{
	set_up();
	check(published_state(&peer) == COS_PEER_OFF_CPU, "nobody is there: off");
	array[2].tid = 99;
	check(published_state(&peer) == COS_PEER_OFF_CPU, "somebody else is there: off");
	array[2].tid = 88;
	check(published_state(&peer) == COS_PEER_ON_CPU, "it is there: on");
	array[2].tid = 0;
	array[3].tid = 88;
	check(published_state(&peer) == COS_PEER_ON_CPU, "it was moved: on");
}

static void believes_only_what_is_of_now(void)
{
	set_up();
	array[2].tid = 88;
	array[1].tid = 66;
	check(!published_state(&peer), "our CPU names somebody else: not told");
	set_up();
	array[2].tid = 88;
	cos_self.slept_at_ns = 1001;
	check(!published_state(&peer), "we slept since it was written: not told");
	set_up();
	array[2].tid = 88;
	own_tid = 0;
	array[1].tid = 0;
	check(!published_state(&peer), "a thread that is not MPI_Init's: not told");
	set_up();
	array[2].tid = 88;
	peer.watchable = COS_WATCH_SWITCHES;
	check(!published_state(&peer), "a peer that has another number: not told");
	set_up();
	array[2].tid = 88;
	moving = 1;
	check(published_state(&peer) == COS_PEER_ON_CPU, "moved while we look: looked again");
}

static void tells_peers(void)
{
	set_up();
	me.watchable = COS_WATCH_SWITCHES;
	published_tell();
	check(published_told(), "we are named: told");
	published_tell();
	check(published_told(), "told twice");
	array[1].tid = 66;
	published_tell();
	check(!published_told(), "no more");
	check(me.watchable == COS_WATCH_SWITCHES, "the other source stays");
	published = NULL;
	own_tid = 0;
	published_tell();
	check(!published_told() && !published_state(&peer), "no array: not told");
}

static void survives_any_bytes(void)
{
	set_up();
	for (u32 i = 0; i < 200000; i++) {
		u32 *word = (u32 *)array + (u32)mrand48() % (4 * sizeof(*array) / 4);

		*word = i % 2 ? 88 : (u32)mrand48();
		array[1] = (struct cos_oncpu){ .since_ns = ~0ULL, .tid = 77 };
		peer.cpu = i % 4 ? (u32)mrand48() >> i % 32 : COS_MAX_CPUS;
		here = i % 64 ? 1 : (u32)mrand48();
		published_state(&peer);
		published_tell();
	}
}

static void takes_maps_only(void)
{
	published = NULL;
	published_start();
	check(!published, "nothing is offered");
	offered = memfd_create("no map", 0);
	if (ftruncate(offered, 1 << 20))
		exit(2);
	published_start();
	check(!published, "a file is no map");
}

int main(void)
{
	size_t bytes = COS_MAX_CPUS * sizeof(*array);
	char *room = mmap(NULL, bytes + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED || mprotect(room, bytes, PROT_READ | PROT_WRITE))
		return 2;
	array = (struct cos_oncpu *)room;
	cos_shim.me = &me;
	tells_on_from_off();
	believes_only_what_is_of_now();
	tells_peers();
	survives_any_bytes();
	takes_maps_only();
	return nr_wrong != 0;
}
