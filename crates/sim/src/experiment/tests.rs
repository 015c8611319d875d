// SPDX-License-Identifier: Apache-2.0
//! Reading, sweeping, recording and judging, on one small experiment.

use super::record::{self, Journal};
use super::*;

pub(super) const GOOD: &str = r#"
question = "Does it?"
source = "the tests"
seed = 1
replications = 3
sensitivity = "variant"
quick = { replications = 1, set = { "job.latency.workload.round_trips" = 5 }, only = { hogs = [0, 2] } }

[scenario]
policy = "implicit"
end = { job = "latency" }
[scenario.cluster]
nodes = 2
switch = "250us"
[scenario.local]
scheduler = "solaris-ts"
[scenario.network]
latency = "30us"
[[scenario.job]]
name = "latency"
workload = { kind = "latency", round_trips = 20 }
ranks = 2
[[scenario.job]]
name = "hog"
workload = { kind = "calcula" }
each_node = 1

[[factor]]
name = "variant"
[[factor.level]]
name = "base"
[[factor.level]]
name = "slow net"
set = { "network.latency" = "60us" }

[[factor]]
name = "hogs"
key = "job.hog.each_node"
values = [0, 1, 2]

[[factor]]
name = "wait"
key = "policy"
values = ["implicit", "uncoordinated"]

[[claim]]
id = "T.1"
text = "spinning is never faster"
job = "latency"
metric = "response_s"
ascending = { wait = ["implicit", "uncoordinated"] }

[[figure]]
name = "times"
title = "Times"
x = "hogs"
series = "wait"
job = "latency"
metric = "response_s"
"#;

fn good() -> Experiment {
    Experiment::parse(GOOD).unwrap()
}

/// A record of `plan` with response times by `value`.
pub(super) fn made(plan: &Plan, value: impl Fn(&[String], u64) -> f64) -> Record {
    let row = |run: record::Run| Row {
        levels: run.0.levels.clone(),
        replication: run.1,
        job: "latency".into(),
        values: metrics::METRICS
            .iter()
            .map(|_| Some(value(&run.0.levels, run.1)))
            .collect(),
        notes: Default::default(),
        scenario: sweep::fingerprint(&record::scenario_of(run)),
        revision: "r".into(),
    };
    Record {
        rows: record::runs(plan).map(row).collect(),
    }
}

fn verdict(claim: &str, value: impl Fn(&[String], u64) -> f64) -> Verdict {
    let text = GOOD.replace(
        "ascending = { wait = [\"implicit\", \"uncoordinated\"] }",
        claim,
    );
    let experiment = Experiment::parse(&text).unwrap();
    let plan = Plan::new(&experiment, false).unwrap();
    judge(
        &experiment,
        &plan,
        &made(&plan, value),
        &experiment.claims[0],
    )
    .verdict
}

#[test]
fn points_are_the_cross_product_and_the_first_factor_is_slowest() {
    let plan = Plan::new(&good(), false).unwrap();
    assert_eq!(plan.points.len(), 2 * 3 * 2);
    assert_eq!(plan.points[0].levels, ["base", "0", "implicit"]);
    assert_eq!(plan.points[1].levels, ["base", "0", "uncoordinated"]);
    assert_eq!(plan.points[11].levels, ["slow net", "2", "uncoordinated"]);
    assert_eq!(plan.points[0].scenario.jobs.len(), 1, "no hog at 0");
    let last = &plan.points[11].scenario;
    assert_eq!((last.jobs.len(), last.network.latency.ns()), (2, 60_000));
    let quick = Plan::new(&good(), true).unwrap();
    assert_eq!((quick.points.len(), quick.replications), (8, 1));
}

