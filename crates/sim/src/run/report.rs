// SPDX-License-Identifier: Apache-2.0
//! From the last state to the outcome, after the books were checked.

use super::{hash, Sim};
use crate::cluster::{Counted, Spent};
use crate::engine::EventQueue;
use crate::local::LocalScheduler;
use crate::observer::Observer;
use crate::outcome::{JobOutcome, Outcome, ProcessOutcome, Verdict};
use crate::scenario::End;
use cosched_model::Nanos;
use cosched_policy::words;

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// All tasks of `job` are done: is the simulation over?
    pub(super) fn job_ended(&mut self, job: usize) {
        self.jobs[job].ended_ns = Some(self.now_ns);
        let counts = match &self.scenario.end {
            End::All => !self.scenario.jobs[job].workload.endless(),
            End::First => true,
            End::Job(name) => self.scenario.jobs[job].name == *name,
            End::Time(_) => false,
        };
        if counts {
            self.to_end -= 1;
        }
        if self.to_end == 0 && counts && self.over.is_none() {
            self.over = Some(Ok(()));
        }
    }

    /// The outcome as of now.
    pub(super) fn outcome(mut self) -> Outcome {
        let spent = self.audit();
        let jobs = (0..self.jobs.len())
            .map(|job| self.job_outcome(job))
            .collect();
        let mut state_hash = self.hash;
        for counted in self.tasks.iter().map(|task| &task.counted) {
            for word in [
                counted.cpu_ns,
                counted.system_ns,
                counted.spin_ns,
                counted.wait_ns,
            ] {
                state_hash = hash(state_hash, word);
            }
        }
        for cpu in &self.cpus {
            state_hash = hash(state_hash, cpu.spent.idle_ns);
        }
        Outcome {
            ended_at: Nanos(self.now_ns),
            jobs,
            spent,
            verdicts: self.verdicts(),
            events: self.events,
            state_hash,
        }
    }

    /// Charges everybody up to now. No CPU time is lost or made: on each CPU the uses add
    /// up to the time that has passed, and what tasks were charged is what CPUs ran.
    fn audit(&mut self) -> Spent {
        let mut all = Spent::default();
        for cpu in 0..self.cpus.len() {
            self.charge(cpu as u32);
            let spent = self.cpus[cpu].spent;
            assert_eq!(spent.total_ns(), self.now_ns, "CPU {cpu} lost time");
            all.run_ns += spent.run_ns;
            all.spin_ns += spent.spin_ns;
            all.switch_ns += spent.switch_ns;
            all.irq_ns += spent.irq_ns;
            all.idle_ns += spent.idle_ns;
        }
        let charged: u64 = self.tasks.iter().map(|it| it.counted.cpu_ns).sum();
        let ran = all.run_ns + all.spin_ns + all.switch_ns;
        assert!(
            charged >= ran && charged <= ran + all.irq_ns,
            "tasks were charged {charged} ns, CPUs ran {ran} ns"
        );
        all
    }

    fn job_outcome(&mut self, job: usize) -> JobOutcome {
        let it = self.jobs[job].clone();
        let processes = it.first_process..it.first_process + it.nr_processes;
        let began_ns = it.began_ns.min(self.now_ns);
        JobOutcome {
            name: self.scenario.jobs[job].name.clone(),
            began_at: Nanos(began_ns),
            response: it.ended_ns.map(|ended_ns| Nanos(ended_ns - began_ns)),
            processes: processes
                .map(|process| self.process_outcome(process))
                .collect(),
            laps: it.laps.histogram(),
        }
    }

    fn process_outcome(&mut self, process: u32) -> ProcessOutcome {
        let process = self.processes[process as usize].clone();
        let mut all = ProcessOutcome {
            node: process.node,
            ..ProcessOutcome::default()
        };
        for task in process.tasks {
            let counted = self.tasks[task as usize].counted.clone();
            let share_ns = self.fair_share_ns(process.node, &counted);
            add(&mut all, &counted, share_ns, self.now_ns);
        }
        all
    }

    fn fair_share_ns(&mut self, node: u32, counted: &Counted) -> u64 {
        let share_q8 = match counted.ended_ns {
            Some(_) => counted.share_q8,
            None if counted.began_ns > self.now_ns => 0,
            None => {
                self.nodes[node as usize]
                    .alive
                    .share_q8(self.now_ns, self.cpus_each)
                    - counted.share_q8
            }
        };
        share_q8 >> 8
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut all = Vec::new();
        for (question, acts) in self.decider.verdicts.iter().enumerate() {
            for (act, reasons) in acts.iter().enumerate() {
                let given = reasons.iter().enumerate().filter(|(_, count)| **count > 0);
                all.extend(given.map(|(reason, count)| Verdict {
                    question: words::QUESTIONS[question],
                    act: words::ACTS[act],
                    reason: words::REASONS[reason],
                    count: *count,
                }));
            }
        }
        all
    }
}

fn add(all: &mut ProcessOutcome, it: &Counted, share_ns: u64, now_ns: u64) {
    let lived_ns = it.ended_ns.unwrap_or(now_ns).saturating_sub(it.began_ns);
    let system_ns = it.system_ns.min(it.cpu_ns);
    all.lived = all.lived.max(Nanos(lived_ns));
    all.user = all.user + Nanos(it.cpu_ns - system_ns);
    all.system = all.system + Nanos(system_ns);
    all.spun = all.spun + Nanos(it.spin_ns);
    all.fair_share = all.fair_share + Nanos(share_ns);
    all.waited = all.waited + Nanos(it.wait_ns);
    all.woke_after = all.woke_after + Nanos(it.wake_ns);
    all.waits += it.nr_waits;
    all.blocks += it.nr_blocks;
    all.yields += it.nr_yields;
    all.messages += it.nr_messages;
    all.switches += it.nr_switches;
    all.migrations += it.nr_migrations;
    all.boosts += it.nr_boosts;
    all.wakes += it.nr_wakes;
}
