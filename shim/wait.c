/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - a waiting rank: SEE -> DECIDE -> ACT.
 *
 * The hooks call wait_pass() after each progress pass of a blocking call that found nothing.
 * A wait goes through these phases, and back to RUNNING whenever the library found
 * something or the call returns:
 *
 *   RUNNING -> LOOKING    the first few passes: no clock is read; peers that we
 *                         may have sent something to are rung
 *           -> SPINNING   policy/wait.h is asked; its verdict holds until a time or
 *                         until the awaited peer comes on or goes off its CPU
 *           -> ARMED      it said BLOCK: the doorbell is armed, one more whole
 *                         pass follows (doorbell.h)
 *           -> STRETCHED  ... where descriptors are polled in each pass: the next
 *                         zero-timeout poll sleeps, and a packet wakes us as well
 *           -> asleep, and SPINNING again
 *
 * A sleep is bounded: 5 ms at first, doubled up to 50 ms while nothing comes. A sleep
 * that ended by itself and then found a message is counted as a missed doorbell.
 */
#include <errno.h>
#include <sched.h>

#include "doorbell.h"
#include "shim.h"

#define LOOKING_PASSES 32		/* some 2 us: many waits are over by then */
#define CLOCK_EVERY 4			/* passes */
#define SHORTEST_SLEEP_NS 5000000ULL
#define LONGEST_SLEEP_NS 50000000ULL
#define SURELY_ASLEEP_NS 100000		/* longer than asking for boosts takes, and finding the bell rung */
#define EMPTY_TESTS 256
#define QUICK_YIELDS 16
#define QUICK_FOR_NS 5000000ULL
#define LATE_NS 1000000ULL
#define AT_ONCE_NS 20000		/* after a sleep: the message was there before its end */
#define LOOK_AGAIN_NS 20000		/* at what changes without telling us */

static void account(struct cos_thread *self, u64 now, u64 *sum_ns)
{
	*sum_ns += now - self->accounted_at_ns;
	self->accounted_at_ns = now;
}

static void set_state(u32 state)
{
	__atomic_store_n(&cos_shim.me->state, state, __ATOMIC_RELAXED);
}

/* ---- arming ---------------------------------------------------------------------- */

static u64 *armed_word(void)
{
	return &cos_shim.page->armed[cos_shim.slot / 64];
}

/*
 * Several threads may sleep on one bell (MPI_THREAD_MULTIPLE). Then everyone is awaited, the
 * bit in the bitmap stays, and nobody disarms for the others: see leave().
 */
static void arm(struct cos_thread *self)
{
	struct cos_slot *me = cos_shim.me;
	struct cos_peers awaits = self->awaits;

	if (cos_shim.threaded)
		awaits.from = awaits.to = COS_AWAITS_ANY;
	__atomic_store_n(&me->awaits, awaits.from, __ATOMIC_RELAXED);
	__atomic_store_n(&me->awaits_answer, awaits.to, __ATOMIC_RELAXED);
	collective_wait(in_collective(&self->call));
	__atomic_fetch_or(armed_word(), cos_shim.bit, __ATOMIC_RELAXED);
	self->seq = bell_arm(me, self->polled >= 2 ? COS_ARMED_POLL : COS_ARMED_FUTEX);
	self->phase = ARMED;
	self->nr_arms++;
}

/* The wait is over before the sleep: a shared bell is left by ringing it. */
static void leave(void)
{
	if (cos_shim.threaded) {
		peers_ring_own();
		return;
	}
	bell_disarm(cos_shim.me);
	__atomic_fetch_and(armed_word(), ~cos_shim.bit, __ATOMIC_RELAXED);
}

/* ---- sleeping -------------------------------------------------------------------- */

static void sleep_begin(struct cos_thread *self)
{
	account(self, now_ns(), &cos_shim.me->spin_ns);
	cos_shim.me->nr_blocks++;
	set_state(COS_RANK_BLOCKED);
}

static void learn_delay(struct cos_thread *self, u64 now)
{
	u32 ago_ns = (u32)now - __atomic_load_n(&cos_shim.me->rung_at_ns, __ATOMIC_RELAXED);
	struct cos_obs obs = { .now_ns = now, .event = COS_EV_WAKE,
			       .known = COS_F_WAKE_COST };
	u32 bucket = 0;

	if (ago_ns > LONGEST_SLEEP_NS)
		return;
	obs.wake_cost_ns = ago_ns;
	while (bucket < COS_NR_DELAYS - 1 && obs.wake_cost_ns >= 4000ULL << bucket)
		bucket++;
	cos_shim.me->delay[bucket]++;
	cos_observe(&cos_shim.params, &obs, &self->task, &cos_shim.job);
}

