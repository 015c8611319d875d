// SPDX-License-Identifier: Apache-2.0
//! What every tuning of `policy/wait.h` must keep: behaviour, never constants.

use cosched_policy::native::{observe, wait, wait_into, Job, Obs, Params, Task, Verdict};
use cosched_policy::{load, raw, resolve, Body};
use proptest::prelude::*;

fn params(policy: &str) -> Params {
    let preset = load(policy).expect("a policy that exists");
    let resolved = resolve(&preset, &[Body::Shim]);
    resolved.expect("the shim answers wait").params()
}

fn ask(params: &Params, obs: &Obs, task: &Task) -> Verdict {
    wait(params, obs, &mut task.clone(), &mut Job::default())
}

/// A rank that waits since @waited_ns and knows nothing else.
fn waiting(waited_ns: u64) -> Obs {
    Obs {
        now_ns: 1 << 40,
        event: raw::COS_EV_WAIT,
        known: raw::COS_F_WAITED,
        waited_ns,
        ..Obs::default()
    }
}

/// A task that was woken often, at that cost.
fn woken_at(params: &Params, wake_cost_ns: u64) -> Task {
    let (mut task, mut job) = (Task::default(), Job::default());
    let obs = Obs {
        event: raw::COS_EV_WAKE,
        known: raw::COS_F_WAKE_COST,
        wake_cost_ns,
        ..Obs::default()
    };
    for _ in 0..1000 {
        observe(params, &obs, &mut task, &mut job);
    }
    task
}

/// For how long @task would spin in one go, from the start of a wait.
fn spin_ns(params: &Params, task: &Task) -> u64 {
    let (obs, mut waited_ns) = (waiting(0), 0);
    for _ in 0..1000 {
        let obs = Obs {
            now_ns: obs.now_ns + waited_ns,
            ..waiting(waited_ns)
        };
        let verdict = ask(params, &obs, task);
        if verdict.act != raw::COS_ACT_SPIN {
            return waited_ns;
        }
        waited_ns = verdict.until_ns - (1 << 40);
    }
    panic!("it spins for ever");
}

fn any_obs() -> impl Strategy<Value = Obs> {
    let words = (any::<[u64; 3]>(), any::<[u32; 5]>());
    words.prop_map(
        |([now_ns, waited_ns, wake_cost_ns], [event, known, peer, same, runnable])| Obs {
            now_ns,
            event: event % (raw::COS_NR_EVENTS + 1),
            known,
            waited_ns: waited_ns >> (same % 64),
            wake_cost_ns: wake_cost_ns >> (peer % 64),
            peer_state: peer % 5,
            nr_same_job_here: same % 3,
            nr_runnable: runnable % 8,
            ..Obs::default()
        },
    )
}

fn any_params() -> impl Strategy<Value = Params> {
    (0..raw::COS_NR_WAIT_ANSWERS + 2, any::<[u64; 6]>()).prop_map(|(answer, arg)| {
        let mut params = Params::default();
        params.0.abi = raw::COS_POLICY_ABI;
        params.0.answer[0] = answer;
        params.0.arg[0] = arg;
        params
    })
}

