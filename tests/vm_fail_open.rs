// SPDX-License-Identifier: Apache-2.0
//! Fail-open: `kill -9` of coschedd at any instant leaves a stock machine.
//!
//! It is killed while it starts, at instants spread over the whole of that, and while it
//! works: idle, with jobs boosted, switched, begun, adopted. Each time the kernel's own
//! scheduler is back within a second, work goes on, no program or pin of ours stays, no
//! task has another nice, policy or affinity than before, and the next coschedd starts on
//! the socket that was left. COSCHED_KILLS says how often (`cargo xtask soak`: 1000).
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_tests::{
    coschedd::{counted, install, job_of, read, stat, state, wait_for, Coschedd, Running},
    inside::{self, Check, Hogs},
};
use libbpf_rs::query::ProgInfoIter;
use rustix::process::Signal;
use std::{
    fs, thread,
    time::{Duration, Instant},
};

const KILLS: u64 = 25;
/// The promise.
const BACK_WITHIN: Duration = Duration::from_secs(1);
const USER: u32 = 1000;

const CHECKS: [Check<House>; 1] = [("kill -9 leaves a stock machine", kills)];

#[test]
fn killed_it_leaves_a_stock_machine() {
    let each = Duration::from_secs(60);
    let timeout = Duration::from_secs(600) + each * u32::try_from(nr_kills()).unwrap();
    let test = "killed_it_leaves_a_stock_machine";
    inside::checks(test, timeout, open, &CHECKS);
}

fn nr_kills() -> u64 {
    inside::number_of(inside::KILLS, KILLS)
}

/// Where coschedd is when it is killed.
#[derive(Clone, Copy, Debug)]
enum At {
    /// This part of a whole start is over, in per cent.
    Start(u64),
    /// The kernel is putting the scheduler in its place.
    Enabling,
    Idle,
    /// Beside hogs, with a job of a user's that is boosted.
    Boosting,
    /// ... whose preset is switched to and fro.
    Switching,
    /// ... while others are begun and end.
    Beginning,
    /// ... while it is asked for all that it knows.
    Asked,
    /// ... while it reads its configuration again and again.
    Reloading,
}

const WORKING: [At; 10] = [
    At::Boosting,
    At::Switching,
    At::Idle,
    At::Beginning,
    At::Boosting,
    At::Asked,
    At::Switching,
    At::Reloading,
    At::Boosting,
    At::Beginning,
];

impl At {
    /// Two of five while it works, one while it is put in its place; the others spread evenly over
    /// a start, however many there are.
    fn number(n: u64) -> At {
        match n % 5 {
            1 => WORKING[(n / 5 * 2) as usize % WORKING.len()],
            3 => WORKING[(n / 5 * 2 + 1) as usize % WORKING.len()],
            4 => At::Enabling,
            _ => At::Start((n * 618) % 1000 / 9),
        }
    }
}

/// A machine with work on it, which nobody ends.
struct House {
    work: [Running; 2],
    start: Duration,
}

fn open() -> House {
    install("");
    // Of the least weight: beside equals a start takes a minute where CPUs are emulated.
    let work = ["spin", "futex"].map(|mode| {
        let mut nice = std::process::Command::new("nice");
        nice.args(["-n", "19"])
            .arg(inside::tool("pair"))
            .args([mode, "1000000"]);
        Running::start(nice)
    });
    let begun = Instant::now();
    drop(Coschedd::start());
    let start = begun.elapsed();
    println!("NOTE a start takes {start:.1?}");
    House { work, start }
}

fn kills(house: &mut House) {
    let mut longest = Duration::ZERO;
    for n in 0..nr_kills() {
        let at = At::number(n);
        let back = kill(house, at);
        println!("NOTE kill {n} at {at:?}: stock scheduling after {back:.0?}");
        assert!(back <= BACK_WITHIN, "kill {n} at {at:?}: {back:?}");
        longest = longest.max(back);
    }
    println!("NOTE {} kills, at most {longest:.0?}", nr_kills());
}