/*
 * @hidden: the pass that goes on now may find something and still end in the hook: MPICH's
 * always, Open MPI's where descriptors are polled (libevent does not count).
 */
static void sleep_end(struct cos_thread *self, enum cos_ended ended, bool hidden)
{
	u64 now = now_ns();

	if (now - self->accounted_at_ns >= SURELY_ASLEEP_NS)
		self->slept_at_ns = self->accounted_at_ns;
	account(self, now, &cos_shim.me->blocked_ns);
	if (!cos_shim.threaded)
		leave();
	set_state(COS_RANK_SPINNING);
	cos_shim.me->cpu = current_cpu();
	boost_follow(cos_shim.me->cpu);
	boost_resume();
	self->phase = SPINNING;
	self->until_ns = 0;
	self->nr_found = 0;
	self->grace = hidden;
	self->rung_awake = ended == BY_DOORBELL;
	self->timed_out = ended == BY_TIMEOUT;
	if (ended == BY_TIMEOUT) {
		cos_shim.me->nr_timeouts++;
		self->timeout_ns = min_u64(2 * self->timeout_ns, LONGEST_SLEEP_NS);
	} else if (ended != BY_SIGNAL) {
		cos_shim.me->nr_wakes++;
		collective_slept(false);
	}
	if (ended == BY_DOORBELL)
		learn_delay(self, now);
}

/*
 * Sleep by @nap until it ends by itself or the safety net is over; in pieces that
 * double, with a request for the peer's boost before each, where policy wants that.
 */
static void sleep_by(struct cos_thread *self, enum cos_ended (*nap)(void *, u64), void *arg,
		     bool hidden)
{
	u64 left_ns = self->timeout_ns, piece_ns = self->boost_ns;
	enum cos_ended ended = BY_TIMEOUT;

	sleep_begin(self);
	while (piece_ns && piece_ns < left_ns && ended == BY_TIMEOUT) {
		oncpu_boost_awaited(&self->awaits);
		ended = nap(arg, piece_ns);
		left_ns -= piece_ns;
		piece_ns *= 2;
	}
	if (ended == BY_TIMEOUT)
		ended = nap(arg, left_ns);
	sleep_end(self, ended, hidden);
}

static enum cos_ended nap_on_doorbell(void *arg, u64 ns)
{
	struct cos_thread *self = arg;

	if (!bell_sleep(cos_shim.me, self->seq, ns))
		return BY_DOORBELL;
	return errno == ETIMEDOUT ? BY_TIMEOUT : BY_SIGNAL;
}

static void sleep_on_doorbell(struct cos_thread *self)
{
	int saved = errno;

	sleep_by(self, nap_on_doorbell, self, !cos_shim.open_mpi);
	errno = saved;
}

bool wait_in_poll(void)
{
	return cos_self.phase == STRETCHED;
}

void wait_asleep(enum cos_ended (*nap)(void *, u64), void *arg)
{
	sleep_by(&cos_self, nap, arg, true);
}

/* ---- deciding -------------------------------------------------------------------- */

/*
 * What only a rank with competitors needs, and a free machine need not pay for; its switch record
 * only where its peers are not told by the kernel body.
 */
static void meet_competition(u32 competing)
{
	enum { ALONE, TOLD, UNTOLD };
	static u32 met;
	u32 now = !competing ? ALONE : published_told() ? TOLD : UNTOLD;

	if (__atomic_exchange_n(&met, now, __ATOMIC_RELAXED) == now)
		return;
	if (now == ALONE) {
		oncpu_withdraw();
		return;
	}
	if (now == UNTOLD && !outsiders_ranks_outnumber_cpus())
		oncpu_offer();
	boost_start();
	boost_follow(current_cpu());
}

