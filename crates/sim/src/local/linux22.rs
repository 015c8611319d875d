// SPDX-License-Identifier: Apache-2.0
//! Linux 2.2's scheduler: S4 section 2, and the kernel's sched.c where S4 is silent.
//!
//! Time goes by in epochs. In each a task has a counter of ticks; its goodness is counter +
//! priority, or nothing once the counter is 0. The largest goodness runs, and
//! when all that are runnable have used theirs up a new epoch begins for every task of the node,
//! asleep or not. A task that wakes with a larger goodness than who runs preempts.
//!
//! `order` adds to goodness where the kernel calls that function (S4, algorithm 2): for each task that it
//! chooses among, and for both when one wakes. A key is goodness in ns, a unit being a tick.
//!
//! What S4 leaves open is a parameter. *Slice*: the kernel ends it when the counter would fall
//! below 0, at 21 ticks (S4: 210 ms), or at 0 (S5: 200 ms). *Recharge*: S4 sets the counter to the priority; the kernel
//! to half of what is left and the priority, which is what favours sleepers.
//!
//! From the kernel: who wakes comes in at the front, who had the CPU wins ties, who
//! yields loses the next choice. A slice that policy sets holds from the next epoch. BOOST is not the kernel's: it runs a task out of turn,
//! for a tick if its counter is used up. Not modelled: the bonuses for the same
//! CPU and the same address space, real time, the halves that parent and child get at a fork.

use super::{Capabilities, LocalScheduler, View, Why, NONE};
use crate::random::Stream;
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// When a slice is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceEnds {
    /// When the counter would fall below 0: priority + 1 ticks (the kernel, S4).
    #[default]
    BelowZero,
    /// When the counter is 0: priority ticks (S5).
    AtZero,
}

/// What a counter becomes in a new epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recharge {
    /// Half of what is left, and the priority (the kernel).
    #[default]
    HalfAndPriority,
    /// The priority (S4's words).
    Priority,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Linux22 {
    /// The clock tick.
    pub tick: Span,
    /// The static priority of all tasks, 1 to 40.
    pub priority: u32,
    /// When a slice is over.
    pub slice_ends: SliceEnds,
    /// What a counter becomes in a new epoch.
    pub recharge: Recharge,
}

impl Default for Linux22 {
    fn default() -> Self {
        Linux22 {
            tick: Span::ms(10),
            priority: 20,
            slice_ends: SliceEnds::BelowZero,
            recharge: Recharge::HalfAndPriority,
        }
    }
}

/// What is remembered of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Ticks left in its epoch.
    counter: i64,
    /// What it gets in each.
    fresh: i64,
    /// The epoch that `counter` is of; sleepers catch up when they wake.
    epoch: u64,
    /// Its place in the kernel's list, smaller is nearer to the front.
    place: i64,
    /// The slice ended while it ran.
    over: bool,
    boosted: bool,
}

/// What is remembered of a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    epoch: u64,
    epoch_began_ns: u64,
    front: i64,
    back: i64,
    /// Loses the next choice.
    yielded: Option<u32>,
}

impl Linux22 {
    /// Ticks that a task may still run when its counter is 0.
    fn grace(&self) -> i64 {
        i64::from(self.slice_ends == SliceEnds::BelowZero)
    }

    fn tick(&self) -> i64 {
        self.tick.ns() as i64
    }

    /// Epochs that began since the counter was set; it soon changes no more.
    fn catch_up(&self, queue: &Queue, it: &mut Task) {
        while it.epoch < queue.epoch {
            let half = match self.recharge {
                Recharge::HalfAndPriority => it.counter / 2,
                Recharge::Priority => 0,
            };
            let before = std::mem::replace(&mut it.counter, half + it.fresh);
            it.epoch = match it.counter == before {
                true => queue.epoch,
                false => it.epoch + 1,
            };
        }
    }

    fn run(&self, it: &mut Task, ticks: u64) {
        it.counter -= ticks as i64;
        it.over |= ticks > 0 && it.counter <= -self.grace();
        it.counter = it.counter.max(0);
    }
}