/// What is written instead of what, and what the refusal names.
const WRONG_LINES: &[(&str, &str, &str)] = &[
    ("question", "qestion", "qestion"),
    ("replications = 3", "replications = 0", "1 or more"),
    ("seed = 1", "", "seed"),
    (
        "sensitivity = \"variant\"",
        "sensitivity = \"wait\\nx\"",
        "no factor",
    ),
    ("nodes = 2", "node = 2", "node"),
    (
        "policy = \"implicit\"",
        "policy = \"implicit\"\nseed = 3",
        "leave it out",
    ),
    ("job.hog.each_node", "job.hogs.each_node", "hogs"),
    ("job.hog.each_node", "job.hog.each", "each"),
    ("values = [0, 1, 2]", "values = [0, 0]", "same name"),
    ("values = [0, 1, 2]", "values = [0, -1, 2]", "hogs=-1"),
    ("values = [0, 1, 2]", "", "key and values"),
    ("name = \"hogs\"", "name = \"job\"", "taken"),
    ("name = \"hogs\"", "name = \"cpu_s\"", "taken"),
    (
        "only = { hogs = [0, 2]",
        "only = { hogs = [0, 7]",
        "no level",
    ),
    (
        "latency.workload.round_trips",
        "latency.workload.trips",
        "trips",
    ),
    ("\"slow net\"", "\"slow net\"\nput = 1", "put"),
    (
        "metric = \"response_s\"",
        "metric = \"response\"",
        "no metric",
    ),
    (
        "job = \"latency\"\nmetric",
        "job = \"late\"\nmetric",
        "no job",
    ),
    ("ascending", "at_least = 1\nascending", "write one of"),
    ("ascending", "tolerance = 1.5\nascending", "fraction"),
    ("{ wait = [\"implicit\", ", "{ wait = [", "two levels"),
    (
        "\"uncoordinated\"]\n\n[[claim",
        "\"uncordinated\"]\n\n[[claim",
        "uncordinated",
    ),
    ("x = \"hogs\"", "x = \"hog\"", "no factor"),
    (
        "replications = 3",
        "replications = 9223372036854775807",
        "more than",
    ),
    (
        "{ replications = 1",
        "{ replications = 9223372036854775807",
        "more than",
    ),
    (
        "ascending = { wait = [\"implicit\", \"uncoordinated\"] }",
        "at_least = nan",
        "a number",
    ),
    (
        "ascending = { wait = [\"implicit\", \"uncoordinated\"] }",
        "at_most = inf",
        "a number",
    ),
    ("name = \"times\"", "name = \"../times\"", "names a file"),
    ("values = [\"implicit\"", "values = [\"no-such\"", "no-such"),
    (
        "key = \"policy\"\nvalues = [\"implicit\"",
        "key = \"policy\"\nvalues = [\"spin_block:20\"",
        "has no unit",
    ),
];