static void see(struct cos_thread *self, u64 now, struct cos_obs *obs)
{
	struct cos_company here = oncpu_company(now);

	*obs = (struct cos_obs){ .now_ns = now, .event = COS_EV_WAIT,
				 .known = COS_F_WAITED | COS_F_NR_SAME_JOB_HERE |
					  COS_F_NR_OF_JOB_HERE,
				 .waited_ns = now - self->began_at_ns,
				 .nr_same_job_here = here.nr_want_cpu,
				 .nr_of_job_here = here.nr };
	obs->peer_state = oncpu_awaited(&self->awaits, obs->waited_ns);
	if (obs->peer_state)
		obs->known |= COS_F_PEER_STATE;
	if (outsiders_here(now, &obs->nr_outsiders_q8))
		obs->known |= COS_F_OUTSIDERS;
	if (cos_shim.params.answer[COS_Q_WAIT] == COS_WAIT_ADAPTIVE)
		meet_competition(obs->nr_outsiders_q8 >= COS_OUTSIDER_Q8);
}

static void yield(struct cos_thread *self, u64 now)
{
	struct cos_obs obs = { .event = COS_EV_RUN, .known = COS_F_WAITED };

	set_state(COS_RANK_YIELDING);
	NEXT(sched_yield)();
	obs.now_ns = now_ns();
	obs.waited_ns = obs.now_ns - now;
	set_state(COS_RANK_SPINNING);
	cos_shim.me->nr_yields++;
	cos_shim.me->cpu = current_cpu();
	self->until_ns = 0;
	cos_observe(&cos_shim.params, &obs, &self->task, &cos_shim.job);
}

/*
 * Where a wait began with the verdict to yield, the next one begins so as well: the first empty pass already
 * gives way, as stock does. True while that holds; policy is asked again after a
 * few passes, after some time, and when the CPU came back late. Who yields only after it has spun spins first.
 */
static bool yield_at_once(struct cos_thread *self)
{
	u64 before, after;

	if (!self->yields_at_once || self->nr_passes >= QUICK_YIELDS)
		return false;
	before = now_ns();
	if (before - self->decided_at_ns > QUICK_FOR_NS)
		return false;
	NEXT(sched_yield)();
	after = now_ns();
	cos_shim.me->nr_yields++;
	self->nr_passes++;
	if (after - before > LATE_NS)
		self->yields_at_once = false;
	return true;
}

static void decide(struct cos_thread *self, u64 now)
{
	struct cos_obs obs;
	struct cos_out out;

	see(self, now, &obs);
	cos_wait(&cos_shim.params, &obs, &self->task, &cos_shim.job, &out);
	self->decided_at_ns = now;
	self->yields_at_once = out.act == COS_ACT_YIELD &&
			       (now == self->began_at_ns || self->yields_at_once);
	self->until_ns = out.until_ns;
	if (out.watch & COS_F_NR_SAME_JOB_HERE)
		self->until_ns = min_u64(self->until_ns, now + LOOK_AGAIN_NS);
	self->peer_state = obs.peer_state;
	self->watch = out.watch;
	boost_pace(out.slice_ns);
	if (out.act == COS_ACT_SPIN)
		return;
	cos_shim.me->source[self->source]++;
	if (out.reason < COS_NR_WAIT_REASONS)
		cos_shim.me->why[out.reason]++;
	if (out.act == COS_ACT_YIELD) {
		yield(self, now);
		return;
	}
	if (cos_shim.threaded && !self->nr_arms)
		peers_ring_own();
	self->boost_ns = out.boost_peer ? out.until_ns - now : 0;
	arm(self);
}

static bool peer_changed(struct cos_thread *self, u64 now)
{
	return (self->watch & COS_F_PEER_STATE) &&
	       oncpu_awaited(&self->awaits, now - self->began_at_ns) != self->peer_state;
}

static void spin_on(struct cos_thread *self)
{
	u64 now;

	if (++self->nr_passes % CLOCK_EVERY && self->until_ns)
		return;
	now = now_ns();
	cos_shim.me->beat_at_ns = now;
	if (now >= self->until_ns || peer_changed(self, now))
		decide(self, now);
}

/* ---- the wait -------------------------------------------------------------------- */

static void begin(struct cos_thread *self)
{
	self->phase = SPINNING;
	self->began_at_ns = self->accounted_at_ns = now_ns();
	self->awaits = peers_awaited(&self->call);
	self->timeout_ns = SHORTEST_SLEEP_NS;
	self->rung_awake = self->timed_out = false;
	self->looked_in_proc = self->grace = false;
	self->nr_arms = 0;
	cos_shim.me->cpu = current_cpu();
	cos_shim.me->beat_at_ns = self->began_at_ns;
	published_tell();
	set_state(COS_RANK_SPINNING);
	decide(self, self->began_at_ns);
}

