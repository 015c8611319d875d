/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.h - a process that loses its CPU at any instruction.
 *
 * A scheduler preempts once per slice, which is far too rare to hit a window of a few
 * instructions. So a timer signal comes every 50-200 us, and its handler gives the CPU
 * away: by sched_yield(), or by a short sleep, which also lets others run for long. A
 * signal that comes while the process sleeps on its doorbell ends that sleep with EINTR.
 *
 * Besides, pause_a_little() between two steps of the protocol shifts the processes against
 * each other, by a few cycles or by a turn. It mostly does nothing: a delay empties the
 * store buffer, and while that is empty no missing fence shows.
 */
#ifndef COS_STRESS_PREEMPT_H
#define COS_STRESS_PREEMPT_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "../../policy/types.h"

enum { SHORTEST_RUN_NS = 50000, LONGEST_RUN_NS = 200000, LONGEST_NAP_NS = 100000 };

static struct {
	timer_t timer;
	u64 random;			/* the handler's own: it interrupts the other */
	u64 *nr_preempted;
} preempt;

/* xorshift64* of @state, below @limit. */
static u32 random_below(u64 *state, u32 limit)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (u32)((*state * 0x2545f4914f6cdd1dULL >> 32) % limit);
}

static bool preempt_later(void)
{
	struct itimerspec at = { .it_value.tv_nsec = SHORTEST_RUN_NS +
		random_below(&preempt.random, LONGEST_RUN_NS - SHORTEST_RUN_NS) };

	return !timer_settime(preempt.timer, 0, &at, NULL);
}

static void preempt_now(int signal)
{
	struct timespec nap = { .tv_nsec = random_below(&preempt.random, LONGEST_NAP_NS) };
	int saved = errno;

	(void)signal;
	if (random_below(&preempt.random, 2))
		sched_yield();
	else
		nanosleep(&nap, NULL);
	++*preempt.nr_preempted;
	preempt_later();
	errno = saved;
}

/* From now on; @seed is not 0, @nr_preempted counts. */
static bool preempt_start(u64 seed, u64 *nr_preempted)
{
	struct sigaction action = { .sa_handler = preempt_now };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };

	preempt.random = seed;
	preempt.nr_preempted = nr_preempted;
	return !sigaction(SIGALRM, &action, NULL) &&
	       !timer_create(CLOCK_MONOTONIC, &event, &preempt.timer) && preempt_later();
}

/* From 0 to 2^@max_bits, of each order of magnitude alike. */
static u32 random_size(u64 *state, u32 max_bits)
{
	return random_below(state, 1u << random_below(state, max_bits + 1));
}

static void pause_a_little(u64 *random)
{
	u32 dice = random_below(random, 16);

	if (!dice)
		sched_yield();
	else if (dice < 4)
		for (u32 i = random_size(random, 10); i; i--)
			__asm__ volatile("");
}

#endif