proptest! {
    #[test]
    fn nothing_of_an_old_verdict_stays(params in any_params(), obs in any_obs(), old in any::<u64>()) {
        let mut dirty = Verdict {
            act: old as u32, reason: old as u32, until_ns: old, slice_ns: old,
            key: old as i64, watch: old as u32, boost_peer: old as u32,
        };
        let (mut task, mut job) = (Task::default(), Job::default());
        wait_into(&params, &obs, &mut task, &mut job, &mut dirty);
        prop_assert_eq!(dirty, ask(&params, &obs, &Task::default()));
    }

    #[test]
    fn a_verdict_is_always_one_that_the_shim_can_act_on(params in any_params(), obs in any_obs(), w in any::<[u64; 16]>()) {
        let verdict = ask(&params, &obs, &Task { w });
        let acts = [raw::COS_ACT_SPIN, raw::COS_ACT_YIELD, raw::COS_ACT_BLOCK];
        prop_assert!(acts.contains(&verdict.act), "{verdict:?}");
        prop_assert!(verdict.reason < raw::COS_NR_REASONS, "{verdict:?}");
        prop_assert!(verdict.act != raw::COS_ACT_SPIN || verdict.until_ns >= obs.now_ns, "{verdict:?}");
    }

    #[test]
    fn adaptive_never_spins_for_a_peer_that_is_off_its_cpu(obs in any_obs(), cost_ns in 0..1u64 << 40) {
        let params = params("adaptive");
        let obs = Obs { known: obs.known | raw::COS_F_PEER_STATE, peer_state: raw::COS_PEER_OFF_CPU, ..obs };
        let verdict = ask(&params, &obs, &woken_at(&params, cost_ns));
        prop_assert_ne!(verdict.act, raw::COS_ACT_SPIN);
    }

    #[test]
    fn adaptive_spins_no_shorter_where_waking_up_costs_more(a in 0..1u64 << 32, b in 0..1u64 << 32) {
        let params = params("adaptive");
        let [low, high] = [a.min(b), a.max(b)].map(|cost_ns| spin_ns(&params, &woken_at(&params, cost_ns)));
        prop_assert!(low <= high, "{low} > {high}");
    }

    #[test]
    fn a_rank_of_the_same_job_never_makes_adaptive_spin_longer(waited_ns in 0..1u64 << 24, cost_ns in 0..1u64 << 24) {
        let params = params("adaptive");
        let task = woken_at(&params, cost_ns);
        let alone = waiting(waited_ns);
        let shared = Obs { known: alone.known | raw::COS_F_NR_SAME_JOB_HERE, nr_same_job_here: 1, ..alone };
        if ask(&params, &shared, &task).act == raw::COS_ACT_SPIN {
            prop_assert_eq!(ask(&params, &alone, &task).act, raw::COS_ACT_SPIN);
        }
    }

    #[test]
    fn beside_outsiders_a_crowded_cpu_chooses_again_and_no_peer_is_asked_for(obs in any_obs(), nr in 1..9u32) {
        let obs = Obs {
            known: obs.known | raw::COS_F_OUTSIDERS | raw::COS_F_NR_OF_JOB_HERE,
            nr_outsiders_q8: 256,
            nr_of_job_here: nr,
            ..obs
        };
        let verdict = ask(&params("adaptive"), &obs, &Task::default());
        prop_assert_ne!(verdict.slice_ns, 0);
        prop_assert_eq!(verdict.boost_peer, 0);
        let roomy = Obs { nr_of_job_here: 0, ..obs };
        prop_assert_eq!(ask(&params("adaptive"), &roomy, &Task::default()).slice_ns, 0);
    }

    #[test]
    fn what_is_unknown_does_not_count(obs in any_obs(), peer_state in 0..5u32, same in 0..9u32, cost_ns in 0..1u64 << 32) {
        let params = params("adaptive");
        let task = woken_at(&params, cost_ns);
        let unknown = raw::COS_F_PEER_STATE | raw::COS_F_NR_SAME_JOB_HERE | raw::COS_F_NR_OF_JOB_HERE;
        let known = obs.known & !unknown;
        let plain = Obs { known, peer_state: 0, nr_same_job_here: 0, ..obs };
        let noisy = Obs { known, peer_state, nr_same_job_here: same, nr_of_job_here: same, ..obs };
        prop_assert_eq!(ask(&params, &plain, &task), ask(&params, &noisy, &task));
    }

    #[test]
    fn spin_block_blocks_exactly_at_its_time(us in 0..10_000_000u64) {
        let params = params(&format!("spin_block:{us}us"));
        let ns = us * 1000;
        prop_assert_eq!(spin_ns(&params, &Task::default()), ns);
        prop_assert_eq!(ask(&params, &waiting(ns), &Task::default()).act, raw::COS_ACT_BLOCK);
        if ns > 0 {
            let verdict = ask(&params, &waiting(ns - 1), &Task::default());
            prop_assert_eq!((verdict.act, verdict.until_ns), (raw::COS_ACT_SPIN, (1 << 40) + 1));
        }
    }

    #[test]
    fn adaptive_ends_every_spin(cost_ns in any::<u64>()) {
        let params = params("adaptive");
        let most = params.0.arg[0][raw::COS_ADAPTIVE_MAX_NS as usize];
        prop_assert!(spin_ns(&params, &woken_at(&params, cost_ns)) <= most);
    }
}

#[test]
fn the_fixed_answers_do_what_they_are_called() {
    let act = |policy, waited_ns| ask(&params(policy), &waiting(waited_ns), &Task::default()).act;
    for waited_ns in [0, 1, u64::MAX] {
        assert_eq!(act("spin", waited_ns), raw::COS_ACT_SPIN);
        assert_eq!(act("block", waited_ns), raw::COS_ACT_BLOCK);
        assert_eq!(act("spin_yield:0us", waited_ns), raw::COS_ACT_YIELD);
    }
    assert_eq!(act("spin_yield:1us", 999), raw::COS_ACT_SPIN);
}
