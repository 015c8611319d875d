// SPDX-License-Identifier: Apache-2.0
//! What the answers to `order` keep: who communicates more is never later, within
//! bounds; P means what S4 says, and a learned P does what its pattern asks for.

use crate::contract::number;
use crate::policy::{params, Of, Policy};
use crate::{always, Verdict as Law};
use cosched_policy::native::{Job, Obs, Params, Task, Verdict};
use cosched_policy::raw;
use proptest::prelude::*;

const PACKET: u64 = raw::COS_PACKET_BYTES as u64;
/// Large enough that a key shows 1/256 of a packet.
const WORTH_NS: u64 = 256;
const FREQUENCY: u32 = raw::COS_ORDER_FREQUENCY;
const BYTES: u32 = raw::COS_F_RQ_BYTES | raw::COS_F_SQ_BYTES;

/// `past` in millionths, or learned.
fn frequency(answer: u32, past_ppm: Option<u64>) -> Params {
    let learn = u64::from(past_ppm.is_none());
    let args = [past_ppm.unwrap_or(0), learn, 0, WORTH_NS, 1 << 60];
    params(raw::COS_Q_ORDER, answer, &args)
}

fn backlog(rq_bytes: u64, sq_bytes: u64) -> Obs {
    Obs {
        known: BYTES,
        rq_bytes,
        sq_bytes,
        ..Obs::default()
    }
}

/// What the task's frequency is worth after each of @packets, in packets / 256.
fn frequencies(policy: &Policy, params: &Params, packets: &[u64]) -> Vec<u64> {
    let (mut task, mut job) = (Task::default(), Job::default());
    let ask = |n: &u64| {
        let obs = backlog(n * PACKET, 0);
        let out = policy.ask(Of::Order, params, &obs, &mut task, &mut job);
        u64::try_from(-out.key).unwrap()
    };
    packets.iter().map(ask).collect()
}

pub fn more_traffic_is_never_later(policy: &Policy) -> Law {
    let bytes = || number().prop_map(|n| n & ((1 << 40) - 1));
    always(
        (bytes(), bytes(), bytes(), bytes()),
        |(rq, sq, more_rq, more_sq)| {
            let key = |answer, rq, sq| {
                let params = frequency(answer, Some(500_000));
                policy.ask_fresh(Of::Order, &params, &backlog(rq, sq)).key
            };
            for answer in [FREQUENCY, raw::COS_ORDER_RECEIVE_FREQUENCY] {
                prop_assert!(key(answer, rq + more_rq, sq + more_sq) <= key(answer, rq, sq));
            }
            let received = raw::COS_ORDER_RECEIVE_FREQUENCY;
            prop_assert_eq!(key(received, rq, sq + more_sq), key(received, rq, sq));
            prop_assert_eq!(key(FREQUENCY, rq, sq), key(FREQUENCY, sq, rq));
            Ok(())
        },
    )
}

pub fn a_bias_is_bounded(policy: &Policy) -> Law {
    always(
        (number(), number(), number(), 0..1u64 << 60),
        |(rq, sq, worth_ns, max_debt_ns)| {
            let args = [990_000, 0, 0, worth_ns, max_debt_ns];
            let params = params(raw::COS_Q_ORDER, FREQUENCY, &args);
            let out = policy.ask_fresh(Of::Order, &params, &backlog(rq, sq));
            prop_assert_eq!(out.act, raw::COS_ACT_BIAS);
            prop_assert!(out.key <= 0 && out.key >= -(max_debt_ns as i64), "{out:?}");
            Ok(())
        },
    )
}

pub fn the_first_four_are_their_mean(policy: &Policy) -> Law {
    let past = prop::option::of(0..=1_000_000u64);
    always(
        (past, prop::array::uniform4(0..1000u64)),
        |(past, packets)| {
            let seen = frequencies(policy, &frequency(FREQUENCY, past), &packets);
            for (i, seen) in seen.iter().enumerate() {
                let mean = packets[..=i].iter().sum::<u64>() * 256 / (i as u64 + 1);
                prop_assert!(seen.abs_diff(mean) <= 1, "{seen} where {mean} is the mean");
            }
            Ok(())
        },
    )
}

