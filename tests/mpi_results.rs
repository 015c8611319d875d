// SPDX-License-Identifier: Apache-2.0
//! Nothing that a program computes changes under `cosched run`: built-in workloads,
//! LAMMPS, Fortran's three interfaces and mpi4py print what they print without it, and
//! the report shows that their ranks took part.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    installed,
    job::{installation_of, mpis, number, said, text, Job, Mpi, Report, NOBODY},
    need, root, superuser,
};
use serde_json::Value;
use std::{fs, path::Path};

/// Few iterations: on fewer CPUs than ranks a stock MPICH takes a slice for each message.
const WORKLOADS: [(&str, &[&str]); 5] = [
    ("sor", &["--iterations=30"]),
    ("barrier", &["--iterations=100", "--spins=1000"]),
    ("barrier", &["--iterations=100", "--spins=1000", "--mpi"]),
    ("latency", &["--iterations=100"]),
    ("master_slave", &["--iterations=100", "--spins=1000"]),
];

/// The checksum in the last line of a workload.
fn checksum(stdout: &str) -> String {
    let line: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default())
        .unwrap_or_else(|why| panic!("no result ({why}): {stdout}"));
    line["checksum"].as_str().unwrap().to_owned()
}

#[test]
fn workloads_have_the_same_checksum() {
    for mpi in mpis("mpi_results::workloads_have_the_same_checksum") {
        for ranks in [2, 4] {
            for (name, args) in WORKLOADS {
                let job = Job::new(mpi, ranks, mpi.workload(name)).args(args);
                let ran = job.cosched();
                let stock = text(&job.stock().stdout);
                assert_eq!(checksum(&ran.stdout()), checksum(&stock), "{job:?}");
                ran.report.assert_active(ranks as usize);
            }
        }
    }
}

/// Thermodynamic output, which has every digit that LAMMPS computed, without its times.
fn thermo(stdout: &str) -> Vec<String> {
    let lines = stdout
        .lines()
        .skip_while(|line| !line.starts_with("Step Temp"));
    let table = lines.take_while(|line| !line.starts_with("Loop time"));
    table.map(str::to_owned).collect()
}

fn melt(ranks: u32, lammps: &Path) -> Job {
    let options = ["-log", "none", "-var", "steps", "100", "-in"];
    let input = root().join("workloads/melt.lammps");
    Job::new(Mpi::OpenMpi, ranks, lammps)
        .args(options)
        .arg(input)
}

fn assert_melts_alike(job: &Job, ranks: usize) -> Report {
    let ran = job.cosched();
    let (with, without) = (thermo(&ran.stdout()), thermo(&text(&job.stock().stdout)));
    assert!(with.len() >= 3, "{with:?}");
    assert_eq!(with, without, "{job:?}");
    ran.report.assert_active(ranks);
    ran.report
}

#[test]
fn lammps_computes_the_same() {
    let Some(lammps) = need("mpi_results::lammps_computes_the_same", installed("lmp")) else {
        return;
    };
    for ranks in [2, 4] {
        let report = assert_melts_alike(&melt(ranks, &lammps), ranks as usize);
        report.assert_hook(Mpi::OpenMpi.hook());
    }
}

#[test]
fn lammps_of_an_ordinary_user_computes_the_same() {
    let test = "mpi_results::lammps_of_an_ordinary_user_computes_the_same";
    let (Some(lammps), Some(())) = (need(test, installed("lmp")), need(test, superuser())) else {
        return;
    };
    let home = installation_of(NOBODY);
    let input = home.path().join("in.melt");
    fs::copy(root().join("workloads/melt.lammps"), &input).unwrap();
    let job = Job::new(Mpi::OpenMpi, 4, lammps)
        .args(["-log", "none", "-var", "steps", "100", "-in"])
        .arg(&input)
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .as_user(NOBODY, &home.path().join("cosched"));
    assert_melts_alike(&job, 4);
}

#[test]
fn fortran_computes_the_same_through_each_interface() {
    for mpi in mpis("mpi_results::fortran_computes_the_same_through_each_interface") {
        for interface in ["MPIF_H", "USE_MPI", "USE_MPI_F08"] {
            let program = mpi.compile("three.F90", interface, &[]);
            let report = Job::new(mpi, 2, program).same_with_and_without();
            report.assert_active(2);
            report.assert_hook(mpi.hook());
            // 100 Sendrecv, Bcast, Irecv, Send, Wait, Allreduce.
            assert!(number(&report.ranks()[0], "nr_calls") >= 105, "{interface}");
            assert!(report.sum("nr_blocks") > 0, "{interface}");
        }
    }
}

#[test]
fn mpi4py_computes_the_same() {
    let python = Path::new("/usr/bin/python3");
    let found = std::process::Command::new(python)
        .args(["-c", "import mpi4py"])
        .status()
        .is_ok_and(|status| status.success());
    let found = found.then_some(()).ok_or("python3-mpi4py is not installed");
    if need("mpi_results::mpi4py_computes_the_same", found).is_none() {
        return;
    }
    let script = root().join("tests/mpi/objects.py");
    let report = Job::new(Mpi::OpenMpi, 3, python)
        .arg(script)
        .same_with_and_without();
    report.assert_active(3);
    report.assert_hook(Mpi::OpenMpi.hook());
    assert!(report.sum("nr_blocks") > 0);
}

/// One wait of 300 ms costs at most this many sleeps; the safety net alone takes nine.
const SLEEPS: u64 = 15;

/// ... and so many verdicts that end a spin: what the net ends is not judged anew.
const VERDICTS: u64 = 5;

#[test]
fn a_rank_that_waits_sleeps_and_is_woken() {
    for mpi in mpis("mpi_results::a_rank_that_waits_sleeps_and_is_woken") {
        let program = mpi.compile("late.c", "", &[]);
        for ways in [
            &["recv"][..],
            &[
                "probe",
                "wait",
                "ssend",
                "rendezvous",
                "barrier",
                "allreduce",
            ],
        ] {
            let ran = Job::new(mpi, 2, &program).args(ways).cosched();
            assert_eq!(ran.stdout(), said(ways));
            ran.report.assert_active(2);
            ran.report.assert_hook(mpi.hook());
            let waiter = &ran.report.ranks()[0];
            let blocks = number(waiter, "nr_blocks");
            let nr_waits = ways.len() as u64;
            assert!((nr_waits..=SLEEPS * nr_waits).contains(&blocks), "{waiter}");
            let ended = |why: &str| number(&waiter["why"], why);
            let verdicts = ended("limit") + ended("peer_off");
            assert!(verdicts <= VERDICTS * nr_waits, "{waiter}");
            assert!(number(waiter, "nr_wakes") >= nr_waits, "{waiter}");
            assert!(
                number(waiter, "blocked_ns") > number(waiter, "spinning_ns"),
                "{waiter}"
            );
        }
    }
}
