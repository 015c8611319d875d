// SPDX-License-Identifier: Apache-2.0
//! The report of `cosched run`: what the ranks of this node did, from the job
//! page after the command ended.
//!
//! Stdout belongs to the command, so a report goes to stderr or into a file.
//! What only a run alone could tell (S, F, waste) is never guessed.

mod advice;
mod numbers;
mod text;

use crate::fault::Fault;
use advice::Advice;
use anyhow::{Context, Result};
use clap::ValueEnum;
use cosched_control::document;
use cosched_model::{abi, Nanos};
use cosched_policy::Resolved;
use numbers::{Job, Rank};
use rustix::thread::sched_getaffinity;
use serde::Serialize;
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

/// What the user wants reported.
#[derive(clap::Args)]
pub struct Options {
    /// Print a report when the command has ended (on stderr, or see --report-to)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    report: Option<Format>,
    /// Write the report into FILE
    #[arg(long, value_name = "FILE")]
    report_to: Option<PathBuf>,
    /// Report each of the policy's answers, every rank, and what each number means
    #[arg(long)]
    explain: bool,
    /// Time of the same job alone on these CPUs, for S and F
    #[arg(long, value_name = "DUR", requires = "competitors", value_parser = humantime::parse_duration)]
    alone: Option<Duration>,
    /// Equal competitors on each CPU during this run, for S and F
    #[arg(long, value_name = "N", requires = "alone")]
    competitors: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Where a report goes, opened before the command starts.
pub struct Writer<'a> {
    options: &'a Options,
    to: Box<dyn Write>,
    command: String,
    policy: &'a Resolved,
    slice_asked_us: u32,
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    command: &'a str,
    policy: &'a Resolved,
    slice_asked_us: u32,
    jobs: Vec<Job>,
    /// What the kernel body counted, where coschedd is there.
    kernel: Option<document::Job>,
    fairness: Option<Fairness>,
    advice: Advice,
}

/// As JSON every rank stands in one list, whatever its job.
#[derive(Serialize)]
struct WithRanks<'a> {
    #[serde(flatten)]
    report: &'a Report<'a>,
    ranks: Vec<&'a Rank>,
}

/// S and F where one rank is one competitor (see docs: autogroups and cgroups change that).
#[derive(Debug, PartialEq, Serialize)]
struct Fairness {
    s: f64,
    f: f64,
    fair_limit_ns: Nanos,
}

impl Options {
    /// None where no report is wanted.
    pub fn open<'a>(
        &'a self,
        command: &[OsString],
        policy: &'a Resolved,
        slice_asked_us: u32,
    ) -> Result<Option<Writer<'a>>> {
        let wanted = self.report.is_some()
            || self.report_to.is_some()
            || self.explain
            || self.alone.is_some();
        if !wanted {
            return Ok(None);
        }
        let to: Box<dyn Write> = match &self.report_to {
            None => Box::new(io::stderr()),
            Some(path) => Box::new(File::create(path).map_err(|error| {
                Fault::Usage(format!(
                    "cannot write the report to {}: {error}",
                    path.display()
                ))
            })?),
        };
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Ok(Some(Writer {
            options: self,
            to,
            command: words.join(" "),
            policy,
            slice_asked_us,
        }))
    }
}

impl Writer<'_> {
    /// From the slots as they were left, and from coschedd's ledger.
    pub fn write(mut self, slots: &[abi::cos_slot], kernel: Option<document::Job>) -> Result<()> {
        let jobs = numbers::jobs_of(slots);
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            command: &self.command,
            policy: self.policy,
            slice_asked_us: self.slice_asked_us,
            fairness: self.fairness(&jobs),
            advice: advice::advise(&jobs, self.slice_asked_us),
            jobs,
            kernel,
        };
        let text = if self.options.report == Some(Format::Json) {
            let ranks = report.jobs.iter().flat_map(|job| &job.ranks).collect();
            serde_json::to_string(&WithRanks {
                report: &report,
                ranks,
            })? + "\n"
        } else {
            text::render(&report, self.options.explain)
        };
        self.to
            .write_all(text.as_bytes())
            .context("cannot write the report")
    }

    fn fairness(&self, jobs: &[Job]) -> Option<Fairness> {
        let [job] = jobs else { return None };
        let nr_cpus = sched_getaffinity(None).ok()?.count();
        fairness(
            job,
            self.options.alone?.into(),
            self.options.competitors?,
            nr_cpus,
        )
    }
}

