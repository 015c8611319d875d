// SPDX-License-Identifier: Apache-2.0
//! Many ranks on a node: more than one machine word of slots, up to the 1024 that are
//! promised. Each rank has a page slot, a doorbell and its own wake-up. A thousand ranks
//! are started with a toy MPI (toy.h says why); eighty with MPICH.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    job::{compile, number, Job, Mpi},
    need,
};

#[test]
fn a_thousand_ranks_join_and_are_woken_one_by_one() {
    const RANKS: usize = 1024;
    let toy = compile("cc", "toy.c", "libtoy", &["-shared", "-fPIC"]);
    let program = compile("cc", "many.c", "many", &[toy.to_str().unwrap()]);
    let ran = Job::plain(program).arg(RANKS.to_string()).cosched();
    assert_eq!(ran.stdout(), "token ok\n");
    ran.report.assert_active(RANKS);
    ran.report.assert_hook("ucp_worker_progress");
    ran.report.assert_none_missed();
    // The token's way: all but a few ranks slept before it came to them.
    let slept = |rank: &&serde_json::Value| number(rank, "nr_wakes") > 0;
    let nr_slept = ran.report.ranks().iter().filter(slept).count();
    assert!(nr_slept > RANKS * 9 / 10, "{nr_slept}");
}

/// Rank 0 waits for the last one, whose slot is in another word.
#[test]
fn a_rank_beyond_the_first_word_of_slots_is_awaited() {
    const RANKS: u32 = 80;
    let test = "mpi_many::a_rank_beyond_the_first_word_of_slots_is_awaited";
    if need(test, Mpi::Mpich.found()).is_none() {
        return;
    }
    let program = Mpi::Mpich.compile("late.c", "", &[]);
    let ways = ["recv", "ssend", "barrier"];
    let ran = Job::new(Mpi::Mpich, RANKS, program).args(ways).cosched();
    assert_eq!(ran.stdout(), "recv ok\nssend ok\nbarrier ok\n");
    ran.report.assert_active(RANKS as usize);
    ran.report.assert_none_missed();
    assert!(number(&ran.report.ranks()[0], "nr_wakes") >= 3);
}
