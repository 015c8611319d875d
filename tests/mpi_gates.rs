// SPDX-License-Identifier: Apache-2.0
//! The gates of every acceptance run: beside competitors, and with more ranks than
//! CPUs, at most 0.1 % of all sleeps end by the safety net with a message there, and
//! no more wake-ups are in vain than are useful.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::job::{mpis, Hog, Job, Mpi, Report};
use std::path::PathBuf;

const WORKLOADS: [(&str, &[&str]); 2] = [
    ("barrier", &["--iterations=3000", "--spins=20000"]),
    ("sor", &["--iterations=2000"]),
];

/// Each member of a collective may have sent to each.
const COLLECTIVE: (&str, &[&str]) = ("barrier", &["--iterations=3000", "--spins=20000", "--mpi"]);

/// Counters of many runs: some sleep a dozen times and some ten thousand.
#[derive(Debug, Default)]
struct Doorbells {
    blocks: u64,
    wakes: u64,
    missed: u64,
    spurious: u64,
}

impl Doorbells {
    fn add(&mut self, report: &Report) {
        self.blocks += report.sum("nr_blocks");
        self.wakes += report.sum("nr_wakes");
        self.missed += report.sum("nr_missed");
        self.spurious += report.sum("nr_spurious");
    }

    fn assert_gates(&self, mpi: Mpi) {
        println!("{mpi:?}: {self:?}");
        assert!(self.blocks > 5000, "{mpi:?}: {self:?}: too few to tell");
        assert!(self.missed * 1000 <= self.blocks, "{mpi:?}: {self:?}");
        assert!(
            self.spurious <= self.wakes - self.spurious,
            "{mpi:?}: {self:?}"
        );
    }
}

/// @hogs beside @ranks of @program.
fn run(mpi: Mpi, ranks: u32, hogs: usize, program: PathBuf, args: &[&str]) -> Report {
    let beside: Vec<Hog> = (0..hogs).map(|_| Hog::start()).collect();
    let ran = Job::new(mpi, ranks, program).args(args).cosched();
    drop(beside);
    ran.stdout();
    ran.report.assert_active(ranks as usize);
    ran.report
}

#[test]
fn doorbells_ring_when_they_must_and_seldom_else() {
    for mpi in mpis("mpi_gates::doorbells_ring_when_they_must_and_seldom_else") {
        let mut sum = Doorbells::default();
        for (ranks, hogs) in [(2, 2), (4, 0), (4, 2)] {
            for (name, args) in WORKLOADS {
                sum.add(&run(mpi, ranks, hogs, mpi.workload(name), args));
            }
        }
        sum.assert_gates(mpi);
    }
}

/// By themselves, so that no other workload's useful wake-ups hide theirs.
#[test]
fn collectives_ring_when_they_must_and_seldom_else() {
    for mpi in mpis("mpi_gates::collectives_ring_when_they_must_and_seldom_else") {
        let mut sum = Doorbells::default();
        for (ranks, hogs) in [(2, 2), (4, 0), (4, 2)] {
            let (name, args) = COLLECTIVE;
            sum.add(&run(mpi, ranks, hogs, mpi.workload(name), args));
        }
        sum.assert_gates(mpi);
    }
}

/// A row of a few bytes to some thousand, rung for once where it is small.
#[test]
fn exchanges_ring_when_they_must_and_seldom_else() {
    for mpi in mpis("mpi_gates::exchanges_ring_when_they_must_and_seldom_else") {
        let mut sum = Doorbells::default();
        for (ranks, hogs) in [(4, 0), (4, 2)] {
            let program = mpi.compile("borders.c", "", &[]);
            sum.add(&run(mpi, ranks, hogs, program, &["20000"]));
        }
        sum.assert_gates(mpi);
    }
}
