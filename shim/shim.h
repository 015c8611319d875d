/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.h - what the files of the preloaded library share.
 *
 *   boundary.c  the MPI calls: where a rank enters and leaves the library
 *   hooks.c     the library's own wait points: where a progress pass was empty
 *   wait.c      SEE -> DECIDE -> ACT for a waiting rank: spin, yield or block
 *   peers.c     communicator ranks -> slots; whom to ring, whom we await
 *   collective.c  who cannot have sent what a member of a collective waits for
 *   trail.c     has the library moved on since?
 *   oncpu.c     is the awaited peer on a CPU? which ranks of ours want this one?
 *   published.c ... as the kernel body publishes it
 *   outsiders.c does anyone else compete for it?
 *   boost.c     asking a peer's CPU to choose again
 *   page.c      joining the node's job page, and its descriptors
 *   slice.c     a short EEVDF slice for the rank, undone for its children
 *   next.c      the real functions behind those that we interpose
 *
 * A process is *passive* until MPI_Init succeeded in it under `cosched run`: every
 * wrapper then only calls the next function. It becomes *active* once, and passive
 * again at MPI_Finalize and in forked children. The shim never exits, aborts, prints
 * or takes a lock that another process holds.
 */
#ifndef COS_SHIM_H
#define COS_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#include "../abi/page.h"

#define COS_EXPORT __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum cos_tag {
	BLOCK		= 1u << 0,	/* may wait */
	TEST		= 1u << 1,	/* looks, never waits */
	SEND		= 1u << 2,	/* to `peer` */
	RECV		= 1u << 3,	/* from `peer`, or `peer2` where it also sends */
	COLLECTIVE	= 1u << 4,	/* with all of `comm` */
	ANYONE		= 1u << 5,	/* with we do not know whom */
	POST		= 1u << 6,	/* leaves a request outstanding */
	PENDING		= 1u << 7,	/* works on outstanding requests */
	PERSIST		= 1u << 8,	/* makes a request for later */
	ONESIDED	= 1u << 9,
	FREES		= 1u << 10,	/* frees a communicator: its handle may come back */
	NEEDS_ALL	= 1u << 11,	/* a collective that nobody leaves before all entered it */
};

#define NONE (-1)

/* One MPI call as its wrapper saw it. */
struct cos_call {
	u32 tags;
	int peer, peer2;		/* ranks in comm; negative = a wildcard or nobody */
	long comm;			/* handle */
	long count, type;		/* of what a Sendrecv sends; type 0 = another call */
};

static inline bool in_collective(const struct cos_call *call)
{
	return (call->tags & (BLOCK | COLLECTIVE)) == (BLOCK | COLLECTIVE);
}

/* Sets of slots (bit slot % 64): who may send us data, whom we send data to. */
struct cos_peers { u64 from, to; };

enum cos_ended { BY_DOORBELL, BY_PACKET, BY_TIMEOUT, BY_SIGNAL };

/* How far a waiting thread is; see wait.c. */
enum cos_phase { RUNNING, LOOKING, SPINNING, ARMED, STRETCHED };

struct cos_thread {
	u32 depth;			/* MPI calls nested on this thread */
	u32 in_progress;		/* inside opal_progress() */
	struct cos_call call;		/* the outermost one */
	bool rang;			/* ... has rung its peers */
	const void *call_frame, *hook_frame;	/* of its wrapper; of the hook: see trail.c */
	u64 trail;			/* when we armed */

	enum cos_phase phase;
	u32 nr_passes;			/* empty ones in this wait */
	u32 nr_found;			/* passes since the last empty one (Open MPI) */
	u32 polled;			/* passes in a row that polled descriptors */
	bool polled_now;		/* this pass did */
	bool rung_awake;		/* a doorbell ended the last sleep */
	bool timed_out;			/* the safety net ended it */
	u32 seq;			/* sampled when armed */
	struct cos_peers awaits;	/* who may end this wait */
	u64 began_at_ns, until_ns, accounted_at_ns;
	u64 timeout_ns;			/* of the next sleep */
	u32 watch, peer_state;
	u32 nr_empty_tests;
	bool looked_in_proc;		/* in this wait */
	bool grace;			/* the next hook call still belongs to the pass that woke */
	u32 nr_arms;			/* in this wait */
	u32 source;			/* enum cos_source of the latest look */
	bool yields_at_once;		/* a wait began with that verdict, and none was other since */
	u64 decided_at_ns;
	u64 slept_at_ns;		/* the latest real sleep began */
	u64 boost_ns;			/* first interval of asking for the peer's boost */
	struct cos_task task;		/* policy's */
};

