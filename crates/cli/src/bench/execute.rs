// SPDX-License-Identifier: Apache-2.0
//! Running one cell for real: hogs up, programs started, all ended, everything read.
//!
//! The order matters. Hogs work and sleepers sleep before the job starts; counters are read at its
//! very start and end; only then is anything taken down. The whole job is confined to the CPUs of
//! the run, and asked to end should the bench die.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use regex::Regex;
use tempfile::TempDir;

use super::arm::Arm;
use super::child::{end_strays, wait_all, Child, Ended, Exit};
use super::cpus::{busy_s, foreign_share, CpuList};
use super::hog::Hogs;
use super::launch::Launcher;
use super::plan::{Cell, Work};
use super::sample::{Outcome, Program, Role};
use super::scheduler::{Scheduler, Schedulers};
use super::series::Executor;
use super::sleeper::Sleepers;

/// This machine, ready to run cells.
pub struct Machine {
    /// Starts the ranks.
    pub launcher: Launcher,
    /// The job, without its launcher.
    pub job: Vec<OsString>,
    /// `calcula`, without a launcher.
    pub probe: Vec<OsString>,
    /// Shell commands that run beside the job.
    pub beside: Vec<String>,
    /// Ranks of one job.
    pub ranks: u32,
    /// Copies of the job that run together.
    pub copies: u32,
    /// The CPUs of everything.
    pub cpus: CpuList,
    /// What every MPI program of a run finds in its environment.
    pub environment: Vec<(&'static str, &'static str)>,
    /// Finds the job's own time in its output.
    pub regex: Option<Regex>,
    /// Limit of one program's time.
    pub timeout: Duration,
    /// Measure the interactive sleeper.
    pub sleepers: bool,
    /// Raised by ^C.
    pub stop: Arc<AtomicBool>,
    /// This executable.
    pub exe: PathBuf,
    /// Who schedules.
    pub schedulers: Schedulers,
    /// For reports; goes away with this.
    pub dir: TempDir,
}

/// A program to start.
struct Entry {
    role: Role,
    name: String,
    command: Command,
    report: PathBuf,
    /// The report must tell of coschedd.
    needs_kernel: bool,
}

impl Executor for Machine {
    fn run(&mut self, cell: &Cell) -> Result<Option<Outcome>> {
        self.schedulers.switch(&cell.scheduler())?;
        let outcome = self.run_under(cell)?;
        let lost = self.schedulers.lost();
        Ok(outcome.map(|mut outcome| {
            for program in outcome.programs.iter_mut().filter(|_| lost.is_some()) {
                program.exit = Exit::Unscheduled;
                program.complaint = lost.clone().unwrap_or_default();
            }
            outcome
        }))
    }
}

impl Machine {
    /// Under the scheduler that is there.
    fn run_under(&self, cell: &Cell) -> Result<Option<Outcome>> {
        let CpuList(cpus) = &self.cpus;
        let hogs = Hogs::start(cell.hogs, cpus)?;
        let sleepers = self.sleepers.then(|| Sleepers::start(cpus));
        let own_cpu_s = || own_cpu_s() + self.schedulers.cpu_s();
        let (before, busy_before_s, own_before_s) = (hogs.read(), busy_s(cpus)?, own_cpu_s());
        let started = Instant::now();
        let programs = self.run_programs(cell)?;
        let wall_s = started.elapsed().as_secs_f64();
        let (after, busy_after_s, own_after_s) = (hogs.read(), busy_s(cpus)?, own_cpu_s());
        let sleeper_p99_us = sleepers.and_then(Sleepers::finish);
        let kept: Vec<_> = hogs
            .pids()
            .into_iter()
            .chain(self.schedulers.pid())
            .collect();
        let strays_s = end_strays(&kept);
        let Some(programs) = programs else {
            return Ok(None);
        };
        let work = after.since(&before);
        let jobs_s: f64 = programs.iter().map(|program| program.usage.cpu_s()).sum();
        let ours_s = jobs_s + strays_s + work.cpu_s + own_after_s - own_before_s;
        Ok(Some(Outcome {
            programs,
            foreign: foreign_share(busy_after_s - busy_before_s, ours_s, wall_s, cpus.len()),
            hogs: work,
            sleeper_p99_us,
        }))
    }

    /// Together, or one after another in arm `batch`.
    fn run_programs(&self, cell: &Cell) -> Result<Option<Vec<Program>>> {
        let started = Instant::now();
        let mut programs = Vec::new();
        let mut entries = self.entries(cell);
        let in_turn = cell.work == Work::Arm(Arm::Batch);
        while !entries.is_empty() {
            let rest = entries.split_off(if in_turn { 1 } else { entries.len() });
            let offset_s = if in_turn {
                started.elapsed().as_secs_f64()
            } else {
                0.0
            };
            let children = entries
                .iter_mut()
                .map(|entry| Child::start(&mut entry.command));
            let Some(ended) = wait_all(children.collect::<Result<_>>()?, self.timeout, &self.stop)?
            else {
                return Ok(None);
            };
            programs.extend(
                entries
                    .iter()
                    .zip(&ended)
                    .map(|(entry, ended)| self.read(entry, offset_s, ended)),
            );
            entries = rest;
        }
        Ok(Some(programs))
    }

    fn read(&self, entry: &Entry, offset_s: f64, ended: &Ended) -> Program {
        let mut program = Program::read(
            entry.role,
            &entry.name,
            offset_s,
            ended,
            self.regex.as_ref(),
        );
        let report = std::fs::read_to_string(&entry.report).ok();
        if let Some(report) = report.and_then(|text| serde_json::from_str(&text).ok()) {
            program.read_report(&report);
            if entry.needs_kernel && report["kernel"].is_null() {
                program.exit = Exit::Unscheduled;
            }
        }
        // What an earlier run left must not be read again.
        let _ = std::fs::remove_file(&entry.report);
        program
    }

