// SPDX-License-Identifier: Apache-2.0
//! sor: red-black successive over-relaxation, S1's nearest-neighbour job (section 4.1.2).
//!
//! A square grid in blocks of rows. Before each half sweep neighbours exchange their edge rows,
//! first upwards, then downwards; now and then all reduce a residual. The pattern is
//! that of workloads/sor.c, operation for operation.
//!
//! S1 gives the grid (128 x 128) and 7 nodes, neither iterations nor speed. Its
//! SPARCstation 2 at 40 MHz did some 4 MFLOPS in LINPACK, and a point takes about 7
//! operations: 1 to 2 us a point, 2 to 5 ms between exchanges. That is an estimate, so
//! an experiment varies `point`. A lap is one iteration as rank 0 sees it.

use super::{collective, lacking, too_few, Kind, Program, Step};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sor {
    /// Sweeps over the grid.
    pub iterations: u64,
    /// CPU time of one point.
    pub point: Span,
    /// Rows and columns of the grid.
    #[serde(default = "usual_size")]
    pub size: u32,
    /// So many iterations between two residuals; 0: none at all.
    #[serde(default = "usual_residual")]
    pub residual_every: u64,
}

fn usual_size() -> u32 {
    128
}

fn usual_residual() -> u64 {
    10
}

/// Bytes of a value.
const DOUBLE: u32 = 8;

struct Rank {
    it: Sor,
    done: u64,
}

impl Kind for Sor {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            done: 0,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        let needs = [
            (
                self.size >= ranks,
                "a row of the grid for each rank: raise size",
            ),
            (self.size <= 100_000, "a size of at most 100000"),
        ];
        too_few("sor", 2, ranks, threads).or_else(|| lacking("sor", &needs))
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        step.lap();
        if self.done == self.it.iterations {
            return step.exit();
        }
        self.done += 1;
        let rows = self.rows(step);
        for colour in 0..2 {
            self.exchange(step);
            let points = (rows * u64::from(self.it.size) + colour) / 2;
            step.compute(points * self.it.point.ns());
        }
        let every = self.it.residual_every;
        if every > 0 && self.done.is_multiple_of(every) {
            collective::allreduce(step, DOUBLE);
        }
    }
}

impl Rank {
    /// The first ranks have one more where it does not divide.
    fn rows(&self, step: &Step) -> u64 {
        let (share, rest) = (self.it.size / step.tasks, self.it.size % step.tasks);
        u64::from(share) + u64::from(step.task < rest)
    }

    /// Two MPI_Sendrecv: own first row up and theirs from below, own last row down and theirs from above.
    fn exchange(&self, step: &mut Step) {
        let bytes = DOUBLE * (self.it.size + 2);
        let above = step.task.checked_sub(1);
        let below = (step.task + 1 < step.tasks).then_some(step.task + 1);
        for (to, from) in [(above, below), (below, above)] {
            if let Some(to) = to {
                step.send(to, bytes);
            }
            if let Some(from) = from {
                step.recv(from);
            }
        }
    }
}