/// How long it took the kernel's own scheduler to be back.
fn kill(house: &House, at: At) -> Duration {
    let daemon = Coschedd::spawn();
    match at {
        At::Start(percent) => {
            thread::sleep(house.start * u32::try_from(percent).unwrap() / 100);
            end(daemon, &house.pids())
        }
        At::Enabling => {
            while state() == "disabled" {
                thread::sleep(Duration::from_millis(1));
            }
            end(daemon, &house.pids())
        }
        working => kill_at_work(house, daemon, working),
    }
}

fn kill_at_work(house: &House, mut daemon: Coschedd, at: At) -> Duration {
    daemon.wait_until_it_schedules();
    if matches!(at, At::Idle) {
        return end(daemon, &house.pids());
    }
    let hogs = Hogs::on(&["0", "1"]);
    let job = Running::job(USER, "auto", "pair", &["spin", "1000000"]);
    wait_for("boosts", || counted(&job_of(USER), "nr_boosts") > 0);
    let number = job_of(USER).unwrap()["job"].to_string();
    let beside = match at {
        At::Switching => {
            format!("./cosched switch {number} dcs-spin; ./cosched switch {number} auto")
        }
        At::Beginning => "./cosched run -- true".to_owned(),
        At::Asked => "./cosched jobs --json; ./cosched status --json".to_owned(),
        At::Reloading => format!("kill -HUP {}", daemon.pid()),
        _ => "sleep 1".to_owned(),
    };
    let beside = Running::again(&beside);
    thread::sleep(Duration::from_millis(500));
    let work = [house.pids(), job.pids()].concat();
    let back = end(daemon, &work);
    drop((beside, job));
    hogs.end();
    back
}

impl House {
    fn pids(&self) -> Vec<u32> {
        self.work.iter().flat_map(Running::pids).collect()
    }
}

/// Kills it, and looks at what is left.
fn end(mut daemon: Coschedd, work: &[u32]) -> Duration {
    let before = settings(work);
    daemon.signal(Signal::KILL);
    let back = stock_after(&mut daemon);
    wait_for("our programs to go", || nr_programs() == 0);
    assert_eq!(fs::read_dir("/sys/fs/bpf").unwrap().count(), 0, "pins");
    assert_eq!(settings(work), before);
    let ran = ran(work);
    wait_for("work to go on", || self::ran(work) > ran);
    back
}

/// From the kill until sched_ext is off for good. An attach that is under way is finished
/// first; until then stock scheduling rules.
fn stock_after(daemon: &mut Coschedd) -> Duration {
    let mut killed = Instant::now();
    let mut back = None;
    loop {
        let (ended, state) = (daemon.ended().is_some(), state());
        match state.as_str() {
            "disabled" => back = back.or_else(|| Some(killed.elapsed())),
            "enabling" => (killed, back) = (Instant::now(), None),
            _ => back = None,
        }
        if let (true, Some(back)) = (ended, back) {
            return back;
        }
        assert!(killed.elapsed() < Duration::from_secs(60), "still {state}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn nr_programs() -> usize {
    let names = ProgInfoIter::default().map(|info| info.name);
    names
        .filter(|name| name.to_bytes() == b"list_members")
        .count()
}

/// Of each task: its nice, policy, real-time priority and affinity.
fn settings(pids: &[u32]) -> Vec<String> {
    let of = |pid: &u32| {
        let stat = stat(*pid).unwrap_or_default();
        let status = read(&format!("/proc/{pid}/status"));
        let cpus = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed:"));
        let [nice, real_time, policy] = [16, 37, 38].map(|at| stat.get(at).cloned());
        format!("{pid}: {nice:?} {real_time:?} {policy:?} {cpus:?}")
    };
    pids.iter().map(of).collect()
}

/// Their CPU time, in ticks.
fn ran(pids: &[u32]) -> u64 {
    let ticks = |field: &String| field.parse::<u64>().unwrap();
    let fields = pids.iter().filter_map(|pid| stat(*pid));
    fields.map(|stat| ticks(&stat[11]) + ticks(&stat[12])).sum()
}
