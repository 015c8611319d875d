// SPDX-License-Identifier: Apache-2.0
//! Samples: what one run of one cell gave, before any arithmetic across runs.
//!
//! A program's time is its own where it tells it (a JSON line with `elapsed_s` at the end of its
//! output, as the built-in workloads print, or what `--time-regex` finds), else the wall clock of
//! its launcher. CPU time and the time that it spans always belong together: the program's own
//! `cpu_s` with its own `elapsed_s`, else that of the whole tree with the whole wall clock. For F
//! the report of `cosched run` is better than the latter: it spans MPI_Init to MPI_Finalize.

use regex::Regex;
use serde_json::Value;

use super::child::{Ended, Exit, Usage};
use super::hog::Work;

/// What a program is in its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The job, or a copy of it.
    Job,
    /// `calcula` in its place.
    Probe,
    /// A program of `--beside`.
    Beside,
}

/// Doorbell counters of the report of `cosched run`, summed over the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doorbells {
    /// Sleeps begun.
    pub blocks: u64,
    /// Sleeps ended by the safety net that then found a message.
    pub missed: u64,
    /// Wake-ups that found nothing.
    pub spurious: u64,
    /// Sleeps ended by a doorbell or packet.
    pub wakes: u64,
}

/// One program's part of a run.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it is.
    pub role: Role,
    /// `job`, `job 2`, or the command of `--beside`.
    pub name: String,
    /// From the common start to its own; not zero only in arm `batch`.
    pub offset_s: f64,
    /// From its start until its launcher ended.
    pub wall_s: f64,
    /// The time that it told itself.
    pub own_s: Option<f64>,
    /// The CPU time in that time, summed over its ranks.
    pub own_cpu_s: Option<f64>,
    /// What its whole tree used.
    pub usage: Usage,
    /// How it ended.
    pub exit: Exit,
    /// What it said last on stderr.
    pub complaint: String,
    /// From the report, under a policy.
    pub doorbells: Option<Doorbells>,
    /// CPU time of all ranks and mean time between MPI_Init and MPI_Finalize, from the report.
    pub reported: Option<(f64, f64)>,
}

/// CPU time of all ranks, and the mean of their times, from MPI_Init to MPI_Finalize.
fn phase(report: &Value) -> Option<(f64, f64)> {
    let ranks = report
        .get("ranks")?
        .as_array()
        .filter(|ranks| !ranks.is_empty())?;
    let sum_s = |key: &str| -> Option<f64> {
        let values = ranks.iter().map(|rank| rank.get(key)?.as_f64());
        Some(values.sum::<Option<f64>>()? / 1e9)
    };
    Some((sum_s("cpu_ns")?, sum_s("wall_ns")? / ranks.len() as f64))
}

/// The end of what a program said on stderr, in one line; launchers draw boxes around it.
fn complaint(stderr: &str) -> String {
    const MAX_LINES: usize = 4;
    let lines = stderr.lines().map(str::trim);
    let telling: Vec<&str> = lines
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect();
    telling[telling.len().saturating_sub(MAX_LINES)..].join(" ")
}

/// One run of one cell.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The programs that ran.
    pub programs: Vec<Program>,
    /// Share of the CPUs' time that went to unknown others.
    pub foreign: f64,
    /// What the hogs did meanwhile.
    pub hogs: Work,
    /// 99th percentile of the sleepers' lateness.
    pub sleeper_p99_us: Option<f64>,
}

impl Program {
    /// What `ended` tells; `regex` finds the program's own time in its output.
    pub fn read(
        role: Role,
        name: &str,
        offset_s: f64,
        ended: &Ended,
        regex: Option<&Regex>,
    ) -> Self {
        let last = |text: &str| {
            text.lines()
                .rfind(|line| !line.trim().is_empty())
                .map(str::to_owned)
        };
        let told: Option<Value> =
            last(&ended.stdout).and_then(|line| serde_json::from_str(&line).ok());
        let number = |key: &str| told.as_ref()?.get(key)?.as_f64();
        let found = regex.filter(|_| role == Role::Job).and_then(|regex| {
            let group = regex.captures_iter(&ended.stdout).last()?.get(1)?;
            group.as_str().parse().ok()
        });
        let elapsed_s = number("elapsed_s");
        Self {
            role,
            name: name.to_owned(),
            offset_s,
            wall_s: ended.wall_s,
            own_s: found.or(elapsed_s),
            own_cpu_s: number("cpu_s").filter(|_| found.is_none() && elapsed_s.is_some()),
            usage: ended.usage,
            exit: ended.exit,
            complaint: complaint(&ended.stderr),
            doorbells: None,
            reported: None,
        }
    }

    /// Takes what a report of `cosched run --report=json` tells.
    pub fn read_report(&mut self, report: &Value) {
        self.doorbells = Doorbells::from_report(report);
        self.reported = phase(report);
    }

