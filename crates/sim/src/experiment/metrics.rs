// SPDX-License-Identifier: Apache-2.0
//! The metrics of a job: the columns of a record, the same for every experiment.
//!
//! A claim that needs a metric finds it. One table names each, says what it is and takes it
//! from an outcome; the reference is generated from the same table.

use crate::outcome::{JobOutcome, Outcome, ProcessOutcome};
use cosched_model::Nanos;

/// Where a metric comes from.
pub struct Seen<'a> {
    /// The job.
    pub job: &'a JobOutcome,
    /// The whole simulation.
    pub outcome: &'a Outcome,
    /// The same job with nobody else; none where it never ends.
    pub dedicated: Option<&'a JobOutcome>,
}

/// One column.
pub struct Metric {
    /// Its name, with its unit.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its value; none where there is none (a job that did not end has no response time).
    pub of: fn(&Seen) -> Option<f64>,
}

const fn metric(name: &'static str, about: &'static str, of: fn(&Seen) -> Option<f64>) -> Metric {
    Metric { name, about, of }
}

/// All of them, in the order of the columns.
pub const METRICS: [Metric; 34] = [
    metric(
        "response_s",
        "from the start of the first process to the end of the last",
        |s| s.job.response.map(seconds),
    ),
    metric(
        "slowdown",
        "response time over that with no other job, same policy",
        |s| s.job.slowdown(s.dedicated?),
    ),
    metric("cpu_s", "CPU time of all processes, user and system", |s| {
        Some(seconds(s.job.cpu()))
    }),
    metric(
        "waste",
        "CPU time over that with no other job, same policy",
        |s| Some(s.job.cpu().share_of(s.dedicated?.cpu())),
    ),
    metric("user_s", "CPU time in user mode", |s| time(s, |p| p.user)),
    metric("system_s", "CPU time in the kernel", |s| {
        time(s, |p| p.system)
    }),
    metric("spin_s", "CPU time spent polling for messages", |s| {
        time(s, |p| p.spun)
    }),
    metric(
        "fairness",
        "F: CPU time over an equal share, mean of processes",
        |s| Some(s.job.fairness()),
    ),
    metric("fairness_min", "F of the process that has the least", |s| {
        each(s).min_by(f64::total_cmp)
    }),
    metric("fairness_max", "F of the process that has the most", |s| {
        each(s).max_by(f64::total_cmp)
    }),
    metric("wait_us", "mean length of a wait for a message", |s| {
        (count(s, |p| p.waits) > 0).then(|| micros(s.job.mean_wait()))
    }),
    metric("waits", "waits for messages", |s| number(s, |p| p.waits)),
    metric("blocks", "waits that went to sleep", |s| {
        number(s, |p| p.blocks)
    }),
    metric("yields", "yields that let another task be chosen", |s| {
        number(s, |p| p.yields)
    }),
    metric("messages", "messages received", |s| {
        number(s, |p| p.messages)
    }),
    metric("switches", "times that a process came onto a CPU", |s| {
        number(s, |p| p.switches)
    }),
    metric("migrations", "times that a process changed its CPU", |s| {
        number(s, |p| p.migrations)
    }),
    metric("boosts", "times that policy made a process run next", |s| {
        number(s, |p| p.boosts)
    }),
    metric("wakes", "times that a message woke a process", |s| {
        number(s, |p| p.wakes)
    }),
    metric(
        "wake_us",
        "mean time from such a message until the process ran",
        |s| {
            let wakes = count(s, |p| p.wakes);
            let after: Nanos = s.job.processes.iter().map(|p| p.woke_after).sum();
            (wakes > 0).then(|| micros(after) / wakes as f64)
        },
    ),
    metric("laps", "rounds: round trips or iterations", |s| {
        Some(s.job.laps.count as f64)
    }),
    metric("lap_mean_us", "mean length of a round", |s| {
        laps(s, |laps| laps.mean_ns() as f64 / 1e3)
    }),
    metric("lap_p50_us", "median length of a round", |s| {
        quantile(s, 0.5)
    }),
    metric("lap_p90_us", "90 % of rounds are shorter", |s| {
        quantile(s, 0.9)
    }),
    metric("lap_p99_us", "99 % of rounds are shorter", |s| {
        quantile(s, 0.99)
    }),
    metric("lap_p999_us", "99.9 % of rounds are shorter", |s| {
        quantile(s, 0.999)
    }),
    metric("lap_max_us", "the longest round", |s| {
        laps(s, |laps| laps.max_ns as f64 / 1e3)
    }),
    metric("lap_over_2ms", "share of rounds of 2 ms and more", |s| {
        let bins = s.job.laps.bins();
        let long: u64 = bins.filter(|(us, _)| *us >= 2000).map(|(_, n)| n).sum();
        laps(s, |laps| long as f64 / laps.count as f64)
    }),
    metric(
        "lap_time_over_2ms",
        "share of the time of all rounds that rounds of 2 ms and more take",
        |s| {
            let bins = s.job.laps.bins();
            let long: f64 = bins
                .filter(|(us, _)| *us >= 2000)
                .map(|(us, n)| us as f64 * n as f64)
                .sum();
            laps(s, |laps| (long * 1e3 / laps.sum_ns as f64).min(1.0))
        },
    ),
    metric("ended_s", "length of the simulation", |s| {
        Some(seconds(s.outcome.ended_at))
    }),
    metric(
        "idle_share",
        "share of all CPU time in which CPUs were idle",
        |s| Some(s.outcome.spent.idle_ns as f64 / s.outcome.spent.total_ns() as f64),
    ),
    metric(
        "switch_share",
        "share of all CPU time that went into switching",
        |s| Some(s.outcome.spent.switch_ns as f64 / s.outcome.spent.total_ns() as f64),
    ),
    metric(
        "interrupt_share",
        "share of all CPU time that went into interrupts",
        |s| Some(s.outcome.spent.irq_ns as f64 / s.outcome.spent.total_ns() as f64),
    ),
    metric("events", "events of the simulation", |s| {
        Some(s.outcome.events as f64)
    }),
];