/// DESIGN: with r ranks and n competitors per CPU the fair limit is (n + r) / r times the time alone.
fn fairness(job: &Job, alone: Nanos, competitors: u32, nr_cpus: u32) -> Option<Fairness> {
    let wall = job.wall.filter(|wall| wall.0 > 0)?;
    let nr_ranks = job.ranks.len() as f64;
    let used_cpus = nr_ranks.min(f64::from(nr_cpus));
    let ranks_per_cpu = nr_ranks / used_cpus;
    let share = ranks_per_cpu / (f64::from(competitors) + ranks_per_cpu);
    let limit_s = alone.as_secs_f64() / share;
    (limit_s > 0.0).then(|| Fairness {
        s: wall.as_secs_f64() / limit_s,
        f: job.cpu.as_secs_f64() / (share * used_cpus * wall.as_secs_f64()),
        fair_limit_ns: Nanos((limit_s * 1e9) as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use numbers::tests::slot;

    fn example<'a>(policy: &'a Resolved, slots: &[abi::cos_slot]) -> Report<'a> {
        let jobs = numbers::jobs_of(slots);
        let advice = advice::advise(&jobs, 100);
        Report {
            version: "0",
            command: "app",
            policy,
            slice_asked_us: 100,
            fairness: None,
            advice,
            jobs,
            kernel: None,
        }
    }

    #[test]
    fn the_fair_limit_is_that_of_equal_turns() {
        let job = &numbers::jobs_of(&[slot(0), slot(1)])[0];
        let two_cpus = fairness(job, Nanos(5_000_000_000), 1, 2).unwrap();
        assert_eq!((two_cpus.s, two_cpus.f), (1.0, 1.4));
        let one_cpu = fairness(job, Nanos(5_000_000_000), 2, 1).unwrap();
        assert_eq!(
            (one_cpu.s, one_cpu.fair_limit_ns),
            (1.0, Nanos(10_000_000_000))
        );
        assert_eq!(fairness(job, Nanos(0), 1, 2), None);
    }

    #[test]
    fn shows_every_rank_or_three_of_many() {
        let policy = crate::policy::load("auto").unwrap();
        let few: Vec<_> = (0..4).map(slot).collect();
        let text = text::render(&example(&policy, &few), false);
        assert_eq!(
            text.lines().filter(|line| line.contains("10.0 s")).count(),
            4,
            "{text}"
        );
        assert!(text.contains("stopped spinning: limit 4000"), "{text}");
        assert!(
            text.lines()
                .last()
                .unwrap()
                .starts_with("Verdict: it helped"),
            "{text}"
        );

        let many: Vec<_> = (0..64).map(slot).collect();
        let text = text::render(&example(&policy, &many), false);
        assert_eq!(
            text.lines().filter(|line| line.contains("10.0 s")).count(),
            3,
            "{text}"
        );
        let text = text::render(&example(&policy, &many), true);
        assert_eq!(
            text.lines().filter(|line| line.contains("10.0 s")).count(),
            64,
            "{text}"
        );
        assert!(text.contains("allocation"), "{text}");
    }

    #[test]
    fn json_has_units_in_its_names_and_one_list_of_ranks() {
        let policy = crate::policy::load("auto").unwrap();
        let report = example(&policy, &[slot(0), slot(1)]);
        let ranks = report.jobs.iter().flat_map(|job| &job.ranks).collect();
        let json = serde_json::to_value(WithRanks {
            report: &report,
            ranks,
        })
        .unwrap();
        assert_eq!(json["ranks"][1]["nr_blocks"], 1000);
        assert_eq!(json["ranks"][1]["blocked_ns"], 3_000_000_000u64);
        assert_eq!(json["jobs"][0]["total"]["wake_delay"]["p99_below_us"], 1024);
        assert_eq!(json["policy"]["name"], "auto");
    }
}
