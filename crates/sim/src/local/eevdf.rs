// SPDX-License-Identifier: Apache-2.0
//! EEVDF, Linux's scheduler since 6.6, as of 6.18 (kernel/sched/fair.c).
//!
//! Each task has a virtual runtime. It is owed time (eligible) while its runtime is not
//! above the mean of all that are runnable; among the eligible the earliest virtual
//! deadline runs, which is runtime plus slice. The smallest runtime is never above the
//! mean, so somebody is always eligible. A short slice therefore runs
//! sooner, not more. Modelled: lag kept over a sleep (PLACE_LAG, with the inflation that
//! undoes the newcomer's own weight), no credit gained and debt paid off while asleep
//! (DELAY_DEQUEUE), slices ended only at ticks, RUN_TO_PARITY (who runs keeps the CPU for
//! the shortest slice of the queue while it is eligible), PREEMPT_SHORT, yield by
//! forfeiting up to the deadline.
//!
//! Not modelled: weights (all are nice 0), groups, load balancing beyond that of the body
//! (idle CPUs take waiting tasks), delayed dequeue as an entity that still competes.
//!
//! BOOST is not the kernel's: it is what a body over EEVDF could do, running a task
//! whatever its lag. The time is charged, so it is paid back in lag.

use super::{signed, slice_or, Capabilities, LocalScheduler, View, Why, NONE};
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters; defaults are those of two CPUs at HZ=250.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Eevdf {
    /// `base_slice_ns` of /sys/kernel/debug/sched.
    pub slice: Span,
    /// The clock tick, 1 / HZ.
    pub tick: Span,
    /// RUN_TO_PARITY.
    pub run_to_parity: bool,
    /// PREEMPT_SHORT.
    pub preempt_short: bool,
    /// WAKEUP_PREEMPTION.
    pub wakeup_preemption: bool,
}

impl Default for Eevdf {
    fn default() -> Self {
        Eevdf {
            slice: Span::us(1400),
            tick: Span::ms(4),
            run_to_parity: true,
            preempt_short: true,
            wakeup_preemption: true,
        }
    }
}

/// What is remembered of a task; virtual times in ns, all weights being one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    vruntime: i64,
    deadline: i64,
    /// It keeps the CPU up to this runtime.
    protected: i64,
    /// mean - vruntime when it left.
    lag: i64,
    /// The mean when it left.
    left_at: i64,
    slice: i64,
    boosted: bool,
    /// Neither ready nor running: `lag` holds.
    away: bool,
}

/// The mean of the last time somebody was here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    mean: i64,
}

type Here<'a> = View<'a, Eevdf>;

/// Everyone runnable on this CPU.
fn everyone<'a>(view: &'a Here) -> impl Iterator<Item = &'a Task> {
    let running = (view.running != NONE).then_some(&view.running);
    let all = view.ready.iter().chain(running);
    all.map(|task| &view.tasks[*task as usize])
}

/// How many are runnable, and the sum of their runtimes above `base`.
fn load(view: &Here, base: i64) -> (i64, i64) {
    everyone(view).fold((0, 0), |(n, sum), it| (n + 1, sum + it.vruntime - base))
}

/// The mean runtime, rounded down.
fn mean(view: &Here) -> i64 {
    let base = view.queue.mean;
    match load(view, base) {
        (0, _) => base,
        (n, sum) => base + sum.div_euclid(n),
    }
}

impl Eevdf {
    fn eligible(&self, view: &Here, it: &Task) -> bool {
        let base = view.queue.mean;
        let (n, sum) = load(view, base);
        sum >= (it.vruntime - base) * n
    }

    /// `entity_lag`: nobody is owed, or owes, more than two slices or ticks.
    fn bounded(&self, it: &Task, lag: i64) -> i64 {
        let limit = 2 * it.slice.max(signed(self.tick.ns()));
        lag.clamp(-limit, limit)
    }

    /// `place_entity`: where a task comes in that carries a lag.
    fn place(&self, view: &mut Here, task: u32, lag: i64) {
        let n = load(view, 0).0;
        let mean = mean(view);
        let it = &mut view.tasks[task as usize];
        let inflated = match n {
            0 => 0,
            _ => self.bounded(it, lag) * (n + 1) / n,
        };
        it.vruntime = mean - inflated;
        it.deadline = it.vruntime + it.slice;
    }