struct cos_shim {
	bool active;			/* the only word that passive code reads */
	bool open_mpi;
	bool threaded;			/* MPI_THREAD_MULTIPLE: threads may share our bell */
	u32 slot;
	u64 bit;			/* 1 << slot % 64 */
	struct cos_page *page;
	struct cos_slot *me;
	u32 nr_slots;			/* capacity, checked against the mapping */
	int eventfd;
	struct cos_params params;	/* a checked copy of the page's */
	struct cos_job job;		/* policy's */
};

extern struct cos_shim cos_shim;
extern __thread struct cos_thread cos_self;

/* page.c */
bool page_join(void);			/* maps the page and fills cos_shim; before MPI_Init */
bool page_offer(int fd);		/* our switch record */
int page_peer_fd(u32 kind, u32 slot);	/* a peer's descriptor (enum cos_ask_kind), or -1 */

/* peers.c */
void peers_start(void);			/* after MPI_Init: this rank's place in the world */
struct cos_peers peers_awaited(const struct cos_call *call);
void peers_ring(const struct cos_call *call);	/* all that the call may have sent to */
void peers_ring_own(void);		/* the other threads of this process */
void peers_enter(const struct cos_call *call);	/* a blocking collective */
void peers_call_over(const struct cos_call *call);

/* collective.c */
void collective_wait(bool in_one);	/* we arm */
void collective_slept(bool missed);

/* trail.c */
u64 trail(const struct cos_thread *self);

/* oncpu.c */
void oncpu_start(void);
void oncpu_offer(void);			/* our own switches, for others to watch */
void oncpu_withdraw(void);
u32 oncpu_awaited(const struct cos_peers *awaits, u64 waited_ns);	/* enum cos_peer_state; 0 = unknown */
void oncpu_boost_awaited(const struct cos_peers *awaits);
/* Other ranks of this job on our CPU. */
struct cos_company {
	u32 nr, nr_want_cpu;
};
struct cos_company oncpu_company(u64 now);
bool read_proc(u32 pid, const char *name, char *text, size_t size);

/* published.c */
void published_start(void);
void published_tell(void);
bool published_told(void);
u32 published_state(const struct cos_slot *peer);

/* outsiders.c */
void outsiders_start(void);
bool outsiders_here(u64 now, u32 *nr_q8);	/* false = not known yet */
bool outsiders_ranks_outnumber_cpus(void);	/* ... of those that it may use */

/* wait.c */
void wait_begin_call(void);
void wait_end_call(int failed);
void wait_pass(void);			/* a progress pass of a blocking call found nothing */
void wait_test_pass(void);		/* ... of a test */
bool wait_in_poll(void);		/* may the coming zero-timeout poll sleep? */
void wait_asleep(enum cos_ended (*nap)(void *arg, u64 ns), void *arg);

/* boost.c */
void boost_start(void);
void boost_follow(u32 cpu);	/* where our rank is now */
void boost(u32 slot);
void boost_pace(u64 ns);	/* wake by itself so often while our rank is awake; 0 = never */
void boost_resume(void);	/* our rank is awake again */

/* boundary.c, hooks.c, slice.c */
void hooks_start(void);
void hooks_stop(void);
void slice_start(void);
void slice_stop(void);

/* next.c */
void *next_symbol(const char *name);	/* behind us, wherever the MPI library was loaded */
void *data_symbol(const char *name);
void *library_symbol(const char *library, const char *name);

u64 now_ns(void);
u32 current_cpu(void);

/* FNV-1a in 64 bits, by the word: @hash with one word more. */
#define FNV_EMPTY 0xcbf29ce484222325ULL

static inline u64 fnv(u64 hash, u64 word)
{
	return (hash ^ word) * 0x100000001b3ULL;
}

#define NEXT(fn) ({ \
	static __typeof__(&fn) next_##fn; \
	if (unlikely(!next_##fn)) \
		next_##fn = (__typeof__(&fn))next_symbol(#fn); \
	next_##fn; })

#endif
