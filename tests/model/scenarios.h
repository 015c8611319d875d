/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenarios.h - who waits for whom: shim/doorbell.h, the very file, in the hands
 * of two or three threads that use it as the shim does.
 *
 * A rank's wait is: a progress pass; arm; one more pass; ring those to whom that
 * pass may have sent; sleep, perhaps in pieces; then from the start. Messages are
 * words. Each COS_MUTANT_* takes out one thing that the protocol claims to need;
 * tests/model_arming.rs demands that the explorer finds each missing.
 *
 * No sleep here has a timeout, except where a scenario grants a few: the safety
 * net of the shim must not be what makes a scenario end.
 *
 * Where the shim differs (wait.c, peers.c): Open MPI tells that a pass did something;
 * then the shim disarms, rings and begins anew, instead of ringing and sleeping. MPICH
 * does not tell, so the shim rings after every second pass up to the fourth of a wait, and
 * then ever more rarely: what a later one sends may be rung late, and its receiver's
 * safety net must do. And a bell is rung only for those whom its owner awaits.
 */
#ifndef COS_MODEL_SCENARIOS_H
#define COS_MODEL_SCENARIOS_H

#include "machine.h"

#define COS_DOORBELL_PRIMITIVES
#define bell_load(p)		op(OP_LOAD, loc_of(p), 0)
#define bell_store(p, v)	((void)op(OP_STORE, loc_of(p), (u8)(v)))
#define bell_wait(p, v, ns)	((void)(ns), op(OP_SLEEP, loc_of(p), (u8)(v)) ? -1 : 0)
#define bell_wake(p)		((void)op(OP_WAKE, loc_of(p), 0))

/* Inside doorbell.h the only fence is the waiter's: the ringer brings its own. */
#ifdef COS_MUTANT_NO_WAITER_FENCE
#define bell_fence()		((void)0)
#else
#define bell_fence()		((void)op(OP_FENCE, 0, 0))
#endif

#ifdef COS_MUTANT_NO_SEQ
#define bell_add(p, v)		((void)(p))
#else
#define bell_add(p, v)		((void)op(OP_ADD, loc_of(p), v))
#endif

#ifdef COS_MUTANT_TORN_CLAIM
#define bell_exchange(p, v)	torn_exchange(loc_of(p), v)
#else
#define bell_exchange(p, v)	op(OP_EXCHANGE, loc_of(p), (u8)(v))
#endif

#include "../../abi/page.h"

static struct cos_slot slot[NR_SLOTS];	/* only their addresses are used */

static u8 loc_of(const u32 *word)
{
	for (u8 i = 0; i < NR_SLOTS; i++) {
		if (word == &slot[i].armed)
			return (u8)(2 * i + LOC_ARMED);
		if (word == &slot[i].seq)
			return (u8)(2 * i + LOC_SEQ);
	}
	abort();
}

#ifdef COS_MUTANT_TORN_CLAIM
static u8 torn_exchange(u8 loc, u8 val)
{
	u8 before = op(OP_LOAD, loc, 0);

	op(OP_STORE, loc, val);
	return before;
}
#endif

#include "../../shim/doorbell.h"

static u8 message(u8 m)
{
	return op(OP_LOAD, (u8)(LOC_MESSAGE + m), 0);
}

static void send(u8 m, u8 val)
{
	op(OP_STORE, (u8)(LOC_MESSAGE + m), val);
}

static void ring(struct cos_slot *peer)
{
#ifndef COS_MUTANT_NO_RINGER_FENCE
	op(OP_FENCE, 0, 0);
#endif
	bell_ring(peer);
}

/* What a rank waits for: message @m reaching @val. @answer is a message that the
 * library sends from inside the progress pass that sees message @on (a rendezvous). */
struct want {
	u8 m, val;
	u8 on, answer;			/* answer 0: none */
	bool answered;
	struct cos_slot *peer;		/* whom the answer goes to */
	bool shared;			/* other threads may sleep on the same bell */
	bool in_pieces;			/* a sleep that timed out once goes on, without a pass */
};

/* One progress pass: may answer; true where the wait is over. */
static bool pass(struct want *want)
{
	if (want->answer && !want->answered && message(want->on)) {
		send(want->answer, 1);
		want->answered = true;
	}
	return message(want->m) >= want->val;
}

static void ring_answered(const struct want *want)
{
	if (want->answered)
		ring(want->peer);
}

/*
 * Who leaves a bell that others sleep on must wake them: the flag that it would clear
 * is theirs too, and its last pass may have completed what they wait for. (The shim
 * rings at the end of each call, armed or not, and before a wait arms first.) Counting the
 * armed threads, so that only the last one clears the flag, is not enough: another one
 * may arm between the count and the store.
 */
#if defined(COS_MUTANT_BARE_DISARM)
static void join_shared(void) { }

static void leave_shared(struct cos_slot *mine)
{
	bell_disarm(mine);
}
#elif defined(COS_MUTANT_COUNTED_DISARM)
enum { LOC_NR_ARMED = LOC_MESSAGE + 3 };

