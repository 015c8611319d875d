// SPDX-License-Identifier: Apache-2.0
//! The gates of every acceptance run: beside competitors, and with more ranks than
//! CPUs, at most 0.1 % of all sleeps end by the safety net with a message there, and
//! hardly more wake-ups are in vain than are useful.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::job::{mpis, Hog, Job, Mpi, Report};

const WORKLOADS: [(&str, &[&str]); 2] = [
    ("barrier", &["--iterations=3000", "--spins=20000"]),
    ("sor", &["--iterations=2000"]),
];

/// Each member of a collective may have sent to each.
const COLLECTIVE: (&str, &[&str]) = ("barrier", &["--iterations=3000", "--spins=20000", "--mpi"]);

/// One pass of MPICH has from 0.25 to 1.02 wake-ups in vain per useful one, most of them sor's, 4 ranks beside 2 hogs.
const PASSES: usize = 3;

/// Ranks, and hogs beside them.
const CELLS: [(u32, usize); 3] = [(2, 2), (4, 0), (4, 2)];

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
        let useful = self.wakes - self.spurious;
        assert!(self.spurious * 10 <= useful * 11, "{mpi:?}: {self:?}");
    }
}

/// @hogs beside @ranks.
fn run(mpi: Mpi, ranks: u32, hogs: usize, name: &str, args: &[&str]) -> Report {
    let beside: Vec<Hog> = (0..hogs).map(|_| Hog::start()).collect();
    let ran = Job::new(mpi, ranks, mpi.workload(name))
        .args(args)
        .cosched();
    drop(beside);
    ran.stdout();
    ran.report.assert_active(ranks as usize);
    ran.report
}

#[test]
fn doorbells_ring_when_they_must_and_seldom_else() {
    for mpi in mpis("mpi_gates::doorbells_ring_when_they_must_and_seldom_else") {
        let mut sum = Doorbells::default();
        for (ranks, hogs) in CELLS.repeat(PASSES) {
            for (name, args) in WORKLOADS {
                sum.add(&run(mpi, ranks, hogs, name, args));
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
        for (ranks, hogs) in CELLS.repeat(PASSES) {
            let (name, args) = COLLECTIVE;
            sum.add(&run(mpi, ranks, hogs, name, args));
        }
        sum.assert_gates(mpi);
    }
}
