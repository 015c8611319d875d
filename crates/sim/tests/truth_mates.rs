// SPDX-License-Identifier: Apache-2.0
//! Truth about what the kernel body sees of ranks on its node: who runs, whose turn ends, who yields.
//!
//! Two ranks on two CPUs beside hogs exchange messages in shared memory, which no kernel sees.

use cosched_sim::{simulate, Activity, JobOutcome, Observer, Outcome, Scenario};

const HOGS: u64 = 2;

/// For how long no rank, one and both had their CPUs.
#[derive(Default)]
struct Together {
    at_ns: u64,
    runs: [bool; 2],
    ns: [u64; 3],
    /// Ranks that came on or left at the same instant as the other, and all that did.
    in_step: u64,
    changes: u64,
    changed: Option<(u64, u32)>,
}

impl Observer for Together {
    fn cpu(&mut self, now_ns: u64, cpu: u32, activity: Activity) {
        let ranks = usize::from(self.runs[0]) + usize::from(self.runs[1]);
        self.ns[ranks] += now_ns - self.at_ns;
        self.at_ns = now_ns;
        let rank = |task: u32| task < 2;
        let runs = match activity {
            Activity::Run(task) | Activity::Spin(task) | Activity::Overhead(Some(task)) => {
                rank(task)
            }
            _ => false,
        };
        if std::mem::replace(&mut self.runs[cpu as usize], runs) == runs {
            return;
        }
        self.changes += 1;
        if matches!(self.changed, Some((at_ns, other)) if at_ns == now_ns && other != cpu) {
            self.in_step += 2;
        }
        self.changed = Some((now_ns, cpu));
    }
}

impl Together {
    /// Of the time that some rank ran.
    fn share(&self) -> f64 {
        self.ns[2] as f64 / (self.ns[1] + self.ns[2]) as f64
    }
}

fn run(policy: &str, body: bool, shared_memory: bool) -> (Outcome, Together) {
    let text = format!(
        r#"
policy = "{policy}"
end = {{ time = "8s" }}
cluster = {{ nodes = 1, cpus = 2, balance = false, switch = "5us", block = "5us" }}
local = {{ scheduler = "cosched", body = {body} }}
network = {{ local_latency = "1us", shared_memory = {shared_memory} }}
[[job]]
name = "barrier"
workload = {{ kind = "barrier", iterations = 1000000, grain = "80us" }}
ranks = 2
[[job]]
name = "hog"
workload = {{ kind = "calcula" }}
each_node = {hogs}
[[job]]
name = "daemon"
workload = {{ kind = "bursty", busy = "30us", idle = "14ms" }}
each_node = 2
"#,
        hogs = 2 * HOGS
    );
    let mut together = Together::default();
    let scenario = Scenario::parse(&text).expect("a scenario");
    let outcome = simulate(&scenario, &mut together).expect("an outcome");
    (outcome, together)
}

fn boosts(job: &JobOutcome) -> u64 {
    job.processes.iter().map(|it| it.boosts).sum()
}

#[test]
fn who_spins_on_shared_memory_is_boosted_by_its_mate_alone() {
    for (body, shared_memory, some) in [
        (false, true, false),
        (false, false, true),
        (true, true, true),
    ] {
        let (outcome, _) = run("dcs-spin", body, shared_memory);
        assert_eq!(boosts(&outcome.jobs[0]) > 0, some, "{body} {shared_memory}");
        assert_eq!(boosts(&outcome.jobs[1]), 0);
    }
    for policy in ["uncoordinated", "implicit", "local-block", "spin-yield"] {
        let (outcome, _) = run(policy, true, true);
        assert_eq!(boosts(&outcome.jobs[0]), 0, "{policy} answers no arrival");
    }
}

#[test]
fn under_the_body_ranks_that_spin_run_together_at_their_fair_share() {
    let (alone, apart) = run("uncoordinated", true, true);
    assert!(apart.share() < 0.5, "{}", apart.share());
    for preset in ["auto", "dcs-spin-block"] {
        let (outcome, together) = run(preset, true, true);
        assert!(together.share() > 0.85, "{preset}: {}", together.share());
        let laps = |it: &Outcome| it.jobs[0].laps.count;
        assert!(laps(&outcome) > 2 * laps(&alone), "{preset}");
        let fairness = outcome.jobs[0].fairness();
        // The daemons count in the fair share, and want next to nothing.
        let fair = (HOGS + 2) as f64 / (HOGS + 1) as f64;
        assert!(fairness <= 1.05 * fair, "{preset}: {fairness}");
    }
}

/// Ticks are simultaneous, so chance does something too.
#[test]
fn turns_end_together() {
    let of = |policy: &str, body: bool| {
        let (_, together) = run(policy, body, true);
        together.in_step as f64 / together.changes as f64
    };
    let by_chance = of("auto", false).max(of("uncoordinated", true));
    assert!(of("auto", true) > 1.5 * by_chance, "{by_chance}");
}

#[test]
fn a_yield_is_an_arrival_for_mates_that_are_queued() {
    let yields = |it: &Outcome| it.jobs[0].processes.iter().map(|it| it.yields).sum::<u64>();
    let asked = |it: &Outcome| {
        it.verdicts
            .iter()
            .filter(|it| it.question == "arrival")
            .map(|it| it.count)
            .sum::<u64>()
    };
    let (yielding, _) = run("spin-yield", true, true);
    assert!(yields(&yielding) > 100 && asked(&yielding) > 0);
    let (spinning, _) = run("uncoordinated", true, true);
    assert_eq!((yields(&spinning), asked(&spinning)), (0, 0));
    let (rule, _) = run("spin-yield", false, true);
    assert!(yields(&rule) > 100 && asked(&rule) == 0);
}
