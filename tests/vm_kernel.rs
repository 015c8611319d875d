// SPDX-License-Identifier: Apache-2.0
//! The kernel body on a kernel with sched_ext: each way in which it sees an arrival leads to
//! boosts that are served, and to none where the preset has none; everybody gets a
//! share; what it cannot do any more it gives back. Counters and orderings, never times.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use cosched_loader::{raw, Body, Config, JobNumber, Ledger, Mode, SEEN};
use cosched_policy::words::REASONS;
use cosched_tests::inside::{self, attach, numbers, params, spread, Check, Hogs};
use cosched_tests::job::built;
use std::io::{self, PipeReader, Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// With a margin for a busy machine without KVM: it takes a minute on an idle one.
const TIMEOUT: Duration = Duration::from_secs(900);

const CHECKS: [Check<Body>; 18] = [
    ("it is the machine's scheduler", is_attached),
    ("a mate on a CPU boosts one that spins", mates_boost),
    ("a packet boosts who polls for it", packets_boost),
    ("who was refused is asked about again", refusals_end),
    ("a doorbell boosts whom it wakes", doorbells_boost),
    ("a yield boosts who is waited for", yields_boost),
    ("without an arrival answer nobody is boosted", nobody_boosts),
    (
        "who wakes preempts, but not a burst of wake-ups",
        wakes_preempt,
    ),
    ("no task passes by the queue", all_are_queued),
    ("a preset changes while the job runs", presets_switch),
    ("hogs on a CPU get the same", hogs_are_equal),
    ("weights are kept", weights_are_kept),
    (
        "nobody starves beside ranks that are boosted",
        nobody_starves,
    ),
    ("of the least weight nobody starves either", patience_ends),
    ("nor does RCU wait for such", readers_go_on),
    ("who ends leaves its job, however many do", ends_are_told),
    ("a job's end ends its boosts", jobs_end),
    ("sched_ext takes it away, and the log says why", ejected),
];

#[test]
fn the_kernel_body_schedules() {
    inside::checks("the_kernel_body_schedules", TIMEOUT, attach, &CHECKS);
}

/// Runs pair in @mode under @preset beside a hog on each CPU.
fn pair(body: &mut Body, preset: &str, mode: &str) -> Ledger {
    let hogs = Hogs::on(&["0", "1"]);
    let job = body.begin(&params(preset), 0).unwrap();
    within(body, job, |_| {
        assert!(numbers("pair", &[mode, "2"])[0] > 10);
    });
    hogs.end();
    let ledger = body.ledger(job).unwrap();
    body.end(job).unwrap();
    ledger
}

/// This process is in the job, and so is what it starts meanwhile.
fn within(body: &mut Body, job: JobNumber, run: impl FnOnce(&mut Body)) {
    assert!(body.join(job, std::process::id()).unwrap() >= 1);
    run(body);
}

fn seen(ledger: &Ledger, how: &str) -> u64 {
    ledger.nr_seen[SEEN.iter().position(|word| *word == how).unwrap()]
}

/// Nearly every boost ends: served, or void because this CPU of the emulator did not run for so
/// long. Only the last ones end with the job.
fn assert_boosted(ledger: &Ledger, how: &str) {
    let (boosts, served) = (ledger.nr_boosts, ledger.nr_served);
    assert!(seen(ledger, how) > 0, "no arrival by {how}");
    assert!(boosts > 0, "no boost by {how}");
    let ended = served + ledger.nr_expired;
    assert!(ended * 10 >= boosts * 8, "{ended} of {boosts} ended");
    assert!(served > 0, "none of {boosts} served");
    let reasons: u64 = ledger.why_boosted.iter().sum();
    assert_eq!(reasons, boosts, "each boost has its reason");
}

fn state() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let name = read("/sys/kernel/sched_ext/root/ops");
    format!(
        "{} {}",
        read("/sys/kernel/sched_ext/state").trim(),
        name.trim()
    )
}

