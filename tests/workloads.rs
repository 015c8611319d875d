// SPDX-License-Identifier: Apache-2.0
//! The workload without MPI: it computes the same however its ranks are scheduled, waits
//! in `sched_yield` alone, and leaves no rank behind.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    installed,
    job::{built, limited, mpis, text, Hog},
    need,
};
use serde_json::Value;
use std::{
    collections::HashSet,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Few: beside competitors a round takes slices.
const ROUNDS: &str = "50";

/// The one of any MPI: it links none.
fn program(test: &str, name: &str) -> Option<PathBuf> {
    let mpi = mpis(test).into_iter().next()?;
    Some(built(&format!("workloads/{}/{name}", mpi.name())))
}

fn said(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn yielders_compute_the_same_with_and_without_competitors() {
    let test = "workloads::yielders_compute_the_same_with_and_without_competitors";
    let Some(program) = program(test, "yielders") else {
        return;
    };
    for workers in ["2", "3"] {
        let run = |more: &[&str]| {
            let mut command = limited(&program);
            let options = ["--workers", workers, "--rounds", ROUNDS, "--spins", "1000"];
            said(command.args(options).args(more))
        };
        let (free, pinned) = (run(&[]), run(&["--pin"]));
        let hogs = [Hog::start(), Hog::start()];
        let beside = run(&["--pin"]);
        drop(hogs);
        for other in [&pinned, &beside] {
            assert_eq!(other["checksum"], free["checksum"]);
        }
        assert_eq!(free["ranks"].to_string(), workers);
        assert!(free["yields"].as_u64().unwrap() > 0, "{free}");
    }
}

/// From the first to the last round nothing else is called; then the CPU time is read.
#[test]
fn yielders_wait_in_sched_yield_alone() {
    let test = "workloads::yielders_wait_in_sched_yield_alone";
    let strace = need(test, installed("strace"));
    let (Some(strace), Some(program)) = (strace, program(test, "yielders")) else {
        return;
    };
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = limited(strace);
    command
        .args(["-f", "-qq", "-o"])
        .arg(log.path())
        .arg(program);
    said(command.args(["--rounds", ROUNDS, "--spins", "1000"]));
    let log = fs::read_to_string(log.path()).unwrap();
    let calls: Vec<(&str, &str)> = log.lines().filter_map(|l| l.split_once(' ')).collect();
    let yields = |call: &str| call.contains("sched_yield");
    let ranks = calls.iter().filter(|(_, call)| yields(call));
    let ranks: HashSet<&str> = ranks.map(|(rank, _)| *rank).collect();
    assert!(!ranks.is_empty(), "{log}");
    for rank in ranks {
        let own = calls.iter().filter(|(pid, _)| *pid == rank);
        let mut waiting = own.map(|(_, call)| *call).skip_while(|call| !yields(call));
        let other = waiting.find(|call| !yields(call)).unwrap();
        assert!(other.contains("clock_gettime"), "{other}");
    }
}

/// Beside a hog the receiver is off its CPU for some messages, and no message is late by nothing.
#[test]
fn arrivals_tell_how_late_a_message_is() {
    let test = "workloads::arrivals_tell_how_late_a_message_is";
    let Some(program) = program(test, "arrivals") else {
        return;
    };
    let options = [
        "--messages",
        "50",
        "--least-gap-ms",
        "1",
        "--most-gap-ms",
        "9",
    ];
    let hogs = [Hog::start(), Hog::start(), Hog::start(), Hog::start()];
    let beside = said(limited(&program).args(["--pin"]).args(options));
    drop(hogs);
    let number = |key: &str| beside[key].as_f64().unwrap();
    assert_eq!(number("messages"), 50.0);
    assert!((1.0..=50.0).contains(&number("off_cpu")), "{beside}");
    let quantiles = ["p50_s", "p90_s", "p99_s", "max_s"].map(number);
    assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{beside}");
}

#[test]
fn a_killed_rank_ends_the_job() {
    let test = "workloads::a_killed_rank_ends_the_job";
    let Some(program) = program(test, "yielders") else {
        return;
    };
    let mut job = Command::new(&program);
    job.args(["--rounds", "1000000000", "--spins", "1000"]);
    let job = job.stderr(Stdio::piped()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", job.id());
    let ranks = loop {
        let ranks = fs::read_to_string(&children).unwrap();
        if ranks.split_whitespace().count() == 2 {
            break ranks;
        }
    };
    let pids = ranks.split_whitespace().map(|pid| pid.parse().unwrap());
    let pids: Vec<_> = pids.filter_map(rustix::process::Pid::from_raw).collect();
    rustix::process::kill_process(pids[1], rustix::process::Signal::KILL).unwrap();
    let output = job.wait_with_output().unwrap();
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("signal 9; the others"), "{complaint}");
    while rustix::process::test_kill_process(pids[0]).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn calcula_forks_as_many_as_it_is_told() {
    let test = "workloads::calcula_forks_as_many_as_it_is_told";
    let Some(program) = program(test, "calcula") else {
        return;
    };
    let options = ["--workers", "3", "--seconds", "0.01", "--spins", "1000"];
    let line = said(limited(program).args(options));
    assert_eq!(line["rank_share"].as_array().unwrap().len(), 3);
    assert_eq!((&line["ranks"], &line["units"]), (&3.into(), &300.into()));
}
