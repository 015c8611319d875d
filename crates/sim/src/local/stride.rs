// SPDX-License-Identifier: Apache-2.0
//! Stride scheduling: Waldspurger and Weihl, MIT/LCS/TM-528, 1995, which S1 (section 5.3) wishes
//! for as a node scheduler, since it separates the order in which tasks run from their shares.
//!
//! Each task has a pass, and the least pass runs for a quantum. The pass grows with the CPU time used,
//! also where that is less or more than a quantum (there: nonuniform quanta), so a task that ran out of turn
//! pays for it to the nanosecond. The global pass grows as that of a task would that gets exactly its share. Who leaves
//! remembers how far it was from the global pass and returns at that distance (there: dynamic client
//! participation): sleeping neither earns nor pays.
//!
//! All tasks have one ticket each, since jobs have no weights in a scenario: a pass is
//! CPU time in ns. A yield gives the advantage over the next task away, as if it had been
//! used. Not modelled: transfer of tickets, the hierarchical variant.
//!
//! Choices fall at the ends of quanta; `wakeup_preemption` is ours, and so is the default quantum. Quanta end at
//! clock ticks. BOOST runs a task whatever its pass.

use super::{refuse_zero, slice_or, Capabilities, LocalScheduler, View, Why, NONE};
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stride {
    /// How long a turn lasts.
    pub quantum: Span,
    /// The clock tick.
    pub tick: Span,
    /// True: who wakes with a smaller pass than who runs preempts.
    pub wakeup_preemption: bool,
}

impl Default for Stride {
    fn default() -> Self {
        Stride {
            quantum: Span::ms(100),
            tick: Span::ms(10),
            wakeup_preemption: false,
        }
    }
}

/// What is remembered of a task, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// CPU time used; while it is away, its distance from the global pass.
    pass: i64,
    away: bool,
    quantum: i64,
    /// Of this turn.
    used: i64,
    boosted: bool,
}

/// The global pass in ns, and what is not yet divided among the tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    global: i64,
    undivided: i64,
}

impl Queue {
    /// One of `sharers` used `ns`.
    fn advance(&mut self, ns: i64, sharers: usize) {
        self.undivided += ns;
        self.global += self.undivided / sharers as i64;
        self.undivided %= sharers as i64;
    }
}

impl LocalScheduler for Stride {
    type Queue = Queue;
    type Task = Task;
    const SHARED_QUEUE: bool = false;
    const YIELDS_ADD_UP: bool = false;
    const CAPABILITIES: Capabilities = Capabilities::ALL;

    fn refuses(&self) -> Option<String> {
        refuse_zero("quantum", self.quantum)
    }

    fn tick_ns(&self) -> u64 {
        self.tick.ns()
    }

    /// Within half a quantum of the global pass, anywhere in its first quantum.
    fn begin(&self, task: &mut Task, phase: &mut Stream) {
        let quantum_ns = self.quantum.ns();
        task.quantum = quantum_ns as i64;
        task.pass = phase.below(quantum_ns) as i64 - task.quantum / 2;
        task.used = phase.below(quantum_ns) as i64;
        task.away = true;
    }

    fn enqueue(&self, view: &mut View<Self>, task: u32, why: Why) {
        let passes = view.ready.iter().map(|it| view.tasks[*it as usize].pass);
        let next = passes.min().unwrap_or(i64::MIN);
        let it = &mut view.tasks[task as usize];
        if std::mem::take(&mut it.away) {
            it.pass += view.queue.global;
        }
        if why == Why::Yielded && next > it.pass {
            view.queue.advance(next - it.pass, view.ready.len() + 1);
            it.pass = next;
        }
        if why != Why::New {
            it.used = 0;
        }
        view.ready.push(task);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        Some(if it.boosted { i64::MIN } else { it.pass })
    }

    fn left_ns(&self, task: &Task) -> Option<u64> {
        Some((task.quantum - task.used).max(1) as u64)
    }

    fn lag_ns(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        Some(if it.away { 0 } else { view.queue.global } - it.pass)
    }

    fn start(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = false;
    }

    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64) {
        let ran = (view.now_ns - from_ns) as i64;
        let it = &mut view.tasks[task as usize];
        it.pass += ran;
        it.used += ran;
        view.queue.advance(ran, view.ready.len() + 1);
    }

    fn look_at_ns(&self, view: &View<Self>, task: u32) -> u64 {
        let it = &view.tasks[task as usize];
        view.used_up_at_ns(it.quantum - it.used)
    }

    fn expire(&self, _: &mut View<Self>, _: u32) -> bool {
        true
    }

    fn preempts(&self, view: &View<Self>, task: u32) -> bool {
        if view.running == NONE || view.tasks[task as usize].boosted {
            return true;
        }
        let pass = |task: u32| view.tasks[task as usize].pass;
        self.wakeup_preemption && pass(task) < pass(view.running)
    }

    fn stop(&self, view: &mut View<Self>, task: u32) {
        let it = &mut view.tasks[task as usize];
        it.pass -= view.queue.global;
        it.away = true;
    }

    fn boost(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = true;
    }

    fn set_slice(&self, task: &mut Task, slice_ns: u64) {
        task.quantum = slice_or(slice_ns, self.quantum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_divided_among_others_is_never_lost() {
        let mut queue = Queue::default();
        (0..7).for_each(|_| queue.advance(1, 3));
        assert_eq!((queue.global, queue.undivided), (2, 1));
        queue.advance(1, 2);
        assert_eq!((queue.global, queue.undivided), (3, 0));
    }
}