fn is_attached(body: &mut Body) {
    assert_eq!(body.mode(), Mode::Schedule);
    assert_eq!(body.why_observe(), None);
    assert_eq!(state(), "enabled cosched");
    assert!(body.ejected().is_none());
    let second = Body::attach(&Config::default(), false).map(|body| body.mode());
    assert_eq!(second.unwrap(), Mode::Observe, "two schedulers at once");
}

fn mates_boost(body: &mut Body) {
    let ledger = pair(body, "auto", "spin");
    assert_boosted(&ledger, "mate");
    assert!(
        ledger.ran_ns < ledger.due_ns * 12 / 10,
        "more than its share"
    );
}

/// Who is boosted waits in a queue or is on its way to one: its CPU is told, each time, but where it asked itself.
fn packets_boost(body: &mut Body) {
    let before = kicks(body);
    let ledger = pair(body, "dcs-spin", "udp");
    assert_boosted(&ledger, "socket");
    let (boosts, kicks) = (ledger.nr_boosts, kicks(body) - before);
    let again = seen(&ledger, "again");
    assert!(
        kicks + again >= boosts,
        "{kicks} kicks, {again} asked again, {boosts} boosts"
    );
}

/// Messages come so fast that many find their receiver ahead of its share. It does not wait for its own turn then:
/// it is asked about again when its refusal ends.
fn refusals_end(body: &mut Body) {
    let hogs = Hogs::on(&["0", "1", "1", "1", "1"]);
    let job = body.begin(&params("auto"), 0).unwrap();
    within(body, job, |_| {
        let gaps = ["--least-gap-ms=10", "--most-gap-ms=20"];
        let mut arrivals = Command::new(built("workloads/openmpi/arrivals"));
        let output = arrivals.args(["--pin", "--messages=100"]).args(gaps);
        assert!(output.output().unwrap().status.success());
    });
    hogs.end();
    let ledger = body.ledger(job).unwrap();
    body.end(job).unwrap();
    let in_debt = REASONS.iter().position(|word| *word == "in_debt");
    let refused = ledger.why_denied[in_debt.unwrap()];
    let again = seen(&ledger, "again");
    assert!(refused > 20, "{refused} refusals");
    assert!(
        4 * again > refused,
        "{again} asked again of {refused} refused"
    );
}

/// CPUs that were told of a boost, or had just been.
fn kicks(body: &Body) -> u64 {
    counted(body, &["boost_kicks", "claimed"])
}

fn counted(body: &Body, words: &[&str]) -> u64 {
    let counts = body.counts().unwrap();
    let counted = counts.iter().filter(|(c, _)| words.contains(&c.word));
    counted.map(|(_, nr)| nr).sum()
}

fn doorbells_boost(body: &mut Body) {
    assert_boosted(&pair(body, "auto", "futex"), "wake");
}

fn yields_boost(body: &mut Body) {
    let ledger = pair(body, "auto", "yield");
    assert!(ledger.nr_yields > 0);
    assert_boosted(&ledger, "yield");
}

fn nobody_boosts(body: &mut Body) {
    for mode in ["spin", "udp", "yield"] {
        let ledger = pair(body, "uncoordinated", mode);
        assert_eq!(ledger.nr_boosts, 0, "{mode}");
        assert!(ledger.ran_ns > 0);
    }
}

/// A timer's wake-ups preempt hogs. Of a writer's, that says that it is about to sleep, few do: it would
/// be preempted with each word to one of its readers.
fn wakes_preempt(body: &mut Body) {
    let hogs = Hogs::on(&["0", "1"]);
    let preempted = |body: &Body, by: fn() -> u64| {
        let before = counted(body, &["wake_kicks"]);
        let wakes = by();
        (counted(body, &["wake_kicks"]) - before, wakes)
    };
    let (kicks, wakes) = preempted(body, sleeps);
    assert!(2 * kicks > wakes, "{kicks} for {wakes} of a timer");
    let (kicks, wakes) = preempted(body, words_to_readers);
    assert!(10 * kicks < wakes, "{kicks} for {wakes} of a writer");
    hogs.end();
}

