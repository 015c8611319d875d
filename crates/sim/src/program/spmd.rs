// SPDX-License-Identifier: Apache-2.0
//! spmd: a grain of computation, then a collective, again and again.
//!
//! S1 tested regular grains only and asks for irregular codes (section 5.3). Here each rank draws
//! each grain, up to heavy-tailed ones, and the collective is any of ours. Constant grains
//! and the linear collective are S1's barrier but for who waits first. A lap is one
//! iteration as rank 0 sees it.

use super::{collective, lacking, too_few, varies, Kind, Program, Step, Varies};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spmd {
    /// How many iterations.
    pub iterations: u64,
    /// CPU time of each rank in each.
    pub grain: Span,
    /// How grains vary.
    #[serde(default)]
    pub varies: Varies,
    /// What follows a grain.
    pub collective: Collective,
    /// The size of its messages.
    #[serde(default = "super::one")]
    pub bytes: u32,
}

/// A collective of module [`collective`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collective {
    /// A barrier through the root.
    Linear,
    /// A barrier in a logarithmic number of rounds.
    Dissemination,
    /// Recursive doubling.
    Allreduce,
    /// Pairwise exchange.
    Alltoall,
}

struct Rank {
    it: Spmd,
    left: u64,
}

impl Kind for Spmd {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            left: self.iterations,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        too_few("spmd", 2, ranks, threads)
            .or_else(|| lacking("spmd", &[(self.varies.is_sound(), varies::SOUND)]))
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        step.lap();
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        let grain_ns = self.it.varies.draw(self.it.grain.ns(), step.random);
        step.compute(grain_ns);
        let bytes = self.it.bytes;
        match self.it.collective {
            Collective::Linear => {
                collective::linear_gather(step, bytes);
                collective::linear_release(step, bytes);
            }
            Collective::Dissemination => collective::dissemination(step, bytes),
            Collective::Allreduce => collective::allreduce(step, bytes),
            Collective::Alltoall => collective::alltoall(step, bytes),
        }
    }
}
