// SPDX-License-Identifier: Apache-2.0
//! One schedule to look at: the JSON that Perfetto and Chrome show.
//!
//! A process of the trace is a node, a thread of it a CPU; what a CPU does is a slice, a message
//! is an arrow from the sender's CPU to the receiver's, a boost is a mark. The beginning of the simulation is shown, up
//! to `--until`.

use super::folder::Folder;
use crate::fault::Fault;
use crate::say::say;
use anyhow::{Context, Result};
use cosched_sim::experiment::sweep::{check_selection, lets_in, Selection};
use cosched_sim::units::Span;
use cosched_sim::{simulate, Activity, End, Message, Observer, Scenario, TaskName};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write the schedule of one simulation for Perfetto or Chrome
#[derive(clap::Args)]
pub struct Args {
    /// A scenario file, or the folder of an experiment
    #[arg(value_name = "SCENARIO|DIR")]
    what: PathBuf,
    /// Which point of the experiment; may be given for each factor [default: the first]
    #[arg(long, value_name = "FACTOR=LEVEL", value_parser = level)]
    at: Vec<(String, String)>,
    /// Where to
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How much simulated time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    until: std::time::Duration,
}

fn level(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').ok_or("write FACTOR=LEVEL")?;
    Ok((parts.0.to_owned(), parts.1.to_owned()))
}

