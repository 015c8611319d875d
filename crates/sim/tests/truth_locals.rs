// SPDX-License-Identifier: Apache-2.0
//! Truth about local schedulers: turns and shares that were worked out by hand.

use cosched_sim::{simulate, Activity, Observer, Outcome, Scenario};

/// The turns on CPU 0: when each began, and whose it was.
#[derive(Default)]
struct Turns(Vec<(u64, u32)>);

impl Observer for Turns {
    fn cpu(&mut self, now_ns: u64, cpu: u32, activity: Activity) {
        if let (0, Activity::Run(task)) = (cpu, activity) {
            self.0.push((now_ns, task));
        }
    }
}

impl Turns {
    /// Whose, and how long, without the last, which may not be over.
    fn lengths(&self) -> Vec<(u32, u64)> {
        let pairs = self.0.windows(2);
        let turns = pairs.map(|turn| (turn[0].1, turn[1].0 - turn[0].0));
        turns.filter(|(_, length_ns)| *length_ns > 0).collect()
    }
}

/// `hogs` tasks on one CPU without any cost, for that long.
fn hogs(local: &str, hogs: u32, time: &str, replication: u32) -> (Outcome, Vec<(u32, u64)>) {
    let text = format!(
        r#"
policy = "uncoordinated"
end = {{ time = "{time}" }}
replication = {replication}
cluster = {{ nodes = 1, drift_ppm = 0 }}
local = {{ {local} }}
job = [{{ name = "hog", each_node = {hogs}, workload = {{ kind = "calcula" }} }}]
"#
    );
    let mut turns = Turns::default();
    let outcome =
        simulate(&Scenario::parse(&text).expect("a scenario"), &mut turns).expect("an outcome");
    (outcome, turns.lengths())
}

#[test]
fn an_epoch_of_linux_2_2_is_one_slice_for_each() {
    for (ends, slice_ns) in [("below-zero", 210_000_000), ("at-zero", 200_000_000)] {
        for n in 1..=5 {
            let local = format!("scheduler = 'linux22', slice_ends = '{ends}'");
            let (_, turns) = hogs(&local, n, "20s", n);
            let epochs: Vec<_> = turns.chunks_exact(n as usize).skip(1).collect();
            assert!(epochs.len() >= 18);
            for epoch in epochs {
                let mut who: Vec<u32> = epoch.iter().map(|turn| turn.0).collect();
                who.sort_unstable();
                assert!(who.into_iter().eq(0..n), "{epoch:?}");
                assert!(epoch.iter().all(|turn| turn.1 == slice_ns), "{epoch:?}");
            }
        }
    }
}

#[test]
fn who_had_the_cpu_when_an_epoch_of_linux_2_2_ends_keeps_it() {
    let (_, turns) = hogs("scheduler = 'linux22'", 3, "20s", 0);
    let epochs: Vec<_> = turns.chunks_exact(3).collect();
    for pair in epochs.windows(2) {
        assert_eq!(pair[0][2].0, pair[1][0].0);
    }
}

/// By S1's table 1 two busy tasks of the fifties use 40 ms and fall ten, 40, 80, 120, 160, and then
/// have at most 200 of each turn at the bottom: of a second the first has 40 + 40 + 80 + 120 + 160
/// and the 120 that are left. As the code of the class has it both are back in the fifties then, and
/// who runs is not preempted by its equal: the same first again, with 560 ms of each second.
#[test]
fn each_second_of_solaris_begins_anew_with_whoever_runs() {
    let (_, turns) = hogs(
        "scheduler = 'solaris-ts', dispwait = 'counted'",
        2,
        "40s",
        3,
    );
    let lengths: Vec<u64> = turns.iter().map(|turn| turn.1 / 1_000_000).collect();
    let second = [40, 40, 40, 80, 80, 120, 120, 160, 160, 120 + 40];
    let begins = |at: &usize| lengths[*at..].starts_with(&second);
    let first = (0..lengths.len()).find(begins).expect("such a second");
    assert!(first < 20, "{lengths:?}");
    let whole = lengths[first..].chunks_exact(second.len());
    assert!(whole.len() >= 37 && whole.clone().all(|turns| turns == second));
    assert!(turns[first..].windows(2).all(|pair| pair[0].0 != pair[1].0));
}

#[test]
fn turns_of_stride_go_round_and_are_whole_quanta() {
    let (_, turns) = hogs("scheduler = 'stride'", 4, "20s", 0);
    let turns = &turns[8..];
    assert!(turns.len() > 150);
    assert!(turns.iter().all(|turn| turn.1 == 100_000_000), "{turns:?}");
    assert!((4..turns.len()).all(|i| turns[i].0 == turns[i - 4].0));
}

