// SPDX-License-Identifier: Apache-2.0
//! `cosched sim` where something is wrong: it is refused or survived with one line, and nothing is lost.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

mod small;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};
use rustix::process::{Pid, Signal};
use small::{Small, SMALL};
use std::fs;
use std::process::Stdio;

#[test]
fn a_full_disk_loses_nothing_and_is_one_line() {
    let small = Small::new();
    let exe = assert_cmd::cargo::cargo_bin("cosched");
    let script = "ulimit -f 8; trap '' XFSZ; exec \"$0\" sim run --jobs 1 \"$1\"";
    let mut command = Command::new("sh");
    let run = command
        .args(["-c", script])
        .arg(exe)
        .arg(&small.path)
        .assert();
    let run = run.code(3).stderr(contains("run again to go on"));
    assert_eq!(
        run.get_output()
            .stderr
            .iter()
            .filter(|c| **c == b'\n')
            .count(),
        1
    );
    let kept = small.bytes("record.csv");
    assert!(kept.lines().count() > 2 && kept.ends_with('\n'));
    small.sim(&["run"]).code(0);
    let whole = Small::new();
    whole.sim(&["run"]).code(0);
    assert_eq!(small.bytes("record.csv"), whole.bytes("record.csv"));
}

/// Killed as it stands, or by ^C: in the middle of a run, a line or the last write.
#[test]
fn an_interrupted_sweep_goes_on_and_gives_the_same_bytes() {
    let more = SMALL.replacen("replications = 4", "replications = 20", 1);
    let whole = Small::of(&more);
    whole.sim(&["run"]).code(0);
    let small = Small::of(&more);
    let exe = assert_cmd::cargo::cargo_bin("cosched");
    for (lines, signal) in [(3, Signal::INT), (30, Signal::TERM), (60, Signal::KILL)] {
        let mut run = std::process::Command::new(&exe);
        let run = run.args(["sim", "run", "--jobs", "1"]).arg(&small.path);
        let mut run = run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let record = small.path.join("record.csv");
        let so_far = || {
            fs::read_to_string(&record)
                .unwrap_or_default()
                .lines()
                .count()
        };
        while so_far() < lines && run.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if run.try_wait().unwrap().is_none() {
            rustix::process::kill_process(Pid::from_child(&run), signal).unwrap();
        }
        run.wait().unwrap();
    }
    small.sim(&["run"]).code(0);
    assert_eq!(small.bytes("record.csv"), whole.bytes("record.csv"));
    assert_eq!(small.files(), ["experiment.toml", "record.csv"]);
}

#[test]
fn where_nothing_can_be_written_is_one_line() {
    let small = Small::new();
    small.sim(&["run", "--quick"]).code(0);
    let exe = assert_cmd::cargo::cargo_bin("cosched");
    for action in ["run --quick", "check --quick", "trace --out /dev/full"] {
        let script = format!("\"$0\" sim {action} \"$1\" > /dev/full");
        let mut command = Command::new("sh");
        let run = command
            .args(["-c", &script])
            .arg(&exe)
            .arg(&small.path)
            .assert();
        let stderr = &run.code(3).get_output().stderr.clone();
        assert_eq!(
            stderr.iter().filter(|c| **c == b'\n').count(),
            1,
            "{action}"
        );
    }
}

#[test]
fn a_record_of_another_experiment_is_refused_and_left_alone() {
    let small = Small::new();
    small.sim(&["run", "--quick"]).code(0);
    let before = small.bytes("quick.csv");
    fs::write(
        small.path.join("experiment.toml"),
        SMALL.replace("250us", "260us"),
    )
    .unwrap();
    for action in ["run", "check"] {
        let refused = small.sim(&[action, "--quick"]).code(2);
        refused.stderr(contains("another scenario").and(contains("remove it")));
    }
    assert_eq!(small.bytes("quick.csv"), before);
}

const SCHEDULER: &str = "scheduler = \"solaris-ts\"";
const POLICY: &str = "key = \"policy\"\nvalues = [\"uncoordinated\"";
const UNANSWERED: &str =
    "[[factor.level]]\nname = \"uncoordinated\"\nset = { policy = { wait = \"spin\" } }\n#";
const SHIFT: &str = "[[factor.level]]\nname = \"uncoordinated\"\nset = { policy = \"dcs-spin\", \"policy.fairness.e\" = 65 }\n#";

/// What is written instead of what, and what the refusal names.
const WRONG: &[(&str, &str, &str)] = &[
    ("nodes = 2", "nodes = 0", "1 or more"),
    ("\"250us\"", "250", "with its unit"),
    ("key = \"policy\"", "key = \"polcy\"", "polcy"),
    (
        "\"uncoordinated\", \"dcs",
        "\"uncordinated\", \"dcs",
        "did you mean",
    ),
    (
        "\"uncoordinated\", \"dcs",
        "\"spin_block:20\", \"dcs",
        "has no unit",
    ),
    (
        "replications = 4",
        "replications = 9223372036854775807",
        "more than",
    ),
    (
        "each_node = 1\n",
        "each_node = 1\nranks = 1\n",
        "leave those out",
    ),
    ("values = [0, 1, 2]", "values = [0, 4294967295]", "tasks"),
    (
        SCHEDULER,
        "scheduler = \"eevdf\"\nslice = \"200y\"",
        "at most",
    ),
    (
        SCHEDULER,
        "scheduler = \"solaris-ts\"\nslice = \"1ms\"",
        "slice",
    ),
    (
        POLICY,
        "key = \"policy.wait\"\nvalues = [\"uncoordinated\"",
        "uncoordinated",
    ),
    (
        POLICY,
        "key = \"policy.fairness\"\nvalues = [\"always\"",
        "nothing asks fairness",
    ),
    (POLICY, UNANSWERED, "all seven"),
    (POLICY, SHIFT, "out of range"),
];

#[test]
fn what_is_wrong_is_one_line() {
    for (from, to, said) in WRONG {
        let small = Small::of(&SMALL.replacen(from, to, 1));
        let refused = small
            .sim(&["run"])
            .code(2)
            .stdout(is_empty())
            .stderr(contains(*said));
        let stderr = &refused.get_output().stderr;
        assert_eq!(stderr.iter().filter(|c| **c == b'\n').count(), 1);
        assert_eq!(small.files(), ["experiment.toml"]);
    }
    let small = Small::new();
    small.sim(&["run", "--shard", "4/3"]).code(2);
    small
        .sim(&["trace", "--out", "/nowhere/x.json"])
        .code(3)
        .stderr(contains("/nowhere"));
    small
        .sim(&["trace", "--at", "hogs=7", "--out", "x.json"])
        .code(2)
        .stderr(contains("no level"));
}
