// SPDX-License-Identifier: Apache-2.0
//! master-slave: S4's synthetic job, in which some slaves reply and some do not (section 4.2).
//!
//! In each iteration the master (rank 0) sends to all slaves in turn; each computes; those of
//! even rank reply, those of odd rank do not; the master waits for the replies. The pattern is
//! that of workloads/master_slave.c. Who boosts by the receiving frequency of the past
//! cannot tell the two kinds apart, but only one is awaited.
//!
//! S4 has six slaves, one of each kind on each of three nodes: `ranks = 7` and
//! `placement = { nodes = [0, 1, 1, 2, 2, 3, 3] }`. Iterations, grain and size are not given.
//! Nothing holds the master back from a slave that does not reply: its messages pile up, as
//! in the daemons of PVM. A lap is one iteration of the master.

use super::{lacking, too_few, varies, Kind, Program, Step, Varies};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MasterSlave {
    /// How many iterations.
    pub iterations: u64,
    /// CPU time of a slave in each.
    pub grain: Span,
    /// How grains vary.
    #[serde(default)]
    pub varies: Varies,
    /// The size of a message to a slave.
    pub bytes: u32,
    /// The size of a reply.
    #[serde(default = "double")]
    pub reply: u32,
}

fn double() -> u32 {
    8
}

struct Rank {
    it: MasterSlave,
    left: u64,
}

impl Kind for MasterSlave {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            left: self.iterations,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        too_few("master-slave", 3, ranks, threads)
            .or_else(|| lacking("master-slave", &[(self.varies.is_sound(), varies::SOUND)]))
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        if step.task == 0 {
            step.lap();
        }
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        if step.task == 0 {
            (1..step.tasks).for_each(|to| step.send(to, self.it.bytes));
            (2..step.tasks).step_by(2).for_each(|from| step.recv(from));
            return;
        }
        step.recv(0);
        let grain_ns = self.it.varies.draw(self.it.grain.ns(), step.random);
        step.compute(grain_ns);
        if step.task.is_multiple_of(2) {
            step.send(0, self.it.reply);
        }
    }
}
