/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress - shim/doorbell.h between real processes, on a real page, with the real futex.
 *
 * tests/model explores every interleaving of a model of the machine; this runs the machine
 * itself: its store buffers, its futex, its scheduler, its signals (preempt.h).
 *
 * One token goes from process to process, to a random one each time; the others wait for it.
 * So there is never a second message whose ring could hide that the first one's was lost:
 * then all stand still. Messages are plain words: the round, which only grows. Every fourth
 * time the holder rings everyone, as a rank does that does not know its peer, so that
 * several may ring one bell at a time, and for nothing.
 *
 * There is no safety net. A wake-up is lost where a process sleeps on, a whole period
 * after it was seen to have a message: slowness, or a machine that stood still, is none.
 *
 * usage: stress PROCESSES CPUS MILLISECONDS      what was done, as JSON, on stdout
 * exit:  0 nothing was lost, 1 something was, 2 usage, 3 this machine cannot
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../shim/doorbell.h"
#include "preempt.h"

enum { MAX_PROCESSES = 8, PASSES_BITS = 16 };
enum exit_code { DONE, LOST, USAGE, CANNOT };

#define PERIOD_NS 1000000000ULL
#define LAST_ROUND (~0u)

/* Each on a cache line of its own, as doorbells and messages of real ranks are. */
struct message {
	_Alignas(64) u32 round;
};

struct counts {
	_Alignas(64) u64 nr_rounds;	/* tokens received ... */
	u64 nr_second_pass;		/* ... found between arming and sleeping */
	u64 nr_sleeps, nr_interrupted;	/* sleeps ended by a ring; by a signal, and resumed */
	u64 nr_preempted;
	u64 nr_lost;
};

static struct arena {
	struct cos_slot slot[MAX_PROCESSES];
	struct message message[MAX_PROCESSES];
	struct counts counts[MAX_PROCESSES];
	_Alignas(64) u32 stop;
} *arena;

static struct {
	u32 rank, nr;			/* this process, of how many */
	u32 seen;			/* the round of its latest message */
	u64 random;
	struct cos_slot *slot;
	struct counts *counts;
} me;

static _Noreturn void cannot(const char *what)
{
	perror(what);
	exit(CANNOT);
}

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000ULL + (u64)now.tv_nsec;
}

/* ---- a process --------------------------------------------------------------------- */

/* A progress pass: has a message come? */
static bool pass(void)
{
	return bell_load(&arena->message[me.rank].round) != me.seen;
}

/*
 * After a signal it goes on sleeping on the seq that it sampled, without a pass: what came
 * in between must have changed seq.
 */
static void sleep_until_rung(u32 seq)
{
	u64 until_ns = now_ns() + PERIOD_NS;
	bool was_there = false;

	while (bell_sleep(me.slot, seq, until_ns - min_u64(now_ns(), until_ns))) {
		if (errno != ETIMEDOUT) {
			me.counts->nr_interrupted++;
			continue;
		}
		if (was_there) {
			me.counts->nr_lost++;
			bell_store(&arena->stop, 1);
			return;
		}
		was_there = pass();
		until_ns = now_ns() + PERIOD_NS;
	}
	me.counts->nr_sleeps++;
}

/* A wait as in shim/wait.c: some passes, arm, one more pass, sleep, disarm. */
static void await_token(void)
{
	for (u32 nr = random_size(&me.random, PASSES_BITS); nr && !pass(); nr--)
		;
	while (!pass()) {
		u32 seq;

		pause_a_little(&me.random);
		seq = bell_arm(me.slot, COS_ARMED_FUTEX);
#ifndef COS_MUTANT_NO_SECOND_PASS
		if (pass()) {
			me.counts->nr_second_pass++;
			bell_disarm(me.slot);
			break;
		}
#endif
		pause_a_little(&me.random);
		sleep_until_rung(seq);
		bell_disarm(me.slot);
	}
	me.seen = bell_load(&arena->message[me.rank].round);
	me.counts->nr_rounds++;
}

static void send(u32 to, u32 round)
{
	bell_store(&arena->message[to].round, round);
	pause_a_little(&me.random);
	bell_fence();
	bell_ring(&arena->slot[to]);
}