impl LocalScheduler for Linux22 {
    type Queue = Queue;
    type Task = Task;
    const SHARED_QUEUE: bool = true;
    const YIELDS_ADD_UP: bool = true;
    const CAPABILITIES: Capabilities = Capabilities {
        lag: false,
        ..Capabilities::ALL
    };

    fn refuses(&self) -> Option<String> {
        let wrong = !(1..=40).contains(&self.priority);
        wrong.then(|| "local.priority: write 1 to 40".to_owned())
    }

    fn tick_ns(&self) -> u64 {
        self.tick.ns()
    }

    /// Anywhere in its first slice.
    fn begin(&self, task: &mut Task, phase: &mut Stream) {
        task.fresh = i64::from(self.priority);
        task.counter = 1 + phase.below(u64::from(self.priority)) as i64;
    }

    fn enqueue(&self, view: &mut View<Self>, task: u32, why: Why) {
        let (queue, it) = (&mut *view.queue, &mut view.tasks[task as usize]);
        match why {
            Why::New => it.epoch = queue.epoch,
            Why::Woken | Why::Migrated => self.catch_up(queue, it),
            Why::Yielded => {
                queue.back += 1;
                it.place = queue.back;
                queue.yielded = Some(task);
            }
            Why::Preempted | Why::Expired => return view.ready.insert(0, task),
        }
        if why != Why::Yielded {
            queue.front -= 1;
            it.place = queue.front;
        }
        let tasks = &view.tasks;
        let before = |other: &u32| tasks[*other as usize].place < tasks[task as usize].place;
        let at = view.ready.partition_point(before);
        view.ready.insert(at, task);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        if it.boosted {
            return Some(i64::MIN);
        }
        let now = it.counter > 0 && view.queue.yielded != Some(task);
        now.then(|| -(it.counter + i64::from(self.priority)) * self.tick())
    }

    fn weight_ns(&self, task: &Task) -> Option<u64> {
        Some((task.counter as u64 + u64::from(self.priority)) * self.tick.ns())
    }

    fn left_ns(&self, task: &Task) -> Option<u64> {
        Some(task.counter as u64 * self.tick.ns())
    }

    /// A new epoch. Who sleeps, or runs on another CPU of the node, catches up later.
    fn replenish(&self, view: &mut View<Self>) {
        view.queue.epoch += 1;
        view.queue.epoch_began_ns = view.now_ns;
        view.queue.yielded = None;
        for task in view.ready.iter() {
            self.catch_up(view.queue, &mut view.tasks[*task as usize]);
        }
    }

    /// Whoever had the CPU until now stood at the front for the choice only.
    fn start(&self, view: &mut View<Self>, task: u32) {
        view.queue.yielded = None;
        let it = &mut view.tasks[task as usize];
        it.over = false;
        it.boosted = false;
        let tasks = &view.tasks;
        view.ready.sort_by_key(|other| tasks[*other as usize].place);
    }

