// SPDX-License-Identifier: Apache-2.0
//! Fetching early what the next events will touch.
//!
//! With 10^4 nodes their state is far larger than the caches, and each event finds its node
//! cold. The queue knows who is next: the CPU record of the event after some others is asked for
//! now, and once that is there, the task that it names. This changes nothing but the time.

use super::Sim;
use crate::engine::{EventQueue, Kind};
use crate::local::LocalScheduler;

/// Events ahead at which the record is asked for, and at which it is followed.
const FAR: usize = 5;
const NEAR: usize = 2;
const LINE: usize = 64;

/// Asks for the first `lines` cache lines of `all[i]`.
fn ask<T>(all: &[T], i: u32, lines: usize) {
    let Some(it) = all.get(i as usize) else {
        return;
    };
    let lines = lines.min(size_of::<T>().div_ceil(LINE));
    for line in 0..lines {
        let at = std::ptr::from_ref(it)
            .cast::<i8>()
            .wrapping_add(line * LINE);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint, valid for any address; this one lies within `it`.
        unsafe {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            _mm_prefetch::<_MM_HINT_T0>(at);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
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
            let cpu = match event.kind() {
                Kind::Cpu => event.from(),
                _ => event.node() * self.cpus_each,
            };
            ask(&self.tasks, self.cpus[cpu as usize].current, 12);
        }
    }
}
