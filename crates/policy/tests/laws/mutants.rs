// SPDX-License-Identifier: Apache-2.0
//! Policy with one line spoilt: each mutant must break the law that is named
//! beside it. The line must be there exactly once, so that a change of policy/
//! does not quietly disarm its mutant.

use crate::policy::Policy;
use crate::LAWS;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

struct Mutant {
    header: &'static str,
    from: &'static str,
    to: &'static str,
    breaks: &'static str,
}

#[rustfmt::skip]
const MUTANTS: &[Mutant] = &[
    // a denial is skipped
    Mutant { header: "arrival.h", from: "cos_fairness(params, obs, task, job, out);", to: "cos_verdict(out, COS_ACT_BOOST, 0, 0); (void)task; (void)job;", breaks: "queue_cycle_bounds_the_number_of_boosts" },
    Mutant { header: "arrival.h", from: "cos_fairness(params, obs, task, job, out);", to: "cos_verdict(out, COS_ACT_BOOST, 0, 0); (void)task; (void)job;", breaks: "calibrated_starves_nobody" },
    Mutant { header: "periodic.h", from: "cos_fairness(params, obs, task, job, out);", to: "cos_verdict(out, COS_ACT_BOOST, 0, 0); (void)task; (void)job;", breaks: "boost_pending_asks_fairness" },
    Mutant { header: "fairness.h", from: "if (beyond_ns <= 0) {", to: "if (beyond_ns <= 0 || 1) {", breaks: "calibrated_bounds_the_debt" },
    Mutant { header: "fairness.h", from: "default:\n\t\tcos_verdict(out, COS_ACT_NONE,", to: "default:\n\t\tcos_verdict(out, COS_ACT_BOOST,", breaks: "answer_0_leaves_the_local_scheduler_alone" },
    // CPU time is charged or due wrongly
    Mutant { header: "fairness.h", from: "min_u64(obs->ran_ns, since_ns) : since_ns;", to: "min_u64(obs->ran_ns, since_ns) / 2 : since_ns;", breaks: "calibrated_bounds_the_debt" },
    Mutant { header: "fairness.h", from: "sat_mul(since_ns, 256)", to: "sat_mul(since_ns, 512)", breaks: "calibrated_bounds_the_debt" },
    Mutant { header: "fairness.h", from: "sat_mul(since_ns, 256)", to: "sat_mul(since_ns, 128)", breaks: "calibrated_never_refuses_a_lone_task" },
    Mutant { header: "fairness.h", from: "credit_ns + signed_ns(due_ns)", to: "credit_ns", breaks: "calibrated_boosts_who_sleeps" },
    // equation 1
    Mutant { header: "fairness.h", from: "(s64)arg[COS_QUEUE_CYCLE_E], -64", to: "-(s64)arg[COS_QUEUE_CYCLE_E], -64", breaks: "queue_cycle_is_equation_1" },
    Mutant { header: "fairness.h", from: ", e) >= need_ns", to: ", e) > need_ns", breaks: "queue_cycle_is_equation_1" },
    Mutant { header: "types.h", from: "return a > ~0ULL >> e ? ~0ULL : a << e;", to: "return a << e;", breaks: "queue_cycle_is_equation_1" },
    Mutant { header: "fairness.h", from: "sat_pow2(need_ns - 1, -e), 1)", to: "sat_pow2(need_ns, -e), 1)", breaks: "a_refusal_ends_when_it_says" },
    Mutant { header: "fairness.h", from: "obs->message_epoch > obs->cpu_epoch", to: "obs->message_epoch >= obs->cpu_epoch", breaks: "only_what_is_newer_boosts" },
    Mutant { header: "fairness.h", from: "obs->event == COS_EV_JOB_END ? 0 :", to: "0 ? 0 :", breaks: "shared_lag_is_the_sum_over_the_ranks_here" },
    Mutant { header: "fairness.h", from: "s64 beyond_ns = -signed_ns(max_debt_ns)", to: "s64 beyond_ns = signed_ns(max_debt_ns)", breaks: "lag_allows_the_debt_that_it_is_told" },
    // a boost has no end, or is for who runs
    Mutant { header: "arrival.h", from: "out->until_ns = sat_add(obs->now_ns, arg[COS_BOOST_LASTS_NS]);", to: "", breaks: "a_boost_expires" },
    Mutant { header: "periodic.h", from: "out->until_ns = sat_add(obs->now_ns, period_ns);", to: "", breaks: "periodic_comes_again_after_its_period" },
    Mutant { header: "arrival.h", from: "if (cos_is_running(obs)) {", to: "if (0) {", breaks: "no_boost_for_who_is_running" },
    Mutant { header: "periodic.h", from: "else if (cos_is_running(obs))", to: "else if (0)", breaks: "no_boost_for_who_is_running" },
    Mutant { header: "periodic.h", from: "COS_WHY_QUIET, 0);\n\ttask->w[COS_W_SENT_AT_NS] = max_u64(obs->now_ns, 1);", to: "COS_WHY_QUIET, 0);", breaks: "a_heartbeat_comes_only_from_the_quiet" },
    // what is unknown
    Mutant { header: "contract.h", from: "return (obs->known & fields) == fields;", to: "return (obs->known & fields) || fields;", breaks: "what_is_unknown_does_not_count" },
    // order
    Mutant { header: "order.h", from: "out->key = -signed_ns(printed ? sat_add", to: "out->key = signed_ns(printed ? sat_add", breaks: "more_traffic_is_never_later" },
    Mutant { header: "order.h", from: "worth_ns = min_u64(worth_ns, arg[COS_FREQUENCY_MAX_DEBT_NS]);", to: "", breaks: "a_bias_is_bounded" },
    Mutant { header: "order.h", from: "if (*nr < 4) {", to: "if (*nr < 1) {", breaks: "the_first_four_are_their_mean" },
    Mutant { header: "order.h", from: "sat_mul(a, p_ppm), sat_mul(b, COS_ONE_PPM - p_ppm)", to: "sat_mul(b, p_ppm), sat_mul(a, COS_ONE_PPM - p_ppm)", breaks: "p_weighs_past_against_present" },
    Mutant { header: "order.h", from: "div_or(sat_mul(*last_error, COS_ONE_PPM)", to: "div_or(sat_mul(*past_error, COS_ONE_PPM)", breaks: "a_learned_p_follows_the_pattern" },
    Mutant { header: "order.h", from: "if (used_up != printed) {", to: "if (0) {", breaks: "the_printed_reading_favours_the_used_up" },
    Mutant { header: "order.h", from: "!obs->nr_pending && obs->nr_pending_here", to: "obs->nr_pending_here", breaks: "veto_refuses_only_who_has_no_message" },
    Mutant { header: "order.h", from: "out->key = -(s64)obs->nr_pending;", to: "out->key = (s64)obs->nr_pending;", breaks: "pending_and_round_robin_order_as_they_say" },
    // quantum
    Mutant { header: "quantum.h", from: "max_u64(*until_ns, sat_add(", to: "min_u64(*until_ns, sat_add(", breaks: "a_matched_slice_ends_with_the_senders" },
    Mutant { header: "quantum.h", from: ", arg[COS_MATCH_MAX_NS]);", to: ", COS_NEVER_NS);", breaks: "a_matched_slice_ends_with_the_senders" },
    // allocation
    Mutant { header: "allocation.h", from: "if (taken > room && i)\n\t\t\tbreak;", to: "if (taken > room && i)\n\t\t\tcontinue;", breaks: "nobody_overtakes" },
    Mutant { header: "allocation.h", from: "taken += jobs[i].nr_ranks;", to: "taken += jobs[i].nr_ranks / 2;", breaks: "fcfs_space_gives_cpus_once" },
    Mutant { header: "allocation.h", from: "(u64)a->first_cpu + a->nr_cpus;", to: "(u64)a->first_cpu;", breaks: "gang_jobs_of_one_slot_share_no_cpu" },
    Mutant { header: "allocation.h", from: "sat_mul(sat_add(now, distance), slot_ns)", to: "sat_mul(sat_add(now, distance + 1), slot_ns)", breaks: "each_slot_has_its_turn_and_no_other" },
    Mutant { header: "allocation.h", from: "if (nr_slots <= 1) {", to: "if (0) {", breaks: "a_lone_job_is_never_delayed" },
];

pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// policy/ in @folder, with that line spoilt.
fn spoil(mutant: &Mutant, folder: &Path) {
    for entry in fs::read_dir(top().join("policy")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let header = folder.join(mutant.header);
    let text = fs::read_to_string(&header).unwrap();
    let places = text.matches(mutant.from).count();
    assert_eq!(places, 1, "{}: {:?}", mutant.header, mutant.from);
    fs::write(header, text.replacen(mutant.from, mutant.to, 1)).unwrap();
}

/// native.c over the headers in @folder, compiled with @warnings and loaded.
pub fn build(folder: &Path, warnings: &[&str]) -> Policy {
    let library = folder.join("policy.so");
    let native = top().join("crates/policy/native");
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-shared", "-fPIC"])
        .args(warnings)
        .arg("-I")
        .args([folder, "-I".as_ref(), &native, "-o".as_ref(), &library])
        .arg(native.join("native.c"))
        .status();
    assert!(status.unwrap().success());
    Policy::load(&library)
}

#[test]
fn every_mutant_breaks_its_law() {
    let mut kept = Vec::new();
    for mutant in MUTANTS {
        let folder = tempfile::tempdir().unwrap();
        spoil(mutant, folder.path());
        let policy = build(folder.path(), &["-w"]);
        let (name, law) = LAWS
            .iter()
            .find(|(name, _)| *name == mutant.breaks)
            .unwrap();
        if law(&policy).is_ok() {
            kept.push(format!(
                "{}: {:?} -> {:?} keeps {name}",
                mutant.header, mutant.from, mutant.to
            ));
        }
    }
    assert!(kept.is_empty(), "{}", kept.join("\n"));
}

/// Otherwise a law that fails for another reason would pass for a good one.
#[test]
fn what_is_not_spoilt_keeps_every_law() {
    let folder = tempfile::tempdir().unwrap();
    let same = Mutant {
        header: "types.h",
        from: "types.h - the words",
        to: "types.h - the words",
        breaks: "",
    };
    spoil(&same, folder.path());
    let policy = build(folder.path(), &["-w"]);
    for (name, law) in LAWS {
        assert_eq!(law(&policy), Ok(()), "{name}");
    }
}
