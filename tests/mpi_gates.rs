// SPDX-License-Identifier: Apache-2.0
//! The gates of every acceptance run: beside competitors, and with more ranks than
//! CPUs, at most 0.1 % of all sleeps end by the safety net with a message there, and
//! no more wake-ups are in vain than are useful.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::job::{mpis, Hog, Job, Mpi, Report};

const WORKLOADS: [(&str, &[&str]); 2] = [
    ("barrier", &["--iterations=3000", "--spins=20000"]),
    ("sor", &["--iterations=2000"]),
];

/// A pass of MPICH may send and does not tell, so that waiting ranks ring in vain while
/// they are in one collective: there the second gate is not reached.
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
        for (ranks, hogs) in [(2, 2), (4, 0), (4, 2)] {
            let collective = (mpi == Mpi::OpenMpi).then_some(COLLECTIVE);
            for (name, args) in WORKLOADS.into_iter().chain(collective) {
                sum.add(&run(mpi, ranks, hogs, name, args));
            }
        }
        println!("{mpi:?}: {sum:?}");
        assert!(sum.blocks > 5000, "{mpi:?}: {sum:?}: too few to tell");
        assert!(sum.missed * 1000 <= sum.blocks, "{mpi:?}: {sum:?}");
        assert!(sum.spurious <= sum.wakes - sum.spurious, "{mpi:?}: {sum:?}");
    }
}
