// SPDX-License-Identifier: Apache-2.0
//! Whatever a program does with MPI, nobody sleeps for ever and nothing arrives
//! wrong: more ranks than CPUs, on shared memory and on TCP. The programs know their own
//! results.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::job::{mpis, number, said, Job, Mpi, PATTERNS};

const RANKS: u32 = 4;

/// Source, flags, and what rank 0 says is right.
const PROGRAMS: [(&str, &[&str], &[&str]); 4] = [
    ("patterns.c", &[], &PATTERNS),
    ("onesided.c", &[], &["fence", "locks", "active target"]),
    (
        "threads.c",
        &["-fopenmp", "-pthread"],
        &["exchange", "one after another", "openmp"],
    ),
    ("borders.c", &[], &["borders", "beside a backlog"]),
];

/// MPICH 4.0 over sockets must not hang in MPI_Finalize by itself: see check.h.
const APART: &str = "APART";

/// Sockets only; a rank's packets then wake it.
fn over_tcp(mpi: Mpi, job: Job) -> Job {
    match mpi {
        Mpi::OpenMpi => job.env("OMPI_MCA_btl", "self,tcp"),
        Mpi::Mpich => job.env("MPIR_CVAR_NOLOCAL", "1").env("UCX_TLS", "tcp"),
    }
}

fn assert_right(test: &str, (source, flags, what): (&str, &[&str], &[&str])) {
    for mpi in mpis(test) {
        let ran = Job::new(mpi, RANKS, mpi.compile(source, "", flags)).cosched();
        assert_eq!(ran.stdout(), said(what));
        ran.report.assert_active(RANKS as usize);
        ran.report.assert_hook(mpi.hook());
    }
}

#[test]
fn requests_and_handles() {
    assert_right("mpi_patterns::requests_and_handles", PROGRAMS[0]);
}

#[test]
fn one_sided() {
    assert_right("mpi_patterns::one_sided", PROGRAMS[1]);
}

#[test]
fn threads() {
    assert_right("mpi_patterns::threads", PROGRAMS[2]);
}

#[test]
fn exchanges() {
    assert_right("mpi_patterns::exchanges", PROGRAMS[3]);
}

#[test]
fn over_sockets() {
    for mpi in mpis("mpi_patterns::over_sockets") {
        let (source, flags, what) = PROGRAMS[0];
        let job = Job::new(mpi, RANKS, mpi.compile(source, APART, flags));
        let ran = over_tcp(mpi, job).cosched();
        assert_eq!(ran.stdout(), said(what));
        ran.report.assert_active(RANKS as usize);
    }
}

/// The net of 50 ms must not be what ends a wait: the packet is.
#[test]
fn a_packet_wakes_its_receiver() {
    for mpi in mpis("mpi_patterns::a_packet_wakes_its_receiver") {
        let job = Job::new(mpi, 2, mpi.compile("late.c", APART, &[]));
        let ways = ["recv", "probe", "wait", "ssend", "barrier", "allreduce"];
        let ran = over_tcp(mpi, job).args(ways).cosched();
        assert_eq!(ran.stdout(), said(&ways));
        ran.report.assert_hook("poll");
        let waiter = &ran.report.ranks()[0];
        assert!(number(waiter, "nr_wakes") >= ways.len() as u64, "{waiter}");
        // A sleep may end by time just as a packet comes.
        assert!(ran.report.sum("nr_missed") <= 1, "{waiter}");
    }
}
