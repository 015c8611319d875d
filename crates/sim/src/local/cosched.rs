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
//! the body, cgroups. The defaults are ours.

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
}

impl Default for Cosched {
    fn default() -> Self {
        Cosched {
            slice: Span::ms(3),
            tick: Span::ms(4),
            max_debt: Span::ms(20),
            credit: Span::ms(3),
            granularity: Span::ms(1),
        }
    }
}

/// What is remembered of a task, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    vtime: i64,
    slice: i64,
    /// Of this turn.
    used: i64,
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
    /// Has an advantage in the next choice.
    preempted: Option<u32>,
}

/// Below every vtime.
const BOOSTED: i64 = i64::MIN / 2;

fn ns(span: Span) -> i64 {
    signed(span.ns())
}

/// The least vtime of those that wait.
fn next(view: &View<Cosched>) -> Option<i64> {
    let waiting = view.ready.iter();
    waiting.map(|it| view.tasks[*it as usize].vtime).min()
}

/// The CPU's vtime is the least of all that are runnable there.
fn advance(view: &mut View<Cosched>) {
    let running = view.tasks.get(view.running as usize).map(|it| it.vtime);
    let least = next(view).into_iter().chain(running).min();
    view.queue.vtime = least.unwrap_or(i64::MIN).max(view.queue.vtime);
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
        match why {
            Why::New => {}
            Why::Preempted if it.used < it.slice => queue.preempted = Some(task),
            _ => it.used = 0,
        }
        view.ready.push(task);
        advance(view);
    }

    fn key(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        Some(if self.may_be_boosted(view.queue, it) {
            BOOSTED + it.vtime
        } else if view.queue.yielded == Some(task) {
            i64::MAX
        } else if view.queue.preempted == Some(task) {
            it.vtime - ns(self.granularity)
        } else {
            it.vtime
        })
    }

    fn left_ns(&self, task: &Task) -> Option<u64> {
        Some((task.slice - task.used).max(1) as u64)
    }

    /// From the CPU's vtime, which is the least: an equal share is up to a slice below it.
    fn lag_ns(&self, view: &View<Self>, task: u32) -> Option<i64> {
        let it = &view.tasks[task as usize];
        Some(if it.away {
            self.owed(view.queue, it)
        } else {
            view.queue.vtime - it.vtime
        })
    }

    fn start(&self, view: &mut View<Self>, task: u32) {
        view.tasks[task as usize].boosted = false;
        view.queue.yielded = None;
        view.queue.preempted = None;
        advance(view);
    }

    fn charge(&self, view: &mut View<Self>, task: u32, from_ns: u64) {
        let ran = (view.now_ns - from_ns) as i64;
        let it = &mut view.tasks[task as usize];
        it.vtime += ran;
        it.used += ran;
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
        self.may_be_boosted(view.queue, it) || running.vtime - it.vtime > ns(self.granularity)
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

    fn set_slice(&self, task: &mut Task, slice_ns: u64) {
        task.slice = slice_or(slice_ns, self.slice);
    }
}

#[cfg(test)]
mod tests {
    use super::super::NONE;
    use super::*;
    use crate::cluster::Clock;

    const HOG: u32 = 0;
    const RANK: u32 = 1;
    const STEP_NS: u64 = 100_000;

    type Charge = fn(&Cosched, &mut View<Cosched>, u32, u64);

    /// One CPU that is looked at every 100 us, and who had it for how long.
    struct Machine {
        local: Cosched,
        charge: Charge,
        now_ns: u64,
        ready: Vec<u32>,
        running: u32,
        queue: Queue,
        tasks: [Task; 3],
        got_ns: [u64; 3],
    }

    impl Machine {
        fn new(charge: Charge) -> Self {
            let local = Cosched::default();
            let task = Task {
                slice: ns(local.slice),
                away: true,
                ..Task::default()
            };
            Machine {
                local,
                charge,
                now_ns: 0,
                ready: Vec::new(),
                running: NONE,
                queue: Queue::default(),
                tasks: [task; 3],
                got_ns: [0; 3],
            }
        }

        fn with<R>(&mut self, what: impl FnOnce(&Cosched, &mut View<Cosched>) -> R) -> R {
            let mut view = View {
                now_ns: self.now_ns,
                clock: &Clock::exact(STEP_NS, 0),
                ready: &mut self.ready,
                running: self.running,
                queue: &mut self.queue,
                tasks: &mut self.tasks,
            };
            what(&self.local, &mut view)
        }

        fn enqueue(&mut self, task: u32, why: Why) {
            self.with(|local, view| local.enqueue(view, task, why));
        }

        fn choose(&mut self) {
            let key = |at: &usize, view: &View<Cosched>, local: &Cosched| {
                (local.key(view, view.ready[*at]), *at)
            };
            let best = self
                .with(|local, view| (0..view.ready.len()).min_by_key(|at| key(at, view, local)));
            self.running = self.ready.remove(best.expect("somebody is ready"));
            let task = self.running;
            self.with(|local, view| local.start(view, task));
        }

        fn put_back(&mut self, why: Why) {
            let task = std::mem::replace(&mut self.running, NONE);
            self.enqueue(task, why);
            self.choose();
        }

        /// The running task runs, and at the end of its slice the next one comes.
        fn step(&mut self) {
            let (task, from_ns, charge) = (self.running, self.now_ns, self.charge);
            self.now_ns += STEP_NS;
            self.got_ns[task as usize] += STEP_NS;
            self.with(|local, view| charge(local, view, task, from_ns));
            if self.with(|local, view| local.look_at_ns(view, task)) <= self.now_ns {
                self.put_back(Why::Expired);
            }
        }
    }

