// SPDX-License-Identifier: Apache-2.0
//! Boosts: on arrival of a message, and periodically.

use crate::cluster::TaskState;
use crate::engine::{Event, EventQueue, Kind};
use crate::local::{LocalScheduler, NONE};
use crate::network::Flight;
use crate::observer::Observer;
use crate::program::ANY;
use crate::run::Sim;
use cosched_policy::native::{self, Verdict};
use cosched_policy::raw;

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// A message came for a process that does not seem to run. It is asked about the task that the
    /// message is for; a boost is for all of its threads (S1, figure 2). To ask about each would
    /// refuse all but the first where a boost that is granted counts against the next.
    pub(in crate::run) fn ask_arrival(&mut self, task: u32, flight: Option<&Flight>) {
        let obs = match flight {
            Some(flight) => self.see_arrival(task, flight),
            None => self.see(task, raw::COS_EV_ARRIVAL),
        };
        let here = self.job_here(task);
        let it = &mut self.decider;
        let state = &mut it.tasks[task as usize];
        let verdict = native::arrival(&it.params, &obs, state, &mut it.jobs[here]);
        it.count(raw::COS_Q_ARRIVAL, &verdict);
        match verdict.act {
            raw::COS_ACT_BOOST => {
                let epoch = flight.map_or(u64::MAX, |flight| flight.epoch);
                for thread in self.process_of(task) {
                    self.boost(thread, verdict.slice_ns, epoch);
                }
            }
            raw::COS_ACT_MARK_RUNNING => self.tasks[task as usize].marked_ns = verdict.until_ns,
            _ if self.tasks[task as usize].state == TaskState::Ready
                && !self.local.sees_mates() =>
            {
                self.set_task_timer(task, verdict.until_ns);
            }
            _ => {}
        }
    }

    /// A refusal is over: the question is asked again, if the message still waits.
    pub(in crate::run) fn ask_again(&mut self, task: u32) {
        if self.decider.on_arrival && self.tasks[task as usize].mailbox.pending() > 0 {
            self.ask_arrival(task, None);
        }
    }

    /// `task` runs next on its CPU, if it is ready.
    pub(super) fn boost(&mut self, task: u32, slice_ns: u64, epoch: u64) {
        let it = &mut self.tasks[task as usize];
        if it.state != TaskState::Ready {
            return;
        }
        it.boost_slice_ns = slice_ns;
        it.boost_epoch = epoch;
        let cpu = it.cpu;
        self.tasks[task as usize].counted.nr_boosts += 1;
        self.observer.boost(self.now_ns, task);
        let (local, mut view) = self.view(cpu);
        local.boost(&mut view, task);
        if local.kicks(&mut view) && self.cpus[cpu as usize].current != NONE {
            self.kick(cpu);
        }
    }

    pub(super) fn arm_policy(&mut self, node: u32) {
        let it = &mut self.nodes[node as usize];
        let next_ns = it
            .tasks
            .iter()
            .map(|task| self.tasks[*task as usize].period_ns)
            .min();
        if let Some(at_ns) = it.policy_timer.arm(next_ns.unwrap_or(u64::MAX)) {
            self.agenda
                .push(Event::new(at_ns, node, Kind::Policy, 0, 0));
        }
    }

    /// Tasks of that node are due; of several boosts on one CPU the least key counts.
    pub(in crate::run) fn on_policy_period(&mut self, node: u32) {
        let mut boosts: Vec<(u32, i64, u32, u64)> = Vec::new();
        for i in 0..self.nodes[node as usize].tasks.len() {
            let task = self.nodes[node as usize].tasks[i];
            if self.tasks[task as usize].period_ns > self.now_ns {
                continue;
            }
            let verdict = self.ask_periodic(task);
            match verdict.act {
                raw::COS_ACT_BOOST => {
                    let cpu = self.tasks[task as usize].cpu;
                    boosts.push((cpu, verdict.key, task, verdict.slice_ns));
                }
                raw::COS_ACT_BEAT => self.beat(task),
                _ => {}
            }
        }
        boosts.sort_unstable();
        boosts.dedup_by_key(|(cpu, ..)| *cpu);
        for (_, _, task, slice_ns) in boosts {
            self.boost(task, slice_ns, u64::MAX);
        }
        self.arm_policy(node);
    }

    fn ask_periodic(&mut self, task: u32) -> Verdict {
        self.observe(task, raw::COS_EV_PERIOD);
        let obs = self.see(task, raw::COS_EV_PERIOD);
        let here = self.job_here(task);
        let it = &mut self.decider;
        let state = &mut it.tasks[task as usize];
        let verdict = native::periodic(&it.params, &obs, state, &mut it.jobs[here]);
        it.count(raw::COS_Q_PERIODIC, &verdict);
        let done = self.tasks[task as usize].state == TaskState::Done;
        self.tasks[task as usize].period_ns = if done { u64::MAX } else { verdict.until_ns };
        verdict
    }

    fn beat(&mut self, task: u32) {
        let to = self.tasks[task as usize].script.last_to;
        if to != ANY {
            self.depart(task, to, 0, true);
        }
    }
}