    fn entries(&self, cell: &Cell) -> Vec<Entry> {
        let copies = if cell.together { self.copies } else { 1 };
        let mut entries: Vec<Entry> = match &cell.work {
            Work::Arm(arm) => (0..copies).map(|i| self.job_entry(arm, i)).collect(),
            Work::Probe(_) => (0..copies).map(|i| self.probe_entry(i)).collect(),
            Work::Beside(index) => return vec![self.beside_entry(*index)],
        };
        if cell.together && !matches!(cell.work, Work::Probe(_)) {
            entries.extend((0..self.beside.len()).map(|index| self.beside_entry(index)));
        }
        entries
    }

    fn job_entry(&self, arm: &Arm, copy: u32) -> Entry {
        let report = self.dir.path().join(format!("report-{copy}.json"));
        let mut words = arm.prefix(&self.exe, &report);
        words.extend(self.launcher.prefix.iter().chain(&self.job).cloned());
        let mut command = self.confined(&words);
        command.envs(arm.environment());
        if arm.scheduler() == Scheduler::Cosched {
            command.env("COSCHED_SOCKET", self.schedulers.socket());
        }
        Entry {
            role: Role::Job,
            name: copy_name("job", copy),
            command,
            report,
            needs_kernel: matches!(arm, Arm::KernelShim(_)),
        }
    }

    fn probe_entry(&self, copy: u32) -> Entry {
        let words: Vec<OsString> = self
            .launcher
            .prefix
            .iter()
            .chain(&self.probe)
            .cloned()
            .collect();
        Entry {
            role: Role::Probe,
            name: copy_name("calcula", copy),
            command: self.confined(&words),
            report: PathBuf::new(),
            needs_kernel: false,
        }
    }

    fn beside_entry(&self, index: usize) -> Entry {
        let text = &self.beside[index];
        Entry {
            role: Role::Beside,
            name: text.clone(),
            command: self.confined(&["sh", "-c", text].map(OsString::from)),
            report: PathBuf::new(),
            needs_kernel: false,
        }
    }

    fn confined(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(&self.exe);
        command
            .args(["exec-pinned", "--die-with-parent", "--cpus"])
            .args([&self.cpus.to_string(), "--"])
            .args(words)
            .envs(self.environment.iter().copied());
        command
    }
}

fn copy_name(what: &str, copy: u32) -> String {
    match copy {
        0 => what.to_owned(),
        _ => format!("{what} {}", copy + 1),
    }
}

/// CPU time of the bench itself, sleepers included.
fn own_cpu_s() -> f64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        Machine {
            schedulers: Schedulers::new("/bin/cosched".as_ref(), dir.path(), Arc::default())
                .unwrap(),
            launcher: Launcher::none(),
            job: vec!["./app".into(), "-x".into()],
            probe: vec!["calcula".into()],
            beside: vec!["sleep 1".to_owned()],
            ranks: 1,
            copies: 2,
            cpus: CpuList(vec![0]),
            environment: vec![("UCX_TLS", "tcp")],
            regex: None,
            timeout: Duration::from_secs(9),
            sleepers: false,
            stop: Arc::default(),
            exe: "/bin/cosched".into(),
            dir,
        }
    }

    fn commands(cell: &Cell) -> Vec<String> {
        let line = |entry: Entry| {
            let words: Vec<_> = entry
                .command
                .get_args()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            words.join(" ")
        };
        machine().entries(cell).into_iter().map(line).collect()
    }

    #[test]
    fn a_crowd_is_all_copies_and_all_others() {
        let work = Work::Arm(Arm::Stock);
        let crowd = commands(&Cell {
            work: work.clone(),
            hogs: 0,
            together: true,
        });
        let confined = "exec-pinned --die-with-parent --cpus 0 --";
        let job = format!("{confined} ./app -x");
        assert_eq!(
            crowd,
            [
                job.clone(),
                job.clone(),
                format!("{confined} sh -c sleep 1")
            ]
        );
        assert_eq!(
            commands(&Cell {
                work,
                hogs: 0,
                together: false
            }),
            [job]
        );
    }

    #[test]
    fn a_policy_goes_through_cosched_run() {
        let work = Work::Arm(Arm::Policy("auto".into()));
        let line = &commands(&Cell {
            work,
            hogs: 0,
            together: false,
        })[0];
        assert!(line.contains("-- /bin/cosched run --policy auto --report=json --report-to /"));
        assert!(line.ends_with("report-0.json -- ./app -x"));
    }

    #[test]
    fn arms_of_the_kernel_body_find_its_daemon_and_the_others_none() {
        let value = |arm: &str, name: &str| {
            let entry = machine().job_entry(&arm.parse().unwrap(), 0);
            let mut set = entry.command.get_envs();
            let found = set.find(|(key, _)| *key == name)?.1;
            Some(found?.to_string_lossy().into_owned())
        };
        for arm in ["kernel:auto", "kernel+shim:auto"] {
            let socket = value(arm, "COSCHED_SOCKET").unwrap();
            assert!(socket.ends_with("coschedd.sock"), "{socket}");
        }
        assert_eq!(value("auto", "COSCHED_SOCKET"), None);
        assert_eq!(value("auto", "COSCHED_DAEMON").as_deref(), Some("off"));
    }

    #[test]
    fn arms_and_transport_meet_in_the_environment() {
        let entry = machine().job_entry(&Arm::Yield, 0);
        let set: Vec<_> = entry
            .command
            .get_envs()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert_eq!(set, ["OMPI_MCA_mpi_yield_when_idle", "UCX_TLS"]);
    }
}
