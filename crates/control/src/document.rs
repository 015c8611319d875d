// SPDX-License-Identifier: Apache-2.0
//! What the JSON of JOBS, STATUS, BEGIN and SWITCH holds.
//!
//! Written by the daemon and read by `cosched`, and by whoever likes: units stand
//! in the names, and what is unknown is null and never 0.

use crate::Mode;
use cosched_model::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// STATUS.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Of coschedd.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Since it began.
    pub up_ns: Nanos,
    /// Schedules, or observes only.
    pub mode: Mode,
    /// Why it does no more than that.
    pub why: Option<String>,
    /// What the kernel offers.
    pub offers: Vec<Offer>,
    /// Over the whole machine, since it began.
    pub counts: Vec<Count>,
    /// Those of the caller; all for root.
    pub jobs: Vec<Job>,
    /// Jobs of others, which are not shown.
    pub nr_hidden: usize,
    /// What it was configured with.
    pub config: Vec<Setting>,
}

/// JOBS.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Jobs {
    /// Those of the caller; all for root.
    pub jobs: Vec<Job>,
    /// Their tasks, as many as fit.
    pub ranks: Vec<Rank>,
    /// How many there are.
    pub nr_ranks: usize,
    /// Jobs of others, which are not shown.
    pub nr_hidden: usize,
}

/// One thing that a kernel may offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// What it is called.
    pub name: String,
    /// What was found.
    pub found: String,
    /// What is missing, and what to do; null where nothing is.
    pub missing: Option<String>,
}

/// A counter, as it is described where it is defined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Its name.
    pub name: String,
    /// It only grows.
    pub value: u64,
    /// What is counted.
    pub meaning: String,
}

/// One value of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// As the file names it.
    pub key: String,
    /// As the file would write it.
    pub value: String,
    /// Where it comes from: flag, environment, file or default.
    pub origin: String,
    /// What it does.
    pub meaning: String,
}

/// One question of a job's policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// Who answers it.
    pub owner: String,
    /// How.
    pub answer: String,
    /// What was preferred, where nobody here gives that.
    pub instead_of: Option<String>,
}

/// One job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its number, which is used again.
    pub job: u32,
    /// Its serial, which is not.
    pub serial: u64,
    /// Whose it is.
    pub uid: u32,
    /// What its user calls it.
    pub name: String,
    /// Its preset.
    pub preset: String,
    /// Who answers what.
    pub answers: Vec<Answer>,
    /// The process that it was begun with; null: none, or a cgroup.
    pub root_pid: Option<u32>,
    /// The cgroup that it was begun with.
    pub cgroup: Option<String>,
    /// Ends with a connection.
    pub held: bool,
    /// Since it was begun.
    pub age_ns: Nanos,
    /// What the kernel body counted for it.
    pub ledger: Ledger,
}

/// What the kernel body counts for a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Tasks that are in it now.
    pub nr_tasks: u64,
    /// ... that ever were.
    pub nr_joined: u64,
    /// CPU time of its tasks.
    pub ran_ns: Nanos,
    /// Time that they ran or could have.
    pub wanted_ns: Nanos,
    /// Their fair part of that.
    pub due_ns: Nanos,
    /// F: CPU time over the fair part; null before any.
    pub fairness: Option<f64>,
    /// Marked to run next.
    pub nr_boosts: u64,
    /// ... that did run in time.
    pub nr_served: u64,
    /// ... that did not.
    pub nr_expired: u64,
    /// Times that a task of it called `sched_yield()`.
    pub nr_yields: u64,
    /// ... and kept its CPU: what it waited for would come sooner than it could come back.
    pub nr_stayed: u64,
    /// Times that a task of it changed its CPU.
    pub nr_migrations: u64,
    /// How it was learnt that a task has something to do.
    pub seen: BTreeMap<String, u64>,
    /// Boosts granted, by reason.
    pub boosted: BTreeMap<String, u64>,
    /// Boosts denied, by reason.
    pub denied: BTreeMap<String, u64>,
    /// From arrival to run: how many took less than 2^(i+10) ns; the last has no bound.
    pub run_delay: Vec<u64>,
    /// Upper bound of the median; null where there is none.
    pub run_delay_p50_below_ns: Option<Nanos>,
    /// 99 % took less.
    pub run_delay_p99_below_ns: Option<Nanos>,
}

/// One task of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// Its job's number.
    pub job: u32,
    /// Its process.
    pub tgid: u32,
    /// The task.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// CPU time.
    pub ran_ns: Nanos,
    /// Its fair part.
    pub due_ns: Nanos,
    /// Time that it ran or could have.
    pub wanted_ns: Nanos,
    /// Times that it was marked to run next.
    pub nr_boosts: u64,
    /// Times that it was asked about, and was not.
    pub nr_denied: u64,
    /// Of the last verdict.
    pub last_reason: String,
    /// On a CPU now.
    pub running: bool,
    /// That one, or its last.
    pub cpu: u32,
}

impl Ledger {
    /// Upper bound of what @percent of all arrivals took to run.
    pub fn run_delay_below(&self, percent: u64) -> Option<Nanos> {
        let all: u64 = self.run_delay.iter().sum();
        let wanted = all.saturating_mul(percent).div_ceil(100);
        let mut seen = 0;
        let bucket = self.run_delay.iter().position(|nr| {
            seen += nr;
            all > 0 && seen >= wanted
        })?;
        (bucket + 1 < self.run_delay.len()).then(|| Nanos(1 << (bucket + 10)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_bounds_of_buckets() {
        let mut ledger = Ledger {
            run_delay: vec![0; 32],
            ..Ledger::default()
        };
        assert_eq!(ledger.run_delay_below(50), None);
        ledger.run_delay[0] = 98;
        ledger.run_delay[10] = 2;
        assert_eq!(ledger.run_delay_below(50), Some(Nanos(1024)));
        assert_eq!(ledger.run_delay_below(99), Some(Nanos(1 << 20)));
        ledger.run_delay[31] = 1000;
        assert_eq!(ledger.run_delay_below(99), None);
    }
}
