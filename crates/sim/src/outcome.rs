// SPDX-License-Identifier: Apache-2.0
//! What a simulation gives: every quantity that a claim may need.

use crate::cluster::Spent;
use crate::histogram::Histogram;
use cosched_model::Nanos;
use serde::Serialize;

/// The result of one simulation. The same scenario gives the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// When it was over.
    pub ended_at: Nanos,
    /// Jobs in the scenario's order.
    pub jobs: Vec<JobOutcome>,
    /// CPU time of all CPUs by use; their sum is CPUs * `ended_at`.
    pub spent: Spent,
    /// What policy said, as far as it said anything.
    pub verdicts: Vec<Verdict>,
    /// How many events happened.
    pub events: u64,
    /// Of every event in order and of the final state.
    pub state_hash: u64,
}

/// How often policy gave one verdict for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The question.
    pub question: &'static str,
    /// The verdict.
    pub act: &'static str,
    /// Its reason.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobOutcome {
    /// Its name.
    pub name: String,
    /// When its first process started.
    pub began_at: Nanos,
    /// From then until its last process was done; none: it was not.
    pub response: Option<Nanos>,
    /// Its processes.
    pub processes: Vec<ProcessOutcome>,
    /// Lengths of rounds: round trips, iterations.
    pub laps: Histogram,
}

/// One process; sums over its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessOutcome {
    /// Its node.
    pub node: u32,
    /// From its start until it was done, or the simulation was over.
    pub lived: Nanos,
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel: switches, interrupts, system calls.
    pub system: Nanos,
    /// Part of the CPU time in which it polled for messages.
    pub spun: Nanos,
    /// CPU time of an equal share, while it lived.
    pub fair_share: Nanos,
    /// Time in waits for messages, CPU or not.
    pub waited: Nanos,
    /// How many waits.
    pub waits: u64,
    /// How many of them went to sleep.
    pub blocks: u64,
    /// Yields that let another task be chosen.
    pub yields: u64,
    /// Messages that reached it.
    pub messages: u64,
    /// Times it came onto a CPU that another had.
    pub switches: u64,
    /// Times it changed its CPU.
    pub migrations: u64,
    /// Times policy made it run next.
    pub boosts: u64,
    /// Times a message woke it.
    pub wakes: u64,
    /// From those messages until it ran.
    pub woke_after: Nanos,
}

impl ProcessOutcome {
    /// CPU time of both kinds.
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }

    /// F of S1, equation 2: CPU time over the fair share of it.
    pub fn fairness(&self) -> f64 {
        self.cpu().share_of(self.fair_share)
    }
}

impl JobOutcome {
    /// CPU time of all its processes.
    pub fn cpu(&self) -> Nanos {
        self.processes.iter().map(ProcessOutcome::cpu).sum()
    }

    /// Mean F of its processes.
    pub fn fairness(&self) -> f64 {
        let sum: f64 = self.processes.iter().map(ProcessOutcome::fairness).sum();
        sum / self.processes.len() as f64
    }

    /// Mean length of a wait for a message.
    pub fn mean_wait(&self) -> Nanos {
        let waited: Nanos = self.processes.iter().map(|p| p.waited).sum();
        let waits: u64 = self.processes.iter().map(|p| p.waits).sum();
        Nanos(waited.0 / waits.max(1))
    }

    /// Response time over that of the same job on a dedicated machine; none where one did not end.
    pub fn slowdown(&self, dedicated: &JobOutcome) -> Option<f64> {
        Some(self.response?.share_of(dedicated.response?))
    }
}

impl Outcome {
    /// The job of that name.
    pub fn job(&self, name: &str) -> Option<&JobOutcome> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// How often policy said `act` to `question`, over all reasons.
    pub fn verdicts_of(&self, question: &str, act: &str) -> u64 {
        let those = self
            .verdicts
            .iter()
            .filter(|v| v.question == question && v.act == act);
        those.map(|v| v.count).sum()
    }
}
