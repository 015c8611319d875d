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
//! Two readings of whom `ts_update` raises, as the parameter *dispwait*. The paper says: who
//! waits is raised, who sleeps is flagged, who runs stays as it is. The code of the class, as
//! published in illumos (usr/src/uts/common/disp/ts.c: ts_update_list, ts_trapret, ts_wakeup), also has
//! who runs pass through `ts_trapret` at once, which gives it `ts_slpret`: nobody stays low for
//! longer than a second. There the top row has a `ts_maxwait` of 32000, so it keeps what it has.
//!
//! Not modelled: user priorities (nice), kernel priorities, real time.

use super::{Capabilities, LocalScheduler, View, Why, NONE};
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

const TOP: u8 = 59;

/// Who gets `ts_slpret`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dispwait {
    /// Who was asleep when `ts_update` ran, on return from sleep (the paper's words).
    #[default]
    Asleep,
    /// That, and who runs when `ts_update` does, at once (the code of the class).
    Counted,
}

/// What a boost by DCS raises: "its priority ... to the maximum" (S1, section 3.3.2) may mean either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boost {
    /// The priority that the class keeps, with a whole quantum: it falls from there by tens.
    #[default]
    Class,
    /// Only the place in the dispatcher's queues, for what is left of the quantum: the class
    /// sets the priority from where it was.
    Dispatcher,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SolarisTs {
    /// The clock tick.
    pub tick: Span,
    /// The period of `ts_update`.
    pub update: Span,
    /// Who is raised.
    pub dispwait: Dispwait,
    /// False: `ts_slpret[n]` = n, no boost after sleep (S1, figure 9).
    pub sleep_boost: bool,
    /// What DCS raises.
    pub boost: Boost,
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
            boost: Boost::Class,
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
    /// A `ts_update` came while it slept.
    dispwait: bool,
    /// The dispatcher sees it at the top, whatever `priority` is.
    at_top: bool,
}

impl Task {
    /// The priority that the dispatcher goes by.
    fn seen(&self) -> u8 {
        match self.at_top {
            true => TOP,
            false => self.priority,
        }
    }
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

    /// Back from the kernel after a `ts_update`: `ts_slpret`. The top keeps what it has.
    fn returns(&self, task: &mut Task) {
        let slpret = match self.sleep_boost {
            true => row(task.priority).1,
            false => task.priority,
        };
        if task.priority < TOP {
            self.set(task, slpret);
        }
    }

    /// A new priority with a whole quantum.
    fn set(&self, task: &mut Task, priority: u8) {
        *task = Task {
            priority,
            left: self.quantum_ticks(priority),
            dispwait: false,
            at_top: false,
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
        if why == Why::Woken && it.dispwait {
            self.returns(it);
        }
        view.ready.push(task);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        Some(-i64::from(view.tasks[task as usize].seen()))
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
            || view.tasks[task as usize].seen() > view.tasks[view.running as usize].seen()
    }

    /// Priority 59 and the front of the queue (S1, section 3.3.2); preempts even another 59.
    fn boost(&self, view: &mut View<Self>, task: u32) {
        let it = &mut view.tasks[task as usize];
        match self.boost {
            Boost::Class => self.set(it, TOP),
            Boost::Dispatcher => it.at_top = true,
        }
        view.ready.retain(|other| *other != task);
        view.ready.insert(0, task);
    }

    fn set_slice(&self, _: &mut Task, _: u64) {}

    fn period_ns(&self) -> Option<u64> {
        Some(self.update.ns())
    }

    fn on_period(&self, view: &mut View<Self>, asleep: &[u32], running: &[u32]) -> bool {
        for task in asleep {
            view.tasks[*task as usize].dispwait = true;
        }
        let mut raised = false;
        for &task in view.ready.iter() {
            let it = &mut view.tasks[task as usize];
            let lwait = row(it.priority).1;
            if lwait > it.priority {
                self.set(it, lwait);
                raised = true;
            }
        }
        if self.dispwait == Dispwait::Counted {
            for task in running {
                self.returns(&mut view.tasks[*task as usize]);
                raised = true;
            }
        }
        raised
    }
}
