// SPDX-License-Identifier: Apache-2.0
//! S1's claims on a running Linux with the kernel body: those orderings that surely hold on two
//! emulated CPUs beside whatever else this machine does, from short runs. What holds less surely is measured with
//! more runs by `live`, and judged in docs/claims.md.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_loader::Body;
use cosched_tests::inside::{self, Check};
use cosched_tests::live::messages::Cell;
use cosched_tests::live::{attach, named, number, plan, Local, Row};
use std::time::Duration;

/// It takes a minute on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Runs of each side. The fastest are compared: other work on the host makes a run slower, and never faster.
const REPEATS: usize = 4;

const CHECKS: [Check<Guest>; 5] = [
    (
        "a polling receiver is boosted",
        polling_receivers_are_boosted,
    ),
    ("all threads are boosted", all_threads_are_boosted),
    ("latency: DCS is faster than spinning", latency),
    ("barrier: DCS is faster than spinning", barrier),
    ("wake-up preemption can be switched off", preemption),
];

/// The kernel body, while it is wanted.
struct Guest(Option<Body>);

#[test]
fn s1_claims_hold_where_two_cpus_allow() {
    inside::checks(
        "s1_claims_hold_where_two_cpus_allow",
        TIMEOUT,
        || Guest(attach(Local::Ours)),
        &CHECKS,
    );
}

impl Guest {
    /// The first row of a short run beside four hogs on each CPU.
    fn run(&mut self, program: &'static str, scheduler: &str, seconds: f64) -> Vec<Row> {
        let scheduler = named(scheduler);
        if scheduler.local == Local::Eevdf {
            self.0 = None;
        } else if self.0.is_none() {
            self.0 = attach(Local::Ours);
        }
        let cell = Cell {
            competitors: 4,
            seconds,
            ..Cell::of(program, scheduler)
        };
        cell.run(self.0.as_mut())
    }

    /// The least time of [`REPEATS`] runs.
    fn fastest_s(&mut self, program: &'static str, scheduler: &str) -> f64 {
        let mut once = || number(&self.run(program, scheduler, 1.0)[0], "response_s");
        let all = (0..REPEATS).map(|_| once());
        all.fold(f64::INFINITY, f64::min)
    }
}

/// S1.19: who never sleeps is boosted by what arrives; nobody is without DCS.
fn polling_receivers_are_boosted(guest: &mut Guest) {
    for (scheduler, is_boosted) in [
        ("ours:spin", false),
        ("ours:spin-block", false),
        ("dcs-spin", true),
        ("dcs-spin-block", true),
    ] {
        let boosts = number(&guest.run("poll", scheduler, 1.5)[0], "boosts");
        assert_eq!(boosts > 0.0, is_boosted, "{scheduler}: {boosts} boosts");
    }
}

/// S1.20: also the thread that no message is for.
fn all_threads_are_boosted(guest: &mut Guest) {
    let rows = guest.run("threads", "dcs-spin-block", 2.0);
    assert!(number(&rows[1], "boosts") > 0.0, "{rows:?}");
}

/// S1.1 and S1.2: with DCS+spin-block it is faster than by spinning alone under the same local scheduler. How it is
/// against EEVDF depends on what else the host does, since emulated CPUs run together only on an idle one.
fn latency(guest: &mut Guest) {
    faster_than_spinning(guest, "latency");
}

/// S1.2 and S1.4.
fn barrier(guest: &mut Guest) {
    faster_than_spinning(guest, "barrier");
}

fn faster_than_spinning(guest: &mut Guest, program: &'static str) {
    let [dcs, spins] = ["dcs-spin-block", "ours:spin"].map(|name| guest.fastest_s(program, name));
    println!("NOTE {program}: dcs-spin-block {dcs:.2}, spin {spins:.2}");
    assert!(dcs < spins, "{dcs} {spins}");
}

/// S1.13's switch: the kernel has it, and says so; what it does is measured by `live`.
fn preemption(_guest: &mut Guest) {
    let features = || std::fs::read_to_string("/sys/kernel/debug/sched/features").unwrap();
    for is in [false, true] {
        plan::preempt_on_wakeup(is);
        let words = features();
        let word = words
            .split_whitespace()
            .find(|word| word.ends_with("WAKEUP_PREEMPTION"));
        assert_eq!(
            word,
            Some(["NO_WAKEUP_PREEMPTION", "WAKEUP_PREEMPTION"][usize::from(is)])
        );
    }
}
