// SPDX-License-Identifier: Apache-2.0
//! token: latency between more than two (S1, section 5.1: larger sets are coscheduled by transitivity).
//!
//! One token goes round a ring, or up and down a chain, and only who has it can act: it
//! computes a grain and passes it on. So the time of a round is that of the slowest
//! chain of wake-ups, and a set is coscheduled only if each member is as the token comes.
//! With two tasks and no grain both paths are `latency`; with a grain, its coarse form
//! (section 4.3).
//!
//! With several threads to a process the token passes through each: one thread gets the
//! message, and another must run for the reply. That is what boosting all threads of the
//! receiving process is for (section 3.2). A lap is one round as task 0 sees it.

use super::{lacking, varies, Kind, Program, Step, Varies};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// How many rounds.
    pub rounds: u64,
    /// Which way.
    pub path: Path,
    /// CPU time of each holder.
    #[serde(default)]
    pub grain: Span,
    /// How grains vary.
    #[serde(default)]
    pub varies: Varies,
    /// The size of the token.
    #[serde(default = "packet")]
    pub bytes: u32,
}

fn packet() -> u32 {
    128
}

/// The way of the token through the tasks in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// From the last back to the first.
    Ring,
    /// To the last and back, one by one.
    Chain,
}

struct Task {
    it: Token,
    left: u64,
}

impl Kind for Token {
    fn program(&self, _task: u32) -> Box<dyn Program> {
        Box::new(Task {
            it: self.clone(),
            left: self.rounds,
        })
    }

    fn refuses(&self, ranks: u32, _threads: u32) -> Option<String> {
        let needs = [
            (ranks >= 2, "two or more ranks"),
            (self.varies.is_sound(), varies::SOUND),
        ];
        lacking("token", &needs)
    }
}

impl Program for Task {
    fn step(&mut self, step: &mut Step) {
        if step.task == 0 {
            step.lap();
        }
        if self.left == 0 {
            return step.exit();
        }
        self.left -= 1;
        let (task, last) = (step.task, step.tasks - 1);
        match self.it.path {
            Path::Ring => {
                let (from, to) = ((task + last) % (last + 1), (task + 1) % (last + 1));
                if task == 0 {
                    self.pass(step, to);
                    step.recv(from);
                } else {
                    step.recv(from);
                    self.pass(step, to);
                }
            }
            Path::Chain if task == 0 => {
                self.pass(step, 1);
                step.recv(1);
            }
            Path::Chain => {
                step.recv(task - 1);
                if task < last {
                    self.pass(step, task + 1);
                    step.recv(task + 1);
                }
                self.pass(step, task - 1);
            }
        }
    }
}

impl Task {
    fn pass(&self, step: &mut Step, to: u32) {
        let grain_ns = self.it.varies.draw(self.it.grain.ns(), step.random);
        step.compute(grain_ns);
        step.send(to, self.it.bytes);
    }
}
