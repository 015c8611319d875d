// SPDX-License-Identifier: Apache-2.0
//! bursty: background that computes for a while and is then away for a while.
//!
//! Between `calcula`, which always wants its CPU, and `local`, which wants a bit of each
//! period: competitors come and go on the scale of the bursts. With shares of the CPU, a
//! burst takes longer; the pause after it does not.

use super::{lacking, varies, Kind, Program, Step, Varies};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursty {
    /// Mean CPU time of a burst.
    pub busy: Span,
    /// Mean length of a pause.
    pub idle: Span,
    /// How both vary.
    #[serde(default = "memoryless")]
    pub varies: Varies,
    /// How many bursts; without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<u64>,
}

fn memoryless() -> Varies {
    Varies::Exponential
}

struct Process {
    it: Bursty,
    done: u64,
}

impl Kind for Bursty {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Process {
            it: self.clone(),
            done: 0,
        })
    }

    fn refuses(&self, _ranks: u32, _threads: u32) -> Option<String> {
        let needs = [
            (self.busy > Span::ZERO, "busy above 0"),
            (self.varies.is_sound(), varies::SOUND),
        ];
        lacking("bursty", &needs)
    }

    fn endless(&self) -> bool {
        self.bursts.is_none()
    }

    fn communicates(&self) -> bool {
        false
    }
}

impl Program for Process {
    fn step(&mut self, step: &mut Step) {
        if self.it.bursts == Some(self.done) {
            return step.exit();
        }
        self.done += 1;
        let busy_ns = self.it.varies.draw(self.it.busy.ns(), step.random);
        step.compute(busy_ns);
        let idle_ns = self.it.varies.draw(self.it.idle.ns(), step.random);
        step.sleep(idle_ns);
    }
}
