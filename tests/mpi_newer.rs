// SPDX-License-Identifier: Apache-2.0
//! MPIs newer than this machine's own, which `cargo xtask mpis` unpacks below target/mpis
//! from newer Debian suites: results do not change, each rank waits at the wait points
//! that the report names, sleeps, and is woken by its doorbell. One binary of the library
//! serves them all, and was built without looking at any.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    job::{built, compile, number, said, text, Hog, Job, Mpi},
    need,
};
use serde_json::Value;
use std::path::PathBuf;

const SUITES: [&str; 2] = ["trixie", "sid"];

/// One MPI of one suite.
#[derive(Clone, Copy, Debug)]
struct Newer {
    suite: &'static str,
    mpi: Mpi,
}

impl Newer {
    /// Those that were fetched; @test is skipped for one that was not.
    fn all(test: &str) -> Vec<Newer> {
        let each = |suite| [Mpi::OpenMpi, Mpi::Mpich].map(|mpi| Newer { suite, mpi });
        let all = SUITES.into_iter().flat_map(each);
        all.filter(|newer| need(test, newer.found()).is_some())
            .collect()
    }

    fn tool(self, name: &str) -> PathBuf {
        let tool = format!("mpis/{}/bin/{name}.{}", self.suite, self.mpi.name());
        built("").join("..").join(tool)
    }

    fn found(self) -> Result<(), String> {
        let (tool, Newer { suite, mpi }) = (self.tool("mpicc"), self);
        let missing = format!("{mpi:?} of {suite} was not fetched; type: cargo xtask mpis");
        tool.is_file().then_some(()).ok_or(missing)
    }

    fn job(self, ranks: u32, program: PathBuf) -> Job {
        let job = Job::plain(self.tool("mpirun")).arg("-n");
        job.arg(ranks.to_string()).arg(program)
    }

    fn workload(self, ranks: u32, name: &str) -> Job {
        let folder = format!("workloads/{}-{}", self.mpi.name(), self.suite);
        self.job(ranks, built(&folder).join(name))
    }
}

fn checksum(stdout: &str) -> Value {
    let line: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    line["checksum"].clone()
}

#[test]
fn a_workload_has_the_same_checksum() {
    for newer in Newer::all("mpi_newer::a_workload_has_the_same_checksum") {
        for ranks in [2, 4] {
            let job = newer.workload(ranks, "sor").arg("--iterations=30");
            let (stock, ran) = (job.stock(), job.cosched());
            let expected = checksum(&text(&stock.stdout));
            assert!(expected.is_string(), "{newer:?}: {expected}");
            assert_eq!(checksum(&ran.stdout()), expected, "{newer:?}");
            ran.report.assert_active(ranks as usize);
        }
    }
}

/// Rank 0 waits for a late peer in every way.
#[test]
fn a_rank_that_waits_sleeps_and_is_woken() {
    let ways = "recv probe wait ssend rendezvous barrier allreduce";
    let ways: Vec<&str> = ways.split(' ').collect();
    for newer in Newer::all("mpi_newer::a_rank_that_waits_sleeps_and_is_woken") {
        let kind = format!("{}-{}", newer.mpi.name(), newer.suite);
        let compiler = newer.tool("mpicc");
        let program = compile(compiler.to_str().unwrap(), "late.c", &kind, &[]);
        let ran = newer.job(2, program).args(&ways).cosched();
        assert_eq!(ran.stdout(), said(&ways), "{newer:?}");
        ran.report.assert_active(2);
        ran.report.assert_hook(newer.mpi.hook());
        ran.report.assert_none_missed();
        let waiter = &ran.report.ranks()[0];
        assert!(number(waiter, "nr_wakes") >= 7, "{newer:?}: {waiter}");
        let [blocked, spinning] = ["blocked_ns", "spinning_ns"].map(|name| number(waiter, name));
        assert!(blocked > spinning, "{newer:?}: {waiter}");
    }
}

/// Beside one busy process per rank.
#[test]
fn no_wake_up_is_missed_beside_competitors() {
    for newer in Newer::all("mpi_newer::no_wake_up_is_missed_beside_competitors") {
        let _hogs = [Hog::start(), Hog::start()];
        let job = newer.workload(2, "barrier");
        let ran = job.args(["--iterations=1000", "--spins=20000"]).cosched();
        ran.stdout();
        ran.report.assert_active(2);
        ran.report.assert_hook(newer.mpi.hook());
        ran.report.assert_none_missed();
        assert!(ran.report.sum("nr_wakes") > 0, "{newer:?}");
    }
}