pub fn p_weighs_past_against_present(policy: &Policy) -> Law {
    let packets = prop::collection::vec(0..1000u64, 5..20);
    always((packets, 0..=1_000_000u64), |(packets, past)| {
        let seen = |past| frequencies(policy, &frequency(FREQUENCY, Some(past)), &packets);
        prop_assert!(seen(1_000_000)[4..]
            .iter()
            .all(|n| *n == seen(1_000_000)[3]));
        for (now, seen) in packets.iter().zip(seen(0)).skip(4) {
            prop_assert_eq!(seen, now * 256);
        }
        let mixed = seen(past);
        for i in 4..packets.len() {
            let (a, b, p) = (
                mixed[i - 1] as f64,
                (packets[i] * 256) as f64,
                past as f64 / 1e6,
            );
            let mix = a * p + b * (1.0 - p);
            prop_assert!((mixed[i] as f64 - mix).abs() <= 2.0, "{mixed:?}");
        }
        Ok(())
    })
}

/// Where the last sample forecasts the next one (long phases), the present
/// counts; where it never does (every other time nothing), the average.
pub fn a_learned_p_follows_the_pattern(policy: &Policy) -> Law {
    always((1..1000u64, 100..300usize), |(many, phase)| {
        let learned = |packets: &[u64]| frequencies(policy, &frequency(FREQUENCY, None), packets);
        let phases: Vec<u64> = (0..10 * phase)
            .map(|i| (i / phase) as u64 % 2 * many)
            .collect();
        let seen = learned(&phases);
        let late = 9 * phase + phase / 10;
        prop_assert!(
            seen[late] >= many * 256 * 4 / 5,
            "{} of {}",
            seen[late],
            many * 256
        );

        let turns: Vec<u64> = (0..1000).map(|i| i % 2 * many).collect();
        for seen in &learned(&turns)[900..] {
            let (least, most) = (many * 256 / 4, many * 256 * 3 / 4);
            prop_assert!((least..=most).contains(seen), "{seen} of {}", many * 256);
        }
        Ok(())
    })
}

pub fn the_printed_reading_favours_the_used_up(policy: &Policy) -> Law {
    let times = (1..1u64 << 40, 1..1u64 << 40, 0..1000u64);
    always(times, |(left_ns, local_key, packets)| {
        let ask = |printed, left_ns| {
            let params = params(
                raw::COS_Q_ORDER,
                FREQUENCY,
                &[0, 0, printed, WORTH_NS, 1 << 60],
            );
            let known = BYTES | raw::COS_F_LEFT | raw::COS_F_LOCAL_KEY;
            let obs = Obs {
                known,
                left_ns,
                local_key,
                ..backlog(packets * PACKET, 0)
            };
            policy.ask_fresh(Of::Order, &params, &obs)
        };
        let worth = (packets * WORTH_NS) as i64;
        let verdict = |out: Verdict| (out.act, out.key);
        prop_assert_eq!(verdict(ask(0, left_ns)), (raw::COS_ACT_BIAS, -worth));
        prop_assert_eq!(verdict(ask(0, 0)), (raw::COS_ACT_NONE, 0));
        let counter = (raw::COS_ACT_REPLACE, -(left_ns as i64));
        prop_assert_eq!(verdict(ask(1, left_ns)), counter);
        let priority = (raw::COS_ACT_REPLACE, -(local_key as i64) - worth);
        prop_assert_eq!(verdict(ask(1, 0)), priority);
        Ok(())
    })
}

pub fn pending_and_round_robin_order_as_they_say(policy: &Policy) -> Law {
    always((any::<u32>(), any::<u32>()), |(a, b)| {
        let key = |answer, nr_pending| {
            let known = raw::COS_F_NR_PENDING;
            let obs = Obs {
                known,
                nr_pending,
                ..Obs::default()
            };
            let out = policy.ask_fresh(Of::Order, &params(raw::COS_Q_ORDER, answer, &[]), &obs);
            assert_eq!(out.act, raw::COS_ACT_REPLACE);
            out.key
        };
        let pending = raw::COS_ORDER_PENDING;
        prop_assert_eq!(key(pending, a).cmp(&key(pending, b)), b.cmp(&a));
        prop_assert_eq!(
            key(raw::COS_ORDER_ROUND_ROBIN, a),
            key(raw::COS_ORDER_ROUND_ROBIN, b)
        );
        Ok(())
    })
}

pub fn veto_refuses_only_who_has_no_message(policy: &Policy) -> Law {
    always((0..3u32, 0..3u32), |(nr_pending, nr_pending_here)| {
        let known = raw::COS_F_NR_PENDING | raw::COS_F_NR_PENDING_HERE;
        let obs = Obs {
            known,
            nr_pending,
            nr_pending_here,
            ..Obs::default()
        };
        let params = params(raw::COS_Q_ORDER, raw::COS_ORDER_VETO, &[]);
        let out = policy.ask_fresh(Of::Order, &params, &obs);
        let refuses = nr_pending == 0 && nr_pending_here > 0;
        prop_assert_eq!(out.act == raw::COS_ACT_VETO, refuses);
        Ok(())
    })
}
