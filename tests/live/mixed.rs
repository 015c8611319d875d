// SPDX-License-Identifier: Apache-2.0
//! S1's mixed workload: a parallel SOR of two ranks, gtar and gs begin at the same instant.
//!
//! Each CPU is a node: it has a rank of SOR, a tar with gzip over 97 files and a Ghostscript that draws 103
//! pages. SOR is a stock MPI program (workloads/sor.c, Open MPI), which spins; where it is to sleep it has the
//! shim with the preset `implicit`. It starts first and waits at a FIFO, since MPI's own start beside others
//! would be most of what is measured. In `batch` one program begins when the one before has ended.
//! CPU time is read from /proc until a zombie is taken away, so that what a program's children
//! used is there at its end.

use super::{attach, Local, Row, Scheduler, SCHEDULERS};
use crate::coschedd::stat;
use crate::inside::params;
use crate::job::built;
use cosched_loader::Body;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Everything lies here, in memory.
const HOME: &str = "/run/mixed";
const NR_FILES: u32 = 97;
const NR_PAGES: u32 = 103;
/// What makes each of the three take some seconds alone where CPUs are emulated.
const WORDS_A_FILE: u32 = 22_000;
const DOTS_AN_INCH: u32 = 80;
const ITERATIONS: u32 = 6_000;
/// Nothing takes longer; under EEVDF with spinning ranks SOR has taken a minute.
const LIMIT: Duration = Duration::from_secs(240);

const JOBS: [&str; 3] = ["sor", "gtar", "gs"];

/// A process on one CPU, or the launcher of two.
struct Task {
    job: &'static str,
    child: Child,
    before_s: f64,
    ended: Option<End>,
}

#[derive(Clone, Copy)]
struct End {
    at_s: f64,
    cpu_s: f64,
}

/// What one program took.
pub struct Used {
    /// Its name.
    pub job: &'static str,
    /// From the common beginning to its end.
    pub response_s: f64,
    /// In all.
    pub cpu_s: f64,
    /// When the last program ended.
    pub ended_s: f64,
    /// F until the first program ended; none in batch.
    pub fairness: Option<f64>,
}

/// One program after another.
pub const BATCH: Scheduler = super::scheduler("batch", Local::Eevdf, "uncoordinated", false);

/// S1 states E and C of this workload.
const UNSTATED: &str = "dcs-spin E=2 C=100ms";

/// All schedulers once, in random order for each local scheduler, and batch.
pub fn pass(number: u64, say: &mut dyn FnMut(Row)) {
    let mut all = SCHEDULERS.to_vec();
    all.retain(|scheduler| scheduler.name != UNSTATED);
    all.push(BATCH);
    all.shuffle(&mut rand::rngs::StdRng::seed_from_u64(number));
    let mut locals = [Local::Eevdf, Local::Ours];
    locals.rotate_left((number % 2) as usize);
    for local in locals {
        let mut body = attach(local);
        for scheduler in all.iter().filter(|it| it.local == local) {
            for used in run(body.as_mut(), scheduler) {
                say(row(number, scheduler, &used));
            }
        }
    }
}

fn row(number: u64, scheduler: &Scheduler, used: &Used) -> Row {
    let seconds = |s: f64| format!("{s:.3}");
    let mut row = super::provenance();
    row.extend([
        ("replication", number.to_string()),
        ("scheduler", scheduler.name.to_owned()),
        ("job", used.job.to_owned()),
        ("response_s", seconds(used.response_s)),
        ("cpu_s", seconds(used.cpu_s)),
        ("ended_s", seconds(used.ended_s)),
        ("fairness", used.fairness.map(seconds).unwrap_or_default()),
    ]);
    row
}

/// Files for gtar; and each program once, so that the first run finds it in memory.
fn prepare() {
    let tree = Path::new(HOME).join("tree");
    if tree.exists() {
        return;
    }
    fs::create_dir_all(&tree).expect("/run is writable");
    let mut random = rand::rngs::StdRng::seed_from_u64(1998);
    for number in 0..NR_FILES {
        let words = (0..WORDS_A_FILE).map(|_| format!("{:x} ", random.random_range(0..4096_u32)));
        let file = tree.join(format!("file-{number}"));
        fs::write(file, words.collect::<String>()).expect("/run is writable");
    }
    for mut command in [gtar(0), gs(0)] {
        command.status().expect("it is installed");
    }
}