/* The library found something, or the call is over. */
static void finish(struct cos_thread *self)
{
	if (self->phase > LOOKING) {
		if (self->phase != SPINNING)
			leave();
		u64 now = now_ns();

		if (self->timed_out && now - self->accounted_at_ns < AT_ONCE_NS) {
			cos_shim.me->nr_missed++;
			collective_slept(true);
		}
		account(self, now, &cos_shim.me->spin_ns);
		set_state(COS_RANK_COMPUTING);
	}
	self->phase = RUNNING;
}

/* A pass may have found and sent something and not have told: see sleep_end(). */
static bool unseen(const struct cos_thread *self)
{
	return !cos_shim.open_mpi || self->polled >= 2;
}

/* Since it armed: @now is its trail. */
static bool moved_on(const struct cos_thread *self, u64 now)
{
	return !now || now != self->trail;
}

/*
 * An empty pass after a sleep: nobody had sent anything. Where the safety net ended the sleep, the
 * verdict to block still holds: we arm again. Looking at everything anew at
 * each step of the net cost more than the rest of a long wait.
 */
static bool sleep_again(struct cos_thread *self)
{
	bool by_net = self->timed_out && !self->boost_ns;

	if (self->rung_awake && !(unseen(self) && moved_on(self, trail(self))))
		cos_shim.me->nr_spurious++;
	self->rung_awake = self->timed_out = false;
	if (by_net)
		arm(self);
	return by_net;
}

/*
 * The second pass is over, and the rank will sleep. Ringing each time would let waiting ranks
 * wake each other for ever, so while the library stays where it is (where it may still
 * have answered a rendezvous) it gets rarer.
 */
static void ring_unseen(struct cos_thread *self)
{
	u64 now;

	if (!unseen(self))
		return;
	now = trail(self);
	if (moved_on(self, now)) {
		self->nr_arms = 1;
		self->trail = now;
	}
	if (!(self->nr_arms & (self->nr_arms - 1)))
		peers_ring(&self->call);
}

void wait_pass(void)
{
	struct cos_thread *self = &cos_self;

	if (self->grace) {
		self->grace = false;
		return;
	}

	self->polled = self->polled_now ? self->polled + 1 : 0;
	self->polled_now = false;
	if (self->nr_found > 1) {
		finish(self);
		if (cos_shim.threaded)
			peers_ring_own();
	}
	switch (self->phase) {
	case RUNNING:
		self->phase = LOOKING;
		self->nr_passes = 0;
		peers_ring(&self->call);
		yield_at_once(self);
		break;
	case LOOKING:
		if (!yield_at_once(self) && ++self->nr_passes >= LOOKING_PASSES)
			begin(self);
		break;
	case SPINNING:
		if (!sleep_again(self))
			spin_on(self);
		break;
	case ARMED:
		ring_unseen(self);
		if (bell_load(&cos_shim.me->armed) == COS_ARMED_POLL)
			self->phase = STRETCHED;
		else
			sleep_on_doorbell(self);
		break;
	case STRETCHED:			/* no poll came in this pass after all */
		ring_unseen(self);
		sleep_on_doorbell(self);
		break;
	}
}

/* Tests never block; after many in vain they let a rank of this job have the CPU. */
void wait_test_pass(void)
{
	struct cos_thread *self = &cos_self;

	if (++self->nr_empty_tests % EMPTY_TESTS)
		return;
	cos_shim.me->cpu = current_cpu();
	if (oncpu_company(now_ns()).nr_want_cpu) {
		cos_shim.me->nr_gave++;
		NEXT(sched_yield)();
	}
}

void wait_begin_call(void)
{
	struct cos_thread *self = &cos_self;

	cos_shim.me->nr_calls++;
	if (in_collective(&self->call))
		peers_enter(&self->call);
	self->phase = RUNNING;
	self->nr_found = 0;
	self->rang = false;
}

void wait_end_call(int failed)
{
	struct cos_thread *self = &cos_self;

	if (self->phase != RUNNING)
		finish(self);
	if (!(self->call.tags & TEST))
		self->nr_empty_tests = 0;
	if (unlikely(failed))
		return;
	peers_call_over(&self->call);
	if (cos_shim.threaded)
		peers_ring_own();
}