#[test]
fn turns_of_cosched_go_round_and_end_at_the_tick_after_the_slice() {
    for (tick, length_ns) in [("1ms", 3_000_000), ("4ms", 4_000_000)] {
        let local = format!("scheduler = 'cosched', slice = '3ms', tick = '{tick}'");
        let (_, turns) = hogs(&local, 3, "1s", 0);
        let turns = &turns[6..];
        assert!(turns.len() > 70);
        assert!(turns.iter().all(|turn| turn.1 == length_ns), "{turns:?}");
        assert!((3..turns.len()).all(|i| turns[i].0 == turns[i - 3].0));
    }
}

#[test]
fn shares_are_equal_within_two_turns_at_any_time() {
    let cases = [
        ("scheduler = 'stride'", 110_000_000),
        ("scheduler = 'cosched'", 7_000_000),
        ("scheduler = 'cosched', body = true", 7_000_000),
        ("scheduler = 'linux22'", 210_000_000),
    ];
    for (local, turn_ns) in cases {
        for n in 1..=5 {
            let (outcome, _) = hogs(local, n, "9876543us", n);
            let got: Vec<u64> = outcome.jobs[0]
                .processes
                .iter()
                .map(|p| p.cpu().0)
                .collect();
            assert_eq!(got.iter().sum::<u64>(), 9_876_543_000);
            for ns in got {
                let off_ns = ns.abs_diff(9_876_543_000 / u64::from(n));
                assert!(off_ns <= 2 * turn_ns, "{local} {n}: {off_ns}");
            }
        }
    }
}

/// A pair that spins and is boosted at each message, beside one hog on each node, for 5 s.
fn boosted(local: &str, cpu: &str) -> Outcome {
    let text = format!(
        r#"
end = {{ time = "5s" }}
cluster = {{ nodes = 2 }}
local = {{ scheduler = "{local}" }}
network = {{ latency = "100us", send = "{cpu}", receive = "{cpu}" }}
[policy]
wait = "spin"
arrival = "boost"
fairness = "always"
periodic = "none"
order = "local"
quantum = "local"
allocation = "shared"
[[job]]
name = "pair"
ranks = 2
workload = {{ kind = "latency", round_trips = 1000000 }}
[[job]]
name = "hog"
each_node = 1
workload = {{ kind = "calcula" }}
"#
    );
    simulate(&Scenario::parse(&text).expect("a scenario"), &mut ()).expect("an outcome")
}

/// The least that a hog got.
fn hog_ns(outcome: &Outcome) -> u64 {
    let processes = outcome.job("hog").expect("it is there").processes.iter();
    processes.map(|hog| hog.cpu().0).min().expect("a hog")
}

#[test]
fn boosts_without_end_cost_others_no_more_than_the_debt_under_cosched() {
    let (half_ns, debt_ns) = (2_500_000_000, 20_000_000 + 2 * 3_000_000 + 4_000_000);
    let outcome = boosted("cosched", "10us");
    let boosts: u64 = outcome.jobs[0].processes.iter().map(|p| p.boosts).sum();
    assert!(boosts > 100, "{boosts}");
    let least_ns = hog_ns(&outcome);
    assert!(least_ns >= half_ns - debt_ns, "{least_ns}");
    let least_ns = hog_ns(&boosted("eevdf", "10us"));
    assert!(least_ns < half_ns - 2 * debt_ns, "{least_ns}");
}

/// Where messages cost no CPU time, a boosted rank reads, answers and waits again at one instant.
#[test]
fn a_message_that_costs_nothing_is_read_once() {
    for local in ["cosched", "eevdf"] {
        let outcome = boosted(local, "0us");
        let (pair, messages) = (&outcome.jobs[0], |rank: usize| {
            outcome.jobs[0].processes[rank].messages
        });
        assert!(
            messages(0).abs_diff(pair.laps.count) <= 1 && messages(1).abs_diff(messages(0)) <= 1
        );
    }
}

#[test]
fn parameters_that_cannot_be_are_refused_in_one_line() {
    for (local, said) in [
        ("scheduler = 'linux22', priority = 0", "1 to 40"),
        ("scheduler = 'linux22', priority = 41", "1 to 40"),
        ("scheduler = 'stride', quantum = '0us'", "quantum"),
        ("scheduler = 'stride', tick = '0us'", "tick"),
        ("scheduler = 'cosched', slice = '0us'", "slice"),
        ("scheduler = 'cosched', debt = '1ms'", "debt"),
    ] {
        let text = format!("policy = 'uncoordinated'\nend = {{ time = '1s' }}\ncluster = {{ nodes = 1 }}\nlocal = {{ {local} }}\njob = [{{ name = 'a', workload = {{ kind = 'calcula' }} }}]\n");
        let why = Scenario::parse(&text).unwrap_err().to_string();
        assert!(why.contains(said) && !why.contains('\n'), "{local}: {why}");
    }
}
