/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decide.bpf.h - from what is known to a verdict: policy/ is asked.
 *
 * The observation is filled here, once for all events; what this body cannot
 * know stays unknown. Verdicts are noted in the task's state and counted with
 * their reasons; act.bpf.h carries them out.
 */
#ifndef COS_DECIDE_BPF_H
#define COS_DECIDE_BPF_H

#include "state.bpf.h"
#include "vtime.bpf.h"

/* The lag is known where we schedule, nowhere else. It counts from the mean of all that want the CPU, as EEVDF's does. */
static __always_inline void fill(struct cos_obs *obs, struct task_state *t, u32 cpu, u32 event, u64 now_ns)
{
	struct cos_kernel_config *is = configuration();
	struct cpu_state *c = cpu_at(cpu);
	u32 nr = nr_runnable(cpu);

	__builtin_memset(obs, 0, sizeof(*obs));
	obs->now_ns = now_ns;
	obs->event = event;
	obs->known = COS_F_RUNNING;
	if (nr) {
		obs->nr_runnable = nr + (t->wants ? 0 : 1);
		obs->known |= COS_F_NR_RUNNABLE;
	}
	obs->running = t->running;
	if (t->on_at_ns && now_ns > t->on_at_ns && (t->running || event == COS_EV_STOP)) {
		obs->ran_ns = now_ns - t->on_at_ns;
		obs->known |= COS_F_RAN;
	}
	if (schedules(is) && c) {
		obs->lag_ns = lag_of(t, c, (s64)is->credit_ns) + mean_beyond(cpu, now_ns);
		obs->known |= COS_F_LAG;
	}
}

/*
 * Policy, apart from all who ask it: it has by far the most ways through, and the verifier takes each of
 * these once a program.
 */
APART int observe(struct cos_obs *obs __arg_nonnull, struct task_state *t __arg_nonnull,
		  struct cos_kernel_job *job __arg_nonnull)
{
	cos_observe(&job->params, obs, &t->policy, &job->state);
	return 0;
}

APART int answer_arrival(struct cos_obs *obs __arg_nonnull, struct task_state *t __arg_nonnull,
			 struct cos_kernel_job *job __arg_nonnull, struct cos_out *out __arg_nonnull)
{
	cos_arrival(&job->params, obs, &t->policy, &job->state, out);
	return 0;
}

/* Policy learns of an event; nothing is decided. */
APART int learn_of(struct task_state *t __arg_nonnull,
		   struct cos_kernel_job *job __arg_nonnull, u32 cpu, u32 event, u64 now_ns)
{
	struct cos_obs obs;

	fill(&obs, t, cpu, event, now_ns);
	observe(&obs, t, job);
	return 0;
}

static __always_inline void note_verdict(struct task_state *t, struct cos_kernel_job *job,
				const struct cos_out *out, u64 now_ns)
{
	u32 reason = out->reason;

	t->last_reason = reason;
	if (reason >= COS_NR_REASONS)
		return;
	if (out->act == COS_ACT_BOOST) {
		t->boost_until_ns = out->until_ns;
		t->boost_slice_ns = out->slice_ns;
		t->again_at_ns = 0;
		t->nr_boosts++;
		job->boosted_at_ns = now_ns;
		add(&job->nr_boosts, 1);
		add(&job->why_boosted[reason], 1);
		return;
	}
	if (out->act == COS_ACT_MARK_RUNNING)
		t->mark_until_ns = out->until_ns;
	else
		t->again_at_ns = out->until_ns == COS_NEVER_NS ? 0 : out->until_ns;
	t->nr_denied++;
	add(&job->why_denied[reason], 1);
}

/*
 * A refusal in @cpu's queue ends at @at_ns: then it is asked about again (act.bpf.h). The next choice of the CPU
 * would be up to a turn later.
 */
static __always_inline void set_alarm(u32 cpu, u64 at_ns, u64 now_ns)
{
	struct cpu_state *c = cpu_at(cpu);
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &cpu);

	if (!c || !alarm || (c->alarm_at_ns && c->alarm_at_ns <= at_ns))
		return;
	c->alarm_at_ns = at_ns;
	if (bpf_timer_start(&alarm->timer, sat_sub(at_ns, now_ns), 0))
		c->alarm_at_ns = 0;
}

