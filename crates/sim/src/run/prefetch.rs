// SPDX-License-Identifier: Apache-2.0
//! Fetching early what the next events will touch.
//!
//! With 10^4 nodes their state is far larger than the caches, and each event finds its node
//! cold. The queue knows who is next: the CPU record of the event after some others is asked for
//! now; once that is there, the task that it names; and once that is there, its job and its
//! program. This changes nothing but the time.

use super::Sim;
use crate::engine::{Event, EventQueue, Kind};
use crate::local::LocalScheduler;

/// Events ahead at which the record is asked for, at which it is followed, and once more.
const FAR: usize = 5;
const NEAR: usize = 3;
const NEXT: usize = 1;
const LINE: usize = 64;

/// Asks for the first `lines` cache lines of `all[i]`.
fn ask<T>(all: &[T], i: u32, lines: usize) {
    let Some(it) = all.get(i as usize) else {
        return;
    };
    let lines = lines.min(size_of::<T>().div_ceil(LINE));
    let first = std::ptr::from_ref(it).cast::<i8>();
    (0..lines).for_each(|line| ask_line(first.wrapping_add(line * LINE)));
}

/// Asks for the cache line of `at`.
fn ask_line(at: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, valid for any address.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(at);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl<L: LocalScheduler, Q: EventQueue, O> Sim<'_, L, Q, O> {
    /// Called before each event.
    pub(super) fn fetch_early(&self) {
        if let Some(event) = self.agenda.likely(FAR) {
            ask(&self.nodes, event.node(), 2);
            match event.kind() {
                Kind::Cpu => ask(&self.cpus, event.from(), 4),
                Kind::Arrival => {
                    ask(&self.nodes, event.from(), 3);
                    ask(&self.cpus, event.node() * self.cpus_each, 4);
                }
                _ => {}
            }
        }
        if let Some(event) = self.agenda.likely(NEAR) {
            ask(&self.tasks, self.current_at(event), 12);
        }
        if let Some(event) = self.agenda.likely(NEXT) {
            if let Some(task) = self.tasks.get(self.current_at(event) as usize) {
                ask(&self.jobs, task.job, 2);
                ask_line(std::ptr::from_ref(&*task.script.program).cast());
            }
        }
    }

    /// The task on the CPU that `event` is about; of several CPUs of a node the first.
    fn current_at(&self, event: Event) -> u32 {
        let cpu = match event.kind() {
            Kind::Cpu => event.from(),
            _ => event.node() * self.cpus_each,
        };
        self.cpus[cpu as usize].current
    }
}