static void join_shared(void)
{
	op(OP_ADD, LOC_NR_ARMED, 1);
}

static void leave_shared(struct cos_slot *mine)
{
	if (op(OP_ADD, LOC_NR_ARMED, (u8)-1) == 1)
		bell_disarm(mine);
	op(OP_FENCE, 0, 0);
	if (op(OP_LOAD, LOC_NR_ARMED, 0))
		bell_ring(mine);
}
#else
static void join_shared(void) { }

static void leave_shared(struct cos_slot *mine)
{
	ring(mine);
}
#endif

static void await(struct cos_slot *mine, struct want want)
{
	bool armed = false;

	while (!pass(&want)) {
		u32 seq;

#ifdef COS_MUTANT_RING_ONLY_BEFORE_ARM
		ring_answered(&want);
#endif
		if (want.shared && !armed)
			join_shared();
		armed = true;
		seq = bell_arm(mine, COS_ARMED_FUTEX);
#ifndef COS_MUTANT_NO_SECOND_PASS
		if (pass(&want))
			break;
#endif
#ifndef COS_MUTANT_RING_ONLY_BEFORE_ARM
		ring_answered(&want);
#endif
		if (bell_sleep(mine, seq, COS_NEVER_NS) && want.in_pieces)
			bell_sleep(mine, seq, COS_NEVER_NS);
	}
	if (want.shared && (armed || want.answered))
		leave_shared(mine);
	else if (armed)
		bell_disarm(mine);
}

/* One ringer, or two, or one that sends twice; the waiter wants one message after the other. */
static void wait_one(void)	{ await(&slot[0], (struct want){ .m = 0, .val = 1 }); }
static void send_0(void)	{ send(0, 1); ring(&slot[0]); }
static void send_1(void)	{ send(1, 1); ring(&slot[0]); }

static void wait_two(void)
{
	wait_one();
	await(&slot[0], (struct want){ .m = 1, .val = 1 });
}

static void wait_in_pieces(void)
{
	await(&slot[0], (struct want){ .m = 0, .val = 1, .in_pieces = true });
}

static void send_both(void)
{
	send_0();
	send_1();
}

/* Both send, then both wait: MPI_Sendrecv. */
static void exchange_0(void)
{
	send(1, 1);
	ring(&slot[1]);
	await(&slot[0], (struct want){ .m = 0, .val = 1 });
}

static void exchange_1(void)
{
	send(0, 1);
	ring(&slot[0]);
	await(&slot[1], (struct want){ .m = 1, .val = 1 });
}

/* A rendezvous: request (0), clear-to-send (1), data (2). The clear-to-send leaves from
 * inside a progress pass of a rank that goes on waiting. */
static void rendezvous_sender(void)
{
	send(0, 1);
	ring(&slot[1]);
	await(&slot[0], (struct want){ .m = 1, .val = 1 });
	send(2, 1);
	ring(&slot[1]);
}

static void rendezvous_receiver(void)
{
	await(&slot[1], (struct want){ .m = 2, .val = 1, .on = 0, .answer = 1, .peer = &slot[0] });
}

/* Two threads of one process asleep on one bell: each has a message of its own ... */
static void thread_0(void)
{
	await(&slot[0], (struct want){ .m = 0, .val = 1, .shared = true });
}

static void thread_1(void)
{
	await(&slot[0], (struct want){ .m = 1, .val = 1, .shared = true });
}

/* ... or the progress pass of one completes the wait of both. */
static void thread_on_duty(void)
{
	await(&slot[0], (struct want){ .m = 1, .val = 1, .on = 0, .answer = 1,
				       .peer = &slot[0], .shared = true });
}

static const struct scenario {
	const char *name;
	void (*body[MAX_THREADS])(void);
	const char *who[MAX_THREADS];
	u8 nr_timeouts;
} scenarios[] = {
	{ "one-ringer", { wait_one, send_0 }, { "waiter", "ringer" }, 0 },
	{ "timeout", { wait_one, send_0 }, { "waiter", "ringer" }, 1 },
	{ "pieces", { wait_in_pieces, send_0 }, { "waiter", "ringer" }, 1 },
	{ "stream", { wait_two, send_both }, { "waiter", "ringer" }, 0 },
	{ "two-ringers", { wait_two, send_0, send_1 }, { "waiter", "ringer", "ringer" }, 0 },
	{ "exchange", { exchange_0, exchange_1 }, { "rank 0", "rank 1" }, 0 },
	{ "rendezvous", { rendezvous_sender, rendezvous_receiver }, { "sender", "receiver" }, 0 },
	{ "threads", { thread_0, thread_1, send_both }, { "thread", "thread", "ringer" }, 0 },
	{ "hand-over", { thread_on_duty, thread_1, send_0 }, { "on duty", "thread", "ringer" }, 0 },
};

#endif