fn sleeps() -> u64 {
    let naps = [Duration::from_millis(5); 100];
    naps.iter().for_each(|nap| thread::sleep(*nap));
    naps.len() as u64
}

/// How often eight readers got all that there was for them.
fn words_to_readers() -> u64 {
    let since = Instant::now();
    let (from, mut to): (Vec<_>, Vec<_>) = (0..8).map(|_| io::pipe().unwrap()).unzip();
    let readers = from.into_iter().map(|it| thread::spawn(|| reads(it)));
    let readers: Vec<_> = readers.collect();
    while since.elapsed() < Duration::from_secs(1) {
        to.iter_mut().for_each(|it| it.write_all(&[0]).unwrap());
    }
    drop(to);
    readers.into_iter().map(|it| it.join().unwrap()).sum()
}

fn reads(mut from: PipeReader) -> u64 {
    let mut words = [0; 4096];
    (0..)
        .take_while(|_| from.read(&mut words).unwrap() > 0)
        .count() as u64
}

/// A rank that polls sockets is often preempted inside our own tracing programs, where it may
/// not migrate. sched_ext then puts it at the front with a slice of 20 ms, unless told not to.
fn all_are_queued(body: &mut Body) {
    pair(body, "uncoordinated", "udp");
    let events = fs::read_to_string("/sys/kernel/sched_ext/root/events").unwrap();
    let skips: Vec<&str> = events.lines().filter(|l| l.contains("ENQ_SKIP")).collect();
    assert_eq!(skips.len(), 2, "{events}");
    assert!(skips.iter().all(|line| line.ends_with(" 0")), "{skips:?}");
}

fn presets_switch(body: &mut Body) {
    let hogs = Hogs::on(&["0", "1"]);
    let job = body.begin(&params("uncoordinated"), 0).unwrap();
    within(body, job, |body| {
        let mut boosts = Vec::new();
        for preset in ["uncoordinated", "auto", "uncoordinated"] {
            body.set_params(job, &params(preset)).unwrap();
            let before = body.ledger(job).unwrap().nr_boosts;
            numbers("pair", &["spin", "1"]);
            boosts.push(body.ledger(job).unwrap().nr_boosts - before);
        }
        assert!(
            boosts[0] == 0 && boosts[1] > 0 && boosts[2] == 0,
            "{boosts:?}"
        );
    });
    hogs.end();
    body.end(job).unwrap();
}

fn hogs_are_equal(_: &mut Body) {
    let shares = numbers("hogs", &["4", "0", "0", "0", "1", "1"]);
    assert!(spread(&shares[..3]) <= 115, "{shares:?}");
    assert!(spread(&shares[3..]) <= 115, "{shares:?}");
    let free = numbers("hogs", &["4", "-1", "-1", "-1"]);
    assert!(spread(&free) <= 170, "three on two CPUs: {free:?}");
}

fn weights_are_kept(_: &mut Body) {
    let shares = numbers("hogs", &["3", "0:0", "0:5"]);
    assert!(shares[0] > 2 * shares[1] && shares[1] > 0, "{shares:?}");
    let groups = "/sys/fs/cgroup";
    fs::write(format!("{groups}/cgroup.subtree_control"), "+cpu").unwrap();
    for (name, weight) in [("light", "100"), ("heavy", "300")] {
        fs::create_dir(format!("{groups}/{name}")).unwrap();
        fs::write(format!("{groups}/{name}/cpu.weight"), weight).unwrap();
    }
    // Two in the light one: they share what one would have.
    let shares = numbers("hogs", &["5", "0@light", "0@light", "0@heavy"]);
    let light = shares[0] + shares[1];
    assert!(spread(&shares[..2]) <= 130, "{shares:?}");
    assert!((2 * light..5 * light).contains(&shares[2]), "{shares:?}");
}

