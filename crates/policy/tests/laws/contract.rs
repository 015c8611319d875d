// SPDX-License-Identifier: Apache-2.0
//! What every decision keeps, on any bytes at all.

use crate::policy::{params, with, Of, Policy, ALL};
use crate::{always, Verdict as Law};
use cosched_policy::native::{Job, Obs, Params, Task, Verdict};
use cosched_policy::{raw, words};
use proptest::prelude::*;

/// Where arithmetic breaks, if it breaks; else anything.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..8u64,
        2 => (0..64u32, 0..3u64).prop_map(|(e, d)| (1u64 << e).wrapping_add(d).wrapping_sub(1)),
        2 => (any::<u64>(), 0..64u32).prop_map(|(n, e)| n >> e),
        1 => Just(u64::MAX),
    ]
}

fn word() -> impl Strategy<Value = u32> {
    number().prop_map(|n| n as u32)
}

/// Sets one field of an observation, and its bit in `known`.
type Field = (u32, fn(&mut Obs, u64));

const FIELDS: &[Field] = &[
    (raw::COS_F_WAITED, |o, n| o.waited_ns = n),
    (raw::COS_F_WAKE_COST, |o, n| o.wake_cost_ns = n),
    (raw::COS_F_RAN, |o, n| o.ran_ns = n),
    (raw::COS_F_LAST_RAN_AT, |o, n| o.last_ran_at_ns = n),
    (raw::COS_F_LOCAL_KEY, |o, n| o.local_key = n),
    (raw::COS_F_RQ_BYTES, |o, n| o.rq_bytes = n),
    (raw::COS_F_SQ_BYTES, |o, n| o.sq_bytes = n),
    (raw::COS_F_L1_MISS, |o, n| o.l1_miss = n),
    (raw::COS_F_L2_MISS, |o, n| o.l2_miss = n),
    (raw::COS_F_LAG, |o, n| o.lag_ns = n as i64),
    (raw::COS_F_NR_RUNNABLE, |o, n| o.nr_runnable = n as u32),
    (raw::COS_F_NR_RUNNABLE_AVG, |o, n| {
        o.nr_runnable_avg_q8 = n as u32
    }),
    (raw::COS_F_NR_PENDING, |o, n| o.nr_pending = n as u32),
    (raw::COS_F_NR_SAME_JOB_HERE, |o, n| {
        o.nr_same_job_here = n as u32
    }),
    (raw::COS_F_PEER_STATE, |o, n| o.peer_state = n as u32),
    (raw::COS_F_INTERACTIVE, |o, n| o.interactive = n as u32),
    (raw::COS_F_OUTSIDERS, |o, n| o.nr_outsiders_q8 = n as u32),
    (raw::COS_F_RUNNING, |o, n| o.running = n as u32),
    (raw::COS_F_LEFT, |o, n| o.left_ns = n),
    (raw::COS_F_SENDER_LEFT, |o, n| o.sender_left_ns = n),
    (raw::COS_F_EPOCHS, |o, n| {
        (o.message_epoch, o.cpu_epoch) = (n, n >> 1)
    }),
    (raw::COS_F_NR_PENDING_HERE, |o, n| {
        o.nr_pending_here = n as u32
    }),
    (raw::COS_F_NR_OF_JOB_HERE, |o, n| {
        o.nr_of_job_here = n as u32
    }),
    (raw::COS_F_SLOT, |o, n| {
        (o.slot, o.nr_slots) = (n as u32, n as u32 / 2)
    }),
];

/// An observation of which a good part is known.
pub fn any_obs() -> impl Strategy<Value = Obs> {
    let values = prop::collection::vec(number(), FIELDS.len());
    (number(), word(), any::<[u32; 2]>(), values).prop_map(|(now_ns, event, known, values)| {
        let mut obs = Obs {
            now_ns,
            event: event % (raw::COS_NR_EVENTS + 1),
            known: known[0] | known[1],
            ..Obs::default()
        };
        for ((_, set), value) in FIELDS.iter().zip(values) {
            set(&mut obs, value);
        }
        obs
    })
}

