// SPDX-License-Identifier: Apache-2.0
//! Truth: cases whose answer is known without the simulator.

use cosched_sim::{simulate, Activity, Observer, Outcome, Scenario, SimError, TaskName};

fn run(text: &str) -> Outcome {
    try_run(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn try_run(text: &str) -> Result<Outcome, SimError> {
    simulate(&Scenario::parse(text)?, &mut ())
}

const LOCALS: [&str; 2] = ["solaris-ts", "eevdf"];

/// Two nodes that exchange packets, and nothing else.
fn ping_pong(policy: &str, local: &str, network: &str) -> String {
    format!(
        r#"
policy = {policy}
end = "all"
cluster = {{ nodes = 2, switch = "200us", block = "20us" }}
local = {{ scheduler = "{local}" }}
network = {{ {network} }}
job = [{{ name = "a", ranks = 2, workload = {{ kind = "latency", round_trips = 100 }} }}]
"#
    )
}

#[test]
fn a_dedicated_round_trip_is_twice_one_way() {
    let network = r#"latency = "20us", send = "7us", receive = "3us", bandwidth = "128MB/s""#;
    for local in LOCALS {
        let outcome = run(&ping_pong("\"uncoordinated\"", local, network));
        let laps = &outcome.jobs[0].laps;
        let one_way_ns = 7_000 + 1_000 + 20_000 + 3_000;
        assert_eq!((laps.count, laps.max_ns), (100, 2 * one_way_ns));
        assert_eq!(laps.mean_ns(), 2 * one_way_ns);
    }
}

/// The reply arrives `after_ns` after the wait began; spin ends at 1600 us, the block at 1620 us.
fn blocks_when_answered_after(after_ns: u64) -> u64 {
    let network = format!(
        r#"latency = "{}ns", send = "0us", receive = "0us""#,
        after_ns / 2
    );
    let outcome = run(&ping_pong("\"implicit\"", "eevdf", &network));
    assert_eq!(outcome.jobs[0].laps.count, 100);
    outcome.jobs[0].processes[0].blocks
}

#[test]
fn no_wake_up_is_lost_at_any_instant_between_spin_and_sleep() {
    for early in [2, 4, 1_000] {
        assert_eq!(blocks_when_answered_after(1_600_000 - early), 0);
    }
    for within in (0..=20_000).step_by(500).chain([2, 19_998]) {
        assert_eq!(
            blocks_when_answered_after(1_600_000 + within),
            0,
            "{within}"
        );
    }
    for late in [2, 4, 1_000, 300_000] {
        assert_eq!(blocks_when_answered_after(1_620_000 + late), 100, "{late}");
    }
}

/// On one node, two CPUs: who sends rings (40 us), the ring interrupts (30 us), the sleeper comes on (200 us).
#[test]
fn who_wakes_a_sleeper_of_its_node_pays_for_it_and_so_does_its_cpu() {
    let local = r#"local_latency = "5us", send = "0us", receive = "0us""#;
    let text = ping_pong("\"local-block\"", "eevdf", local).replace(
        r#"nodes = 2, switch = "200us", block = "20us""#,
        r#"nodes = 1, cpus = 2, balance = false, switch = "200us", block = "20us", wake = "40us", kick = "30us""#,
    );
    let outcome = run(&text);
    let job = &outcome.jobs[0];
    let one_way_ns = 5_000 + 40_000 + 30_000 + 200_000;
    // The first message comes while its receiver falls asleep.
    let first_ns = 20_000 + one_way_ns;
    assert_eq!(job.laps.max_ns, 2 * one_way_ns);
    assert_eq!(job.laps.mean_ns(), (99 * 2 * one_way_ns + first_ns) / 100);
    assert_eq!(job.processes[0].blocks, 100);
}

const FREE: &str = r#"switch = "0us""#;

/// `n` tasks that need `work` each, on one CPU that has `costs`.
fn equal_tasks(local: &str, n: u32, work: &str, costs: &str) -> Outcome {
    run(&format!(
        r#"
policy = "uncoordinated"
end = "all"
cluster = {{ nodes = 1, {costs} }}
local = {{ scheduler = "{local}" }}
job = [{{ name = "a", each_node = {n}, workload = {{ kind = "calcula", work = "{work}" }} }}]
"#
    ))
}

#[test]
fn equal_tasks_end_when_their_work_is_done_and_not_a_nanosecond_later() {
    for local in LOCALS {
        let outcome = equal_tasks(local, 5, "3s", FREE);
        assert_eq!(outcome.ended_at.0, 15_000_000_000);
        assert_eq!(outcome.spent.run_ns, 15_000_000_000);
        assert_eq!(outcome.spent.idle_ns, 0);
    }
}

#[test]
fn equal_tasks_under_eevdf_end_within_one_round_of_ticks() {
    for n in [2, 5] {
        let outcome = equal_tasks("eevdf", n, "3s", FREE);
        let first = outcome.jobs[0].processes.iter().map(|p| p.lived.0).min();
        let round_ns = u64::from(n) * 4_000_000;
        assert!(first.unwrap() >= u64::from(n) * 3_000_000_000 - round_ns);
    }
}

#[test]
fn each_switch_costs_what_it_costs() {
    for local in LOCALS {
        let outcome = equal_tasks(local, 3, "1s", r#"switch = "250us""#);
        let switches: u64 = outcome.jobs[0].processes.iter().map(|p| p.switches).sum();
        assert!(switches > 3);
        assert_eq!(outcome.spent.switch_ns, 250_000 * switches);
        assert_eq!(outcome.ended_at.0, 3_000_000_000 + 250_000 * switches);
        let system: u64 = outcome.jobs[0].processes.iter().map(|p| p.system.0).sum();
        assert_eq!(system, outcome.spent.switch_ns);
    }
}

/// A cache that is never full again: all takes twice as long. One that soon is: each turn loses so much, but for
/// the last of each task, which may be short.
#[test]
fn work_takes_twice_as_long_until_caches_are_refilled() {
    for local in LOCALS {
        let run = |refill: &str| {
            let outcome = equal_tasks(local, 3, "1s", &format!("refill = \"{refill}\""));
            let switches: u64 = outcome.jobs[0].processes.iter().map(|p| p.switches).sum();
            (outcome.spent.run_ns - 3_000_000_000, switches)
        };
        // A switch between two halves begins a pair anew.
        let (lost_ns, switches) = run("10s");
        assert!((3_000_000_000..=3_000_000_000 + switches).contains(&lost_ns));
        let (lost_ns, switches) = run("250us");
        assert!((250_000 * (switches - 3)..=250_000 * switches).contains(&lost_ns));
    }
}

/// For how long tasks 0 and 1, on CPUs 0 and 1, run at once.
#[derive(Default)]
struct Overlap {
    on: [bool; 2],
    since_ns: u64,
    both_ns: u64,
}

impl Observer for Overlap {
    fn begin(&mut self, tasks: &[TaskName]) {
        assert_eq!([tasks[0].node, tasks[1].node], [0, 1]);
    }

    fn cpu(&mut self, now_ns: u64, cpu: u32, activity: Activity) {
        if self.on == [true, true] {
            self.both_ns += now_ns - self.since_ns;
        }
        self.since_ns = now_ns;
        self.on[cpu as usize] = activity == Activity::Run(cpu);
    }
}

#[test]
fn uncoordinated_slices_overlap_by_chance_only() {
    for k in [1, 2, 3] {
        let (mut both_s, runs) = (0.0, 100);
        for replication in 0..runs {
            let text = format!(
                r#"
policy = "uncoordinated"
end = {{ time = "60s" }}
replication = {replication}
cluster = {{ nodes = 2, drift_ppm = 2000 }}
local = {{ scheduler = "eevdf" }}
[[job]]
name = "pair"
ranks = 2
workload = {{ kind = "calcula" }}
[[job]]
name = "hog"
each_node = {k}
workload = {{ kind = "calcula" }}
"#
            );
            let mut overlap = Overlap::default();
            simulate(&Scenario::parse(&text).unwrap(), &mut overlap).unwrap();
            both_s += overlap.both_ns as f64 / 1e9;
        }
        let fraction = both_s / (60.0 * f64::from(runs));
        let chance = 1.0 / f64::from((k + 1) * (k + 1));
        assert!(
            (fraction / chance - 1.0).abs() < 0.05,
            "k = {k}: {fraction} instead of {chance}"
        );
    }
}

/// A small generator of its own, so that the arrivals do not come from what is tested.
struct Draws(u64);

impl Draws {
    fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }
}

#[test]
fn short_slices_are_processor_sharing_whatever_the_distribution() {
    let (load, mean_ms, jobs) = (0.5, 10.0, 5000);
    let services: [fn(&mut Draws) -> f64; 3] = [
        |_| 10.0,
        |draws| draws.exponential(10.0),
        |draws| {
            let short = draws.unit() < 0.9;
            draws.exponential(if short { 5.0 } else { 55.0 })
        },
    ];
    for (i, service) in services.iter().enumerate() {
        let mut draws = Draws(i as u64 + 1);
        let mut at_ms = 0.0;
        let mut text = String::from(
            r#"
policy = "uncoordinated"
end = "all"
cluster = { nodes = 1 }
local = { scheduler = "eevdf", slice = "50us", tick = "50us" }
"#,
        );
        for job in 0..jobs {
            at_ms += draws.exponential(mean_ms / load);
            let work_ns = (service(&mut draws) * 1e6).max(1.0) as u64;
            let start_ns = (at_ms * 1e6) as u64;
            text += &format!(
                "[[job]]\nname = '{job}'\nstart = '{start_ns}ns'\nworkload = {{ kind = 'calcula', work = '{work_ns}ns' }}\n"
            );
        }
        let outcome = run(&text);
        let slowdowns = outcome.jobs.iter().map(|job| {
            let response = job.response.unwrap().0 as f64;
            response / job.cpu().0 as f64
        });
        let mean = slowdowns.sum::<f64>() / f64::from(jobs);
        let due = 1.0 / (1.0 - load);
        assert!(
            (mean / due - 1.0).abs() < 0.08,
            "distribution {i}: {mean} instead of {due}"
        );
    }
}

#[test]
fn boosts_that_are_never_fair_change_nothing() {
    let preset = |arrival: &str| {
        format!("{{ wait = 'spin', arrival = '{arrival}', fairness = 'none', periodic = 'none', order = 'local', quantum = 'local', allocation = 'shared' }}")
    };
    for local in LOCALS {
        let text = |arrival: &str| {
            let pair = ping_pong(&preset(arrival), local, "nic_sample = '1ms'");
            pair + "[[job]]\nname = 'hog'\neach_node = 2\nworkload = { kind = 'calcula' }\n"
        };
        let text = |arrival: &str| {
            text(arrival).replace("end = \"all\"", "end = { job = 'a' }").replace("job = [{ name = \"a\", ranks = 2, workload = { kind = \"latency\", round_trips = 100 } }]", "[[job]]\nname = 'a'\nranks = 2\nworkload = { kind = 'latency', round_trips = 100 }")
        };
        let (without, with) = (run(&text("none")), run(&text("boost")));
        assert_eq!(with.state_hash, without.state_hash);
        assert!(with.verdicts_of("arrival", "none") > 0, "policy was asked");
    }
}

/// Three jobs of two ranks, with that allocation.
fn three_jobs(policy: &str, more: &str) -> Outcome {
    let mut text = format!(
        r#"
policy = "{policy}"
end = "all"
cluster = {{ nodes = 2, switch = "100us"{more} }}
local = {{ scheduler = "eevdf" }}
"#
    );
    for name in ["a", "b", "c"] {
        text += &format!(
            "[[job]]\nname = '{name}'\nranks = 2\nworkload = {{ kind = 'barrier', iterations = 5000, grain = '200us' }}\n"
        );
    }
    run(&text)
}

#[test]
fn in_batch_one_job_follows_another() {
    let outcome = three_jobs("batch", "");
    let [a, b, c] = [0, 1, 2].map(|job: usize| outcome.jobs[job].response.unwrap().0);
    assert!(
        b.abs_diff(2 * a) < 1_000_000 && c.abs_diff(3 * a) < 1_000_000,
        "{a} {b} {c}"
    );
    let switches = outcome
        .jobs
        .iter()
        .flat_map(|job| &job.processes)
        .map(|p| p.switches);
    assert_eq!(switches.sum::<u64>(), 6);
}

#[test]
fn gangs_take_turns_and_waste_nothing() {
    let batch = three_jobs("batch", "");
    let alone = batch.jobs[0].response.unwrap().0;
    let gang = three_jobs("gang", "");
    let slot_ns = 100_000_000;
    for job in &gang.jobs {
        let response = job.response.unwrap().0;
        assert!(
            response.abs_diff(3 * alone) <= 3 * slot_ns,
            "{response} instead of 3 * {alone}"
        );
        let (used, needed) = (job.cpu().0, batch.jobs[0].cpu().0);
        assert!(used < needed + needed / 50, "{used} instead of {needed}");
    }
    assert_eq!(gang.verdicts_of("wait", "block"), 0);
    let late = three_jobs("gang", ", clock_error = \"20ms\"");
    assert!(late.ended_at > gang.ended_at);
}

#[test]
fn what_cannot_be_is_an_error_of_one_line() {
    let text = ping_pong("\"implicit\"", "eevdf", "");
    let cases = [
        (
            format!("max_events = 100\n{text}"),
            "100 events were not enough",
        ),
        (
            text.replace("implicit", "fcfs-space"),
            "allocation fcfs_space is not simulated",
        ),
        (
            text.replace("implicit", "predictive")
                .replace("eevdf", "solaris-ts"),
            "order: frequency needs a local scheduler that can add to its order",
        ),
    ];
    for (text, said) in cases {
        let why = try_run(&text).unwrap_err().to_string();
        assert!(why.contains(said) && !why.contains('\n'), "{why}");
    }
}
