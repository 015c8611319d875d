// SPDX-License-Identifier: Apache-2.0
//! A rank is one process of many: what it starts is not a rank, what interrupts it
//! is served while it sleeps, and what ends it ends it as without cosched, with nothing
//! left behind.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    job::{assert_nothing_left, compile, mpis, text, Job, Mpi},
    need,
};
use serde_json::Value;

#[test]
fn what_a_rank_starts_is_no_rank() {
    for mpi in mpis("mpi_processes::what_a_rank_starts_is_no_rank") {
        let program = mpi.compile("processes.c", "", &["-ldl"]);
        let library = mpi.compile("called.c", "", &["-shared", "-fPIC"]);
        let ran = Job::new(mpi, 2, program).arg(library).cosched();
        let said = "fork ok\nprograms ok\nenvironment ok\nlibrary ok\n";
        assert_eq!(ran.stdout(), said);
        ran.report.assert_active(2);
    }
}

#[test]
fn handlers_run_while_their_rank_is_blocked() {
    for mpi in mpis("mpi_processes::handlers_run_while_their_rank_is_blocked") {
        let job = Job::new(mpi, 2, mpi.compile("endings.c", "", &[])).arg("signals");
        let ran = job.cosched();
        assert_eq!(ran.stdout(), "handler ok\nalarms ok\n");
        assert!(ran.report.sum("nr_blocks") > 0);
    }
}

#[test]
fn a_blocked_rank_is_ended_as_without_cosched() {
    for mpi in mpis("mpi_processes::a_blocked_rank_is_ended_as_without_cosched") {
        let program = mpi.compile("endings.c", "", &[]);
        for ending in ["term", "abort"] {
            let variable = format!("COSCHED_TEST_{ending}_{}", std::process::id());
            let job = Job::new(mpi, 3, &program).arg(ending).env(&variable, "1");
            let ran = job.cosched();
            assert_nothing_left(&format!("{variable}=1"));
            assert_eq!(ran.output.status, job.stock().status, "{job:?}");
            assert_eq!(ran.report.ranks().len(), 3);
        }
    }
}

/// MPICH's launcher refuses to spawn on Debian 12 without cosched too.
#[test]
fn spawned_jobs_wait_for_their_parents() {
    let test = "mpi_processes::spawned_jobs_wait_for_their_parents";
    if need(test, Mpi::OpenMpi.found()).is_none() {
        return;
    }
    let program = Mpi::OpenMpi.compile("spawn.c", "", &[]);
    let ran = Job::new(Mpi::OpenMpi, 2, program).cosched();
    assert_eq!(ran.stdout(), "spawn ok\n");
    assert_eq!(ran.report.ranks().len(), 4);
    assert_eq!(ran.report.nr_jobs(), 2);
    assert!(ran
        .report
        .ranks()
        .iter()
        .all(|rank| rank["state"] == "done"));
}

/// A profiler of PMPI's kind counts what it counts without us, wherever it stands.
#[test]
fn profilers_stay_in_the_chain() {
    for mpi in mpis("mpi_processes::profilers_stay_in_the_chain") {
        let program = mpi.compile("late.c", "", &[]);
        let library = mpi.compile("count.c", "", &["-shared", "-fPIC"]);
        let name = library.to_str().unwrap();
        let linked = mpi.compile("late.c", "LINKED", &[name]);
        let in_front = format!("LD_PRELOAD={name}:$LD_PRELOAD exec \"$@\"");
        let ways = ["recv", "probe", "barrier"];
        let behind = Job::new(mpi, 2, &program).env("LD_PRELOAD", name);
        let before = Job::new(mpi, 2, "sh").args(["-c", &in_front, "sh"]);
        let said = "recv ok\nprobe ok\nbarrier ok\ncounted 0 sends, 2 receives, 4 barriers\n";
        for job in [behind, Job::new(mpi, 2, linked), before.arg(&program)] {
            let ran = job.args(ways).cosched();
            assert_eq!(ran.stdout(), said);
            // In front of us it takes the calls that it counts for itself, but not the end.
            let ended = |rank: &Value| rank["state"] == "done";
            assert_eq!(ran.report.ranks().len(), 2);
            assert!(ran.report.ranks().iter().all(ended));
            assert!(ran.report.sum("nr_calls") > 0);
        }
    }
}

/// Each run has a directory of its own: it must not read what the last one's daemon said.
const PVM: &str = r#"
PVM_TMP=$(mktemp -d -p "$PVM_TMP"); export PVM_TMP
pvmd -n127.0.0.1 >"$PVM_TMP/said" &
until PVMSOCK=$(head -n 1 "$PVM_TMP/said") && [ -n "$PVMSOCK" ]; do sleep 0.05; done
export PVMSOCK
"$1"; code=$?
echo halt | pvm >"$PVM_TMP/console"
wait
exit $code
"#;

/// PVM blocks by itself: its daemon and its tasks are no ranks.
#[test]
fn pvm_is_left_alone() {
    let test = "mpi_processes::pvm_is_left_alone";
    let found = cosched_tests::installed("pvmd").and(cosched_tests::installed("pvm"));
    if need(test, found).is_none() {
        return;
    }
    let program = compile("cc", "pvm.c", "pvm", &["-lpvm3"]);
    let folder = tempfile::tempdir().unwrap();
    let job = Job::plain("sh")
        .args(["-c", PVM, "sh"])
        .arg(program)
        .env("PVM_ALLOW_ROOT", "1")
        .env("PVM_TMP", folder.path());
    let report = job.same_with_and_without();
    assert_eq!(report.ranks().len(), 0);
    assert_eq!(text(&job.stock().stdout), "sum of squares 328350\n");
}
