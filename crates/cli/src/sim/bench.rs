// SPDX-License-Identifier: Apache-2.0
//! How fast the simulator is: events per second of its queue beside a plain binary heap.
//!
//! What is simulated is the simulator's business (`cosched_sim::bench`); here it is repeated,
//! and the median printed with both extremes. The two queues must give the same history.

use crate::fault::Fault;
use crate::say::say;
use anyhow::{ensure, Result};
use cosched_model::Nanos;
use cosched_sim::bench::{bench, Rate};
use cosched_sim::units::Span;
use std::process::ExitCode;

/// Measure the simulator: events per second of its queue beside a plain binary heap
#[derive(clap::Args)]
pub struct Args {
    /// How many nodes; an even number
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=200_000))]
    nodes: u32,
    /// How often each queue is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Simulated time
    #[arg(long, default_value = "200ms", value_parser = humantime::parse_duration)]
    time: std::time::Duration,
}

/// Prints one line for each queue.
pub fn main(args: &Args) -> Result<ExitCode> {
    let time = Span(Nanos(
        u64::try_from(args.time.as_nanos()).unwrap_or(u64::MAX),
    ));
    let mut all: Vec<Rate> = Vec::new();
    for _ in 0..args.repeats {
        let rates = bench(args.nodes & !1, time);
        all.extend(rates.map_err(|error| Fault::Usage(error.to_string()))?);
    }
    let same = all.iter().all(|rate| rate.state_hash == all[0].state_hash);
    ensure!(
        same,
        "the queues gave different histories: a defect of the simulator"
    );
    let (nodes, events) = (args.nodes & !1, all[0].events);
    say(format_args!(
        "{nodes} nodes, {events} events in {time} simulated, one core"
    ))?;
    let mut queues: Vec<&str> = all.iter().map(|rate| rate.queue).collect();
    queues.dedup();
    queues.truncate(2);
    for queue in queues {
        let of = all.iter().filter(|rate| rate.queue == queue);
        let mut rates: Vec<f64> = of.map(Rate::millions_per_s).collect();
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates[0], rates[rates.len() - 1]);
        let median = rates[rates.len() / 2];
        say(format_args!(
            "{queue:8} {median:6.2} M events/s ({low:.2} to {high:.2})"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
