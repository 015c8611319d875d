/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boost.c - asking a CPU to choose again: a boost without privilege.
 *
 * Inside a slice EEVDF chooses a task only when something wakes on that CPU, or at the
 * tick (4 ms at HZ=250). A rank that is owed CPU time, has its message and is runnable
 * therefore waits for the competitor's tick. Its waiting peer cannot change that from
 * another CPU, but it can wake a thread there: it is owed time too since it
 * sleeps nearly always, so it preempts, and sleeps again at once. Then the
 * scheduler chooses among all that is runnable, and a short slice makes the rank the
 * first that is eligible. Shares stay EEVDF's; a rank that is not owed time stays off.
 *
 * Where several ranks of the job share a CPU with competitors nobody may be on a CPU to ask.
 * There it wakes by itself, at the pace that policy sets, as long as its rank does not sleep.
 *
 * This thread does nothing else, takes no signal, and follows its rank from CPU to CPU. It is
 * started when competitors are first seen: on a free machine there is none.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "futex.h"
#include "shim.h"

static u32 tid;
static u32 on_cpu = ~0u;
static u64 pace_ns;			/* 0: only when asked */
static u32 resting;			/* it wakes only when asked */

static void *boosting(void *arg)
{
	u32 *word = &cos_shim.me->boost;

	__atomic_store_n(&tid, (u32)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;) {
		u32 seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		u64 pace = cos_shim.me->armed ? 0 : __atomic_load_n(&pace_ns, __ATOMIC_RELAXED);

		__atomic_store_n(&resting, !pace, __ATOMIC_RELAXED);
		futex_wait(word, seen, pace ? pace : COS_NEVER_NS / 4);
	}
	return arg;
}

void boost_start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	static u32 started;

	if (__atomic_exchange_n(&started, 1, __ATOMIC_RELAXED))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	pthread_create(&thread, &attr, boosting, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The rank is on @cpu now. */
void boost_follow(u32 cpu)
{
	u32 thread = __atomic_load_n(&tid, __ATOMIC_ACQUIRE);
	cpu_set_t set;

	if (cpu == on_cpu || !thread || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (!sched_setaffinity((pid_t)thread, sizeof(set), &set))
		on_cpu = cpu;
}

static void wake(struct cos_slot *slot)
{
	__atomic_fetch_add(&slot->boost, 1, __ATOMIC_RELAXED);
	futex_wake_all(&slot->boost);
}

void boost(u32 slot)
{
	wake(&cos_shim.page->slot[slot]);
	cos_shim.me->nr_boosts++;
}

void boost_pace(u64 ns)
{
	__atomic_store_n(&pace_ns, ns, __ATOMIC_RELAXED);
	boost_resume();
}

void boost_resume(void)
{
	if (__atomic_load_n(&pace_ns, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&resting, 0, __ATOMIC_RELAXED))
		wake(cos_shim.me);
}
