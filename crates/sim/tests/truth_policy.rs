// SPDX-License-Identifier: Apache-2.0
//! Truth about policy in the simulated cluster: limits in which one answer is another, and
//! bounds that follow from its rule alone.

use cosched_sim::{simulate, Activity, Observer, Outcome, Scenario, TaskName};
use proptest::prelude::*;

/// A preset that leaves all to the local scheduler but for `answers`.
fn preset(answers: &[&str]) -> String {
    let plain = [
        ("wait", "spin"),
        ("arrival", "none"),
        ("fairness", "none"),
        ("periodic", "none"),
        ("order", "local"),
        ("quantum", "local"),
        ("allocation", "shared"),
    ];
    let answer = |(question, word): (&str, &str)| {
        let given = answers.iter().find(|answer| answer.starts_with(question));
        given.map_or(format!("{question} = '{word}'"), |it| it.to_string())
    };
    format!("policy = {{ {} }}", plain.map(answer).join(", "))
}

/// A pair on two nodes beside `hogs` on each, for ten seconds.
fn pair(local: &str, hogs: u32, bytes: u32, answers: &[&str]) -> Outcome {
    pair_over("", local, hogs, bytes, answers)
}

/// The same over sockets that say so of themselves.
fn pair_over(socket: &str, local: &str, hogs: u32, bytes: u32, answers: &[&str]) -> Outcome {
    simulate(&beside(socket, local, hogs, bytes, answers), &mut ()).expect("an outcome")
}

fn beside(socket: &str, local: &str, hogs: u32, bytes: u32, answers: &[&str]) -> Scenario {
    let text = format!(
        r#"
{}
end = {{ time = "10s" }}
cluster = {{ nodes = 2, switch = "200us", block = "20us" }}
local = {{ scheduler = "{local}" }}
network = {{ latency = "100us", send = "20us", receive = "20us"{socket} }}
[[job]]
name = "pair"
ranks = 2
workload = {{ kind = "latency", round_trips = 1000000, bytes = {bytes} }}
[[job]]
name = "hog"
each_node = {hogs}
workload = {{ kind = "calcula" }}
"#,
        preset(answers)
    );
    Scenario::parse(&text).expect("a scenario")
}

fn boosts(outcome: &Outcome) -> Vec<u64> {
    let processes = outcome.jobs[0].processes.iter();
    processes.map(|process| process.boosts).collect()
}

/// Everything but the reasons of verdicts.
fn history(outcome: &Outcome) -> String {
    format!(
        "{:?} {:?} {:?}",
        outcome.state_hash, outcome.jobs, outcome.spent
    )
}

fn queue_cycle(e: i32, c: &str) -> [String; 2] {
    let fairness = format!("{{ answer = 'queue_cycle', e = {e}, c = '{c}', tq = '20ms' }}");
    ["arrival = 'boost'".into(), format!("fairness = {fairness}")]
}

fn dcs(local: &str, hogs: u32, e: i32, c: &str) -> Outcome {
    let answers = queue_cycle(e, c);
    pair(local, hogs, 128, &answers.each_ref().map(String::as_str))
}

#[test]
fn the_least_e_grants_the_first_boost_and_no_other() {
    for local in ["solaris-ts", "eevdf"] {
        assert_eq!(boosts(&dcs(local, 2, -64, "0us")), [1, 1]);
    }
}

/// C = 100 ms covers Tq * R = 20 ms * 5 (claims S1, derived).
#[test]
fn e_2_and_c_100_ms_are_always_up_to_five_tasks() {
    let always = ["arrival = 'boost'", "fairness = 'always'"];
    for (hogs, same) in [(1, true), (4, true), (8, false)] {
        let limited = dcs("solaris-ts", hogs, 2, "100ms");
        let free = pair("solaris-ts", hogs, 128, &always);
        assert!(boosts(&free).iter().all(|boosts| *boosts > 1));
        assert_eq!(history(&limited) == history(&free), same, "{hogs} hogs");
    }
}

/// Equation 1 with C = 0: Tp moves by Tq * R / 2^E at least.
#[test]
fn equation_1_bounds_the_number_of_boosts() {
    for local in ["solaris-ts", "eevdf", "stride"] {
        for (e, hogs) in [(-3, 1), (-1, 1), (-1, 3), (0, 2), (2, 1), (2, 4)] {
            let tasks = f64::from(hogs + 1);
            let due = 1.0 + 2f64.powi(e) * 10.0 / (0.020 * tasks);
            let all = boosts(&dcs(local, hogs, e, "0us"));
            assert!(
                all.iter().all(|boosts| *boosts as f64 <= due),
                "{local} {e} {all:?} {due}"
            );
            assert!(all.iter().all(|boosts| *boosts > 1), "{local} {e} {all:?}");
        }
    }
}

