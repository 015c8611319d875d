// SPDX-License-Identifier: Apache-2.0
//! EEVDF, Linux's scheduler since 6.6, as of 6.18 (kernel/sched/fair.c).
//!
//! Each task has a virtual runtime. It is owed time (eligible) while its runtime is not
//! above the mean of all that are runnable; among the eligible the earliest virtual
//! deadline runs, which is runtime plus slice. The smallest runtime is never above the
//! mean, so somebody is always eligible. A short slice therefore runs
//! sooner, not more. Modelled: credit kept over a sleep (PLACE_LAG, with the inflation that
//! undoes the newcomer's own weight), debt paid off while asleep (DELAY_DEQUEUE), slices ended
//! at ticks and where somebody wakes (update_curr), RUN_TO_PARITY (who is switched to keeps the
//! CPU for the shortest slice of the queue while it is eligible; who is only chosen again does
//! not), PREEMPT_SHORT, yield by forfeiting up to the deadline.
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
    slice: i64,
    boosted: bool,
    /// Neither ready nor running: `lag` holds.
    away: bool,
}

/// Of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The mean of the last time somebody was here.
    mean: i64,
    /// Who came on last and has not slept since.
    last: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            mean: 0,
            last: NONE,
        }
    }
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

/// The shortest slice of those runnable.
fn shortest(view: &Here) -> i64 {
    let slices = everyone(view).map(|it| it.slice);
    slices.min().unwrap_or(i64::MAX)
}

impl Task {
    /// `update_deadline`.
    fn renew(&mut self) {
        if self.vruntime >= self.deadline {
            self.deadline = self.vruntime + self.slice;
        }
    }
}

impl Eevdf {
    fn eligible(&self, view: &Here, it: &Task) -> bool {
        let base = view.queue.mean;
        let (n, sum) = load(view, base);
        sum >= (it.vruntime - base) * n
    }

    /// `entity_lag`: nobody is owed, or owes, more than two slices or a tick.
    fn bounded(&self, it: &Task, lag: i64) -> i64 {
        let limit = (2 * it.slice).max(signed(self.tick.ns()));
        lag.clamp(-limit, limit)
    }

    /// `place_entity`: where a task comes in that carries a lag.
    fn place(&self, view: &mut Here, task: u32, lag: i64) {
        let n = load(view, 0).0;
        let mean = mean(view);
        let it = &mut view.tasks[task as usize];
        let inflated = match n {
            0 => 0,
            _ => lag * (n + 1) / n,
        };
        it.vruntime = mean - inflated;
        it.deadline = it.vruntime + it.slice;
    }

    /// Who slept while owed time is owed it still. Who slept in debt stayed where it was
    /// (DELAY_DEQUEUE) until the others had caught up, and owes nothing from then on (DELAY_ZERO).
    /// Among n others a debt is (n + 1) / n of what it was as one of them; the bound is for
    /// those who wake on another CPU, whose runtimes begin elsewhere.
    fn woken(&self, view: &mut Here, task: u32) {
        let mean = mean(view);
        let it = &mut view.tasks[task as usize];
        let debt = (it.vruntime - mean).min(-2 * it.lag);
        if debt > 0 {
            it.vruntime = mean + debt;
            it.renew();
        } else {
            let lag = it.lag.max(0);
            self.place(view, task, lag);
        }
    }

    /// `set_protect_slice`: the shortest slice of those here.
    fn protect(&self, view: &mut Here, task: u32) {
        let shortest = shortest(view);
        let it = &mut view.tasks[task as usize];
        it.protected = match self.run_to_parity {
            true => it.deadline.min(it.vruntime + shortest.min(it.slice)),
            false => it.vruntime,
        };
    }

    /// `enqueue_entity` of somebody else brings who runs up to date: a slice that is over is
    /// followed by the next, and one that is protected from a shorter one is so no longer than that.
    fn update_running(&self, view: &mut Here, newcomer: u32) {
        if view.running == NONE {
            return;
        }
        view.tasks[view.running as usize].renew();
        let shortest = shortest(view).min(view.tasks[newcomer as usize].slice);
        let (it, running) = (
            &view.tasks[newcomer as usize],
            &view.tasks[view.running as usize],
        );
        if self.is_short(view, it, running) {
            let running = &mut view.tasks[view.running as usize];
            running.protected = running.protected.min(running.vruntime + shortest);
        }
    }

