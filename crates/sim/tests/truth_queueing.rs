// SPDX-License-Identifier: Apache-2.0
//! Truth from queueing theory: one CPU with Poisson arrivals, and uncoordinated nodes.
//!
//! Short quanta are processor sharing, whose mean response time depends on the mean service time
//! only, also where each turn costs a switch; quanta without end are Pollaczek and Khinchine's queue, whose mean wait
//! depends on the second moment. (Kleinrock, Queueing Systems, volumes 1 and 2; Kelly,
//! Reversibility and Stochastic Networks, section 3.3, for the service rate that depends on how many there are.)

use cosched_sim::{simulate, Activity, Observer, Scenario, TaskName};

const MEAN_NS: f64 = 10_000_000.0;
const LOAD: f64 = 0.5;

/// A generator of its own, so that arrivals do not come from what is tested.
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

/// A service time in ns, of mean 10 ms.
type Service = fn(&mut Draws) -> f64;

/// Each with its second moment over the square of its mean.
const SERVICES: [(&str, Service, f64); 3] = [
    ("deterministic", |_| MEAN_NS, 1.0),
    ("exponential", |draws| draws.exponential(MEAN_NS), 2.0),
    ("hyperexponential", hyperexponential, 3.5),
];

/// 5 ms on average for three in four, 25 ms for the others.
fn hyperexponential(draws: &mut Draws) -> f64 {
    let short = draws.unit() < 0.75;
    draws.exponential(MEAN_NS * if short { 0.5 } else { 2.5 })
}

/// Jobs that arrive at random at one CPU: mean response time over mean work, mean of response
/// time over work.
fn queue(quantum: &str, switch: &str, service: Service, seed: u64) -> (f64, f64) {
    let jobs = 3000;
    let mut draws = Draws(seed);
    let mut at_ns = 0.0;
    let mut text = format!(
        r#"
policy = "uncoordinated"
end = "all"
cluster = {{ nodes = 1, drift_ppm = 0, switch = "{switch}" }}
local = {{ scheduler = "stride", quantum = "{quantum}", tick = "1us" }}
"#
    );
    let mut works = Vec::new();
    for job in 0..jobs {
        at_ns += draws.exponential(MEAN_NS / LOAD);
        let work_ns = service(&mut draws).max(1.0) as u64;
        works.push(work_ns as f64);
        text += &format!(
            "[[job]]\nname = '{job}'\nstart = '{}ns'\nworkload = {{ kind = 'calcula', work = '{work_ns}ns' }}\n",
            at_ns as u64
        );
    }
    let outcome =
        simulate(&Scenario::parse(&text).expect("a scenario"), &mut ()).expect("an outcome");
    let responses = outcome
        .jobs
        .iter()
        .map(|job| job.response.expect("it ended").0 as f64);
    let sum: f64 = responses.clone().sum();
    let slowdowns: f64 = responses
        .zip(&works)
        .map(|(response, work)| response / work)
        .sum();
    (sum / works.iter().sum::<f64>(), slowdowns / f64::from(jobs))
}

/// Means over independent runs.
fn queues(quantum: &str, switch: &str, service: Service, runs: u64) -> (f64, f64) {
    let each = (1..=runs).map(|seed| queue(quantum, switch, service, seed));
    let (mean, slowdown) = each.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    (mean / runs as f64, slowdown / runs as f64)
}

fn near(what: &str, got: f64, due: f64, within: f64) {
    assert!(
        (got / due - 1.0).abs() < within,
        "{what}: {got} instead of {due}"
    );
}

/// Mean number in a processor-sharing queue that is `slowed` by switches where there are two or
/// more: P(n) is proportional to load^n / slowed^(n-1).
fn mean_number(slowed: f64) -> f64 {
    let ratio = LOAD / slowed;
    let all = 1.0 + slowed * ratio / (1.0 - ratio);
    slowed * ratio / (1.0 - ratio).powi(2) / all
}

#[test]
fn short_quanta_are_processor_sharing_whatever_a_switch_costs() {
    for (switch, slowed) in [("0us", 1.0), ("40us", 0.8)] {
        for (name, service, _) in SERVICES {
            let (_, slowdown) = queues("200us", switch, service, 2);
            let due = mean_number(slowed) / LOAD;
            near(&format!("{name}, {switch}"), slowdown, due, 0.1);
        }
    }
}

#[test]
fn endless_quanta_are_the_queue_of_pollaczek_and_khinchine() {
    for (name, service, second_moment) in SERVICES {
        let (mean, _) = queues("10h", "0us", service, 8);
        let due = 1.0 + LOAD * second_moment / (2.0 * (1.0 - LOAD));
        near(name, mean, due, 0.1);
    }
}

/// For how long the tasks of the first job, one on each node, all run.
struct Together {
    on: Vec<bool>,
    since_ns: u64,
    all_ns: u64,
}

impl Observer for Together {
    fn begin(&mut self, tasks: &[TaskName]) {
        let first = tasks.iter().filter(|task| task.job == 0);
        assert!(first.enumerate().all(|(at, task)| task.node == at as u32));
    }

    fn cpu(&mut self, now_ns: u64, cpu: u32, activity: Activity) {
        if self.on.iter().all(|on| *on) {
            self.all_ns += now_ns - self.since_ns;
        }
        self.since_ns = now_ns;
        self.on[cpu as usize] = activity == Activity::Run(cpu);
    }
}

/// The part of ten seconds in which `ranks` that know nothing of each other all run, each beside `hogs`.
fn together(local: &str, ranks: u32, hogs: u32, replication: u32) -> f64 {
    let text = format!(
        r#"
policy = "uncoordinated"
end = {{ time = "10s" }}
replication = {replication}
cluster = {{ nodes = {ranks}, drift_ppm = 100000 }}
local = {{ {local} }}
[[job]]
name = "ranks"
ranks = {ranks}
workload = {{ kind = "calcula" }}
[[job]]
name = "hog"
each_node = {hogs}
workload = {{ kind = "calcula" }}
"#
    );
    let mut together = Together {
        on: vec![false; ranks as usize],
        since_ns: 0,
        all_ns: 0,
    };
    simulate(&Scenario::parse(&text).expect("a scenario"), &mut together).expect("an outcome");
    together.all_ns as f64 / 1e10
}

/// Phases are random, and so are clocks: a tenth apart, lest a pair stays in step for a whole run.
#[test]
fn uncoordinated_ranks_run_together_by_chance_only() {
    let locals = [
        "scheduler = 'linux22', tick = '1ms'",
        "scheduler = 'stride', quantum = '20ms', tick = '1ms'",
        "scheduler = 'cosched', tick = '1ms'",
    ];
    for local in locals {
        for (ranks, hogs) in [(1, 2), (2, 1), (3, 1), (2, 3)] {
            let runs = 60;
            let each: Vec<f64> = (0..runs)
                .map(|run| together(local, ranks, hogs, run))
                .collect();
            let mean = each.iter().sum::<f64>() / f64::from(runs);
            let off = each.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
            let error = (off / f64::from(runs * (runs - 1))).sqrt();
            let due = f64::from(hogs + 1).powi(-(ranks as i32));
            assert!(error < 0.1 * due, "{local} {ranks} {hogs}: too few runs");
            assert!(
                (mean - due).abs() < 4.0 * error + 0.01 * due,
                "{local} {ranks} {hogs}: {mean} instead of {due}"
            );
        }
    }
}
