// SPDX-License-Identifier: Apache-2.0
//! Under stress: all that a scheduler fears at once (stress-ng), beside a user's job that
//! is coscheduled. Tasks begin and end by thousands, change CPUs, classes and priorities, wake each other by
//! whatever wakes. The scheduler stays, the daemon answers, the job goes on and is boosted, and when
//! it is over shares are as equal as ever. COSCHED_STRESS says for how many seconds (`cargo xtask soak`: 600).
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    coschedd::{ask, counted, install, job_of, jobs, state, wait_for, Coschedd, Running},
    inside::{self, numbers, spread, Check},
    need, tool,
};
use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const SECONDS: u64 = 30;
const USER: u32 = 1000;

/// What stress-ng does, by how many workers each. `mutex` and `hrtimers` are of real-time priority where root runs
/// them: they leave a twentieth of each CPU, and RCU stalls under any scheduler.
const STRESSORS: [(&str, &str); 22] = [
    ("cpu", "2"),
    ("switch", "2"),
    ("yield", "2"),
    ("resched", "1"),
    ("affinity", "2"),
    ("schedpolicy", "1"),
    ("nice", "1"),
    ("fork", "2"),
    ("vfork", "1"),
    ("clone", "1"),
    ("daemon", "1"),
    ("zombie", "1"),
    ("pthread", "1"),
    ("futex", "2"),
    ("sem", "1"),
    ("pipe", "2"),
    ("sockpair", "1"),
    ("udp", "1"),
    ("kill", "1"),
    ("sigq", "1"),
    ("timer", "1"),
    ("sleep", "1"),
];

const CHECKS: [Check<Coschedd>; 2] = [
    ("it schedules and boosts under stress", stressed),
    ("what stress leaves is a fair machine", fair_again),
];

#[test]
fn under_stress_it_goes_on() {
    let test = "under_stress_it_goes_on";
    if !inside::is_inside() && need(test, tool("stress-ng")).is_none() {
        return;
    }
    let timeout = Duration::from_secs(600 + 3 * seconds());
    inside::checks(test, timeout, open, &CHECKS);
}

fn seconds() -> u64 {
    inside::number_of(inside::STRESS, SECONDS)
}

fn open() -> Coschedd {
    install("");
    Coschedd::start()
}

fn stressed(daemon: &mut Coschedd) {
    let job = Running::job(USER, "auto", "pair", &["spin", "1000000"]);
    let boosts = || counted(&job_of(USER), "nr_boosts");
    wait_for("the job", || job_of(USER).is_some());
    let mut stress = start();
    let mut nr_boosts = Vec::new();
    let ended = loop {
        thread::sleep(Duration::from_secs(3));
        assert_eq!(
            (state().as_str(), daemon.ended()),
            ("enabled", None),
            "{}",
            daemon.said()
        );
        assert!(ask(&["status"]).status.success());
        nr_boosts.push(boosts());
        if let Some(ended) = stress.try_wait().unwrap() {
            break ended;
        }
    };
    println!(
        "NOTE {}s of stress, boosts so far: {nr_boosts:?}",
        seconds()
    );
    assert!(ended.success(), "stress-ng: {ended}");
    assert!(nr_boosts.first() < nr_boosts.last(), "{nr_boosts:?}");
    drop(job);
    wait_for("the job's end", || jobs().is_empty());
}

fn start() -> Child {
    let mut stress = Command::new("stress-ng");
    for (name, workers) in STRESSORS {
        stress.args([format!("--{name}"), workers.to_owned()]);
    }
    stress.args(["--timeout", &format!("{}s", seconds())]);
    stress.args(["--temp-path", "/run", "--quiet"]);
    stress.stdin(Stdio::null()).spawn().unwrap()
}

fn fair_again(daemon: &mut Coschedd) {
    let shares = numbers("hogs", &["3", "0", "0", "1", "1"]);
    assert!(
        shares.chunks(2).all(|pair| spread(pair) < 115),
        "{shares:?}"
    );
    assert_eq!(state(), "enabled", "{}", daemon.said());
}
