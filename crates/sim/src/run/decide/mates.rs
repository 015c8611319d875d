// SPDX-License-Identifier: Apache-2.0
//! What our kernel body sees of the ranks of one job on its node (bpf/observe.bpf.h, act.bpf.h, main.bpf.c).
//!
//!   run    a rank comes on a CPU: an arrival for its mates that are queued on others. Ranks that
//!          spin on shared memory send nothing that a kernel could see, but only who runs can send
//!   turn   a rank leaves its CPU after a whole turn: its mates' CPUs choose again (S1, section 5.1)
//!   yield  a rank waits in `sched_yield()`: an arrival for all its mates that are queued
//!
//! Run and turn act only where the preset answers `arrival`. They happen to other CPUs, so they are carried out
//! when the event that caused them is over, as the kernel's interrupts between CPUs are. A refusal is not asked again by
//! itself: the next run or yield of a mate does.
//!
//! Not modelled: the body asks `wait` when a rank of an adaptive preset yields, for programs without the library (here
//! whoever yields has asked, and knew more); the threads that a library starts are ranks to it too; a rank that yields is
//! in no queue for a moment; boosts expire.

use crate::cluster::TaskState;
use crate::engine::EventQueue;
use crate::local::{LocalScheduler, NONE};
use crate::observer::Observer;
use crate::run::Sim;

/// Something that a rank did.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) enum Seen {
    /// It came on its CPU.
    Run(u32),
    /// It left it, after a whole turn.
    Turn(u32),
    /// It yielded it.
    Yield(u32),
}

impl<L: LocalScheduler, Q: EventQueue, O: Observer> Sim<'_, L, Q, O> {
    fn note(&mut self, what: Seen, task: u32) {
        if self.local.sees_mates() && self.cpus_each > 1 && self.communicates(task) {
            self.seen.push(what);
        }
    }

    pub(in crate::run) fn note_run(&mut self, task: u32) {
        if self.decider.on_arrival {
            self.note(Seen::Run(task), task);
        }
    }

    pub(in crate::run) fn note_turn(&mut self, task: u32) {
        if self.decider.on_arrival {
            self.note(Seen::Turn(task), task);
        }
    }

    pub(in crate::run) fn note_yield(&mut self, task: u32) {
        self.note(Seen::Yield(task), task);
    }

    /// Carries out what was noted, and what follows from it at this instant.
    pub(in crate::run) fn see_mates(&mut self) {
        let mut at = 0;
        while let Some(seen) = self.seen.get(at).copied() {
            at += 1;
            match seen {
                Seen::Run(task) => self.boost_mates(task, self.tasks[task as usize].cpu),
                Seen::Yield(task) => self.boost_mates(task, NONE),
                Seen::Turn(task) => self.choose_again(task),
            }
        }
        self.seen.clear();
    }

    fn cpus_of(&self, task: u32) -> std::ops::Range<u32> {
        let first = self.tasks[task as usize].node * self.cpus_each;
        first..first + self.cpus_each
    }

    /// Something arrived for the mates of `task` that are queued on any CPU but `but`.
    fn boost_mates(&mut self, task: u32, but: u32) {
        let job = self.job_of(task);
        for cpu in self.cpus_of(task).filter(|cpu| *cpu != but) {
            let mates = |other: &u32| *other != task && self.job_of(*other) == job;
            let ready = &self.queues[self.queue_of(cpu)].ready;
            let mates: Vec<u32> = ready.iter().copied().filter(mates).collect();
            for mate in mates {
                if self.tasks[mate as usize].state == TaskState::Ready {
                    self.ask_arrival(mate, None);
                }
            }
        }
    }

    /// Who goes on now spins for who is gone.
    fn choose_again(&mut self, task: u32) {
        let (job, cpu) = (self.job_of(task), self.tasks[task as usize].cpu);
        for other in self.cpus_of(task).filter(|other| *other != cpu) {
            let mate = self.cpus[other as usize].current;
            if mate != NONE && self.job_of(mate) == job {
                self.kick(other);
            }
        }
    }
}