/*
 * Something arrived for @t, which wants or last had @cpu: shall it run at once?
 * 1: it is boosted, now or already.
 */
APART int ask_arrival(struct task_state *t __arg_nonnull,
		      struct cos_kernel_job *job __arg_nonnull, u32 cpu, u32 seen, u64 now_ns)
{
	struct cos_obs obs;
	struct cos_out out;

	if (seen < COS_NR_SEEN)
		add(&job->nr_seen[seen], 1);
	if (!t->running && !t->arrival_at_ns)
		t->arrival_at_ns = now_ns;
	if (t->boost_until_ns > now_ns)
		return 1;
	if (job->boost_gap_ns && now_ns - job->boosted_at_ns < job->boost_gap_ns)
		return 0;
	fill(&obs, t, cpu, COS_EV_ARRIVAL, now_ns);
	observe(&obs, t, job);
	answer_arrival(&obs, t, job, &out);
	note_verdict(t, job, &out, now_ns);
	if (t->again_at_ns && schedules(configuration()))
		set_alarm(cpu, t->again_at_ns, now_ns);
	return out.act == COS_ACT_BOOST;
}

/* A yield so much later than between two of one wait begins another. */
#define GAPS_PER_WAIT 4

static __always_inline u64 waited_ns(struct task_state *t, u64 now_ns)
{
	u64 gap_ns = now_ns - t->yielded_at_ns;

	if (!t->yield_gap_ns || gap_ns < t->yield_gap_ns)
		t->yield_gap_ns = gap_ns ?: 1;
	else
		t->yield_gap_ns += t->yield_gap_ns / 64 + 1;
	if (gap_ns > GAPS_PER_WAIT * t->yield_gap_ns)
		t->wait_since_ns = now_ns;
	t->yielded_at_ns = now_ns;
	return now_ns - t->wait_since_ns;
}

/* Whether a rank of job @number is on a CPU other than @but. */
APART int is_mate_on_cpu(u32 number, u32 but)
{
	struct cos_kernel_config *is = configuration();
	u32 cpu, nr = is ? is->nr_cpus : 0;
	int found = 0;

	bpf_for(cpu, 0, nr) {
		struct cos_oncpu *on = bpf_map_lookup_elem(&oncpu, &cpu);

		if (on && cpu != but && on->job == number) {
			found = 1;
			break;
		}
	}
	return found;
}

/*
 * @t, which is on @cpu, yields: its program waits. SPIN: it had better keep its CPU. Asked where the
 * preset's answer is adaptive; any other leaves it to the program how it waits.
 */
APART int ask_wait(struct task_state *t __arg_nonnull, struct cos_kernel_job *job __arg_nonnull,
		   u32 cpu, u64 now_ns)
{
	u64 since_ns = waited_ns(t, now_ns);
	u32 here = nr_of_job(t->job, cpu), all = nr_runnable(cpu);
	struct cos_obs obs;
	struct cos_out out;

	if (job->params.answer[COS_Q_WAIT] != COS_WAIT_ADAPTIVE)
		return COS_ACT_YIELD;
	fill(&obs, t, cpu, COS_EV_WAIT, now_ns);
	obs.waited_ns = since_ns;
	obs.nr_same_job_here = here ? here - 1 : 0;
	obs.nr_outsiders_q8 = all > here ? (all - here) << 8 : 0;
	obs.peer_state = is_mate_on_cpu(t->job, cpu) ? COS_PEER_ON_CPU : COS_PEER_OFF_CPU;
	obs.known |= COS_F_WAITED | COS_F_NR_SAME_JOB_HERE | COS_F_OUTSIDERS | COS_F_PEER_STATE;
	cos_wait(&job->params, &obs, &t->policy, &job->state, &out);
	return out.act;
}

/* @t came on its CPU so long after an arrival: what sleeping or giving way costs. */
APART int learn_cost(struct task_state *t __arg_nonnull, struct cos_kernel_job *job __arg_nonnull,
		     u32 cpu, u64 cost_ns, u64 now_ns)
{
	struct cos_obs obs;

	fill(&obs, t, cpu, COS_EV_WAKE, now_ns);
	obs.wake_cost_ns = cost_ns;
	obs.known |= COS_F_WAKE_COST;
	observe(&obs, t, job);
	return 0;
}

#endif
