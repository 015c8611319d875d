// SPDX-License-Identifier: Apache-2.0
//! Our kernel body's rule: fair virtual time (vtime) per CPU, with boosts within a bounded debt.
//!
//! A task's vtime grows with the CPU time that was measured, never with what is left
//! of a slice, so a preempted or yielding task pays for what it had. The CPU's vtime is the least of all that are
//! runnable there, and never goes back. In turn:
//!
//!   1. a boosted task, as long as it is at most `max_debt` ahead of the CPU's vtime
//!   2. the least vtime, who was preempted just now counting `granularity` less
//!   3. who yielded just now
//!
//! A boost beyond the debt is not forgotten: it is carried out when the CPU's vtime has come
//! near enough, which others must run for. So whatever policy grants, nobody is ever
//! more than `max_debt` and one slice ahead of who waits. A boost is worth one slice.
//!
//! Latency: a task that slept comes back owed up to `credit`, and
//! preempts if it is more than `granularity` behind who runs. Debt stays over a sleep, until the
//! CPU's vtime has made up for it. Who yields keeps its vtime, and is at most `credit` behind the next.
//!
//! It is the model of a sched_ext scheduler: slices end at ticks, and what it needs to know of a queue
//! is its first task. Not modelled: weights (all are 1), the choice of an idle CPU beyond that of
//! the simulator, cgroups, wakers that say that they are about to sleep (of sockets and pipes). The defaults are ours.
//!
//! With `body` it is the kernel body as it is (bpf/), of which the above is the idea. A node then sees more of the
//! ranks on it (`run/decide/mates.rs`), and choices are sched_ext's: who was put back goes on only if nobody has a lesser
//! key, its advantage begins with the next choice and lasts until it runs; each turn has a whole slice;
//! who wakes preempts only where it is first in its queue; boosts preempt neither a boosted turn nor twice within `KICK_GAP_NS`.

use super::{refuse_zero, signed, slice_or, Capabilities, LocalScheduler, View, Why};
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cosched {
    /// How long a turn lasts.
    pub slice: Span,
    /// The clock tick, 1 / HZ.
    pub tick: Span,
    /// A boosted task may be so far ahead.
    pub max_debt: Span,
    /// A sleeper or yielder keeps so much of what it is owed.
    pub credit: Span,
    /// Who wakes preempts from so far behind; so long a turn lasts at least.
    pub granularity: Span,
    /// The kernel body with all that it sees of ranks on its node; false: its rule alone.
    #[serde(skip_serializing_if = "crate::units::is_off")]
    pub body: bool,
}

/// The body's default least time between two kicks of a CPU for boosts.
const KICK_GAP_NS: u64 = 50_000;

impl Default for Cosched {
    fn default() -> Self {
        Cosched {
            slice: Span::ms(3),
            tick: Span::ms(4),
            max_debt: Span::ms(20),
            credit: Span::ms(3),
            granularity: Span::ms(1),
            body: false,
        }
    }
}

/// What is remembered of a task, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    vtime: i64,
    /// Its place in the queue.
    key: i64,
    slice: i64,
    /// Of this slice.
    used: i64,
    /// Since it came on its CPU, whatever slices that were.
    ran: i64,
    boosted: bool,
    /// Neither ready nor running: `lag` and `left_at` hold.
    away: bool,
    /// The CPU's vtime less its own, when it left.
    lag: i64,
    /// The CPU's vtime when it left.
    left_at: i64,
}

/// What is remembered of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    vtime: i64,
    /// Goes last in the next choice.
    yielded: Option<u32>,
    /// Has an advantage in the next choice; under the body has none in that one yet.
    put_back: Option<u32>,
    /// This turn is a boost.
    boosted: bool,
    /// When a boost may preempt here again.
    kick_from_ns: u64,
}

/// Below every vtime.
const BOOSTED: i64 = i64::MIN / 2;

fn ns(span: Span) -> i64 {
    signed(span.ns())
}

/// The least place of those that wait.
fn next(view: &View<Cosched>) -> Option<i64> {
    let waiting = view.ready.iter();
    waiting.map(|it| view.tasks[*it as usize].key).min()
}

/// The CPU's vtime is the least of all that are runnable there.
fn advance(view: &mut View<Cosched>) {
    let running = view.tasks.get(view.running as usize).map(|it| it.vtime);
    let least = next(view).into_iter().chain(running).min();
    view.queue.vtime = least.unwrap_or(i64::MIN).max(view.queue.vtime);
}

/// How far the mean of all that want the CPU is beyond the least.
fn mean_beyond(view: &View<Cosched>) -> i64 {
    let running = view.tasks.get(view.running as usize);
    let ready = view.ready.iter().map(|it| &view.tasks[*it as usize]);
    let beyond: Vec<i64> = ready
        .chain(running)
        .map(|it| it.vtime - view.queue.vtime)
        .collect();
    beyond.iter().sum::<i64>() / (beyond.len() as i64).max(1)
}

impl Cosched {
    fn may_be_boosted(&self, queue: &Queue, it: &Task) -> bool {
        it.boosted && it.vtime - queue.vtime <= ns(self.max_debt)
    }

    /// What a task is owed that returns: what it was, and what it missed, up to the credit.
    fn owed(&self, queue: &Queue, it: &Task) -> i64 {
        let missed = (queue.vtime - it.left_at).max(0);
        it.lag.saturating_add(missed).min(ns(self.credit))
    }

