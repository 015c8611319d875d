// SPDX-License-Identifier: Apache-2.0
//! How many events a second: real handlers, real policy, one core.
//!
//! Pairs of nodes exchange packets beside a hog on each node, under dynamic coscheduling with
//! spin-block over Solaris TS, S1's case with the most decisions: waits, arrivals,
//! wake-ups, boosts, slices, switches. The ladder and the plain heap must give the same history;
//! what differs is the time.

use crate::engine::{EventQueue, Heap, Ladder};
use crate::local;
use crate::network::{Interrupts, Network, Payer};
use crate::program::{Calcula, Latency, Workload};
use crate::run::{simulate_with, Options, QueueKind};
use crate::scenario::{Cluster, End, Job, Placement, Policy, Scenario};
use crate::units::Span;
use crate::SimError;
use std::time::{Duration, Instant};

/// One measurement.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Which queue.
    pub queue: &'static str,
    /// How many events.
    pub events: u64,
    /// How long they took.
    pub took: Duration,
    /// Of the history: equal for all queues.
    pub state_hash: u64,
}

impl Rate {
    /// Millions of events a second.
    pub fn millions_per_s(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64() / 1e6
    }
}

/// The scenario: `nodes`, an even number, for `simulated` time.
pub fn scenario(nodes: u32, simulated: Span) -> Scenario {
    let mut jobs: Vec<Job> = (0..nodes / 2).map(pair).collect();
    jobs.push(Job {
        name: "hog".into(),
        workload: Workload::Calcula(Calcula::default()),
        ranks: None,
        each_node: Some(1),
        threads: 1,
        placement: None,
        slice: None,
        start: Span::ZERO,
        scatter: Span::ms(10),
    });
    Scenario {
        seed: 1,
        replication: 0,
        policy: Policy::Named("dcs-spin-block".into()),
        end: End::Time(simulated),
        max_events: u64::MAX,
        cluster: Cluster {
            nodes,
            switch: Span::us(200),
            block: Span::us(20),
            ..Cluster::default()
        },
        local: local::Params::SolarisTs(local::SolarisTs::default()),
        network: Network {
            latency: Span::us(20),
            send: Span::us(10),
            receive: Span::us(10),
            interrupt: Span::us(10),
            interrupts: Interrupts::Needed,
            interrupt_paid_by: Payer::Interrupted,
            nic_sample: Span::ms(1),
            ..Network::default()
        },
        jobs,
    }
}

fn pair(number: u32) -> Job {
    Job {
        name: format!("pair {number}"),
        workload: Workload::Latency(Latency {
            round_trips: u64::MAX,
            bytes: 128,
        }),
        ranks: Some(2),
        each_node: None,
        threads: 1,
        placement: Some(Placement::Nodes(vec![2 * number, 2 * number + 1])),
        slice: None,
        start: Span::ZERO,
        scatter: Span::ms(10),
    }
}

/// Simulates that scenario with each queue.
pub fn bench(nodes: u32, simulated: Span) -> Result<Vec<Rate>, SimError> {
    let scenario = scenario(nodes, simulated);
    let queues = [
        (QueueKind::Ladder, Ladder::NAME),
        (QueueKind::Heap, Heap::NAME),
    ];
    queues
        .into_iter()
        .map(|(queue, name)| rate(&scenario, queue, name))
        .collect()
}

fn rate(scenario: &Scenario, queue: QueueKind, name: &'static str) -> Result<Rate, SimError> {
    let options = Options {
        queue,
        ..Options::default()
    };
    let began = Instant::now();
    let outcome = simulate_with(scenario, &mut (), options)?;
    Ok(Rate {
        queue: name,
        events: outcome.events,
        took: began.elapsed(),
        state_hash: outcome.state_hash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_queues_give_the_same_history() {
        let rates = bench(20, Span::ms(300)).unwrap();
        assert_eq!(rates.len(), 2);
        assert!(rates[0].events > 10_000);
        assert_eq!(rates[0].events, rates[1].events);
        assert_eq!(rates[0].state_hash, rates[1].state_hash);
    }
}
