/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - a multiprocessor as a value: memory, store buffers, futex queues
 * and a few threads that run C functions.
 *
 * A thread's function reaches shared memory only through op(). It is a pure
 * function of what op() returned so far, so those values *are* its local state:
 * to take one more step, the function is called afresh, op() answers from the
 * log, and at the first operation beyond the log it jumps out. A state is then
 * plain bytes that can be copied, compared and hashed.
 *
 * A store goes into the buffer of its thread and reaches memory at any later
 * time; the thread itself reads its own buffered value. Under TSO (x86) a
 * buffer drains in order; under PSO each word drains for itself, so that stores
 * of one thread to two words may change places. A fence and an atomic
 * read-modify-write wait until the buffer is empty. The futex calls are no
 * fences here: the kernel's own barriers must not be what saves the protocol.
 *
 * Loads take place in program order: what C11 allows beyond that (a load moved
 * up over another load) is not explored.
 */
#ifndef COS_MODEL_MACHINE_H
#define COS_MODEL_MACHINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char u8;

enum { MAX_THREADS = 3, MAX_LOG = 48, MAX_BUFFER = 8, NR_SLOTS = 2, NR_MESSAGES = 4 };

/* The shared words: two per slot, then the messages. */
enum loc { LOC_ARMED, LOC_SEQ, LOC_MESSAGE = 2 * NR_SLOTS, NR_LOCS = LOC_MESSAGE + NR_MESSAGES };

enum order { TSO, PSO };

enum op_kind { OP_DONE, OP_LOAD, OP_STORE, OP_ADD, OP_EXCHANGE, OP_FENCE, OP_SLEEP, OP_WAKE };

struct op {
	enum op_kind kind;
	u8 loc, val;
};

struct thread {
	u8 asleep;			/* in its pending OP_SLEEP */
	u8 nr_log, nr_buffer;
	u8 log[MAX_LOG];		/* what op() returned, in order */
	u8 buffer[MAX_BUFFER][2];	/* loc, val; oldest first */
};

struct state {
	u8 word[NR_LOCS];
	u8 nr_armings[NR_SLOTS];
	u8 nr_timeouts;			/* how many sleeps may still time out */
	struct thread thread[MAX_THREADS];
};

_Static_assert(_Alignof(struct state) == 1, "states are compared as bytes");

enum act_kind { ACT_STEP, ACT_DRAIN, ACT_TIMEOUT };

/* One thing that may happen next: @thread goes on, its store to @loc reaches
 * memory, or its sleep times out. */
struct act {
	u8 kind, thread, loc;
};

static struct {
	const struct thread *thread;
	u8 at;
	struct op pending;
	jmp_buf out;
} replay;

/* The only door from a thread's function to the machine. */
static u8 op(enum op_kind kind, u8 loc, u8 val)
{
	if (replay.at < replay.thread->nr_log)
		return replay.thread->log[replay.at++];
	replay.pending = (struct op){ kind, loc, val };
	longjmp(replay.out, 1);
}

/* The operation that @thread, which runs @body, wants next. */
static struct op next_op(const struct thread *thread, void (*body)(void))
{
	replay.thread = thread;
	replay.at = 0;
	if (!setjmp(replay.out)) {
		body();
		replay.pending = (struct op){ .kind = OP_DONE };
	}
	return replay.pending;
}

static void returned(struct thread *thread, u8 val)
{
	if (thread->nr_log == MAX_LOG)
		abort();
	thread->log[thread->nr_log++] = val;
}

static u8 load(const struct state *state, const struct thread *thread, u8 loc)
{
	for (int i = thread->nr_buffer; i-- > 0;)
		if (thread->buffer[i][0] == loc)
			return thread->buffer[i][1];
	return state->word[loc];
}

static void store(struct state *state, struct thread *thread, struct op op)
{
	if (thread->nr_buffer == MAX_BUFFER)
		abort();
	thread->buffer[thread->nr_buffer][0] = op.loc;
	thread->buffer[thread->nr_buffer++][1] = op.val;
	if (op.loc < LOC_MESSAGE && op.loc % 2 == LOC_ARMED && op.val)
		state->nr_armings[op.loc / 2]++;
}

static void wake_all(struct state *state, u8 loc)
{
	for (int t = 0; t < MAX_THREADS; t++) {
		struct thread *sleeper = &state->thread[t];

		if (sleeper->asleep == loc + 1) {
			sleeper->asleep = 0;
			returned(sleeper, 0);
		}
	}
}

/* The oldest buffered store to @loc reaches memory. */
static void drain(struct state *state, struct thread *thread, u8 loc)
{
	u8 i = 0;

	while (thread->buffer[i][0] != loc)
		i++;
	state->word[loc] = thread->buffer[i][1];
	thread->nr_buffer--;
	memmove(thread->buffer[i], thread->buffer[i + 1], 2u * (thread->nr_buffer - i));
	memset(thread->buffer[thread->nr_buffer], 0, 2);
}

/* Does @op have to wait until its thread's buffer is empty? */
static bool is_ordered(struct op op)
{
	return op.kind == OP_FENCE || op.kind == OP_ADD || op.kind == OP_EXCHANGE;
}

static void step(struct state *state, struct thread *thread, struct op op)
{
	u8 *word = &state->word[op.loc], before = *word;

	switch (op.kind) {
	case OP_LOAD:
		returned(thread, load(state, thread, op.loc));
		return;
	case OP_STORE:
		store(state, thread, op);
		break;
	case OP_ADD:
	case OP_EXCHANGE:
		*word = op.kind == OP_ADD ? (u8)(before + op.val) : op.val;
		returned(thread, before);
		return;
	case OP_SLEEP:
		if (before == op.val) {
			thread->asleep = op.loc + 1;
			return;
		}
		break;
	case OP_WAKE:
		wake_all(state, op.loc);
		break;
	case OP_FENCE:
	case OP_DONE:
		break;
	}
	returned(thread, 0);
}

/* @op is what the acting thread wants next. */
static void perform(struct state *state, struct act act, struct op op)
{
	struct thread *thread = &state->thread[act.thread];

	if (act.kind == ACT_STEP) {
		step(state, thread, op);
	} else if (act.kind == ACT_DRAIN) {
		drain(state, thread, act.loc);
	} else {
		thread->asleep = 0;
		state->nr_timeouts--;
		returned(thread, 1);
	}
}

/* Everything that @thread may do next, into @acts; returns how many. */
static int possible_acts(const struct state *state, u8 t, struct op op, enum order order,
			 struct act *acts)
{
	const struct thread *thread = &state->thread[t];
	bool seen[NR_LOCS] = { false };
	int nr = 0;

	if (thread->asleep) {
		if (state->nr_timeouts)
			acts[nr++] = (struct act){ ACT_TIMEOUT, t, 0 };
	} else if (op.kind != OP_DONE && !(is_ordered(op) && thread->nr_buffer)) {
		acts[nr++] = (struct act){ ACT_STEP, t, 0 };
	}
	for (int i = 0; i < thread->nr_buffer && (order == PSO || !i); i++) {
		u8 loc = thread->buffer[i][0];

		if (!seen[loc])
			acts[nr++] = (struct act){ ACT_DRAIN, t, loc };
		seen[loc] = true;
	}
	return nr;
}

#endif