    /// Its place: the rule's is its vtime, and `put_back` an advantage in one choice.
    fn settle(&self, queue: &mut Queue, task: u32, it: &mut Task, why: Why) {
        let early = match self.body {
            true => matches!(why, Why::Preempted | Why::Expired) && it.ran < it.slice,
            false => why == Why::Preempted && it.used < it.slice,
        };
        it.key = match self.body && early {
            true => it.vtime - ns(self.granularity),
            false => it.vtime,
        };
        if matches!(why, Why::Preempted | Why::Expired) && (self.body || early) {
            queue.put_back = Some(task);
        }
        if why != Why::New && (self.body || !early) {
            it.used = 0;
        }
    }
}

impl LocalScheduler for Cosched {
    type Queue = Queue;
    type Task = Task;
    const SHARED_QUEUE: bool = false;
    const YIELDS_ADD_UP: bool = false;
    const CAPABILITIES: Capabilities = Capabilities::ALL;

    fn refuses(&self) -> Option<String> {
        refuse_zero("slice", self.slice)
    }

    fn tick_ns(&self) -> u64 {
        self.tick.ns()
    }

    /// Within half a slice of the CPU's vtime, anywhere in its first slice.
    fn begin(&self, task: &mut Task, phase: &mut Stream) {
        task.slice = ns(self.slice);
        task.lag = phase.below(self.slice.ns()) as i64 - task.slice / 2;
        task.used = phase.below(self.slice.ns()) as i64;
        task.away = true;
    }

    fn enqueue(&self, view: &mut View<Self>, task: u32, why: Why) {
        if view.tasks[task as usize].away {
            advance(view);
        }
        let next = next(view);
        let (queue, it) = (&mut *view.queue, &mut view.tasks[task as usize]);
        if std::mem::take(&mut it.away) {
            let owed = match why {
                Why::Woken => self.owed(queue, it),
                _ => it.lag,
            };
            it.vtime = queue.vtime - owed;
        }
        if let (Why::Yielded, Some(next)) = (why, next) {
            it.vtime = it.vtime.max(next - ns(self.credit));
            queue.yielded = Some(task);
        }
        self.settle(queue, task, it, why);
        view.ready.push(task);
        advance(view);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        Some(if self.may_be_boosted(view.queue, it) {
            BOOSTED + it.vtime
        } else if view.queue.yielded == Some(task) {
            i64::MAX
        } else if view.queue.put_back == Some(task) {
            it.vtime - if self.body { 0 } else { ns(self.granularity) }
        } else {
            it.key
        })
    }

    fn left_ns(&self, task: &Task) -> Option<u64> {
        Some((task.slice - task.used).max(1) as u64)
    }

    /// From the CPU's vtime, which is the least: an equal share is up to a slice below it. The body's counts from the mean.
    fn lag_ns(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        let lag = if it.away {
            self.owed(view.queue, it)
        } else {
            view.queue.vtime - it.vtime
        };
        Some(lag + if self.body { mean_beyond(view) } else { 0 })
    }

    fn start(&self, view: &mut View<Self>, task: u32) {
        let it = &mut view.tasks[task as usize];
        let boosted = std::mem::take(&mut it.boosted);
        view.queue.yielded = None;
        if view.queue.put_back.take() != Some(task) {
            it.ran = 0;
            view.queue.boosted = boosted;
        }
        advance(view);
    }

    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64) {
        let ran = (view.now_ns - from_ns) as i64;
        let it = &mut view.tasks[task as usize];
        it.vtime += ran;
        it.used += ran;
        it.ran += ran;
    }

    fn look_at_ns(&self, view: &View<Self>, task: u32) -> u64 {
        let it = &view.tasks[task as usize];
        view.used_up_at_ns(it.slice - it.used)
    }

    fn expire(&self, _: &mut View<Self>, _: u32) -> bool {
        true
    }

    fn preempts(&self, view: &View<Self>, task: u32) -> bool {
        let Some(running) = view.tasks.get(view.running as usize) else {
            return true;
        };
        let it = &view.tasks[task as usize];
        let is_next = !self.body || next(view).is_none_or(|first| it.key <= first);
        let is_behind = running.vtime - it.vtime > ns(self.granularity);
        self.may_be_boosted(view.queue, it) || (is_behind && is_next)
    }

    fn stop(&self, view: &mut View<Self>, task: u32) {
        advance(view);
        let it = &mut view.tasks[task as usize];
        it.lag = view.queue.vtime - it.vtime;
        it.left_at = view.queue.vtime;
        it.away = true;
    }

    fn boost(&self, view: &mut View<Self>, task: u32) {
        advance(view);
        view.tasks[task as usize].boosted = true;
    }

    /// The mark stays, and the next choice sees it.
    fn kicks(&self, view: &mut View<Self>) -> bool {
        if !self.body {
            return true;
        }
        if view.queue.boosted || view.now_ns < view.queue.kick_from_ns {
            return false;
        }
        view.queue.kick_from_ns = view.now_ns + KICK_GAP_NS;
        true
    }

    fn sees_mates(&self) -> bool {
        self.body
    }

    fn turn_is_over(&self, task: &Task) -> bool {
        task.ran >= task.slice
    }

    fn set_slice(&self, task: &mut Task, slice_ns: u64) {
        task.slice = slice_or(slice_ns, self.slice);
    }
}

#[cfg(test)]
mod tests;
