// SPDX-License-Identifier: Apache-2.0
//! barrier: a grain of computation, then a barrier, again and again (S1, section 4.1.2).
//!
//! The root's "passed barrier" message starts a grain on every node; each then
//! tells the root "at barrier". A lap is one iteration as the root sees it. With
//! `spread`, grains differ: uniform within that fraction around the mean.

use super::{collective, too_few, Kind, Program, Step};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// How many barriers.
    pub iterations: u64,
    /// CPU time between two barriers.
    pub grain: Span,
    /// Grains are uniform in grain * (1 - spread) .. grain * (1 + spread).
    #[serde(default)]
    pub spread: f64,
    /// The size of a message.
    #[serde(default = "super::one")]
    pub bytes: u32,
}

/// One rank.
struct Rank {
    it: Barrier,
    left: u64,
}

impl Kind for Barrier {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            left: self.iterations,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        too_few("barrier", 2, ranks, threads)
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        if self.left == 0 {
            step.lap();
            return step.exit();
        }
        self.left -= 1;
        step.lap();
        collective::linear_release(step, self.it.bytes);
        let mean = self.it.grain.ns() as f64;
        let off = self.it.spread * (2.0 * step.random.unit() - 1.0);
        step.compute((mean * (1.0 + off)) as u64);
        collective::linear_gather(step, self.it.bytes);
    }
}