fn on_cpu(cpu: usize, script: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), "sh", "-c", script]);
    command.stdin(Stdio::null()).current_dir(HOME);
    command
}

fn gtar(cpu: usize) -> Command {
    on_cpu(cpu, "tar -cf - tree | gzip > /dev/null")
}

fn gs(cpu: usize) -> Command {
    let pages = crate::root().join("tests/live/pages.ps");
    let (dots, pages) = (DOTS_AN_INCH, pages.display().to_string());
    let how = "-q -dBATCH -dNOPAUSE -sDEVICE=pbmraw -sOutputFile=/dev/null";
    let read = format!("--permit-file-read={pages}");
    on_cpu(
        cpu,
        &format!("exec gs {how} -r{dots} -dN={NR_PAGES} {read} {pages}"),
    )
}

/// Waits for a line before it becomes the command, so that it can join a job first.
fn sor(scheduler: &Scheduler, gate: &Path) -> Command {
    let program = built("workloads/openmpi/sor");
    let mut command = Command::new("sh");
    command.args(["-c", "read line && exec \"$@\"", "sh"]);
    if scheduler.sleeps {
        let cosched = built("cosched");
        command
            .arg(cosched)
            .args(["run", "--policy", "implicit", "--"]);
    }
    let pinned = "exec taskset -c \"$OMPI_COMM_WORLD_RANK\" \"$0\" \"$@\"";
    command.args(["mpirun.openmpi", "--bind-to", "none", "-n", "2"]);
    command.args(["sh", "-c", pinned]).arg(program);
    command.args(["--iterations", &ITERATIONS.to_string()]);
    command.arg("--gate").arg(gate);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(name, "1");
    }
    command.env("COSCHED_DAEMON", "off").env("HOME", "/root");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// SOR at its gate, in the job of @body's; and who holds the gate.
fn sor_at_its_gate(body: Option<&mut Body>, scheduler: &Scheduler) -> (Task, File) {
    let gate = PathBuf::from(HOME).join("gate");
    let _ = fs::remove_file(&gate);
    let made = Command::new("mkfifo").arg(&gate).status();
    assert!(made.expect("a program of every system").success(), "mkfifo");
    let mut child = sor(scheduler, &gate).spawn().expect("a shell is there");
    if let Some(body) = body {
        let job = body
            .begin(&params(scheduler.preset), 0)
            .expect("a free place");
        body.join(job, child.id()).expect("our child");
    }
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"go\n").expect("it reads");
    let held = File::options().write(true).open(&gate);
    let before_s = tree_cpu_s(child.id());
    let task = Task {
        job: "sor",
        child,
        before_s,
        ended: None,
    };
    (task, held.expect("SOR opens it"))
}

fn task(job: &'static str, command: &mut Command) -> Task {
    Task {
        job,
        child: command.spawn().expect("it is installed"),
        before_s: 0.0,
        ended: None,
    }
}

/// One run.
pub fn run(mut body: Option<&mut Body>, scheduler: &Scheduler) -> Vec<Used> {
    prepare();
    let (sor, gate) = sor_at_its_gate(body.as_deref_mut(), scheduler);
    let begun = Instant::now();
    let pairs = |job, of: fn(usize) -> Command| [0, 1].map(|cpu| task(job, &mut of(cpu)));
    let all = if *scheduler == BATCH {
        drop(gate);
        let mut all = vec![sor];
        wait_for(&mut all, begun);
        for (job, of) in [("gtar", gtar as fn(usize) -> Command), ("gs", gs)] {
            let mut pair = pairs(job, of);
            wait_for(&mut pair, begun);
            all.extend(pair);
        }
        used(all, None)
    } else {
        let mut all: Vec<Task> = vec![sor];
        all.extend(pairs("gtar", gtar));
        all.extend(pairs("gs", gs));
        drop(gate);
        let first = wait_for(&mut all, begun);
        used(all, Some(first))
    };
    if let Some(body) = body {
        end_all_jobs(body);
    }
    all
}

