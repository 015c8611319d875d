// SPDX-License-Identifier: Apache-2.0
//! Solaris 2.4's time-sharing class: S1, section 3.2.4 and table 1.
//!
//! Sixty queues, the head of the highest runs. Who uses up its quantum falls by ten;
//! who waits is raised by `ts_update` once a second; who returns from sleep may be raised to
//! `ts_slpret`. Quanta are counted in clock ticks of 10 ms, as the kernel counts them: who
//! runs when the tick comes pays all of it. That jitter is real.
//!
//! From the paper: quanta, `ts_slpret`, preemption to the end of the own queue. Not in
//! the paper, taken from SVR4's default table as published in its `ts_dptbl` manual page:
//! the fall at expiry (priority - 10, at least 0) and `ts_lwait` (equal to `ts_slpret`,
//! reached after any second of waiting).
//!
//! *dispwait*: the paper says that `ts_update` flags who sleeps at that moment; SVR4's
//! code counts the updates since the last change of priority, asleep or not. Both readings
//! are here, as a parameter; figure 9 of S1 can tell them apart.
//!
//! Not modelled: user priorities (nice), kernel priorities, real time.

use super::{Capabilities, LocalScheduler, View, Why, NONE};
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

const TOP: u8 = 59;

/// Which sleepers get `ts_slpret`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dispwait {
    /// Who was asleep when `ts_update` ran (the paper's words).
    #[default]
    Asleep,
    /// Who has not had its priority set since a `ts_update` ran (SVR4's code).
    Counted,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SolarisTs {
    /// The clock tick.
    pub tick: Span,
    /// The period of `ts_update`.
    pub update: Span,
    /// Which sleepers are raised.
    pub dispwait: Dispwait,
    /// False: `ts_slpret[n]` = n, no boost after sleep (S1, figure 9).
    pub sleep_boost: bool,
    /// Every priority has this quantum instead of the table's; 0: the table (S1, section 5.1).
    pub equal_quantum: Span,
}

impl Default for SolarisTs {
    fn default() -> Self {
        SolarisTs {
            tick: Span::ms(10),
            update: Span::ms(1000),
            dispwait: Dispwait::Asleep,
            sleep_boost: true,
            equal_quantum: Span::ZERO,
        }
    }
}

/// What the class remembers of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    priority: u8,
    /// Ticks left of the quantum.
    left: u32,
    /// Updates since the priority was last set; or, by the paper, seen while asleep.
    dispwait: u8,
}

/// Quantum in ms and ts_slpret of table 1.
fn row(priority: u8) -> (u64, u8) {
    match priority {
        0..=9 => (200, 50),
        10..=19 => (160, 51),
        20..=29 => (120, 52),
        30..=34 => (80, 53),
        35..=39 => (80, 54),
        40..=44 => (40, 55),
        45..=49 => (40, 56),
        50..=54 => (40, 57),
        55..=58 => (40, 58),
        _ => (20, 59),
    }
}

impl SolarisTs {
    fn quantum_ticks(&self, priority: u8) -> u32 {
        let ns = match self.equal_quantum {
            Span::ZERO => row(priority).0 * 1_000_000,
            equal => equal.ns(),
        };
        (ns / self.tick.ns()).max(1) as u32
    }

    /// A new priority with a whole quantum.
    fn set(&self, task: &mut Task, priority: u8) {
        *task = Task {
            priority,
            left: self.quantum_ticks(priority),
            dispwait: 0,
        };
    }
}

impl LocalScheduler for SolarisTs {
    type Queue = ();
    type Task = Task;
    const SHARED_QUEUE: bool = true;
    const YIELDS_ADD_UP: bool = false;
    const CAPABILITIES: Capabilities = Capabilities {
        boost: true,
        slice: false,
        order_replace: false,
        order_bias: false,
        yields: true,
        lag: false,
    };

    fn tick_ns(&self) -> u64 {
        self.tick.ns()
    }

    /// Anywhere in its first quantum, in the middle of the table as after a fork.
    fn begin(&self, task: &mut Task, phase: &mut Stream) {
        self.set(task, 29);
        task.left = 1 + phase.below(u64::from(task.left)) as u32;
    }

    fn enqueue(&self, view: &mut View<Self>, task: u32, why: Why) {
        let it = &mut view.tasks[task as usize];
        if why == Why::Woken && it.dispwait > 0 && self.sleep_boost {
            self.set(it, row(it.priority).1);
        }
        view.ready.push(task);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        Some(-i64::from(view.tasks[task as usize].priority))
    }

    fn left_ns(&self, task: &Task) -> Option<u64> {
        Some(u64::from(task.left) * self.tick.ns())
    }

    fn start(&self, _: &mut View<Self>, _: u32) {}

    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64) {
        let ticks = view.clock.ticks(from_ns, view.now_ns);
        let it = &mut view.tasks[task as usize];
        it.left = it.left.saturating_sub(ticks as u32);
    }

    fn look_at_ns(&self, view: &View<Self>, task: u32) -> u64 {
        match view.tasks[task as usize].left {
            0 => view.now_ns,
            left => view.clock.nth_after(view.now_ns, u64::from(left)),
        }
    }

    fn expire(&self, view: &mut View<Self>, task: u32) -> bool {
        let it = &mut view.tasks[task as usize];
        if it.left > 0 {
            return false;
        }
        self.set(it, it.priority.saturating_sub(10));
        true
    }

    fn preempts(&self, view: &View<Self>, task: u32) -> bool {
        view.running == NONE
            || view.tasks[task as usize].priority > view.tasks[view.running as usize].priority
    }

    /// Priority 59 and the front of the queue (S1, section 3.3.2); preempts even another 59.
    fn boost(&self, view: &mut View<Self>, task: u32) {
        self.set(&mut view.tasks[task as usize], TOP);
        view.ready.retain(|other| *other != task);
        view.ready.insert(0, task);
    }

    fn set_slice(&self, _: &mut Task, _: u64) {}

    fn period_ns(&self) -> Option<u64> {
        Some(self.update.ns())
    }

    fn on_period(&self, view: &mut View<Self>, asleep: &[u32], running: &[u32]) -> bool {
        let counted = self.dispwait == Dispwait::Counted;
        let others = if counted { running } else { &[] };
        for task in asleep.iter().chain(others) {
            let it = &mut view.tasks[*task as usize];
            it.dispwait = it.dispwait.saturating_add(1);
        }
        let mut raised = false;
        for &task in view.ready.iter() {
            let it = &mut view.tasks[task as usize];
            let lwait = row(it.priority).1;
            if lwait > it.priority {
                self.set(it, lwait);
                raised = true;
            } else if counted {
                it.dispwait = it.dispwait.saturating_add(1);
            }
        }
        raised
    }
}
