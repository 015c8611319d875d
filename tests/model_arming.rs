// SPDX-License-Identifier: Apache-2.0
//! The waiting protocol, proved: `tests/model` explores every interleaving of
//! `shim/doorbell.h` under two store-buffer models. It must hold as it stands, and
//! must be seen to fail with any one of its parts taken out: a checker that never
//! goes red proves nothing.
#![allow(clippy::unwrap_used)] // helpers of tests

use cosched_tests::{c_program, root};
use std::process::{Command, Output};

/// What is taken out, the scenario that must show it, and as what.
const MUTANTS: [(&str, &str, &str); 8] = [
    ("NO_WAITER_FENCE", "one-ringer", "LOST WAKE-UP"),
    ("NO_RINGER_FENCE", "one-ringer", "LOST WAKE-UP"),
    ("NO_SECOND_PASS", "one-ringer", "LOST WAKE-UP"),
    ("NO_SEQ", "one-ringer", "LOST WAKE-UP"),
    ("TORN_CLAIM", "two-ringers", "DOUBLE CLAIM"),
    ("RING_ONLY_BEFORE_ARM", "rendezvous", "LOST WAKE-UP"),
    ("BARE_DISARM", "threads", "LOST WAKE-UP"),
    ("COUNTED_DISARM", "threads", "LOST WAKE-UP"),
];

const SCENARIOS: [&str; 9] = [
    "one-ringer",
    "timeout",
    "pieces",
    "stream",
    "two-ringers",
    "exchange",
    "rendezvous",
    "threads",
    "hand-over",
];

fn explore(flags: &[&str], scenario: Option<&str>) -> (Output, String) {
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("tests/model/explore.c");
    let flags = [&["-O1"], flags].concat();
    let output = Command::new(c_program(folder.path(), &source, &flags))
        .args(scenario)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

/// N of "... holds in N states ...".
fn states_of(line: &str) -> u64 {
    let words: Vec<&str> = line.split(' ').collect();
    let at = words
        .iter()
        .position(|word| word.starts_with("states"))
        .unwrap();
    words[at - 1].parse().unwrap()
}

#[test]
fn the_protocol_holds_in_every_interleaving() {
    let (output, text) = explore(&[], None);
    print!("{text}");
    assert_eq!(output.status.code(), Some(0), "{text}");
    for scenario in SCENARIOS {
        for order in ["TSO", "PSO"] {
            let start = format!("{scenario} {order}: holds in ");
            let line = text.lines().find(|line| line.starts_with(&start)).unwrap();
            assert!(states_of(line) > 50, "{line}");
        }
    }
}

#[test]
fn each_part_is_needed() {
    for (mutant, scenario, failure) in MUTANTS {
        let (output, text) = explore(&[&format!("-DCOS_MUTANT_{mutant}")], Some(scenario));
        print!("{mutant}: {text}");
        assert_eq!(
            output.status.code(),
            Some(1),
            "{mutant} in {scenario} was not found:\n{text}"
        );
        for order in ["TSO", "PSO"] {
            let found = format!("{scenario} {order}: {failure} after ");
            assert!(text.contains(&found), "{mutant}: no \"{found}\" in\n{text}");
        }
        assert!(
            text.contains("stores message"),
            "{mutant}: no timeline in\n{text}"
        );
    }
}

#[test]
fn an_unknown_scenario_is_refused() {
    let (output, text) = explore(&[], Some("no-such"));
    assert_eq!(output.status.code(), Some(2), "{text}");
}