fn end_all_jobs(body: &mut Body) {
    for number in 1..cosched_loader::raw::COS_MAX_JOBS {
        let _ = body.end(cosched_loader::JobNumber(number));
    }
}

/// When the first ended, and the CPU time of each job then.
type First = (f64, Vec<(&'static str, f64)>);

fn wait_for(tasks: &mut [Task], begun: Instant) -> First {
    let mut first: Option<First> = None;
    while tasks.iter().any(|task| task.ended.is_none()) {
        assert!(begun.elapsed() < LIMIT, "the programs do not end");
        thread::sleep(Duration::from_millis(20));
        for at in 0..tasks.len() {
            let task = &tasks[at];
            if task.ended.is_some() || !is_zombie(task.child.id()) {
                continue;
            }
            let at_s = begun.elapsed().as_secs_f64();
            let now = || tasks.iter().map(|task| (task.job, task.cpu_s())).collect();
            first.get_or_insert_with(|| (at_s, now()));
            let cpu_s = task.cpu_s();
            tasks[at].ended = Some(End { at_s, cpu_s });
        }
    }
    first.expect("one was the first")
}

impl Task {
    fn cpu_s(&self) -> f64 {
        let now_s = || tree_cpu_s(self.child.id()) - self.before_s;
        self.ended.map_or_else(now_s, |end| end.cpu_s)
    }
}

/// By job; SOR tells its own times.
fn used(tasks: Vec<Task>, first: Option<First>) -> Vec<Used> {
    let ends: Vec<(&str, End)> = tasks
        .iter()
        .map(|task| (task.job, task.ended.expect("all have ended")))
        .collect();
    let ended_s = ends.iter().map(|(_, end)| end.at_s).fold(0.0, f64::max);
    let told: Vec<Value> = tasks.into_iter().filter_map(told).collect();
    JOBS.map(|job| {
        let of = || ends.iter().filter(|(name, _)| *name == job);
        let own = told.first().filter(|_| job == "sor");
        let own = |key: &str| own.and_then(|told| told[key].as_f64());
        let last_s = of().map(|(_, end)| end.at_s).fold(0.0, f64::max);
        let cpu_s = of().map(|(_, end)| end.cpu_s).sum();
        let fairness = first.as_ref().map(|(at_s, all)| {
            let those = all.iter().filter(|(name, _)| *name == job);
            let fair_s = 2.0 * at_s / JOBS.len() as f64;
            those.map(|(_, cpu_s)| cpu_s).sum::<f64>() / fair_s
        });
        Used {
            job,
            response_s: own("elapsed_s").unwrap_or(last_s),
            cpu_s: own("cpu_s").unwrap_or(cpu_s),
            ended_s,
            fairness,
        }
    })
    .into()
}

/// What SOR says of itself; takes the zombie away.
fn told(mut task: Task) -> Option<Value> {
    let mut text = String::new();
    if let Some(mut out) = task.child.stdout.take() {
        out.read_to_string(&mut text).expect("text");
    }
    let status = task.child.wait().expect("our child");
    assert!(status.success(), "{}: {status}", task.job);
    serde_json::from_str(text.lines().last()?).ok()
}

fn is_zombie(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| fields[0] == "Z")
}

/// Of @pid, what it waited for, and what it started and is still there.
fn tree_cpu_s(pid: u32) -> f64 {
    let all = fs::read_dir("/proc").expect("/proc is mounted");
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, Vec<String>)> = pids.filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut tree = vec![pid];
    let mut next = 0;
    let mut ticks = 0.0;
    while next < tree.len() {
        let of = tree[next];
        let is_child = |fields: &[String]| fields[1] == of.to_string();
        tree.extend(all.iter().filter(|(_, f)| is_child(f)).map(|(pid, _)| *pid));
        let fields = all.iter().find(|(pid, _)| *pid == of).map(|(_, f)| f);
        let times = fields.into_iter().flat_map(|fields| &fields[11..15]);
        ticks += times.map(|time| time.parse().unwrap_or(0.0)).sum::<f64>();
        next += 1;
    }
    ticks / 100.0
}
