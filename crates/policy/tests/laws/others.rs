// SPDX-License-Identifier: Apache-2.0
//! What the answers to `periodic` and `quantum` keep.

use crate::policy::{params, with, Of, Policy};
use crate::{always, Verdict as Law};
use cosched_policy::native::{Job, Obs, Task};
use cosched_policy::raw;
use proptest::prelude::*;

const PERIODIC: u32 = raw::COS_Q_PERIODIC;
const QUANTUM: u32 = raw::COS_Q_QUANTUM;

pub fn periodic_comes_again_after_its_period(policy: &Policy) -> Law {
    let any = (
        1..raw::COS_NR_PERIODIC_ANSWERS,
        0..1u64 << 40,
        0..1u64 << 60,
        any::<u32>(),
    );
    always(any, |(answer, period_ns, now_ns, known)| {
        let obs = Obs {
            now_ns,
            known,
            nr_pending: 1,
            ..Obs::default()
        };
        let out = policy.ask_fresh(Of::Periodic, &params(PERIODIC, answer, &[period_ns]), &obs);
        prop_assert_eq!(out.until_ns, now_ns + period_ns.max(1000));
        Ok(())
    })
}

pub fn boost_pending_asks_fairness(policy: &Policy) -> Law {
    let fair = [raw::COS_FAIRNESS_NONE, raw::COS_FAIRNESS_ALWAYS];
    always(
        (prop::sample::select(fair.to_vec()), 0..5u32),
        |(fair, nr_pending)| {
            let fairness = params(raw::COS_Q_FAIRNESS, fair, &[]);
            let params = with(
                fairness,
                PERIODIC,
                raw::COS_PERIODIC_BOOST_PENDING,
                &[10_000],
            );
            let known = raw::COS_F_NR_PENDING;
            let obs = Obs {
                known,
                nr_pending,
                ..Obs::default()
            };
            let out = policy.ask_fresh(Of::Periodic, &params, &obs);
            let boosts = nr_pending > 0 && fair == raw::COS_FAIRNESS_ALWAYS;
            prop_assert_eq!(out.act == raw::COS_ACT_BOOST, boosts);
            prop_assert_eq!(out.key, if boosts { -i64::from(nr_pending) } else { 0 });
            Ok(())
        },
    )
}

/// At most one in a period, none after a message of one's own, none from a rank
/// that is off its CPU or never sent.
pub fn a_heartbeat_comes_only_from_the_quiet(policy: &Policy) -> Law {
    let steps = prop::collection::vec((0..3u32, 0..10_000u64), 1..50);
    always((steps, 1_000..20_000u64), |(steps, period_ns)| {
        let params = params(PERIODIC, raw::COS_PERIODIC_HEARTBEAT, &[period_ns]);
        let (mut task, mut job, mut now_ns) = (Task::default(), Job::default(), 1);
        let mut last_ns = None;
        for (kind, step_ns) in steps {
            now_ns += step_ns;
            let (known, running) = (raw::COS_F_RUNNING, u32::from(kind != 2));
            let event = if kind == 0 {
                raw::COS_EV_SEND
            } else {
                raw::COS_EV_PERIOD
            };
            let obs = Obs {
                now_ns,
                known,
                running,
                event,
                ..Obs::default()
            };
            policy.observe(&params, &obs, &mut task, &mut job);
            if kind == 0 {
                last_ns = Some(now_ns);
                continue;
            }
            let out = policy.ask(Of::Periodic, &params, &obs, &mut task, &mut job);
            let quiet = last_ns.is_some_and(|last| now_ns - last >= period_ns);
            prop_assert_eq!(out.act == raw::COS_ACT_BEAT, quiet && running == 1);
            if out.act == raw::COS_ACT_BEAT {
                last_ns = Some(now_ns);
            }
        }
        Ok(())
    })
}

pub fn a_matched_slice_ends_with_the_senders(policy: &Policy) -> Law {
    let senders = prop::collection::vec((0..1_000_000u64, 0..10_000_000u64), 1..10);
    always(
        (senders, 0..20_000_000u64, 0..1_000_000u64, 0..20_000_000u64),
        |(senders, later_ns, min_ns, more_ns)| {
            let max_ns = min_ns + more_ns;
            let params = params(QUANTUM, raw::COS_QUANTUM_MATCH, &[min_ns, max_ns]);
            let (mut task, mut job, mut now_ns, mut end_ns) =
                (Task::default(), Job::default(), 1, 0);
            for (step_ns, left_ns) in senders {
                now_ns += step_ns;
                let known = raw::COS_F_SENDER_LEFT;
                let event = raw::COS_EV_ARRIVAL;
                let obs = Obs {
                    now_ns,
                    event,
                    known,
                    sender_left_ns: left_ns,
                    ..Obs::default()
                };
                policy.observe(&params, &obs, &mut task, &mut job);
                end_ns = end_ns.max(now_ns + left_ns);
            }
            let now_ns = now_ns + later_ns;
            let obs = Obs {
                now_ns,
                ..Obs::default()
            };
            let out = policy.ask(Of::Quantum, &params, &obs, &mut task, &mut job);
            let slice_ns = match end_ns.saturating_sub(now_ns) {
                0 => 0,
                left_ns => left_ns.clamp(min_ns, max_ns),
            };
            prop_assert_eq!(out.slice_ns, slice_ns);
            Ok(())
        },
    )
}

pub fn a_fixed_slice_is_fixed(policy: &Policy) -> Law {
    always(
        (any::<u64>(), any::<u64>(), any::<u32>()),
        |(slice_ns, now_ns, known)| {
            let obs = Obs {
                now_ns,
                known,
                ..Obs::default()
            };
            let fixed = params(QUANTUM, raw::COS_QUANTUM_FIXED, &[slice_ns]);
            let out = policy.ask_fresh(Of::Quantum, &fixed, &obs);
            prop_assert_eq!((out.act, out.slice_ns), (raw::COS_ACT_NONE, slice_ns));
            Ok(())
        },
    )
}
