// SPDX-License-Identifier: Apache-2.0
//! Allocation: which jobs get CPUs, and when they may run.
//!
//! `shared` without a limit asks nobody. Otherwise jobs are handed to `cos_plan` whenever one
//! arrives or ends, in order of arrival; who is granted CPUs begins then, and its response time
//! counts from its arrival. A job of independent processes is as many jobs as there are on
//! each node. Under `gang` every task is asked about by `cos_admit`, by the clock of its
//! node, which may be off by up to `clock_error`; where a slot's job sleeps nobody else runs
//! (policy/allocation.h). `fcfs_space` needs CPUs chosen as they become free, which is not here.

use super::decide::{answer, arg};
use super::Sim;
use crate::cluster::TaskState;
use crate::engine::{Event, EventQueue, Kind};
use crate::local::{LocalScheduler, NONE};
use crate::observer::Observer;
use cosched_policy::native::{self, AllocJob, Job, Obs, Params, Task};
use cosched_policy::raw;

/// What is granted CPUs as a whole.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub job: u32,
    pub tasks: Vec<u32>,
    /// The first and the number of CPUs that it spans.
    pub first_cpu: u32,
    pub nr_cpus: u32,
    begun: bool,
    nr_done: usize,
    slot: u32,
    nr_slots: u32,
}

impl Unit {
    /// Of that job, with no task yet.
    pub fn new(job: u32) -> Self {
        Unit {
            job,
            tasks: Vec::new(),
            first_cpu: u32::MAX,
            nr_cpus: 0,
            begun: false,
            nr_done: 0,
            slot: 0,
            nr_slots: 1,
        }
    }

    /// One more task, on `cpu`.
    pub fn add(&mut self, task: u32, cpu: u32) {
        let end = (self.first_cpu.saturating_add(self.nr_cpus)).max(cpu + 1);
        let end = if self.tasks.is_empty() { cpu + 1 } else { end };
        self.first_cpu = self.first_cpu.min(cpu);
        self.nr_cpus = end - self.first_cpu;
        self.tasks.push(task);
    }
}

/// What waits and what runs.
pub(super) struct Allocator {
    /// Somebody is asked before a job begins.
    planned: bool,
    /// The length of a slot, 0 where there are none.
    slot_ns: u64,
    units: Vec<Unit>,
    /// Units that have arrived and are not done, in order.
    present: Vec<u32>,
    /// How long after its job each task starts.
    scatter_ns: Vec<u64>,
}

impl Allocator {
    pub fn new(params: &Params, units: Vec<Unit>, scatter_ns: Vec<u64>) -> Self {
        let allocation = answer(params, raw::COS_Q_ALLOCATION);
        let gang = allocation == raw::COS_ALLOCATION_GANG;
        let slot_ns = arg(params, raw::COS_Q_ALLOCATION, raw::COS_GANG_SLOT_NS);
        let limit = arg(params, raw::COS_Q_ALLOCATION, raw::COS_SHARED_MAX_MPL);
        Allocator {
            planned: allocation != raw::COS_ALLOCATION_SHARED || limit > 0,
            slot_ns: if gang { slot_ns } else { 0 },
            units,
            present: Vec::new(),
            scatter_ns,
        }
    }

