// SPDX-License-Identifier: Apache-2.0
//! Who is next, and for how long.
//!
//! Policy is asked for one candidate at a time; the choice among them is here: who is
//! vetoed goes last, then the least key, then who ran least recently (REPLACE) or stands first in
//! the run queue, then the least number.

use crate::engine::EventQueue;
use crate::local::LocalScheduler;
use crate::observer::Observer;
use crate::run::Sim;
use cosched_policy::{native, raw};

/// Vetoed or not, key, then who ran least recently, number or place.
type Key = (bool, i64, u64, u64);

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// The position in the run queue of `cpu` of who is next.
    pub(in crate::run) fn best_of(&mut self, cpu: u32) -> Option<usize> {
        let queue = self.queue_of(cpu);
        if !self.decider.ordered && !self.allocator.slotted() {
            let (local, view) = self.view(cpu);
            let keys = view.ready.iter().enumerate();
            let keyed = keys.filter_map(|(i, task)| Some((local.key(&view, *task)?, i)));
            return keyed.min().map(|(_, i)| i);
        }
        let mut best: Option<(Key, usize)> = None;
        for i in 0..self.queues[queue].ready.len() {
            let task = self.queues[queue].ready[i];
            let key = match self.admitted(task) {
                true => self.key_of(cpu, task, i),
                false => None,
            };
            let Some(key) = key else {
                continue;
            };
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, i));
            }
        }
        best.map(|(_, i)| i)
    }

    fn key_of(&mut self, cpu: u32, task: u32, position: usize) -> Option<Key> {
        if self.decider.ordered {
            return self.ordered_key(cpu, task, position);
        }
        let (local, view) = self.view(cpu);
        Some((false, local.key(&view, task)?, 0, position as u64))
    }

    /// A candidate's key after policy was asked; none: not now.
    fn ordered_key(&mut self, cpu: u32, task: u32, position: usize) -> Option<Key> {
        let mut obs = self.see(task, raw::COS_EV_RUN);
        let queue = self.queue_of(cpu);
        let pending = |task: &u32| self.tasks[*task as usize].mailbox.pending();
        obs.nr_pending_here = self.queues[queue].ready.iter().map(pending).sum();
        obs.known |= raw::COS_F_NR_PENDING_HERE;
        let here = self.job_here(task);
        let it = &mut self.decider;
        let state = &mut it.tasks[task as usize];
        let verdict = native::order(&it.params, &obs, state, &mut it.jobs[here]);
        it.count(raw::COS_Q_ORDER, &verdict);
        let (local, view) = self.view(cpu);
        let own = local.key(&view, task);
        let place = position as u64;
        match verdict.act {
            raw::COS_ACT_REPLACE => Some((false, verdict.key, obs.last_ran_at_ns, u64::from(task))),
            raw::COS_ACT_BIAS => Some((false, own?.saturating_add(verdict.key), 0, place)),
            raw::COS_ACT_VETO => Some((true, own?, 0, place)),
            _ => Some((false, own?, 0, place)),
        }
    }

    /// Shall `task`, ready, run instead of whoever has `cpu`?
    pub(in crate::run) fn preempts(&mut self, cpu: u32, task: u32) -> bool {
        if !self.admitted(task) {
            return false;
        }
        if !self.decider.ordered {
            let (local, view) = self.view(cpu);
            return local.preempts(&view, task);
        }
        let running = self.cpus[cpu as usize].current;
        let Some(wants) = self.ordered_key(cpu, task, 0) else {
            return false;
        };
        self.ordered_key(cpu, running, 0)
            .is_none_or(|has| (wants.0, wants.1) < (has.0, has.1))
    }

    /// `task` gets `cpu`: for how long?
    pub(in crate::run) fn give_slice(&mut self, cpu: u32, task: u32) {
        if !self.decider.sliced || !L::CAPABILITIES.slice {
            return;
        }
        let boost_ns = std::mem::take(&mut self.tasks[task as usize].boost_slice_ns);
        let slice_ns = if boost_ns > 0 {
            boost_ns
        } else {
            let obs = self.see(task, raw::COS_EV_RUN);
            let here = self.job_here(task);
            let it = &mut self.decider;
            let state = &mut it.tasks[task as usize];
            let verdict = native::quantum(&it.params, &obs, state, &mut it.jobs[here]);
            it.count(raw::COS_Q_QUANTUM, &verdict);
            verdict.slice_ns
        };
        let (local, view) = self.view(cpu);
        local.set_slice(&mut view.tasks[task as usize], slice_ns);
    }

    /// What is left of the slice of `task`, for its message; `u64::MAX` where nobody asks.
    pub(in crate::run) fn slice_left_ns(&mut self, task: u32) -> u64 {
        if !self.decider.matched {
            return u64::MAX;
        }
        self.local
            .left_ns(&self.own[task as usize])
            .unwrap_or(u64::MAX)
    }
}