    /// `set_protect_slice`: the shortest slice of those here.
    fn protect(&self, view: &mut Here, task: u32) {
        let shortest = everyone(view).map(|it| it.slice).min();
        let it = &mut view.tasks[task as usize];
        let slice = shortest.unwrap_or(it.slice).min(it.slice);
        it.protected = match self.run_to_parity {
            true => it.deadline.min(it.vruntime + slice),
            false => it.vruntime,
        };
    }

    /// `do_preempt_short`.
    fn is_short(&self, view: &Here, it: &Task, running: &Task) -> bool {
        self.preempt_short
            && it.slice < running.slice
            && self.eligible(view, it)
            && (it.deadline < running.deadline || !self.eligible(view, running))
    }
}

impl LocalScheduler for Eevdf {
    type Queue = Queue;
    type Task = Task;
    const SHARED_QUEUE: bool = false;
    const YIELDS_ADD_UP: bool = true;
    const CAPABILITIES: Capabilities = Capabilities::ALL;

    fn tick_ns(&self) -> u64 {
        self.tick.ns()
    }

    /// Anywhere within half a slice of the mean, either side.
    fn begin(&self, task: &mut Task, phase: &mut Stream) {
        task.slice = self.slice.ns() as i64;
        task.away = true;
        task.lag = phase.below(self.slice.ns()) as i64 - task.slice / 2;
    }

    fn enqueue(&self, view: &mut View<Self>, task: u32, why: Why) {
        match why {
            Why::New | Why::Migrated => {
                let lag = view.tasks[task as usize].lag;
                self.place(view, task, lag);
            }
            Why::Woken => {
                let since = mean(view);
                let it = &view.tasks[task as usize];
                let paid = (since - it.left_at).max(0);
                let lag = if it.lag < 0 {
                    (it.lag + paid).min(0)
                } else {
                    it.lag
                };
                self.place(view, task, lag);
            }
            Why::Yielded => {
                let it = &mut view.tasks[task as usize];
                it.vruntime = it.vruntime.max(it.deadline);
                it.deadline = it.vruntime + it.slice;
            }
            Why::Preempted | Why::Expired => {}
        }
        view.tasks[task as usize].away = false;
        view.ready.push(task);
        view.queue.mean = mean(view);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        if it.boosted {
            return Some(i64::MIN);
        }
        self.eligible(view, it).then_some(it.deadline)
    }

    fn left_ns(&self, task: &Task) -> Option<u64> {
        Some((task.deadline - task.vruntime).max(1) as u64)
    }

    fn lag_ns(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        Some(if it.away {
            it.lag
        } else {
            mean(view) - it.vruntime
        })
    }

    fn start(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = false;
        self.protect(view, task);
    }

    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64) {
        view.tasks[task as usize].vruntime += (view.now_ns - from_ns) as i64;
    }

    /// The first tick at which it is no longer protected.
    fn look_at_ns(&self, view: &View<Self>, task: u32) -> u64 {
        if view.ready.is_empty() {
            return u64::MAX;
        }
        let it = &view.tasks[task as usize];
        let until = it.protected.min(it.deadline) - it.vruntime;
        let over_ns = view.now_ns + until.max(0) as u64;
        match until {
            1.. => view.clock.at_or_after(over_ns),
            _ => view.clock.nth_after(view.now_ns, 1),
        }
    }

    fn expire(&self, view: &mut View<Self>, task: u32) -> bool {
        let it = &mut view.tasks[task as usize];
        if it.vruntime >= it.deadline {
            it.deadline = it.vruntime + it.slice;
        }
        true
    }

    fn preempts(&self, view: &View<Self>, task: u32) -> bool {
        if view.running == NONE {
            return true;
        }
        let it = &view.tasks[task as usize];
        let running = &view.tasks[view.running as usize];
        if it.boosted || self.is_short(view, it, running) {
            return true;
        }
        let protected = running.vruntime < running.protected && self.eligible(view, running);
        if !self.wakeup_preemption || protected || !self.eligible(view, it) {
            return false;
        }
        let first = |other: u32| self.key(view, other).is_none_or(|key| key >= it.deadline);
        let others = view.ready.iter().filter(|other| **other != task);
        others.copied().chain([view.running]).all(first)
    }

    fn stop(&self, view: &mut View<Self>, task: u32) {
        let mean = mean(view);
        view.queue.mean = mean;
        let it = &mut view.tasks[task as usize];
        it.lag = self.bounded(it, mean - it.vruntime);
        it.left_at = mean;
        it.away = true;
    }

    fn boost(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = true;
    }

    fn set_slice(&self, task: &mut Task, slice_ns: u64) {
        task.slice = slice_or(slice_ns, self.slice);
    }
}
