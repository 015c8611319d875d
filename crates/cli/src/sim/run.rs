// SPDX-License-Identifier: Apache-2.0
//! Making a record: every run that is not there yet, on all CPUs.
//!
//! Runs are independent, so they are shared among threads, and by `--shard` among machines.
//! Rows are kept as they come (`cosched_sim::experiment::record`); an interrupt loses only
//! what is being simulated. The finished record has the order of the plan, so its bytes depend
//! neither on threads nor on shards: the run that finds all of the others' runs puts them together.
//!
//! A whole record of another revision is left as it is. `--again` sets it aside, makes a new one, and
//! says in how many runs the two differ: whether another program reproduces what was recorded.

use super::folder::{fault, Folder, REVISION};
use crate::fault::Fault;
use crate::say::say;
use anyhow::Result;
use cosched_sim::experiment::record::{rows_of, scenario_of, Journal, Record, Row, Run};
use cosched_sim::experiment::sweep::{dedicated, fingerprint, place};
use cosched_sim::{simulate, Outcome, Scenario};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

/// Make the records of experiments; one that is there is continued
#[derive(clap::Args)]
pub struct Args {
    /// Folders with an experiment.toml
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The short variant, into quick.csv
    #[arg(long)]
    quick: bool,
    /// How many runs at a time [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    jobs: Option<u64>,
    /// Only every n-th run, beginning with the i-th, into a file of its own
    #[arg(long, value_name = "i/n", value_parser = shard)]
    shard: Option<(u64, u64)>,
    /// Another number of replications
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Make records that are there anew, and say in how many runs they differ
    #[arg(long, conflicts_with = "shard")]
    again: bool,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text
        .split_once('/')
        .and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    let right = parts.filter(|(i, n)| (1..=*n).contains(i));
    right.ok_or_else(|| "write the first of three as 1/3".to_owned())
}

/// What jobs are alone, by scenario: the same for many runs.
#[derive(Default)]
struct Alone(Mutex<HashMap<u64, Arc<OnceLock<Option<Outcome>>>>>);

impl Alone {
    fn of(&self, scenario: &Scenario, job: &str) -> Option<Outcome> {
        let dedicated = dedicated(scenario, job)?;
        let mut all = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        let cell = all.entry(fingerprint(&dedicated)).or_default().clone();
        drop(all);
        cell.get_or_init(|| simulate(&dedicated, &mut ()).ok())
            .clone()
    }
}

/// Makes all records, one experiment after the other.
pub fn main(args: &Args) -> Result<ExitCode> {
    let jobs = args.jobs.unwrap_or(0) as usize;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    let mut folders = Vec::new();
    for dir in &args.dirs {
        let mut folder = Folder::open(dir, args.quick)?;
        if let Some(replications) = args.seeds {
            folder.plan.repeat(replications).map_err(Fault::Usage)?;
        }
        folders.push(folder);
    }
    for folder in &folders {
        if args.again {
            set_aside(folder)?;
        }
        pool.install(|| experiment(folder, args.shard))?;
        if args.again {
            compare(folder)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The record becomes the one before; what an interrupt left of an earlier new one is continued.
fn set_aside(folder: &Folder) -> Result<()> {
    let (path, before) = (folder.record_path(None), folder.before());
    if path.exists() && !before.exists() {
        std::fs::rename(path, before)?;
    }
    Ok(())
}

/// Says in how many runs the record differs from the one before, and removes that.
fn compare(folder: &Folder) -> Result<()> {
    let before = folder.before();
    if !before.exists() {
        return Ok(());
    }
    let old = Record::read(&folder.experiment, &before).map_err(fault)?;
    let new = folder.read(&folder.record_path(None), None)?;
    let differing = new.differing(&old);
    let (name, all) = (folder.name(), nr_runs(&new));
    say(format_args!(
        "{name}: {differing} of {all} runs differ from those before"
    ))?;
    Ok(std::fs::remove_file(before)?)
}

fn experiment(folder: &Folder, shard: Option<(u64, u64)>) -> Result<()> {
    let path = folder.record_path(shard);
    let mut there = folder.read(&path, None)?;
    let other = there.rows.iter().find(|row| row.revision != REVISION);
    if let Some(other) = other.map(|row| row.revision.clone()) {
        if shard.is_none() && there.missing(&folder.plan).is_empty() {
            let (path, all) = (path.display(), nr_runs(&there));
            return say(format_args!(
                "{path}: {all} runs, made by revision {other}; --again makes them anew and compares"
            ));
        }
        there
            .keep(&folder.plan, Some(REVISION), &path)
            .map_err(fault)?;
    }
    let mut journal = Journal::open(&folder.experiment, &path).map_err(fault)?;
    let mut record = folder.read(&path, Some(REVISION))?;
    let mut shards = Vec::new();
    if shard.is_none() {
        shards = folder.shards()?;
        for shard in &shards {
            record.rows.extend(folder.read(shard, Some(REVISION))?.rows);
        }
        record
            .keep(&folder.plan, Some(REVISION), &path)
            .map_err(fault)?;
    }
    let missing = mine(folder, &record, shard);
    let fresh = simulate_all(folder, &missing, &mut journal)?;
    record.rows.extend(fresh);
    record
        .write(&folder.experiment, &folder.plan, &path)
        .map_err(fault)?;
    for shard in shards {
        std::fs::remove_file(shard)?;
    }
    let (path, all, now) = (path.display(), nr_runs(&record), missing.len());
    say(format_args!("{path}: {all} runs, {now} of them now"))
}

fn nr_runs(record: &Record) -> usize {
    let runs = record.rows.iter().map(|row| (&row.levels, row.replication));
    runs.collect::<std::collections::BTreeSet<_>>().len()
}

/// The runs that are not there, as far as they belong to `shard`.
fn mine<'a>(folder: &'a Folder, record: &Record, shard: Option<(u64, u64)>) -> Vec<Run<'a>> {
    let missing = record.missing(&folder.plan);
    let Some((i, n)) = shard else {
        return missing;
    };
    let all = cosched_sim::experiment::record::runs(&folder.plan);
    let mine = all.zip((0..n).cycle()).filter(|(_, at)| at + 1 == i);
    let mine: std::collections::HashSet<_> =
        mine.map(|((point, r), _)| (&point.levels, r)).collect();
    let is_mine = |run: &Run| mine.contains(&(&run.0.levels, run.1));
    missing.into_iter().filter(is_mine).collect()
}

fn simulate_all(folder: &Folder, runs: &[Run], journal: &mut Journal) -> Result<Vec<Row>> {
    let bar = progress(runs.len() as u64, folder.name());
    let (alone, journal) = (Alone::default(), Mutex::new(journal));
    let made = runs.par_iter().map(|run| -> Result<Vec<Row>> {
        let scenario = scenario_of(*run);
        let outcome = simulate(&scenario, &mut ()).map_err(|error| {
            let place = place(&folder.experiment.factors, &run.0.levels);
            let (name, replication) = (folder.name(), run.1);
            Fault::Usage(format!(
                "{name}: {place} replication {replication}: {error}"
            ))
        })?;
        let rows = rows_of(*run, &outcome, REVISION, |job| alone.of(&scenario, job));
        let mut journal = journal.lock().unwrap_or_else(|broken| broken.into_inner());
        journal.append(&rows).map_err(fault)?;
        bar.inc(1);
        Ok(rows)
    });
    let rows: Result<Vec<Vec<Row>>> = made.collect();
    bar.finish_and_clear();
    Ok(rows?.into_iter().flatten().collect())
}

fn progress(runs: u64, name: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(runs).with_message(name);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
