// SPDX-License-Identifier: Apache-2.0
//! What policy is told of a task at one of its events, and learns from it.

use crate::cluster::TaskState;
use crate::engine::EventQueue;
use crate::local::LocalScheduler;
use crate::network::Flight;
use crate::observer::Observer;
use crate::run::Sim;
use cosched_policy::native::{self, Obs};
use cosched_policy::raw;

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    pub(super) fn communicates(&self, task: u32) -> bool {
        self.tasks[task as usize].communicates
    }

    pub(super) fn job_here(&self, task: u32) -> usize {
        self.tasks[task as usize].job_here as usize
    }

    /// What a kernel knows of a task, at one of its events.
    pub(super) fn see(&mut self, task: u32, event: u32) -> Obs {
        let cpu = self.tasks[task as usize].cpu;
        let queue = self.queue_of(cpu);
        let period_ns = self.scenario.cluster.monitor.ns();
        let load = &mut self.queues[queue].load;
        let average_q8 = load.average_q8(self.now_ns, period_ns);
        let length = load.length();
        let it = &self.tasks[task as usize];
        let running = it.state == TaskState::Running;
        let asleep = !running && it.state != TaskState::Ready;
        let mailbox = &self.tasks[task as usize].mailbox;
        let mut obs = Obs {
            now_ns: self.now_ns,
            event,
            known: raw::COS_F_RAN
                | raw::COS_F_LAST_RAN_AT
                | raw::COS_F_RQ_BYTES
                | raw::COS_F_SQ_BYTES
                | raw::COS_F_NR_RUNNABLE
                | raw::COS_F_NR_PENDING
                | raw::COS_F_RUNNING,
            ran_ns: match running {
                true => self.now_ns - self.cpus[cpu as usize].came_on_ns,
                false => it.ran_ns,
            },
            last_ran_at_ns: if running { self.now_ns } else { it.left_cpu_ns },
            rq_bytes: self.network.shown(mailbox.rq_bytes),
            sq_bytes: self.network.shown(mailbox.sq_bytes),
            nr_runnable: length + u32::from(asleep),
            nr_runnable_avg_q8: average_q8,
            nr_pending: mailbox.pending(),
            running: u32::from(running),
            ..Obs::default()
        };
        if self.now_ns >= period_ns {
            obs.known |= raw::COS_F_NR_RUNNABLE_AVG;
        }
        self.see_account(task, &mut obs);
        obs
    }

    /// What the local scheduler itself knows of a task.
    fn see_account(&mut self, task: u32, obs: &mut Obs) {
        let cpu = self.tasks[task as usize].cpu;
        self.charge(cpu);
        let (local, view) = self.view(cpu);
        let own = &view.tasks[task as usize];
        if let Some(left_ns) = local.left_ns(own) {
            obs.left_ns = left_ns;
            obs.known |= raw::COS_F_LEFT;
        }
        if let Some(weight_ns) = local.weight_ns(own) {
            obs.local_key = weight_ns;
            obs.known |= raw::COS_F_LOCAL_KEY;
        }
        if let Some(lag_ns) = local.lag_ns(&view, task) {
            obs.lag_ns = lag_ns;
            obs.known |= raw::COS_F_LAG;
        }
    }

    /// Lets policy learn from an event of `task`.
    pub(in crate::run) fn observe(&mut self, task: u32, event: u32) {
        if self.decider.learns[event as usize] && self.communicates(task) {
            let obs = self.see(task, event);
            self.learn(task, &obs);
        }
    }

    pub(super) fn learn(&mut self, task: u32, obs: &Obs) {
        let here = self.job_here(task);
        let it = &mut self.decider;
        native::observe(
            &it.params,
            obs,
            &mut it.tasks[task as usize],
            &mut it.jobs[here],
        );
    }

    /// A message reached its receiver's node.
    pub(in crate::run) fn observe_arrival(&mut self, flight: &Flight) {
        if !self.decider.learns[raw::COS_EV_ARRIVAL as usize] {
            return;
        }
        for task in self.process_of(flight.to) {
            let obs = self.see_arrival(task, flight);
            self.learn(task, &obs);
        }
    }

    pub(super) fn process_of(&self, task: u32) -> std::ops::Range<u32> {
        self.processes[self.tasks[task as usize].process as usize]
            .tasks
            .clone()
    }

    pub(super) fn see_arrival(&mut self, task: u32, flight: &Flight) -> Obs {
        let mut obs = self.see(task, raw::COS_EV_ARRIVAL);
        if flight.sender_left_ns != u64::MAX {
            obs.sender_left_ns = flight.sender_left_ns;
            obs.known |= raw::COS_F_SENDER_LEFT;
        }
        obs.message_epoch = flight.epoch;
        obs.cpu_epoch = self.cpus[self.tasks[task as usize].cpu as usize].epoch;
        obs.known |= raw::COS_F_EPOCHS;
        obs
    }

    /// `task` joins its job on its node.
    pub(in crate::run) fn join(&mut self, task: u32) {
        self.observe(task, raw::COS_EV_JOB_BEGIN);
        if self.decider.periodic && self.communicates(task) {
            self.tasks[task as usize].period_ns = self.now_ns;
            let node = self.tasks[task as usize].node;
            self.arm_policy(node);
        }
    }

    /// `task` is off its CPU, which another may have by now.
    pub(in crate::run) fn went_off(&mut self, task: u32) {
        self.observe(task, raw::COS_EV_STOP);
        self.peer_changed(task);
        let it = &mut self.tasks[task as usize];
        let marked_ns = std::mem::take(&mut it.marked_ns);
        if marked_ns > self.now_ns && it.state == TaskState::Ready {
            self.ask_arrival(task, None);
        }
    }

    /// `task` runs again.
    pub(in crate::run) fn is_back(&mut self, task: u32) {
        let it = &mut self.tasks[task as usize];
        let woken_ns = std::mem::replace(&mut it.woken_ns, u64::MAX);
        let left_cpu_ns = it.left_cpu_ns;
        let event = match woken_ns {
            u64::MAX => raw::COS_EV_RUN,
            _ => raw::COS_EV_WAKE,
        };
        if woken_ns != u64::MAX {
            let counted = &mut self.tasks[task as usize].counted;
            counted.nr_wakes += 1;
            counted.wake_ns += self.now_ns - woken_ns;
        }
        if !self.decider.learns[event as usize] || !self.communicates(task) {
            return;
        }
        let mut obs = self.see(task, event);
        if woken_ns != u64::MAX {
            obs.wake_cost_ns = self.now_ns - woken_ns;
            obs.known |= raw::COS_F_WAKE_COST;
        } else {
            obs.waited_ns = self.now_ns - left_cpu_ns;
            obs.known |= raw::COS_F_WAITED;
        }
        self.learn(task, &obs);
    }

    /// The number of runnable tasks of the run queue of `cpu` changes.
    pub(in crate::run) fn load_changed(&mut self, cpu: u32, by: i32) {
        let queue = self.queue_of(cpu);
        let period_ns = self.scenario.cluster.monitor.ns();
        self.queues[queue].load.change(self.now_ns, period_ns, by);
    }
}