/// Simulates, and writes as it goes.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut scenario = match args.what.is_dir() {
        true => point(args)?,
        false => scenario(&args.what)?,
    };
    let until_ns = u64::try_from(args.until.as_nanos()).unwrap_or(u64::MAX);
    scenario.end = End::Time(Span(cosched_model::Nanos(until_ns)));
    let file =
        File::create(&args.out).with_context(|| format!("cannot write {}", args.out.display()))?;
    let mut trace = Trace::new(&scenario, BufWriter::new(file));
    let outcome =
        simulate(&scenario, &mut trace).map_err(|error| Fault::Usage(error.to_string()))?;
    let slices = trace
        .end(outcome.ended_at.0)
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    let out = args.out.display();
    say(format_args!(
        "{out}: {slices} slices; open it at ui.perfetto.dev"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn scenario(path: &Path) -> Result<Scenario> {
    let usage = |why: String| Fault::Usage(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    Ok(Scenario::parse(&text).map_err(|error| usage(error.to_string()))?)
}

fn point(args: &Args) -> Result<Scenario> {
    let folder = Folder::open(&args.what, false)?;
    let pairs = args
        .at
        .iter()
        .map(|(factor, level)| (factor.clone(), level.as_str().into()));
    let at: Selection = pairs.collect();
    check_selection(&folder.experiment.factors, &at).map_err(Fault::Usage)?;
    let mut points = folder.plan.points.into_iter();
    let found = points.find(|point| lets_in(&folder.experiment.factors, &at, &point.levels));
    let found = found.ok_or_else(|| Fault::Usage("no point has these levels".into()))?;
    Ok(found.scenario)
}

/// Writes what it is told.
struct Trace<W> {
    out: W,
    jobs: Vec<String>,
    cpus_each: u32,
    tasks: Vec<TaskName>,
    /// What each CPU does, and since when.
    doing: Vec<(Activity, u64)>,
    /// Where each task ran last.
    cpu_of: Vec<u32>,
    nr_slices: u64,
    nr_messages: u64,
    /// The first error; nothing is written after it.
    broken: Option<std::io::Error>,
}

impl<W: Write> Trace<W> {
    fn new(scenario: &Scenario, out: W) -> Self {
        let cluster = &scenario.cluster;
        let mut trace = Trace {
            out,
            jobs: scenario.jobs.iter().map(|job| job.name.clone()).collect(),
            cpus_each: cluster.cpus,
            tasks: Vec::new(),
            doing: vec![(Activity::Idle, 0); (cluster.nodes * cluster.cpus) as usize],
            cpu_of: Vec::new(),
            nr_slices: 0,
            nr_messages: 0,
            broken: None,
        };
        let first = writeln!(trace.out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
        trace.broken = first.err();
        for node in 0..cluster.nodes {
            let name = json!({"name": format!("node {node}")});
            trace.write(
                &json!({"ph": "M", "name": "process_name", "pid": node, "args": name}),
                ",",
            );
        }
        trace
    }

    fn write(&mut self, event: &Value, end: &str) {
        if self.broken.is_none() {
            self.broken = writeln!(self.out, "{event}{end}").err();
        }
    }

    /// The end of what `cpu` did.
    fn slice(&mut self, now_ns: u64, cpu: u32) {
        let (activity, since_ns) = self.doing[cpu as usize];
        let (task, what) = match activity {
            Activity::Idle => return,
            Activity::Overhead(task) => (task, "switch or interrupt"),
            Activity::Run(task) => (Some(task), "run"),
            Activity::Spin(task) => (Some(task), "spin"),
        };
        if now_ns == since_ns {
            return;
        }
        let name = match (task, activity) {
            (Some(task), Activity::Run(_) | Activity::Spin(_)) => self.name(task),
            _ => what.to_owned(),
        };
        self.nr_slices += 1;
        let (pid, ts, dur) = (cpu / self.cpus_each, us(since_ns), us(now_ns - since_ns));
        self.write(&json!({"ph": "X", "name": name, "cat": what, "pid": pid, "tid": cpu, "ts": ts, "dur": dur}), ",");
    }

    fn name(&self, task: u32) -> String {
        let name = self.tasks[task as usize];
        format!("{} {}", self.jobs[name.job as usize], name.number)
    }

    /// Closes all slices and the file; gives how many there were.
    fn end(mut self, now_ns: u64) -> std::io::Result<u64> {
        (0..self.doing.len() as u32).for_each(|cpu| self.slice(now_ns, cpu));
        let last =
            json!({"ph": "i", "name": "end", "pid": 0, "tid": 0, "s": "g", "ts": us(now_ns)});
        self.write(&last, "\n]}");
        match self.broken.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.nr_slices),
        }
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl<W: Write> Observer for Trace<W> {
    fn begin(&mut self, tasks: &[TaskName]) {
        self.tasks = tasks.to_vec();
        self.cpu_of = tasks
            .iter()
            .map(|task| task.node * self.cpus_each)
            .collect();
    }

    fn cpu(&mut self, now_ns: u64, cpu: u32, activity: Activity) {
        if let Activity::Run(task) | Activity::Spin(task) | Activity::Overhead(Some(task)) =
            activity
        {
            self.cpu_of[task as usize] = cpu;
        }
        if self.doing[cpu as usize].0 != activity {
            self.slice(now_ns, cpu);
            self.doing[cpu as usize] = (activity, now_ns);
        }
    }

    fn message(&mut self, now_ns: u64, message: Message) {
        self.nr_messages += 1;
        let id = self.nr_messages;
        for (ph, task, at_ns) in [
            ("s", message.from, message.sent_ns),
            ("f", message.to, now_ns),
        ] {
            let (node, cpu) = (self.tasks[task as usize].node, self.cpu_of[task as usize]);
            let event = json!({"ph": ph, "bp": "e", "name": "message", "cat": "message", "id": id,
                "pid": node, "tid": cpu, "ts": us(at_ns), "args": {"bytes": message.bytes}});
            self.write(&event, ",");
        }
    }

    fn boost(&mut self, now_ns: u64, task: u32) {
        let (node, cpu) = (self.tasks[task as usize].node, self.cpu_of[task as usize]);
        let name = format!("boost {}", self.name(task));
        self.write(
            &json!({"ph": "i", "name": name, "pid": node, "tid": cpu, "s": "t", "ts": us(now_ns)}),
            ",",
        );
    }
}
