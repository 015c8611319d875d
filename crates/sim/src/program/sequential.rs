// SPDX-License-Identifier: Apache-2.0
//! sequential: a job of one process that reads and computes, like gtar and gs of S1's Mixed (section 4.1.2).
//!
//! It goes from unit to unit (a file, a page). A unit is read block by block, from a server:
//! the task sleeps while a block comes, then computes what the block is worth.
//! Nothing is read ahead.
//!
//! S1 gives for GNU tar 97 files of 2.1 MB in all, for Ghostscript 103 pages of 1.7 MB,
//! all over NFS. Version 2 of that reads blocks of 8 KB (RFC 1094): 3 a file, 291 in all, and
//! 3 a page, 309 in all. 8 KB need 6.6 ms of a 10 Mb/s Ethernet, and a disk of the
//! time some 10 to 20 ms more, hence `io` of 7 ms (in the server's cache) to 25 ms.
//! CPU times are only drawn in S1 (figure 7): an experiment says what it reads off. A lap is a unit.

use super::{lacking, varies, Kind, Program, Step, Varies};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Files or pages.
    pub units: u64,
    /// Bytes of all units together.
    pub bytes: u64,
    /// CPU time of all units together.
    pub cpu: Span,
    /// How long a block takes to come.
    pub io: Span,
    /// Bytes of a block.
    #[serde(default = "nfs_block")]
    pub block: u64,
    /// How waits and bursts vary.
    #[serde(default)]
    pub varies: Varies,
}

fn nfs_block() -> u64 {
    8192
}

struct Process {
    it: Sequential,
    done: u64,
}

impl Sequential {
    /// A unit's last block may be smaller than the others; it counts as one.
    fn blocks_each(&self) -> u64 {
        self.bytes.div_ceil(self.units).div_ceil(self.block)
    }

    fn blocks(&self) -> u64 {
        self.units.saturating_mul(self.blocks_each())
    }

    /// CPU time of the first `n` blocks.
    fn cpu_of(&self, n: u64) -> u64 {
        (u128::from(self.cpu.ns()) * u128::from(n) / u128::from(self.blocks())) as u64
    }
}

impl Kind for Sequential {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Process {
            it: self.clone(),
            done: 0,
        })
    }

    fn refuses(&self, _ranks: u32, threads: u32) -> Option<String> {
        let sizes = self.units > 0 && self.bytes > 0 && self.block > 0;
        let needs = [
            (threads == 1, "one thread"),
            (sizes, "units, bytes and block above 0"),
            (
                sizes && self.cpu.ns() >= self.blocks(),
                "1ns of cpu or more for each block",
            ),
            (self.varies.is_sound(), varies::SOUND),
        ];
        lacking("sequential", &needs)
    }

    fn communicates(&self) -> bool {
        false
    }
}

impl Program for Process {
    fn step(&mut self, step: &mut Step) {
        let it = &self.it;
        if self.done.is_multiple_of(it.blocks_each()) {
            step.lap();
        }
        if self.done == it.blocks() {
            return step.exit();
        }
        let cpu_ns = it.cpu_of(self.done + 1) - it.cpu_of(self.done);
        self.done += 1;
        let io_ns = it.varies.draw(it.io.ns(), step.random);
        step.sleep(io_ns);
        let cpu_ns = it.varies.draw(cpu_ns, step.random);
        step.compute(cpu_ns);
    }
}