    /// Ticks before the last epoch began are of the counter before.
    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64) {
        let began_ns = view.queue.epoch_began_ns.clamp(from_ns, view.now_ns);
        let it = &mut view.tasks[task as usize];
        self.run(it, view.clock.ticks(from_ns, began_ns));
        self.catch_up(view.queue, it);
        self.run(it, view.clock.ticks(began_ns, view.now_ns));
    }

    fn look_at_ns(&self, view: &View<Self>, task: u32) -> u64 {
        let it = &view.tasks[task as usize];
        if it.over {
            return view.now_ns;
        }
        let ticks = (it.counter + self.grace()).max(1);
        view.clock.nth_after(view.now_ns, ticks as u64)
    }

    fn expire(&self, view: &mut View<Self>, task: u32) -> bool {
        view.tasks[task as usize].over
    }

    fn preempts(&self, view: &View<Self>, task: u32) -> bool {
        if view.running == NONE {
            return true;
        }
        let running = self.key(view, view.running).unwrap_or(i64::MAX);
        self.key(view, task).is_some_and(|key| key < running)
    }

    fn boost(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = true;
    }

    /// In whole ticks, and a counter of at least 1, since 0 means used up.
    fn set_slice(&self, task: &mut Task, slice_ns: u64) {
        task.fresh = match slice_ns / self.tick.ns() {
            0 if slice_ns == 0 => i64::from(self.priority),
            ticks => (ticks.min(1 << 32) as i64 - self.grace()).max(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Clock;

    const TICK_NS: u64 = 10_000_000;

    /// A hog (0), which runs, and a task (1) that has slept through `epochs` epochs and wakes.
    fn sleeper(local: &Linux22, counter: i64, epochs: u64) -> (i64, bool) {
        let fresh = i64::from(local.priority);
        let task = |counter, epoch| Task {
            counter,
            fresh,
            epoch,
            ..Task::default()
        };
        let mut tasks = [task(fresh, epochs), task(counter, 0)];
        let mut queue = Queue {
            epoch: epochs,
            ..Queue::default()
        };
        let mut view = View {
            now_ns: 0,
            clock: &Clock::exact(TICK_NS, 0),
            ready: &mut Vec::new(),
            running: 0,
            queue: &mut queue,
            tasks: &mut tasks,
        };
        local.enqueue(&mut view, 1, Why::Woken);
        let preempts = local.preempts(&view, 1);
        (view.tasks[1].counter, preempts)
    }

    #[test]
    fn a_sleeper_saves_up_to_one_tick_less_than_two_slices() {
        let local = Linux22::default();
        let saved = [0, 1, 2, 3, 4, 5, 6, 1000].map(|epochs| sleeper(&local, 20, epochs));
        let counters = saved.map(|(counter, _)| counter);
        assert_eq!(counters, [20, 30, 35, 37, 38, 39, 39, 39]);
        assert_eq!(
            saved.map(|(_, preempts)| preempts),
            counters.map(|c| c > 20)
        );
    }

    #[test]
    fn in_the_papers_words_a_sleeper_saves_nothing() {
        let local = Linux22 {
            recharge: Recharge::Priority,
            ..Linux22::default()
        };
        assert_eq!(sleeper(&local, 20, 1000), (20, false));
        assert_eq!(sleeper(&local, 3, 1), (20, false));
        assert_eq!(sleeper(&local, 3, 0), (3, false));
    }

    /// One task alone from `from_ns` to `to_ns`; its counter, and whether its slice is over.
    fn charged(slice_ends: SliceEnds, counter: i64, from_ns: u64, to_ns: u64) -> (i64, bool) {
        let local = Linux22 {
            slice_ends,
            ..Linux22::default()
        };
        let mut tasks = [Task {
            counter,
            ..Task::default()
        }];
        let mut view = View {
            now_ns: to_ns,
            clock: &Clock::exact(TICK_NS, 0),
            ready: &mut Vec::new(),
            running: 0,
            queue: &mut Queue::default(),
            tasks: &mut tasks,
        };
        local.charge(&mut view, 0, from_ns);
        (tasks[0].counter, tasks[0].over)
    }

    #[test]
    fn who_runs_when_the_tick_comes_pays_all_of_it() {
        use SliceEnds::{AtZero, BelowZero};
        assert_eq!(charged(BelowZero, 20, 1, TICK_NS - 1), (20, false));
        assert_eq!(charged(BelowZero, 20, TICK_NS - 1, TICK_NS), (19, false));
        assert_eq!(charged(BelowZero, 20, 0, 20 * TICK_NS), (0, false));
        assert_eq!(charged(BelowZero, 20, 0, 21 * TICK_NS), (0, true));
        assert_eq!(charged(AtZero, 20, 0, 19 * TICK_NS), (1, false));
        assert_eq!(charged(AtZero, 20, 0, 20 * TICK_NS), (0, true));
    }

    #[test]
    fn a_slice_that_policy_sets_is_exact_in_ticks() {
        for (slice_ends, fresh) in [(SliceEnds::BelowZero, 319), (SliceEnds::AtZero, 320)] {
            let local = Linux22 {
                slice_ends,
                ..Linux22::default()
            };
            let mut task = Task::default();
            local.set_slice(&mut task, 3_200_000_000);
            assert_eq!(task.fresh, fresh);
            local.set_slice(&mut task, 1);
            assert_eq!(task.fresh, 1);
            local.set_slice(&mut task, 0);
            assert_eq!(task.fresh, 20);
        }
    }
}