/// The place of the metric of that name.
pub fn named(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

fn time(s: &Seen, of: fn(&ProcessOutcome) -> Nanos) -> Option<f64> {
    Some(seconds(s.job.processes.iter().map(of).sum()))
}

fn count(s: &Seen, of: fn(&ProcessOutcome) -> u64) -> u64 {
    s.job.processes.iter().map(of).sum()
}

fn number(s: &Seen, of: fn(&ProcessOutcome) -> u64) -> Option<f64> {
    Some(count(s, of) as f64)
}

fn each<'a>(s: &'a Seen<'a>) -> impl Iterator<Item = f64> + 'a {
    s.job.processes.iter().map(ProcessOutcome::fairness)
}

fn laps(s: &Seen, of: impl Fn(&crate::Histogram) -> f64) -> Option<f64> {
    (s.job.laps.count > 0).then(|| of(&s.job.laps))
}

fn quantile(s: &Seen, q: f64) -> Option<f64> {
    laps(s, |laps| laps.quantile_us(q) as f64)
}

/// The histogram of rounds by octaves: `64us:998123 128us:20`.
pub fn laps_by_octave(job: &JobOutcome) -> String {
    let mut octaves: Vec<(u64, u64)> = Vec::new();
    for (us, n) in job.laps.bins() {
        let octave = if us == 0 { 0 } else { 1 << us.ilog2() };
        match octaves.last_mut() {
            Some((last, sum)) if *last == octave => *sum += n,
            _ => octaves.push((octave, n)),
        }
    }
    let words: Vec<String> = octaves
        .iter()
        .map(|(us, n)| format!("{us}us:{n}"))
        .collect();
    words.join(" ")
}

/// F of each process: `1.01 0.98`.
pub fn fairness_each(job: &JobOutcome) -> String {
    let words = job.processes.iter().map(|p| format!("{:.3}", p.fairness()));
    words.collect::<Vec<_>>().join(" ")
}

/// What policy said: `arrival/boost/fair=12`.
pub fn verdicts(outcome: &Outcome) -> String {
    let words = outcome.verdicts.iter().map(|v| {
        let word = |text: &str| text.replace(' ', "-");
        format!(
            "{}/{}/{}={}",
            word(v.question),
            word(v.act),
            word(v.reason),
            v.count
        )
    });
    words.collect::<Vec<_>>().join(" ")
}
