// SPDX-License-Identifier: Apache-2.0
//! Programs that no workload has: a job that waits for ever, a process of two threads.

use super::{Options, Sim};
use crate::cluster::Task;
use crate::engine::Ladder;
use crate::local::Params;
use crate::program::{Program, Step, ANY};
use crate::scenario::Scenario;
use crate::SimError;

/// Runs `text`, over Solaris TS, with the programs that `of` gives for its first tasks; then looks at
/// what every task counted.
fn run<T>(
    text: &str,
    of: impl Fn(u32) -> Option<Box<dyn Program>>,
    look: impl Fn(&[Task]) -> T,
) -> Result<T, SimError> {
    let scenario: Scenario = toml::from_str(text).unwrap();
    let Params::SolarisTs(local) = &scenario.local else {
        panic!("over Solaris TS");
    };
    let mut nobody = ();
    let mut sim = Sim::<_, Ladder, ()>::new(&scenario, local, &mut nobody, Options::default())?;
    for (task, it) in (0..).zip(&mut sim.tasks) {
        if let Some(program) = of(task) {
            it.script.program = program;
        }
    }
    match sim.until_over() {
        Some(Err(error)) => Err(error),
        _ => Ok(look(&sim.tasks)),
    }
}

/// Waits for a message that nobody sends.
struct Deaf;

impl Program for Deaf {
    fn step(&mut self, step: &mut Step) {
        step.compute(1000);
        step.recv(ANY);
    }
}

const TWO: &str = r#"
policy = "POLICY"
end = { job = "two" }
cluster = { nodes = 2, switch = "100us" }
local = { scheduler = "solaris-ts" }
[[job]]
name = "two"
ranks = 2
threads = THREADS
workload = { kind = "latency", round_trips = 1000 }
[[job]]
name = "hog"
each_node = 2
workload = { kind = "calcula" }
"#;

fn two(policy: &str, threads: &str) -> String {
    TWO.replace("POLICY", policy).replace("THREADS", threads)
}

#[test]
fn a_job_that_waits_for_nobody_is_a_deadlock_though_others_run() {
    let deaf = |task: u32| (task < 2).then(|| Box::new(Deaf) as Box<dyn Program>);
    let why = run(&two("local-block", "1"), deaf, |_| ()).unwrap_err();
    assert!(
        matches!(&why, SimError::Deadlock { job, .. } if job == "two"),
        "{why}"
    );
    assert!(!why.to_string().contains('\n'));
}

/// Two processes of two threads: the first ones exchange packets, the second ones compute.
struct Thread {
    left: u32,
}

impl Program for Thread {
    fn step(&mut self, step: &mut Step) {
        self.left -= 1;
        if self.left == 0 {
            return step.exit();
        }
        let peer = (step.task + step.threads) % step.tasks;
        match (step.thread(), step.rank()) {
            (1, _) => step.compute(20_000_000),
            (_, 0) => {
                step.send(peer, 128);
                step.recv(peer);
            }
            _ => {
                step.recv(peer);
                step.send(peer, 128);
            }
        }
    }
}

#[test]
fn all_threads_of_the_receiving_process_are_boosted() {
    let thread =
        |task: u32| (task < 4).then(|| Box::new(Thread { left: 1000 }) as Box<dyn Program>);
    let boosts = |policy: &str| {
        let text = two(policy, "2").replace("{ job = \"two\" }", "{ time = \"30s\" }");
        run(&text, thread, |tasks| {
            let of = |task: usize| tasks[task].counted.nr_boosts;
            [of(0) + of(2), of(1) + of(3), of(4) + of(5)]
        })
        .unwrap()
    };
    let [first, second, hogs] = boosts("dcs-spin");
    assert!(first > 0 && second > 0, "{first} {second}");
    assert_eq!(hogs, 0);
    assert_eq!(boosts("uncoordinated"), [0, 0, 0]);
}
