// SPDX-License-Identifier: Apache-2.0
//! latency: two nodes repeatedly exchange a packet (S1, section 4.1.2).
//!
//! Rank 0 sends first; a lap is one round trip as rank 0 sees it. S1's timing calls are
//! part of the message costs of the scenario.

use super::{Kind, Program, Step};
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// How many round trips.
    pub round_trips: u64,
    /// The size of a packet.
    #[serde(default = "packet")]
    pub bytes: u32,
}

fn packet() -> u32 {
    128
}

/// One of the two ranks.
struct Rank {
    left: u64,
    bytes: u32,
    first: bool,
}

impl Kind for Latency {
    fn program(&self, task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            left: self.round_trips,
            bytes: self.bytes,
            first: task == 0,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        (ranks != 2 || threads != 1).then(|| "latency has two ranks of one thread".to_owned())
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        let peer = 1 - step.task;
        if self.left == 0 {
            if self.first {
                step.lap();
            }
            return step.exit();
        }
        self.left -= 1;
        if self.first {
            step.lap();
            step.send(peer, self.bytes);
            step.recv(peer);
        } else {
            step.recv(peer);
            step.send(peer, self.bytes);
        }
    }
}
