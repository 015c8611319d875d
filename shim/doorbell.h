/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doorbell.h - sleeping until a peer may have sent something, without losing
 * a wake-up and without knowing what a message looks like.
 *
 *   waiter                               ringer
 *   ------                               ------
 *   bell_arm: sample seq, armed = how    the MPI library writes the message
 *             full fence                 bell_ring: full fence
 *   one more whole progress pass                    armed? claim it (-> 0),
 *   (finds the message: bell_disarm)                seq++, FUTEX_WAKE
 *   bell_sleep: FUTEX_WAIT while seq is
 *             still as sampled
 *
 * It is Dekker's argument. The waiter stores armed, then reads messages; the
 * ringer stores a message, then reads armed; with a full fence between the two
 * on both sides at least one sees the other. Either the extra pass finds the
 * message, or the ringer finds the flag and changes seq, and then FUTEX_WAIT
 * returns at once or is woken. Take out a fence or the extra pass and a wake-up
 * is lost now and then: tests/model explores every interleaving of this very
 * file under x86's and under C11's store buffering, and shows both.
 *
 * The claim makes one arming cost one ring, however many peers ring. What the second
 * pass itself may have sent must be rung too, before the sleep.
 *
 * Several threads of one process may sleep on the same bell, and a ring wakes them all. But
 * then none may disarm it for the others: a thread that leaves a shared bell does a fence
 * and bell_ring() on it instead of bell_disarm(), and leaves it alone after a sleep.
 */
#ifndef COS_DOORBELL_H
#define COS_DOORBELL_H

#include "../abi/page.h"

/* The model checker brings its own of these. */
#ifndef COS_DOORBELL_PRIMITIVES
#include "futex.h"
#define bell_load(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define bell_store(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define bell_add(p, v)		__atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define bell_exchange(p, v)	__atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define bell_wait(p, v, ns)	futex_wait((p), (v), (ns))
#define bell_wake(p)		futex_wake_all(p)
#ifdef COS_MUTANT_NO_FENCE
#define bell_fence()		__atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define bell_fence()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#endif

/*
 * First phase. The caller makes one whole progress pass before bell_sleep().
 * Returns the value of seq to sleep on.
 */
static inline u32 bell_arm(struct cos_slot *mine, u32 how)
{
	u32 seq = bell_load(&mine->seq);

	bell_store(&mine->armed, how);
	bell_fence();
	return seq;
}

static inline void bell_disarm(struct cos_slot *mine)
{
	bell_store(&mine->armed, COS_DISARMED);
}

/* Second phase. Returns 0 when rung, -1 after @timeout_ns or a signal (errno). */
static inline int bell_sleep(struct cos_slot *mine, u32 seq, u64 timeout_ns)
{
	return bell_wait(&mine->seq, seq, timeout_ns);
}

/*
 * The ringer's half: call after the message was written and one bell_fence().
 * Returns how the peer was armed (enum cos_armed); COS_ARMED_POLL asks the
 * caller to write the peer's eventfd too.
 */
static inline u32 bell_ring(struct cos_slot *peer)
{
	u32 how;

	if (!bell_load(&peer->armed))
		return COS_DISARMED;
	how = bell_exchange(&peer->armed, COS_DISARMED);
	if (how == COS_DISARMED)
		return COS_DISARMED;
	bell_add(&peer->seq, 1);
	bell_wake(&peer->seq);
	return how;
}

#endif