#[test]
fn every_wrong_line_is_refused_in_one_line_that_names_it() {
    for (from, to, said) in WRONG_LINES {
        assert!(GOOD.contains(from), "{from}");
        let why = Experiment::parse(&GOOD.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(why.contains(said) && !why.contains('\n'), "{to}: {why}");
    }
}

#[test]
fn fair_and_common_are_refused_where_unfair_points_could_help_a_claim() {
    for key in ["fair = 1.05", "common = ['hogs']"] {
        let with = format!("{key}\nascending");
        let why = Experiment::parse(&GOOD.replacen("ascending", &with, 1)).unwrap_err();
        assert!(why.to_string().contains("at_most alone"), "{key}: {why}");
    }
}

#[test]
fn relations_are_judged_at_every_point() {
    let hogs = |levels: &[String]| levels[1].parse::<f64>().unwrap();
    let spins = |levels: &[String]| levels[2] == "uncoordinated";
    let value = |levels: &[String], replication: u64| {
        let factor = if spins(levels) { 10.0 } else { 1.0 };
        factor * (1.0 + hogs(levels)) + replication as f64 - 1.0
    };
    for (claim, holds) in [
        ("ascending = { wait = ['implicit', 'uncoordinated'] }", true),
        ("ascending = { wait = ['uncoordinated', 'implicit'] }", false),
        ("rises_with = 'hogs'", true),
        ("falls_with = 'hogs'", false),
        ("at_least = 1", true),
        ("at_most = 29.9", false),
        ("at_most = 29.9\ntolerance = 0.01", true),
        ("at_least = 30\ntake = 'max'", true),
        ("at_least = 30\ntake = 'min'", false),
        ("where = { hogs = 0 }\nat_most = 10", true),
        ("where = { wait = 'uncoordinated' }\nagainst = { wait = 'implicit' }\nat_least = 10\nat_most = 10", true),
        ("where = { hogs = 2, wait = 'implicit' }\nagainst = { hogs = [0, 1] }\nat_least = 1.6", false),
        ("statistic = 'variation'\nat_most = 0.2", false),
        ("at_most = 3", false),
        ("at_most = 3\ncommon = ['wait']", true),
        ("at_most = 2.9\ncommon = ['wait']", false),
        ("at_least = 2.9\ntake = 'max'\ncommon = ['wait']", true),
        ("at_least = 3.1\ntake = 'max'\ncommon = ['wait']", false),
        ("at_most = 10\ncommon = ['wait', 'hogs']\nwhere = { hogs = [1, 2] }", true),
        ("at_most = 3\nfair = 3\nwhere = { wait = 'implicit' }", true),
        ("at_most = 3\nfair = 2.9\nwhere = { wait = 'implicit' }", false),
    ] {
        let expected = if holds { Verdict::Holds } else { Verdict::Fails };
        assert_eq!(verdict(claim, value), expected, "{claim}");
    }
}

/// Spinning is ten times faster here, with three times its share.
#[test]
fn speed_that_is_taken_from_others_is_no_rival_and_holds_no_claim() {
    let text = |claim: &str| {
        GOOD.replace(
            "ascending = { wait = [\"implicit\", \"uncoordinated\"] }",
            claim,
        )
    };
    let judged = |claim: &str| {
        let experiment = Experiment::parse(&text(claim)).unwrap();
        let plan = Plan::new(&experiment, false).unwrap();
        let mut record = made(&plan, |levels, _| match levels[2].as_str() {
            "implicit" => 10.0,
            _ => 1.0,
        });
        let f = metrics::named("fairness").unwrap();
        for row in &mut record.rows {
            let steals = row.levels[2] == "uncoordinated";
            row.values[f] = Some(if steals { 3.0 } else { 1.0 });
        }
        judge(&experiment, &plan, &record, &experiment.claims[0])
    };
    let implicit = "where = { wait = 'implicit' }\nagainst = { wait = 'uncoordinated', hogs = [0, 1] }\nat_most = 1";
    assert_eq!(judged(implicit).verdict, Verdict::Fails);
    let fair = format!("{implicit}\nfair = 1.05");
    assert_eq!(
        judged(&fair).verdict,
        Verdict::Unjudged,
        "nobody to compare with"
    );
    let both = fair.replace(
        "'uncoordinated', hogs",
        "['implicit', 'uncoordinated'], hogs",
    );
    assert_eq!(judged(&both).verdict, Verdict::Holds);
    let spins = judged("where = { wait = 'uncoordinated' }\nfair = 1.05\nat_most = 2");
    assert_eq!(spins.verdict, Verdict::Fails);
    assert!(
        spins.evidence.contains("more than its share"),
        "{}",
        spins.evidence
    );
}

#[test]
fn the_verdict_is_that_of_the_first_level_and_others_are_shown() {
    let experiment = good();
    let plan = Plan::new(&experiment, false).unwrap();
    let value = |levels: &[String], _| match (levels[0].as_str(), levels[2].as_str()) {
        ("base", "implicit") => 1.0,
        (_, "uncoordinated") => 2.0,
        _ => 3.0,
    };
    let judged = judge(
        &experiment,
        &plan,
        &made(&plan, value),
        &experiment.claims[0],
    );
    assert_eq!(judged.verdict, Verdict::Holds);
    assert_eq!(judged.elsewhere, [("slow net".to_owned(), Verdict::Fails)]);
    let mut record = made(&plan, value);
    record.rows.retain(|row| row.levels[0] != "base");
    let judged = judge(&experiment, &plan, &record, &experiment.claims[0]);
    assert_eq!(judged.verdict, Verdict::Unjudged);
}

#[test]
fn a_claim_may_ask_for_some_combination_of_levels_and_names_it() {
    let value = |levels: &[String], _| levels[1].parse::<f64>().unwrap() + 1.0;
    let some = "at_most = 2.5\nat_some = ['hogs']";
    assert_eq!(verdict(some, value), Verdict::Holds);
    assert_eq!(
        verdict("at_most = 2.5\nat_none = ['hogs']", value),
        Verdict::Fails
    );
    assert_eq!(
        verdict("at_most = 0\nat_some = ['hogs']", value),
        Verdict::Fails
    );
    assert_eq!(
        verdict("at_most = 0\nat_none = ['hogs']", value),
        Verdict::Holds
    );
    let text = GOOD.replace(
        "ascending = { wait = [\"implicit\", \"uncoordinated\"] }",
        some,
    );
    let experiment = Experiment::parse(&text).unwrap();
    let plan = Plan::new(&experiment, false).unwrap();
    let judged = judge(
        &experiment,
        &plan,
        &made(&plan, value),
        &experiment.claims[0],
    );
    assert_eq!(judged.evidence, "response_s: so at 2 of 3: hogs=0, hogs=1");
}

#[test]
fn a_record_survives_half_a_line_and_half_a_run() {
    let (experiment, dir) = (good(), tempfile::tempdir().unwrap());
    let (path, plan) = (
        dir.path().join("record.csv"),
        Plan::new(&experiment, false).unwrap(),
    );
    let mut all = made(&plan, |_, replication| replication as f64 / 3.0);
    all.rows.retain(|row| row.levels[1] == "0");
    let mut journal = Journal::open(&experiment, &path).unwrap();
    assert!(matches!(
        Journal::open(&experiment, &path),
        Err(record::RecordError::Busy(_))
    ));
    all.rows
        .iter()
        .for_each(|row| journal.append(std::slice::from_ref(row)).unwrap());
    drop(journal);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 3]).unwrap();
    let mut read = Record::read(&experiment, &path).unwrap();
    assert_eq!(read.rows, all.rows[..all.rows.len() - 1]);
    read.keep(&plan, Some("r"), &path).unwrap();
    assert_eq!(
        read.missing(&plan).len(),
        plan.points.len() * 3 - read.rows.len()
    );
    let mut journal = Journal::open(&experiment, &path).unwrap();
    journal.append(&all.rows[all.rows.len() - 1..]).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn rows_of_other_scenarios_or_revisions_are_refused() {
    let (experiment, path) = (good(), std::path::Path::new("record.csv"));
    let plan = Plan::new(&experiment, false).unwrap();
    let mut record = made(&plan, |_, _| 1.0);
    let why = record.keep(&plan, Some("s"), path).unwrap_err().to_string();
    assert!(why.contains("revision r"), "{why}");
    record.rows[0].scenario += 1;
    let why = record.keep(&plan, None, path).unwrap_err().to_string();
    assert!(why.contains("another scenario"), "{why}");
}

#[test]
fn the_order_of_the_rows_is_that_of_the_plan() {
    let (experiment, dir) = (good(), tempfile::tempdir().unwrap());
    let plan = Plan::new(&experiment, false).unwrap();
    let mut forwards = made(&plan, |_, r| r as f64);
    let mut backwards = forwards.clone();
    backwards.rows.reverse();
    let bytes = |record: &mut Record, name: &str| {
        let path = dir.path().join(name);
        record.write(&experiment, &plan, &path).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(
        bytes(&mut forwards, "a.csv"),
        bytes(&mut backwards, "b.csv")
    );
}
