// SPDX-License-Identifier: Apache-2.0
//! One scenario, one history: whatever the queue, the shortcuts, and how often it is run.

use cosched_sim::{simulate, simulate_with, Options, QueueKind, Scenario};

const LOCALS: [&str; 6] = [
    "scheduler = 'solaris-ts'",
    "scheduler = 'eevdf'",
    "scheduler = 'linux22'",
    "scheduler = 'stride'",
    "scheduler = 'cosched'",
    "scheduler = 'cosched', body = true",
];
const POLICIES: [&str; 9] = [
    "uncoordinated",
    "implicit",
    "local-block",
    "spin-yield",
    "dcs-spin",
    "dcs-spin-block",
    "periodic-boost",
    "gang",
    "auto",
];

/// Two jobs and hogs on four nodes of `cpus` CPUs.
fn scenario(local: &str, policy: &str, cpus: u32) -> Scenario {
    let text = format!(
        r#"
policy = "{policy}"
end = "all"
seed = 7
local = {{ {local} }}
[cluster]
nodes = 4
cpus = {cpus}
switch = "200us"
refill = "50us"
block = "20us"
[network]
latency = "20us"
bandwidth = "13MB/s"
send = "10us"
receive = "10us"
interrupt = "5us"
nic_sample = "1ms"
arrival_check = "5us"
[[job]]
name = "barrier"
workload = {{ kind = "barrier", iterations = 300, grain = "300us", spread = 0.3 }}
ranks = 6
[[job]]
name = "latency"
workload = {{ kind = "latency", round_trips = 500 }}
ranks = 2
start = "50ms"
[[job]]
name = "hog"
workload = {{ kind = "calcula" }}
each_node = 2
scatter = "30ms"
"#
    );
    Scenario::parse(&text).expect("a scenario")
}

fn all() -> impl Iterator<Item = Scenario> {
    LOCALS.into_iter().flat_map(|local| {
        POLICIES
            .into_iter()
            .flat_map(move |policy| [1, 2].map(|cpus| scenario(local, policy, cpus)))
    })
}

#[test]
fn the_queue_and_the_shortcuts_change_nothing() {
    for scenario in all() {
        let usual = simulate(&scenario, &mut ()).unwrap();
        for (queue, shortcuts) in [
            (QueueKind::Ladder, false),
            (QueueKind::Heap, true),
            (QueueKind::Heap, false),
        ] {
            let other = simulate_with(&scenario, &mut (), Options { queue, shortcuts }).unwrap();
            assert!(
                usual == other,
                "{queue:?} {shortcuts} {:?} {:?}",
                scenario.local,
                scenario.policy
            );
        }
    }
}

#[test]
fn other_seeds_and_replications_give_other_histories() {
    let mut scenario = scenario(LOCALS[1], "auto", 2);
    let hash = |scenario: &Scenario| simulate(scenario, &mut ()).unwrap().state_hash;
    let first = hash(&scenario);
    assert_eq!(first, hash(&scenario));
    scenario.replication = 1;
    let second = hash(&scenario);
    scenario.seed = 8;
    let third = hash(&scenario);
    assert!(first != second && second != third && first != third);
}

#[test]
fn messages_and_waits_are_counted() {
    let outcome = simulate(&scenario(LOCALS[0], "implicit", 1), &mut ()).unwrap();
    let barrier = outcome.job("barrier").unwrap();
    let messages: u64 = barrier.processes.iter().map(|p| p.messages).sum();
    assert_eq!(messages, 300 * 2 * 5);
    assert_eq!(barrier.laps.count, 300);
    assert_eq!(outcome.job("latency").unwrap().laps.count, 500);
    assert!(outcome.job("hog").unwrap().response.is_none());
    let waits = barrier.processes.iter().map(|p| p.waits).sum::<u64>();
    assert!(waits > 0 && outcome.verdicts_of("wait", "spin") >= waits);
}