/// Any answers with any arguments.
fn any_params() -> impl Strategy<Value = Params> {
    let answers = prop::array::uniform7(0..8u32);
    let args = prop::collection::vec(number(), 7 * 6);
    (answers, args).prop_map(|(answers, args)| {
        let questions = answers.into_iter().zip(args.chunks(6)).zip(0..);
        questions.fold(Params::default(), |all, ((answer, args), question)| {
            with(all, question, answer, args)
        })
    })
}

fn any_state() -> impl Strategy<Value = (Task, Job)> {
    let words = || prop_oneof![Just(vec![0; 16]), prop::collection::vec(number(), 16),];
    (words(), words()).prop_map(|(task, job)| {
        let task = Task {
            w: task.try_into().unwrap(),
        };
        (
            task,
            Job {
                w: job.try_into().unwrap(),
            },
        )
    })
}

fn any_of() -> impl Strategy<Value = Of> {
    prop::sample::select(ALL.to_vec())
}

fn any_case() -> impl Strategy<Value = (Of, Params, Obs, (Task, Job))> {
    (any_of(), any_params(), any_obs(), any_state())
}

/// Learns from @obs, then decides: the verdict and the state after it.
fn outcome(
    policy: &Policy,
    of: Of,
    params: &Params,
    obs: &Obs,
    state: (Task, Job),
) -> (Verdict, Task, Job) {
    let (mut task, mut job) = state;
    policy.observe(params, obs, &mut task, &mut job);
    let out = policy.ask(of, params, obs, &mut task, &mut job);
    (out, task, job)
}

pub fn nothing_of_an_old_verdict_stays(policy: &Policy) -> Law {
    always(
        (any_case(), any::<u64>()),
        |((of, params, obs, state), old)| {
            let mut dirty = Verdict {
                act: old as u32,
                reason: old as u32,
                until_ns: old,
                slice_ns: old,
                key: old as i64,
                watch: old as u32,
                boost_peer: old as u32,
            };
            let (mut task, mut job) = state;
            policy.ask_into(of, &params, &obs, (&mut task, &mut job), &mut dirty);
            let (mut task, mut job) = state;
            prop_assert_eq!(dirty, policy.ask(of, &params, &obs, &mut task, &mut job));
            Ok(())
        },
    )
}

pub fn a_verdict_is_one_that_its_question_has(policy: &Policy) -> Law {
    use raw::*;
    let acts = |of| match of {
        Of::Arrival => &[COS_ACT_NONE, COS_ACT_BOOST, COS_ACT_MARK_RUNNING][..],
        Of::Fairness => &[COS_ACT_NONE, COS_ACT_BOOST],
        Of::Periodic => &[COS_ACT_NONE, COS_ACT_BOOST, COS_ACT_BEAT],
        Of::Order => &[COS_ACT_NONE, COS_ACT_BIAS, COS_ACT_REPLACE, COS_ACT_VETO],
        Of::Quantum => &[COS_ACT_NONE],
        Of::Admit => &[COS_ACT_NONE, COS_ACT_RUN],
    };
    always(any_case(), |(of, params, obs, state)| {
        let (out, ..) = outcome(policy, of, &params, &obs, state);
        prop_assert!(acts(of).contains(&out.act), "{out:?}");
        prop_assert!((out.reason as usize) < words::REASONS.len(), "{out:?}");
        prop_assert_eq!((out.watch, out.boost_peer), (0, 0));
        Ok(())
    })
}

