// SPDX-License-Identifier: Apache-2.0
//! What every answer in `policy/` must keep, whatever its parameters: laws, each
//! tried on random cases against policy as it stands, and each seen to be broken
//! by policy with one line spoilt (mutants.rs): a law that no defect can break
//! says nothing. `wait` has its own, in wait.rs.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod allocation;
mod contract;
mod cpu;
mod fairness;
mod how_to;
mod mutants;
mod order;
mod others;
mod policy;

use policy::Policy;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::fmt::Debug;

/// What a law says of a policy: nothing, or the case that breaks it.
type Verdict = Result<(), String>;

/// A law: a test of a policy.
type Law = fn(&Policy) -> Verdict;

/// Tries @law on random @cases; the seed is the same in every run.
fn always<S: Strategy>(cases: S, law: impl Fn(S::Value) -> Result<(), TestCaseError>) -> Verdict
where
    S::Value: Debug,
{
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(2000)
    };
    let broken = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    )
    .run(&cases, law);
    broken.map_err(|error| error.to_string())
}

macro_rules! laws {
    ($($room:ident::$law:ident),* $(,)?) => {
        /// Every law under its name.
        const LAWS: &[(&str, Law)] = &[$((stringify!($law), $room::$law)),*];

        $(
            #[test]
            fn $law() {
                if let Err(broken) = $room::$law(&Policy::native()) {
                    panic!("{broken}");
                }
            }
        )*
    };
}

laws! {
    contract::nothing_of_an_old_verdict_stays,
    contract::a_verdict_is_one_that_its_question_has,
    contract::what_is_unknown_does_not_count,
    contract::a_boost_expires,
    contract::no_boost_for_who_is_running,
    contract::answer_0_leaves_the_local_scheduler_alone,
    fairness::queue_cycle_is_equation_1,
    fairness::queue_cycle_is_monotone_in_each_parameter,
    fairness::queue_cycle_bounds_the_number_of_boosts,
    fairness::a_refusal_ends_when_it_says,
    fairness::lag_allows_the_debt_that_it_is_told,
    fairness::shared_lag_is_the_sum_over_the_ranks_here,
    fairness::only_what_is_newer_boosts,
    fairness::calibrated_bounds_the_debt,
    fairness::calibrated_starves_nobody,
    fairness::calibrated_never_refuses_a_lone_task,
    fairness::calibrated_boosts_who_sleeps,
    order::more_traffic_is_never_later,
    order::a_bias_is_bounded,
    order::the_first_four_are_their_mean,
    order::p_weighs_past_against_present,
    order::a_learned_p_follows_the_pattern,
    order::the_printed_reading_favours_the_used_up,
    order::pending_and_round_robin_order_as_they_say,
    order::veto_refuses_only_who_has_no_message,
    others::periodic_comes_again_after_its_period,
    others::boost_pending_asks_fairness,
    others::a_heartbeat_comes_only_from_the_quiet,
    others::a_matched_slice_ends_with_the_senders,
    others::a_fixed_slice_is_fixed,
    allocation::nobody_overtakes,
    allocation::fcfs_space_gives_cpus_once,
    allocation::gang_jobs_of_one_slot_share_no_cpu,
    allocation::each_slot_has_its_turn_and_no_other,
    allocation::a_lone_job_is_never_delayed,
}