    /// Response time: from the common start to the end of what counts.
    pub fn time_s(&self) -> f64 {
        self.offset_s + self.own_s.unwrap_or(self.wall_s)
    }

    /// CPU time used in [`Self::span_s`].
    pub fn cpu_s(&self) -> f64 {
        self.own_cpu_s.unwrap_or(self.usage.cpu_s())
    }

    /// The time that [`Self::cpu_s`] spans.
    pub fn span_s(&self) -> f64 {
        self.own_cpu_s.and(self.own_s).unwrap_or(self.wall_s)
    }

    /// The CPU time to judge F by, and the time that it spans.
    pub fn fair_use(&self) -> (f64, f64) {
        let whole = (self.cpu_s(), self.span_s());
        self.reported
            .filter(|_| self.own_cpu_s.is_none())
            .unwrap_or(whole)
    }

    /// Whether it failed, which is not the same as being too slow.
    pub fn failed(&self) -> bool {
        !matches!(self.exit, Exit::Code(0) | Exit::TimedOut)
    }
}

impl Doorbells {
    /// Sums the ranks of a report of `cosched run --report=json`.
    pub fn from_report(report: &Value) -> Option<Self> {
        let ranks = report.get("ranks")?.as_array()?;
        let sum = |key: &str| {
            ranks
                .iter()
                .filter_map(|rank| rank.get(key)?.as_u64())
                .sum()
        };
        Some(Self {
            blocks: sum("nr_blocks"),
            missed: sum("nr_missed"),
            spurious: sum("nr_spurious"),
            wakes: sum("nr_wakes"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(stdout: &str) -> Ended {
        Ended {
            wall_s: 5.0,
            exit: Exit::Code(0),
            usage: Usage {
                user_s: 3.0,
                system_s: 1.0,
                ..Usage::default()
            },
            stdout: stdout.to_owned(),
            stderr: "-----\n1\n2\n3 \n4\n5\n-----\n\n".to_owned(),
        }
    }

    #[test]
    fn a_silent_program_has_the_wall_clock() {
        let program = Program::read(Role::Job, "job", 1.0, &ended("hello\n"), None);
        assert_eq!(
            (program.time_s(), program.cpu_s(), program.span_s()),
            (6.0, 4.0, 5.0)
        );
        assert_eq!(program.complaint, "2 3 4 5");
    }

    #[test]
    fn a_json_line_gives_time_and_cpu_of_the_same_span() {
        let line = "x\n{\"elapsed_s\":2.0,\"cpu_s\":3.5}\n";
        let program = Program::read(Role::Job, "job", 0.0, &ended(line), None);
        assert_eq!(
            (program.time_s(), program.cpu_s(), program.span_s()),
            (2.0, 3.5, 2.0)
        );
        let line = "{\"elapsed_s\":2.0}";
        let program = Program::read(Role::Job, "job", 0.0, &ended(line), None);
        assert_eq!(
            (program.time_s(), program.cpu_s(), program.span_s()),
            (2.0, 4.0, 5.0)
        );
    }

    #[test]
    fn the_regex_takes_the_last_match_and_leaves_cpu_to_the_tree() {
        let regex = Regex::new("Loop time of ([0-9.]+)").unwrap();
        let text = "Loop time of 1.5 on 2\nLoop time of 2.5 on 2\n";
        let program = Program::read(Role::Job, "job", 0.0, &ended(text), Some(&regex));
        assert_eq!(
            (program.time_s(), program.cpu_s(), program.span_s()),
            (2.5, 4.0, 5.0)
        );
    }

    #[test]
    fn the_report_narrows_f_to_the_time_between_init_and_finalize() {
        let mut program = Program::read(Role::Job, "job", 0.0, &ended("hello"), None);
        let rank =
            |cpu_ns: u64| serde_json::json!({"cpu_ns": cpu_ns, "wall_ns": 3_000_000_000_u64});
        program
            .read_report(&serde_json::json!({"ranks": [rank(1_500_000_000), rank(1_000_000_000)]}));
        assert_eq!(program.fair_use(), (2.5, 3.0));
        program.read_report(&serde_json::json!({"ranks": [{"cpu_ns": 5, "wall_ns": null}]}));
        assert_eq!(program.fair_use(), (4.0, 5.0));
    }

    #[test]
    fn reports_are_summed_over_ranks() {
        let report = serde_json::json!({"ranks": [
            {"nr_blocks": 3, "nr_missed": 1, "nr_spurious": 0, "nr_wakes": 2},
            {"nr_blocks": 4, "nr_missed": 0, "nr_spurious": 5, "nr_wakes": 4}]});
        let sum = Doorbells {
            blocks: 7,
            missed: 1,
            spurious: 5,
            wakes: 6,
        };
        assert_eq!(Doorbells::from_report(&report), Some(sum));
        assert_eq!(Doorbells::from_report(&serde_json::json!({})), None);
    }
}