    /// Whether there are slots in which only some may run.
    pub fn slotted(&self) -> bool {
        self.slot_ns > 0
    }
}

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// Each job arrives when the scenario says.
    pub(super) fn submit_all(&mut self) {
        for (number, unit) in (0..).zip(&self.allocator.units) {
            let at_ns = self.scenario.jobs[unit.job as usize].start.ns();
            self.agenda
                .push(Event::new(at_ns, 0, Kind::Submit, number, 0));
        }
        if self.allocator.slotted() {
            (0..self.nodes.len() as u32).for_each(|node| self.next_slot(node));
        }
    }

    /// A job arrives.
    pub(super) fn on_submit(&mut self, unit: u32) {
        let job = self.allocator.units[unit as usize].job as usize;
        self.jobs[job].began_ns = self.jobs[job].began_ns.min(self.now_ns);
        if self.allocator.planned {
            self.allocator.present.push(unit);
            self.plan();
        } else {
            self.begin(unit);
        }
    }

    /// `task` is done; if its unit is, others may begin.
    pub(super) fn released(&mut self, task: u32) {
        let number = self.tasks[task as usize].unit;
        let unit = &mut self.allocator.units[number as usize];
        unit.nr_done += 1;
        if self.allocator.planned && unit.nr_done == unit.tasks.len() {
            self.allocator.present.retain(|other| *other != number);
            self.plan();
        }
    }

    fn plan(&mut self) {
        let present = self.allocator.present.clone();
        let as_policy_sees = |number: &u32| {
            let unit = &self.allocator.units[*number as usize];
            AllocJob {
                id: u64::from(*number),
                nr_ranks: unit.tasks.len() as u32,
                first_cpu: unit.first_cpu,
                nr_cpus: unit.nr_cpus,
                ..AllocJob::default()
            }
        };
        let mut jobs: Vec<AllocJob> = present.iter().map(as_policy_sees).collect();
        native::plan(&self.decider.params, &mut jobs, self.cpus.len() as u32);
        for (number, planned) in present.into_iter().zip(jobs) {
            let unit = &mut self.allocator.units[number as usize];
            (unit.slot, unit.nr_slots) = (planned.slot, planned.nr_slots);
            if planned.nr_cpus > 0 && !unit.begun {
                self.begin(number);
            }
        }
    }

    fn begin(&mut self, unit: u32) {
        let unit = &mut self.allocator.units[unit as usize];
        unit.begun = true;
        for task in &unit.tasks {
            let at_ns = self.now_ns + self.allocator.scatter_ns[*task as usize];
            let node = self.tasks[*task as usize].node;
            self.agenda
                .push(Event::new(at_ns, node, Kind::Start, *task, 0));
        }
    }

    /// Whether `task` may run now.
    pub(super) fn admitted(&mut self, task: u32) -> bool {
        if !self.allocator.slotted() {
            return true;
        }
        let it = &self.tasks[task as usize];
        let unit = &self.allocator.units[it.unit as usize];
        let obs = Obs {
            now_ns: self.now_ns + self.nodes[it.node as usize].ahead_ns,
            event: raw::COS_EV_RUN,
            known: raw::COS_F_SLOT,
            slot: unit.slot,
            nr_slots: unit.nr_slots,
            ..Obs::default()
        };
        let (mut nothing, mut here) = (Task::default(), Job::default());
        let verdict = native::admit(&self.decider.params, &obs, &mut nothing, &mut here);
        self.decider.count(raw::COS_Q_ALLOCATION, &verdict);
        verdict.act == raw::COS_ACT_RUN
    }

    /// The position of the first in the run queue of `cpu` that may run now.
    pub(super) fn first_admitted(&mut self, cpu: u32) -> Option<usize> {
        let queue = self.queue_of(cpu);
        (0..self.queues[queue].ready.len()).find(|i| self.admitted(self.queues[queue].ready[*i]))
    }

    fn next_slot(&mut self, node: u32) {
        let (slot_ns, ahead_ns) = (self.allocator.slot_ns, self.nodes[node as usize].ahead_ns);
        let at_ns = ((self.now_ns + ahead_ns) / slot_ns + 1) * slot_ns - ahead_ns;
        self.agenda.push(Event::new(at_ns, node, Kind::Slot, 0, 0));
    }

    /// A slot begins, by the clock of that node.
    pub(super) fn on_slot(&mut self, node: u32) {
        let first = node * self.cpus_each;
        for cpu in first..first + self.cpus_each {
            self.charge(cpu);
            let task = self.cpus[cpu as usize].current;
            if task == NONE {
                if self.cpus[cpu as usize].is_idle() {
                    self.choose(cpu, NONE);
                }
            } else if self.tasks[task as usize].state == TaskState::Running && !self.admitted(task)
            {
                self.preempt(cpu);
            }
        }
        self.next_slot(node);
    }
}