static void pass_on(void)
{
	u32 to = (me.rank + 1 + random_below(&me.random, me.nr - 1)) % me.nr;
	bool is_known = random_below(&me.random, 4);

	pause_a_little(&me.random);
	send(to, me.seen + 1);
	for (u32 i = 0; i < me.nr && !is_known; i++)
		if (i != me.rank)
			bell_ring(&arena->slot[i]);
}

static _Noreturn void live(void)
{
	while (me.seen != LAST_ROUND && !bell_load(&arena->stop)) {
		pass_on();
		await_token();
	}
	for (u32 i = 0; i < me.nr && me.seen != LAST_ROUND; i++)
		if (i != me.rank)
			send(i, LAST_ROUND);
	_exit(DONE);
}

static void pin(u32 rank, u32 nr_cpus)
{
	cpu_set_t allowed, one;
	u32 nth = rank % nr_cpus;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		cannot("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || nth--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			cannot("sched_setaffinity");
		return;
	}
	fprintf(stderr, "stress: only %d CPUs are allowed here: %u were asked for\n",
		CPU_COUNT(&allowed), nr_cpus);
	exit(CANNOT);
}

static _Noreturn void be(u32 rank, u32 nr, u32 nr_cpus)
{
	me.rank = rank;
	me.nr = nr;
	me.random = 0x9e3779b97f4a7c15ULL * (u64)getpid();
	me.slot = &arena->slot[rank];
	me.counts = &arena->counts[rank];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	pin(rank, nr_cpus);
	if (!preempt_start(~me.random, &me.counts->nr_preempted))
		cannot("timer");
	if (rank)
		await_token();
	live();
}

/* ---- all of them ------------------------------------------------------------------- */

/* Lets them run until the time is over or one of them ends. */
static void watch(long milliseconds)
{
	struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &left);
	bell_store(&arena->stop, 1);
}

/* A process that died keeps the token: the others would wait for it for ever. */
static bool reap(const pid_t *pid, u32 nr)
{
	bool is_well = true;
	int status;

	while (wait(&status) > 0) {
		if (status)
			for (u32 i = 0; i < nr; i++)
				kill(pid[i], SIGKILL);
		is_well &= !status;
	}
	return is_well;
}

static u64 report(u32 nr)
{
	struct counts all = { 0 };

	for (u32 i = 0; i < nr; i++) {
		const struct counts *one = &arena->counts[i];

		all.nr_rounds += one->nr_rounds;
		all.nr_second_pass += one->nr_second_pass;
		all.nr_sleeps += one->nr_sleeps;
		all.nr_interrupted += one->nr_interrupted;
		all.nr_preempted += one->nr_preempted;
		all.nr_lost += one->nr_lost;
	}
	printf("{\"rounds\": %llu, \"second_pass\": %llu, \"sleeps\": %llu, "
	       "\"interrupted\": %llu, \"preempted\": %llu, \"lost\": %llu}\n",
	       (unsigned long long)all.nr_rounds, (unsigned long long)all.nr_second_pass,
	       (unsigned long long)all.nr_sleeps, (unsigned long long)all.nr_interrupted,
	       (unsigned long long)all.nr_preempted, (unsigned long long)all.nr_lost);
	return all.nr_lost;
}

int main(int argc, char **argv)
{
	u32 nr = argc == 4 ? (u32)atoi(argv[1]) : 0;
	u32 nr_cpus = argc == 4 ? (u32)atoi(argv[2]) : 0;
	pid_t pid[MAX_PROCESSES];
	sigset_t child;

	if (nr < 2 || nr > MAX_PROCESSES || !nr_cpus) {
		fprintf(stderr, "usage: stress PROCESSES CPUS MILLISECONDS (2 to %d processes)\n",
			MAX_PROCESSES);
		return USAGE;
	}
	arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (arena == MAP_FAILED)
		cannot("mmap");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	for (u32 i = 0; i < nr; i++) {
		pid[i] = fork();
		if (!pid[i])
			be(i, nr, nr_cpus);
		if (pid[i] < 0)
			cannot("fork");
	}
	watch(atol(argv[3]));
	if (!reap(pid, nr))
		return CANNOT;
	return report(nr) ? LOST : DONE;
}