/// Who has each CPU next after a boost there.
#[derive(Default)]
struct Kicks {
    nodes: Vec<u32>,
    /// By CPU: boosted, and not seen on it yet.
    due: [Option<u32>; 2],
    kicked: u32,
    others: u32,
}

impl Observer for Kicks {
    fn begin(&mut self, tasks: &[TaskName]) {
        self.nodes = tasks.iter().map(|task| task.node).collect();
    }

    fn boost(&mut self, _: u64, task: u32) {
        self.due[self.nodes[task as usize] as usize] = Some(task);
    }

    fn cpu(&mut self, _: u64, cpu: u32, activity: Activity) {
        let (Activity::Run(task) | Activity::Spin(task)) = activity else {
            return;
        };
        match self.due[cpu as usize].take() {
            Some(due) if due == task => self.kicked += 1,
            Some(_) => self.others += 1,
            None => {}
        }
    }
}

/// A boost kicks the CPU: whoever has it does not run on until its slice ends (S1, section 3.3.2).
#[test]
fn a_boosted_task_is_the_next_to_run() {
    for local in ["solaris-ts", "eevdf", "stride"] {
        let answers = ["arrival = 'boost'", "fairness = 'always'"];
        let mut kicks = Kicks::default();
        let scenario = beside("", local, 2, 128, &answers);
        simulate(&scenario, &mut kicks).expect("an outcome");
        assert!(kicks.kicked > 10, "{local}: {}", kicks.kicked);
        assert_eq!(kicks.others, 0, "{local}");
    }
}

fn order(past: f64) -> String {
    format!("order = {{ answer = 'frequency', past = {past:.1} }}")
}

/// Packets are bytes / 4096, rounded down, so that small messages leave every frequency at zero.
#[test]
fn a_prediction_of_zero_is_plain_linux() {
    let block = "wait = 'block'";
    let plain = pair("linux22", 2, 128, &[block]);
    assert!(plain.jobs[0].laps.count > 1);
    for past in [0.0, 1.0] {
        let predicted = pair("linux22", 2, 128, &[block, &order(past)]);
        assert!(predicted.verdicts_of("order", "bias") > 0);
        assert_eq!(history(&predicted), history(&plain), "P = {past}");
    }
    let plain = pair("linux22", 2, 65536, &[block]);
    let predicted = pair("linux22", 2, 65536, &[block, &order(0.0)]);
    assert_ne!(history(&predicted), history(&plain));
}

/// A socket that holds less than a packet shows none, and one that counts headers shows small ones.
#[test]
fn what_a_socket_shows_is_what_is_predicted_from() {
    let block = "wait = 'block'";
    let predicted = |socket, bytes| pair_over(socket, "linux22", 2, bytes, &[block, &order(0.0)]);
    let plain = |bytes| history(&pair("linux22", 2, bytes, &[block]));
    let large = history(&predicted(", socket_limit = 4095", 65536));
    assert_eq!(large, plain(65536));
    let small = history(&predicted(", frame_overhead = 3968", 128));
    assert_ne!(small, plain(128));
}

/// What a wait costs in ns: a message that comes after `t`, going to sleep that takes `block`
/// after spinning for `spin`, and a switch back.
fn cost_ns(t: u64, spin: u64, block: u64, switch: u64) -> u64 {
    match t {
        t if t <= spin => t,
        t if t <= spin + block => spin + block,
        _ => spin + block + switch,
    }
}

/// For how long the answer is late since the peer did not spin for it.
fn delay_ns(t: u64, spin: u64, block: u64, switch: u64) -> u64 {
    match t {
        t if t <= spin => 0,
        t if t <= spin + block => spin + block - t,
        _ => switch,
    }
}

proptest! {
    /// Who spins as long as going to sleep and coming back costs pays at most twice what
    /// who knows the future pays (S1 section 3.2.2: such a spin time is competitive).
    #[test]
    fn spin_block_costs_at_most_twice_the_optimum(latency in 1u64..500_000, block in 1u64..100_000, switch in 1u64..300_000) {
        let spin = block + switch;
        let wait = format!("wait = {{ answer = 'spin_block', spin = '{spin}ns' }}");
        let text = format!(
            r#"
{}
end = "all"
cluster = {{ nodes = 2, switch = "{switch}ns", block = "{block}ns" }}
local = {{ scheduler = "eevdf" }}
network = {{ latency = "{latency}ns", send = "0us", receive = "0us" }}
[[job]]
name = "pair"
ranks = 2
workload = {{ kind = "latency", round_trips = 1 }}
"#,
            preset(&[&wait])
        );
        let outcome = simulate(&Scenario::parse(&text).expect("a scenario"), &mut ()).expect("an outcome");
        let rank = &outcome.jobs[0].processes[0];
        let paid = rank.spun.0 + rank.system.0 - switch;
        let t = 2 * latency + delay_ns(latency, spin, block, switch);
        prop_assert_eq!(paid, cost_ns(t, spin, block, switch));
        prop_assert!(paid <= 2 * t.min(block + switch));
    }
}
