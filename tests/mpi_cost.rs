// SPDX-License-Identifier: Apache-2.0
//! What cosched adds to an MPI call that need not wait: instructions, counted by
//! callgrind, which does not depend on what else the machine does. The call is
//! the dearest of the common ones, MPI_Sendrecv, which has two peers to look at.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    job::{mpis, text, Job},
    need, tool,
};
use std::path::Path;

/// About 30 ns at 3 instructions per cycle and 3 GHz; measured 307.
const MOST_INSTRUCTIONS: u64 = 350;

const ROUNDS: [u64; 2] = [1_000, 6_000];

fn under_callgrind(program: &Path, rounds: u64) -> Job {
    Job::plain("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(rounds.to_string())
}

/// All instructions of a run.
fn collected(stderr: &[u8]) -> u64 {
    let stderr = text(stderr);
    let line = stderr.lines().find(|line| line.contains("Collected"));
    let number = line.and_then(|line| line.rsplit(' ').next());
    number
        .unwrap_or_else(|| panic!("no count: {stderr}"))
        .parse()
        .unwrap()
}

/// Instructions per round: of two runs, what the longer one adds.
fn per_round(run: impl Fn(u64) -> u64) -> u64 {
    let [short, long] = ROUNDS.map(run);
    (long - short) / (ROUNDS[1] - ROUNDS[0])
}

#[test]
fn a_call_costs_few_instructions_more() {
    let test = "mpi_cost::a_call_costs_few_instructions_more";
    if need(test, tool("valgrind")).is_none() {
        return;
    }
    for mpi in mpis(test) {
        let program = mpi.compile("self.c", "", &[]);
        let job = |rounds| under_callgrind(&program, rounds);
        let stock = per_round(|rounds| collected(&job(rounds).stock().stderr));
        let cosched = per_round(|rounds| {
            let ran = job(rounds).cosched();
            ran.report.assert_active(1);
            collected(&ran.output.stderr)
        });
        let added = cosched.saturating_sub(stock);
        assert!(
            added > 0,
            "{mpi:?}: nothing was added, so nothing was measured"
        );
        assert!(added <= MOST_INSTRUCTIONS, "{mpi:?}: {added} instructions");
    }
}
