// SPDX-License-Identifier: Apache-2.0
//! The laws of vtime, of the rule and of the body: debts are used and bounded, whoever is preempted pays for what it had.

use super::*;
use crate::cluster::Clock;
use crate::local::NONE;

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
    fn new(body: bool, charge: Charge) -> Self {
        let local = Cosched {
            body,
            ..Cosched::default()
        };
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
        let best =
            self.with(|local, view| (0..view.ready.len()).min_by_key(|at| key(at, view, local)));
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
fn debt_is_used_and_bounded(body: bool, charge: Charge) -> Result<(), String> {
    let mut it = Machine::new(body, charge);
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
fn who_is_preempted_pays_for_what_it_had(body: bool, charge: Charge) -> Result<(), String> {
    let mut it = Machine::new(body, charge);
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
    it.ran += ran;
    it.vtime += charge(ran, it);
}

#[test]
fn laws_of_vtime_hold() {
    for body in [false, true] {
        assert_eq!(debt_is_used_and_bounded(body, right), Ok(()));
        assert_eq!(who_is_preempted_pays_for_what_it_had(body, right), Ok(()));
    }
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
    for ((name, charge), body) in mutants.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let kept = debt_is_used_and_bounded(body, charge)
            .and_then(|()| who_is_preempted_pays_for_what_it_had(body, charge));
        assert!(kept.is_err(), "{name} {body}");
    }
}

#[test]
fn a_boost_beyond_the_debt_waits_for_it() {
    let mut it = Machine::new(false, right);
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
    let mut it = Machine::new(false, right);
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
    let mut it = Machine::new(false, right);
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

/// Put back within its turn: no advantage in that choice, one as long as it waits.
#[test]
fn under_the_body_an_advantage_begins_with_the_next_choice() {
    for (body, goes_on) in [(false, true), (true, false)] {
        let mut it = Machine::new(body, right);
        (0..3).for_each(|task| it.enqueue(task, Why::New));
        it.choose();
        let first = it.running;
        it.step();
        it.put_back(Why::Preempted);
        assert_eq!(it.running == first, goes_on, "{body}");
        let place = it.tasks[first as usize].vtime - it.tasks[first as usize].key;
        let granularity = if body { ns(it.local.granularity) } else { 0 };
        assert_eq!(place, granularity, "{body}");
    }
}

#[test]
fn under_the_body_a_boost_preempts_no_boost_and_no_cpu_twice_at_once() {
    let mut it = Machine::new(true, right);
    (0..3).for_each(|task| it.enqueue(task, Why::New));
    it.choose();
    assert!(it.with(|local, view| local.kicks(view)));
    assert!(!it.with(|local, view| local.kicks(view)));
    it.step();
    let waits = it.ready[0];
    it.with(|local, view| local.boost(view, waits));
    assert!(it.with(|local, view| local.kicks(view)));
    it.put_back(Why::Preempted);
    assert_eq!(it.running, waits);
    it.step();
    assert!(!it.with(|local, view| local.kicks(view)));
}

#[test]
fn a_turn_is_over_after_a_slice_under_the_body() {
    let mut it = Machine::new(true, right);
    it.enqueue(HOG, Why::New);
    it.choose();
    for step in 1..=40 {
        it.step();
        let over = it.local.turn_is_over(&it.tasks[HOG as usize]);
        assert_eq!(over, step * STEP_NS >= it.local.slice.ns(), "{step}");
    }
}