    /// `__pick_eevdf`, with or without protection of who runs: is it `task`?
    fn picks(&self, view: &Here, task: u32, protect: bool) -> bool {
        let it = &view.tasks[task as usize];
        let running = &view.tasks[view.running as usize];
        let protected = protect && running.vruntime < running.protected;
        if !self.eligible(view, it) || (protected && self.eligible(view, running)) {
            return false;
        }
        let later = |other: &Task| !self.eligible(view, other) || other.deadline >= it.deadline;
        let others = view.ready.iter().filter(|other| **other != task);
        let others = others.copied().chain([view.running]);
        others
            .into_iter()
            .all(|other| later(&view.tasks[other as usize]))
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
            Why::Woken => self.woken(view, task),
            Why::Yielded => {
                let it = &mut view.tasks[task as usize];
                it.vruntime = it.vruntime.max(it.deadline);
                it.deadline = it.vruntime + it.slice;
            }
            Why::Preempted | Why::Expired => view.tasks[task as usize].renew(),
        }
        view.tasks[task as usize].away = false;
        view.ready.push(task);
        view.queue.mean = mean(view);
        self.update_running(view, task);
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
        if std::mem::replace(&mut view.queue.last, task) != task {
            self.protect(view, task);
        }
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
        view.tasks[task as usize].renew();
        true
    }

    fn preempts(&self, view: &View<Self>, task: u32) -> bool {
        if view.running == NONE {
            return true;
        }
        let it = &view.tasks[task as usize];
        let running = &view.tasks[view.running as usize];
        if it.boosted || running.vruntime >= running.protected {
            return true;
        }
        self.wakeup_preemption && self.picks(view, task, !self.is_short(view, it, running))
    }

    fn stop(&self, view: &mut View<Self>, task: u32) {
        let mean = mean(view);
        view.queue.mean = mean;
        if view.queue.last == task {
            view.queue.last = NONE;
        }
        let it = &mut view.tasks[task as usize];
        it.lag = self.bounded(it, mean - it.vruntime);
        it.away = true;
    }

    fn boost(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = true;
    }

    fn set_slice(&self, task: &mut Task, slice_ns: u64) {
        task.slice = slice_or(slice_ns, self.slice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Clock;

    const MS: i64 = 1_000_000;

    /// One CPU and its tasks, driven by hand: task 0 runs, the others wait or sleep.
    struct Cpu {
        local: Eevdf,
        clock: Clock,
        ready: Vec<u32>,
        running: u32,
        queue: Queue,
        tasks: [Task; 3],
    }

    impl Cpu {
        /// Task 0 has just come on, task 1 is ready, task 2 is away; all have had the same.
        fn new() -> Self {
            let task = Task {
                slice: 1_400_000,
                deadline: 1_400_000,
                ..Task::default()
            };
            let mut cpu = Cpu {
                local: Eevdf::default(),
                clock: Clock::exact(4_000_000, 0),
                ready: vec![1],
                running: 0,
                queue: Queue::default(),
                tasks: [task; 3],
            };
            cpu.with(|local, view| local.start(view, 0));
            cpu
        }

        fn with<T>(&mut self, act: impl FnOnce(&Eevdf, &mut Here) -> T) -> T {
            let mut view = View {
                now_ns: 0,
                clock: &self.clock,
                ready: &mut self.ready,
                running: self.running,
                queue: &mut self.queue,
                tasks: &mut self.tasks,
            };
            act(&self.local, &mut view)
        }

        /// Task 2 wakes: does the CPU choose again?
        fn wake(&mut self) -> bool {
            self.with(|local, view| {
                local.enqueue(view, 2, Why::Woken);
                local.preempts(view, 2)
            })
        }
    }

    #[test]
    fn a_wake_up_ends_a_slice_that_is_over_before_the_tick() {
        for (ran, ends) in [(MS / 2, false), (2 * MS, true)] {
            let mut cpu = Cpu::new();
            cpu.tasks[0].vruntime = ran;
            cpu.tasks[1].vruntime = 2 * ran;
            assert_eq!(cpu.wake(), ends, "after {ran} ns");
        }
    }

    #[test]
    fn who_is_chosen_again_is_not_protected_again() {
        let mut cpu = Cpu::new();
        cpu.tasks[0].vruntime = 2 * MS;
        cpu.tasks[0].renew();
        cpu.with(|local, view| local.start(view, 0));
        assert!(cpu.tasks[0].protected < cpu.tasks[0].vruntime);
        cpu.with(|local, view| local.start(view, 1));
        cpu.with(|local, view| local.start(view, 0));
        assert!(cpu.tasks[0].protected > cpu.tasks[0].vruntime);
    }

    #[test]
    fn who_sleeps_in_debt_is_where_it_was_until_the_others_have_caught_up() {
        for (others, back_at) in [(MS, 3 * MS), (5 * MS, 5 * MS)] {
            let mut cpu = Cpu::new();
            cpu.running = 2;
            cpu.tasks[2].vruntime = 3 * MS;
            cpu.ready = vec![0, 1];
            cpu.with(|local, view| local.stop(view, 2));
            cpu.running = 0;
            cpu.tasks[0].vruntime = others;
            cpu.tasks[1].vruntime = others;
            cpu.wake();
            assert_eq!(cpu.tasks[2].vruntime, back_at);
        }
    }

    #[test]
    fn a_short_slice_shortens_the_protection_of_a_long_one() {
        let mut cpu = Cpu::new();
        cpu.tasks[1].slice = 100_000;
        cpu.tasks[1].deadline = -MS;
        cpu.tasks[1].vruntime = -2 * MS;
        cpu.tasks[2].slice = 100_000;
        cpu.tasks[2].lag = 3 * MS;
        assert!(!cpu.wake() || cpu.tasks[2].deadline < cpu.tasks[1].deadline);
        assert!(cpu.tasks[0].protected <= 100_000);
    }
}
