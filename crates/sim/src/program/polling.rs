// SPDX-License-Identifier: Apache-2.0
//! polling: receivers that do not sleep (S1, section 2: what implicit coscheduling cannot see).
//!
//! Rank 0 asks all others and waits for their answers, round after round. The others
//! compute, piece by piece, and look between two pieces whether they were asked: as
//! codes with infrequent or asynchronous communication do, and as the target of a one-sided
//! operation must where the network card cannot answer for it. They never wait, so
//! no wake-up ever gives them a CPU; only an arrival can. Large pieces are rare
//! looks. A lap is one round as rank 0 sees it.

use super::{lacking, too_few, Kind, Program, Step, ANY};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polling {
    /// How many rounds.
    pub rounds: u64,
    /// CPU time between two looks.
    pub piece: Span,
    /// CPU time of rank 0 between two rounds.
    #[serde(default)]
    pub grain: Span,
    /// The size of questions and answers.
    #[serde(default = "super::one")]
    pub bytes: u32,
}

/// Rank 0.
struct Asking {
    it: Polling,
    left: u64,
}

/// Another rank.
struct Looking {
    it: Polling,
    left: u64,
}

impl Kind for Polling {
    fn program(&self, task: u32) -> Box<dyn Program> {
        let (it, left) = (self.clone(), self.rounds);
        match task {
            0 => Box::new(Asking { it, left }),
            _ => Box::new(Looking { it, left }),
        }
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        let piece = self.piece > Span::ZERO;
        too_few("polling", 2, ranks, threads)
            .or_else(|| lacking("polling", &[(piece, "a piece above 0")]))
    }
}

impl Program for Asking {
    fn step(&mut self, step: &mut Step) {
        step.lap();
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        step.compute(self.it.grain.ns());
        (1..step.tasks).for_each(|to| step.send(to, self.it.bytes));
        (1..step.tasks).for_each(|_| step.recv(ANY));
    }
}

impl Program for Looking {
    fn step(&mut self, step: &mut Step) {
        if step.last_from != ANY {
            step.send(0, self.it.bytes);
            self.left -= 1;
        }
        if self.left == 0 {
            return step.exit();
        }
        step.compute(self.it.piece.ns());
        step.poll(0);
    }
}