    /// A rank whose messages never end beside a hog: it is as far ahead as it may be, and no further.
    fn debt_is_used_and_bounded(charge: Charge) -> Result<(), String> {
        let mut it = Machine::new(charge);
        it.enqueue(HOG, Why::New);
        it.enqueue(RANK, Why::New);
        it.choose();
        let (debt, slice) = (ns(it.local.max_debt), ns(it.local.slice));
        for _ in 0..100_000 {
            it.step();
            if it.running == HOG {
                it.with(|local, view| local.boost(view, RANK));
                it.put_back(Why::Preempted);
            }
            let ahead = it.got_ns[1] as i64 - it.got_ns[0] as i64;
            if ahead > debt + slice + STEP_NS as i64 {
                return Err(format!("{ahead} ns ahead after {} ns", it.now_ns));
            }
        }
        let ahead = it.got_ns[1] as i64 - it.got_ns[0] as i64;
        let enough = (ahead >= debt - slice).then_some(());
        enough.ok_or_else(|| format!("only {ahead} ns ahead"))
    }

    /// A hog that is preempted again and again gets what the other hog gets.
    fn who_is_preempted_pays_for_what_it_had(charge: Charge) -> Result<(), String> {
        let mut it = Machine::new(charge);
        it.enqueue(HOG, Why::New);
        it.enqueue(RANK, Why::New);
        it.choose();
        for n in 0..100_000 {
            it.step();
            if it.running == HOG && n % 7 == 0 {
                it.put_back(Why::Preempted);
            }
        }
        let apart = it.got_ns[0].abs_diff(it.got_ns[1]);
        let near = (apart <= 2 * it.local.slice.ns()).then_some(());
        near.ok_or_else(|| format!("{apart} ns apart"))
    }

    fn right(local: &Cosched, view: &mut View<Cosched>, task: u32, from_ns: u64) {
        local.charge(view, task, from_ns);
    }

    /// Charges `vtime` as `charge` says, and the slice rightly.
    fn wrong(view: &mut View<Cosched>, task: u32, from_ns: u64, charge: fn(i64, &Task) -> i64) {
        let ran = (view.now_ns - from_ns) as i64;
        let it = &mut view.tasks[task as usize];
        it.used += ran;
        it.vtime += charge(ran, it);
    }

    #[test]
    fn laws_of_vtime_hold() {
        assert_eq!(debt_is_used_and_bounded(right), Ok(()));
        assert_eq!(who_is_preempted_pays_for_what_it_had(right), Ok(()));
    }

    #[test]
    fn no_wrong_charge_of_vtime_keeps_the_laws() {
        let mutants: [(&str, Charge); 5] = [
            ("nothing", |_, view, task, from| {
                wrong(view, task, from, |_, _| 0)
            }),
            ("half", |_, view, task, from| {
                wrong(view, task, from, |ran, _| ran / 2)
            }),
            ("double", |_, view, task, from| {
                wrong(view, task, from, |ran, _| 2 * ran)
            }),
            ("what is left of the slice", |_, view, task, from| {
                wrong(view, task, from, |_, it| (it.slice - it.used).max(0));
            }),
            ("only the rank", |_, view, task, from| {
                let rank = task == RANK;
                wrong(view, task, from, if rank { |ran, _| ran } else { |_, _| 0 });
            }),
        ];
        for (name, charge) in mutants {
            let kept = debt_is_used_and_bounded(charge)
                .and_then(|()| who_is_preempted_pays_for_what_it_had(charge));
            assert!(kept.is_err(), "{name}");
        }
    }

    #[test]
    fn a_boost_beyond_the_debt_waits_for_it() {
        let mut it = Machine::new(right);
        it.enqueue(HOG, Why::New);
        it.enqueue(RANK, Why::New);
        it.tasks[RANK as usize].vtime = ns(it.local.max_debt) + 500_000;
        it.choose();
        it.with(|local, view| local.boost(view, RANK));
        assert!(!it.with(|local, view| local.preempts(view, RANK)));
        while it.running == HOG {
            it.step();
        }
        assert_eq!(it.got_ns[HOG as usize], it.local.slice.ns());
        assert!(!it.tasks[RANK as usize].boosted);
    }

    #[test]
    fn a_sleeper_comes_back_with_its_debt_and_no_more_than_the_credit() {
        let mut it = Machine::new(right);
        (0..3).for_each(|task| it.enqueue(task, Why::New));
        it.choose();
        let sleeps = it.running;
        it.step();
        it.with(|local, view| local.stop(view, sleeps));
        it.running = NONE;
        it.choose();
        assert_eq!(
            it.with(|local, view| local.lag_ns(view, sleeps)),
            Some(-100_000)
        );
        (0..10_000).for_each(|_| it.step());
        let credit = it.local.credit.ns() as i64;
        assert_eq!(
            it.with(|local, view| local.lag_ns(view, sleeps)),
            Some(credit)
        );
        it.enqueue(sleeps, Why::Woken);
        assert!(it.with(|local, view| local.preempts(view, sleeps)));
    }

    #[test]
    fn who_yields_lets_others_go_first_once_and_keeps_its_vtime() {
        let mut it = Machine::new(right);
        it.enqueue(HOG, Why::New);
        it.enqueue(RANK, Why::New);
        it.choose();
        let yields = it.running;
        it.put_back(Why::Yielded);
        assert_ne!(it.running, yields);
        assert_eq!(it.tasks[yields as usize].vtime, 0);
        while it.running != yields {
            it.step();
        }
        assert_eq!(it.now_ns, it.local.slice.ns());
    }
}
