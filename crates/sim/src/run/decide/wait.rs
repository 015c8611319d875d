// SPDX-License-Identifier: Apache-2.0
//! How a waiting task waits: what the shim knows, and what it does.
//!
//! Asking a CPU to choose again costs nothing here; in the shim it is a thread that wakes there.

use crate::cluster::TaskState;
use crate::engine::EventQueue;
use crate::local::{LocalScheduler, NONE};
use crate::observer::Observer;
use crate::program::ANY;
use crate::run::Sim;
use cosched_policy::native::{self, Obs};
use cosched_policy::raw;

/// Outsiders are averaged over about that long, as the shim does.
const OUTSIDERS_OVER_NS: u64 = 50_000_000;
/// A peer's boost is asked for up to that long, in intervals that double, as the shim does.
const LONGEST_ASKING_NS: u64 = 50_000_000;

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    /// `task`, on `cpu`, has found nothing: how shall it wait?
    pub(in crate::run) fn ask_wait(&mut self, cpu: u32, task: u32) {
        let began_ns = self.tasks[task as usize].wait_began_ns;
        let mut obs = Obs {
            now_ns: self.now_ns,
            event: raw::COS_EV_WAIT,
            known: raw::COS_F_WAITED,
            waited_ns: self.now_ns - began_ns,
            ..Obs::default()
        };
        if self.decider.adaptive {
            self.see_company(cpu, task, &mut obs);
        }
        let here = self.job_here(task);
        let it = &mut self.decider;
        let state = &mut it.tasks[task as usize];
        let verdict = native::wait(&it.params, &obs, state, &mut it.jobs[here]);
        it.count(raw::COS_Q_WAIT, &verdict);
        it.asking_ns[task as usize] = match verdict.boost_peer {
            0 => 0,
            _ => verdict.until_ns.saturating_sub(self.now_ns),
        };
        let pace_ns = std::mem::replace(&mut it.pace_ns[task as usize], verdict.slice_ns);
        if pace_ns == 0 && verdict.slice_ns > 0 {
            self.set_task_timer(task, self.now_ns + verdict.slice_ns);
        }
        match verdict.act {
            raw::COS_ACT_YIELD => self.give_way(cpu, task, verdict.until_ns, verdict.watch),
            raw::COS_ACT_BLOCK => self.fall_asleep(cpu, task),
            _ => self.spin(cpu, task, verdict.until_ns, verdict.watch),
        }
    }

    /// What the shim knows: ranks of its job and others that want the CPU, and its peer.
    fn see_company(&mut self, cpu: u32, task: u32, obs: &mut Obs) {
        let job = self.job_of(task);
        let queue = self.queue_of(cpu);
        let ready = &self.queues[queue].ready;
        let ours = ready
            .iter()
            .filter(|other| self.job_of(**other) == job)
            .count() as u32;
        let others_q8 = (ready.len() as u32 - ours) << 8;
        let (average_q8, looked_ns) = self.decider.outsiders[task as usize];
        let passed_ns = (self.now_ns - looked_ns).min(OUTSIDERS_OVER_NS);
        let off = i64::from(others_q8) - i64::from(average_q8);
        let moved = i64::from(average_q8) + off * passed_ns as i64 / OUTSIDERS_OVER_NS as i64;
        self.decider.outsiders[task as usize] = (moved as u32, self.now_ns);
        let siblings = self.siblings(cpu);
        let of_job = |other: &&u32| {
            let it = &self.tasks[**other as usize];
            let alive = !matches!(it.state, TaskState::Unborn | TaskState::Done);
            **other != task && it.job as usize == job && siblings.contains(&it.cpu) && alive
        };
        let node = &self.nodes[self.tasks[task as usize].node as usize];
        obs.nr_of_job_here = node.tasks.iter().filter(of_job).count() as u32;
        obs.known |= raw::COS_F_NR_OF_JOB_HERE;
        obs.nr_same_job_here = ours;
        obs.nr_outsiders_q8 = moved as u32;
        obs.known |= raw::COS_F_NR_SAME_JOB_HERE | raw::COS_F_OUTSIDERS;
        if let Some(state) = self.peer_state(task) {
            obs.peer_state = state;
            obs.known |= raw::COS_F_PEER_STATE;
        }
    }

    /// Where the awaited peer is, if it is one and on the same node.
    fn peer_state(&self, task: u32) -> Option<u32> {
        let it = &self.tasks[task as usize];
        let peer = self.tasks.get(it.wait_from as usize)?;
        if peer.node != it.node {
            return None;
        }
        Some(match peer.state {
            TaskState::Running => raw::COS_PEER_ON_CPU,
            TaskState::Ready | TaskState::Blocked if peer.woken_ns != u64::MAX => {
                raw::COS_PEER_WAKING
            }
            _ => raw::COS_PEER_OFF_CPU,
        })
    }

    /// `peer` came on or went off its CPU: who waits for it on the same node decides again.
    pub(in crate::run) fn peer_changed(&mut self, peer: u32) {
        if !self.decider.adaptive || self.cpus_each == 1 {
            return;
        }
        let first = self.tasks[peer as usize].node * self.cpus_each;
        for cpu in first..first + self.cpus_each {
            let task = self.cpus[cpu as usize].current;
            if task == NONE {
                continue;
            }
            let it = &mut self.tasks[task as usize];
            if it.spinning && it.wait_from == peer && it.watch & raw::COS_F_PEER_STATE != 0 {
                it.spin_until_ns = self.now_ns;
                self.charge(cpu);
                self.arm(cpu);
            }
        }
    }

    /// Somebody became ready beside the task of `cpu`: a verdict that watches for that is over.
    pub(in crate::run) fn stir(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].current;
        if task == NONE {
            return;
        }
        let it = &mut self.tasks[task as usize];
        if it.spinning && (it.yielding || it.watch & raw::COS_F_NR_SAME_JOB_HERE != 0) {
            it.spin_until_ns = self.now_ns;
            self.arm(cpu);
        }
    }

    /// The CPU of `task` is to choose again, if policy said how often; true: it did.
    pub(in crate::run) fn keep_pace(&mut self, task: u32) -> bool {
        let pace_ns = self.decider.pace_ns[task as usize];
        let it = &self.tasks[task as usize];
        let cpu = it.cpu;
        if pace_ns == 0 || matches!(it.state, TaskState::Sleeping | TaskState::Done) {
            return false;
        }
        self.set_task_timer(task, self.now_ns + pace_ns);
        if self.cpus[cpu as usize].current != NONE {
            self.preempt(cpu);
        }
        true
    }

    /// `task` sleeps, and its peer on this node has something to do: its CPU chooses again, as
    /// when a thread of the peer wakes there (shim/boost.c). Asked again in intervals that double.
    pub(in crate::run) fn ask_for_boost(&mut self, task: u32) {
        let asking_ns = self.decider.asking_ns[task as usize];
        let from = self.tasks[task as usize].wait_from;
        if asking_ns == 0 || from == ANY || asking_ns > LONGEST_ASKING_NS {
            return;
        }
        self.decider.asking_ns[task as usize] = 2 * asking_ns;
        self.set_task_timer(task, self.now_ns + asking_ns);
        let peer = &self.tasks[from as usize];
        let (cpu, here) = (peer.cpu, peer.node == self.tasks[task as usize].node);
        if here && peer.state == TaskState::Ready && self.cpus[cpu as usize].current != NONE {
            self.preempt(cpu);
        }
    }
}
