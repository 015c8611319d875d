// SPDX-License-Identifier: Apache-2.0
//! farm: a bag of tasks that workers take one by one.
//!
//! A worker asks rank 0 for an item, computes it, and asks again; its question carries the
//! result. The load balances itself, so a node with competitors gets fewer items: what
//! is lost is only the wait of a worker for the master, which must run to hand out.
//!
//! The master draws the sizes of items in their order, and an item's work is in
//! proportion to the bytes of its message, so that the same items are there whoever takes
//! them. A message of no bytes says that the bag is empty. A lap is one item handed out.

use super::{lacking, too_few, varies, Kind, Program, Step, Varies, ANY};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Farm {
    /// How many items.
    pub items: u64,
    /// CPU time of an item of mean size.
    pub grain: Span,
    /// Mean size of an item.
    pub bytes: u32,
    /// How sizes vary.
    #[serde(default)]
    pub varies: Varies,
    /// The size of a question, with the last result.
    #[serde(default = "super::one")]
    pub question: u32,
}

struct Master {
    it: Farm,
    left: u64,
    /// Workers that were not told yet that the bag is empty.
    waiting: Option<u32>,
}

struct Worker {
    it: Farm,
    asked: bool,
}

impl Kind for Farm {
    fn program(&self, task: u32) -> Box<dyn Program> {
        let it = self.clone();
        match task {
            0 => Box::new(Master {
                left: it.items,
                it,
                waiting: None,
            }),
            _ => Box::new(Worker { it, asked: false }),
        }
    }

    fn refuses(&self, ranks: u32, threads: u32) -> Option<String> {
        let needs = [
            (self.bytes > 0, "bytes above 0"),
            (self.varies.is_sound(), varies::SOUND),
        ];
        too_few("farm", 2, ranks, threads).or_else(|| lacking("farm", &needs))
    }
}

impl Program for Master {
    fn step(&mut self, step: &mut Step) {
        let waiting = self.waiting.get_or_insert(step.tasks - 1);
        match step.last_from {
            ANY => {}
            worker if self.left == 0 => {
                *waiting -= 1;
                step.send(worker, 0);
            }
            worker => {
                self.left -= 1;
                let bytes = self.it.varies.draw(u64::from(self.it.bytes), step.random);
                step.send(worker, u32::try_from(bytes).unwrap_or(u32::MAX));
                step.lap();
            }
        }
        match *waiting {
            0 => step.exit(),
            _ => step.recv(ANY),
        }
    }
}

impl Program for Worker {
    fn step(&mut self, step: &mut Step) {
        if std::mem::replace(&mut self.asked, true) {
            if step.last_bytes == 0 {
                return step.exit();
            }
            let work = u128::from(self.it.grain.ns()) * u128::from(step.last_bytes);
            step.compute((work / u128::from(self.it.bytes)) as u64);
        }
        step.send(0, self.it.question);
        step.recv(0);
    }
}
