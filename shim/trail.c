/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trail.c - has the library moved on since we last looked?
 *
 * A pass that found something in MPICH's shared memory tells nobody. But a library that still
 * waits for the same thing stands where it stood: between our wrapper of the MPI call and
 * our hook its frames hold what they held, word for word. When a collective went on to its
 * next step, they hold another peer, another request, another depth. So a hash of them, taken
 * when a rank arms, tells whether it may have sent something since, and whether a wake-up
 * was of use.
 *
 * It does not see what a pass answers by itself (a rendezvous); and a frame that changes in
 * vain makes us ring in vain. Both are hints, behind which the bounded sleep stands.
 */
#include "shim.h"

#define MOST_WORDS 4096			/* farther apart: not one stack */

/* 0 = cannot be told. */
u64 trail(const struct cos_thread *self)
{
	const volatile u64 *word = self->hook_frame, *end = self->call_frame;
	u64 hash = FNV_EMPTY;

	if (!word || word >= end || end - word > MOST_WORDS)
		return 0;
	for (; word < end; word++)
		hash = fnv(hash, *word);
	return hash;
}