fn nobody_starves(body: &mut Body) {
    let hogs = Hogs::on(&["0", "0:19", "1", "1:19"]);
    let job = body.begin(&params("auto"), 0).unwrap();
    within(body, job, |_| {
        numbers("pair", &["spin", "3"]);
    });
    let shares = hogs.end();
    body.end(job).unwrap();
    assert!(shares.iter().all(|ms| *ms > 0), "{shares:?}");
    assert!(body.ejected().is_none());
}

/// One of a 68th of the weight beside sixty waits fairly for sixteen seconds; after thirty the kernel's watchdog acts.
fn patience_ends(body: &mut Body) {
    let before = counted(body, &["starving"]);
    let others = ["0"; 60];
    let all = ["14", "0:19"].iter().chain(&others).copied();
    let shares = numbers("hogs", &all.collect::<Vec<_>>());
    assert!(body.ejected().is_none());
    assert!(shares[0] > 0 && shares[0] < shares[1], "{shares:?}");
    assert!(counted(body, &["starving"]) - before >= 2);
}

/// Who makes a huge page is preempted while RCU waits for it; beside twelve, of so little weight, for 3 s each time. The kernel ends
/// a scheduler that keeps RCU waiting for 21 s.
fn readers_go_on(body: &mut Body) {
    let before = counted(body, &["readers"]);
    let hogs = Hogs::on(&["0"; 12]);
    // Not each is preempted while it copies.
    let readers = (0..6).find_map(|_| {
        assert_eq!(numbers("collapse", &["4"]).len(), 1);
        Some(counted(body, &["readers"]) - before).filter(|nr| *nr > 0)
    });
    hogs.end();
    println!("NOTE {readers:?} turns for RCU");
    assert!(readers.is_some());
}

/// Of two that end on one CPU at once a tracepoint tells of one.
fn ends_are_told(body: &mut Body) {
    let hogs = Hogs::on(&["0", "1"]);
    let job = body.begin(&params("auto"), 0).unwrap();
    within(body, job, |body| {
        let before = body.ledger(job).unwrap().nr_tasks;
        for _ in 0..4 {
            assert_eq!(numbers("crowd", &["400", "1"]), [400]);
        }
        let after = || body.ledger(job).unwrap().nr_tasks;
        // Its parent may hear of an end before the scheduler does.
        let at_end = (0..50).find(|_| {
            thread::sleep(Duration::from_millis(100));
            after() == before
        });
        assert!(at_end.is_some(), "{before} before, {} after", after());
    });
    hogs.end();
    body.end(job).unwrap();
}

fn jobs_end(body: &mut Body) {
    let job = body.begin(&params("auto"), 0).unwrap();
    within(body, job, |body| {
        body.end(job).unwrap();
        let again = body.begin(&params("auto"), 0).unwrap();
        assert_eq!(job, again, "its place is free");
        let hogs = Hogs::on(&["0", "1"]);
        numbers("pair", &["spin", "1"]);
        hogs.end();
        let ledger = body.ledger(again).unwrap();
        assert_eq!(
            (ledger.nr_tasks, ledger.nr_boosts),
            (0, 0),
            "members of the old"
        );
        body.end(again).unwrap();
    });
    let all: Vec<_> = (1..raw::COS_MAX_JOBS)
        .map(|_| body.begin(&params("auto"), 0).unwrap())
        .collect();
    let full = body.begin(&params("auto"), 0).unwrap_err().to_string();
    assert!(full.contains("no more"), "{full}");
    all.into_iter().for_each(|job| body.end(job).unwrap());
}

/// The kernel's own way to be rid of any sched_ext scheduler: SysRq-S.
fn ejected(body: &mut Body) {
    fs::write("/proc/sysrq-trigger", "S").unwrap();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(state().split(' ').next(), Some("disabled"));
    let exit = body.ejected().unwrap();
    assert!(!exit.reason.is_empty() && exit.kind != 0, "{exit:?}");
    assert_eq!(numbers("hogs", &["1", "0", "1"]).len(), 2);
}
