// SPDX-License-Identifier: Apache-2.0
//! Runs of tests/guest/messages.c: of a fixed length, so that a scheduler under which nothing moves
//! costs no more time than another. Times in a row are those of [`ROUNDS`] rounds.

use super::{Row, Scheduler};
use crate::inside::{params, tool, Hogs};
use cosched_loader::Body;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// To which times in a row are brought: a time over the rounds that were made in it, times this.
pub const ROUNDS: f64 = 10_000.0;

const METRICS: [&str; 10] = [
    "laps",
    "response_s",
    "cpu_s",
    "system_s",
    "fairness",
    "lap_p50_us",
    "lap_p99_us",
    "lap_max_us",
    "blocks",
    "boosts",
];

/// One run.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Of messages.c.
    pub program: &'static str,
    /// Of S1.
    pub scheduler: Scheduler,
    /// Hogs on each CPU.
    pub competitors: u32,
    /// Of messages.c.
    pub grain_us: u32,
    /// A switch of the kernel's own scheduler.
    pub wakeup_preemption: bool,
    /// How long it takes.
    pub seconds: f64,
}

/// What messages.c prints, and what the kernel body counted: of all its tasks, and of the thread that
/// no message is for.
struct Outcome {
    printed: Vec<f64>,
    boosts: Option<u64>,
    other_boosts: Option<u64>,
}

impl Cell {
    /// Of @program, with what most have.
    pub fn of(program: &'static str, scheduler: Scheduler) -> Cell {
        Cell {
            program,
            scheduler,
            competitors: 1,
            grain_us: 78,
            wakeup_preemption: true,
            seconds: 2.0,
        }
    }

    /// Runs it under what is there; @body: the kernel body, if it is. The first row is the program's.
    pub fn run(&self, body: Option<&mut Body>) -> Vec<Row> {
        let cpus = ["0", "1"].repeat(self.competitors as usize);
        let hogs = (!cpus.is_empty()).then(|| Hogs::on(&cpus));
        let outcome = match body {
            Some(body) => self.as_a_job(body),
            None => Outcome {
                printed: printed(self.start()),
                boosts: None,
                other_boosts: None,
            },
        };
        hogs.map(Hogs::end);
        let mut rows = vec![self.row(&outcome)];
        if let Some(boosts) = outcome.other_boosts {
            rows.push(self.other_row(boosts));
        }
        rows
    }

    fn start(&self) -> Child {
        let wait = ["spin", "block"][usize::from(self.scheduler.sleeps)];
        let [seconds, grain] = [self.seconds.to_string(), self.grain_us.to_string()];
        let mut command = Command::new(tool("messages"));
        command.args([self.program, wait, &seconds, &grain]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().expect("the helper is there")
    }

    fn as_a_job(&self, body: &mut Body) -> Outcome {
        let job = body
            .begin(&params(self.scheduler.preset), 0)
            .expect("a free place");
        let here = std::process::id();
        body.join(job, here).expect("this process is there");
        let child = self.start();
        let mut other_boosts = None;
        if self.program == "threads" {
            thread::sleep(Duration::from_secs_f64(self.seconds * 0.8));
            let members = body.members().expect("readable");
            let other = members.iter().find(|member| member.comm == "other");
            other_boosts = other.map(|member| member.nr_boosts);
        }
        let printed = printed(child);
        let ledger = body.ledger(job).expect("it is there");
        body.end(job).expect("it is there");
        Outcome {
            printed,
            boosts: Some(ledger.nr_boosts),
            other_boosts,
        }
    }

    /// What it is, for a row of @job.
    fn about(&self, job: &str) -> Row {
        let mut row = super::provenance();
        row.extend([
            ("program", self.program.to_owned()),
            ("scheduler", self.scheduler.name.to_owned()),
            ("competitors", self.competitors.to_string()),
            ("grain", grain_name(self.grain_us)),
            ("wakeup_preemption", on_or_off(self.wakeup_preemption)),
            ("job", job.to_owned()),
        ]);
        row
    }

    fn row(&self, outcome: &Outcome) -> Row {
        let [laps, took_us, p50_us, p99_us, max_us, cpu_us, system_us, blocks] =
            outcome.printed[..]
        else {
            panic!("messages printed {:?}", outcome.printed)
        };
        let scaled = |us: f64| format!("{:.6}", us * 1e-6 * ROUNDS / laps.max(1.0));
        let fair_us = 2.0 * took_us / f64::from(self.competitors + 1);
        let boosts = outcome.boosts.map(|n| n.to_string());
        let values = [
            laps.to_string(),
            scaled(took_us),
            scaled(cpu_us),
            scaled(system_us),
            format!("{:.4}", cpu_us / fair_us),
            p50_us.to_string(),
            p99_us.to_string(),
            max_us.to_string(),
            blocks.to_string(),
            boosts.unwrap_or_default(),
        ];
        let mut row = self.about(self.program);
        row.extend(METRICS.into_iter().zip(values));
        row
    }

    fn other_row(&self, boosts: u64) -> Row {
        let mut row = self.about("other");
        let value = |name: &str| {
            if name == "boosts" {
                boosts.to_string()
            } else {
                String::new()
            }
        };
        row.extend(METRICS.map(|name| (name, value(name))));
        row
    }
}

fn printed(child: Child) -> Vec<f64> {
    let output = child.wait_with_output().expect("our child");
    assert!(output.status.success(), "messages: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("numbers");
    let words = text.split_whitespace();
    words.map(|word| word.parse().expect("a number")).collect()
}

fn grain_name(us: u32) -> String {
    match us {
        us if us >= 1000 => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}

fn on_or_off(is: bool) -> String {
    ["off", "on"][usize::from(is)].to_owned()
}
