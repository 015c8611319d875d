// SPDX-License-Identifier: Apache-2.0
//! is: NAS integer sort (Bailey et al., The NAS Parallel Benchmarks, 1991; S4, section 4).
//!
//! In each iteration a rank counts its keys into buckets, all reduce the counts, tell
//! each other how much will come, exchange the keys, and rank what they got: the
//! collectives of NPB's MPI version, in its order. Keys are dealt out evenly: NPB chooses the
//! buckets of each rank so that they nearly are.
//!
//! Class A has 2^23 keys of 4 bytes, 10 iterations and 2^10 buckets. `key` follows from the
//! share of communication: with 38 % (S5, table 1: 8 nodes, Fast Ethernet) and 3.7 MB
//! from each node, 0.29 s at 12.5 MB/s, an iteration computes 0.48 s for 2^20 keys of a
//! rank: 460 ns a key. A lap is one iteration as rank 0 sees it.

use super::{collective, lacking, too_few, Kind, Program, Step};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Is {
    /// CPU time of a key in each iteration.
    pub key: Span,
    /// Keys of all ranks together.
    #[serde(default = "class_a")]
    pub keys: u64,
    /// How many rankings.
    #[serde(default = "ten")]
    pub iterations: u64,
    /// How many buckets.
    #[serde(default = "usual_buckets")]
    pub buckets: u32,
}

fn class_a() -> u64 {
    1 << 23
}

fn ten() -> u64 {
    10
}

fn usual_buckets() -> u32 {
    1 << 10
}

/// Bytes of a key, and of a count.
const INT: u32 = 4;
/// More of either would not fit a message.
const MOST: u64 = 1 << 29;

struct Rank {
    it: Is,
    left: u64,
}

impl Kind for Is {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Rank {
            it: self.clone(),
            left: self.iterations,
        })
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        let needs = [
            (
                self.keys / u64::from(ranks.max(1)) <= MOST && u64::from(self.buckets) <= MOST,
                "at most 2^29 keys for each rank, and buckets",
            ),
            (self.buckets > 0, "a bucket"),
        ];
        too_few("is", 2, ranks, threads).or_else(|| lacking("is", &needs))
    }
}

impl Program for Rank {
    fn step(&mut self, step: &mut Step) {
        step.lap();
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        let own = self.it.keys / u64::from(step.tasks);
        let work_ns = own * self.it.key.ns();
        step.compute(work_ns / 2);
        collective::allreduce(step, INT * self.it.buckets);
        collective::alltoall(step, INT);
        collective::alltoall(step, INT * (own / u64::from(step.tasks)) as u32);
        step.compute(work_ns - work_ns / 2);
    }
}