pub fn what_is_unknown_does_not_count(policy: &Policy) -> Law {
    let noise = prop::collection::vec(number(), FIELDS.len());
    always((any_case(), noise), |((of, params, obs, state), noise)| {
        let mut noisy = obs;
        let fields = FIELDS.iter().zip(noise);
        for ((_, set), value) in fields.filter(|((bit, _), _)| obs.known & bit == 0) {
            set(&mut noisy, value);
        }
        let plain = outcome(policy, of, &params, &obs, state);
        prop_assert_eq!(plain, outcome(policy, of, &params, &noisy, state));
        Ok(())
    })
}

/// Boosts that fairness never refuses.
fn always_fair(question: u32, answer: u32, args: &[u64]) -> Params {
    let fair = params(raw::COS_Q_FAIRNESS, raw::COS_FAIRNESS_ALWAYS, &[]);
    with(fair, question, answer, args)
}

pub fn a_boost_expires(policy: &Policy) -> Law {
    let args = (1..1u64 << 40, 1..1u64 << 40, 1..1u64 << 40, 1..1u64 << 62);
    always(args, |(slice_ns, lasts_ns, mark_ns, now_ns)| {
        let obs = |known, running| Obs {
            now_ns,
            known,
            running,
            nr_pending: 1,
            ..Obs::default()
        };
        let args = [slice_ns, lasts_ns, mark_ns];
        let arrival = always_fair(raw::COS_Q_ARRIVAL, raw::COS_ARRIVAL_BOOST, &args);
        let out = policy.ask_fresh(Of::Arrival, &arrival, &obs(raw::COS_F_RUNNING, 0));
        prop_assert_eq!((out.act, out.slice_ns), (raw::COS_ACT_BOOST, slice_ns));
        prop_assert_eq!(out.until_ns, now_ns + lasts_ns);
        let out = policy.ask_fresh(Of::Arrival, &arrival, &obs(raw::COS_F_RUNNING, 1));
        prop_assert_eq!(
            (out.act, out.until_ns),
            (raw::COS_ACT_MARK_RUNNING, now_ns + mark_ns)
        );

        let (answer, args) = (raw::COS_PERIODIC_BOOST_PENDING, [lasts_ns, slice_ns]);
        let periodic = always_fair(raw::COS_Q_PERIODIC, answer, &args);
        let out = policy.ask_fresh(Of::Periodic, &periodic, &obs(raw::COS_F_NR_PENDING, 0));
        prop_assert_eq!((out.act, out.slice_ns), (raw::COS_ACT_BOOST, slice_ns));
        prop_assert_eq!(out.until_ns, now_ns + lasts_ns.max(1000));
        Ok(())
    })
}

pub fn no_boost_for_who_is_running(policy: &Policy) -> Law {
    always(any_case(), |(_, params, obs, state)| {
        let known = obs.known | raw::COS_F_RUNNING;
        let obs = Obs {
            known,
            running: 1,
            ..obs
        };
        for of in [Of::Arrival, Of::Periodic] {
            let (out, ..) = outcome(policy, of, &params, &obs, state);
            prop_assert_ne!(out.act, raw::COS_ACT_BOOST);
        }
        Ok(())
    })
}

pub fn answer_0_leaves_the_local_scheduler_alone(policy: &Policy) -> Law {
    let args = prop::array::uniform6(number());
    always(
        (any_of(), args, any_obs(), any_state()),
        |(of, args, obs, (task, job))| {
            let zero = (1..7).fold(Params::default(), |all, q| with(all, q, 0, &args));
            let (mut task_after, mut job_after) = (task, job);
            let out = policy.ask(of, &zero, &obs, &mut task_after, &mut job_after);
            let stands = match of {
                Of::Admit => raw::COS_ACT_RUN,
                _ => raw::COS_ACT_NONE,
            };
            prop_assert_eq!((out.act, out.slice_ns, out.key), (stands, 0, 0));
            prop_assert_eq!((out.reason, out.until_ns), (raw::COS_WHY_PRESET, u64::MAX));
            prop_assert_eq!((task_after, job_after), (task, job));
            Ok(())
        },
    )
}
