// SPDX-License-Identifier: Apache-2.0
//! What was asked, and what follows from it: a plan, and a machine that can run it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use regex::Regex;

use super::arm::Arm;
use super::cpus::{allowed, CpuList};
use super::execute::Machine;
use super::launch::{Launcher, Mpi, Placement, Transport};
use super::plan::Plan;
use super::record::Provenance;
use super::sample::Role;
use super::scheduler::Schedulers;
use super::series::Series;
use super::vm::VmArgs;
use super::workload;
use crate::fault::Fault;

const NOTES: &str = "\
Examples:
  cosched bench --workload barrier --arms stock,yield,auto --plot barrier.svg
  cosched bench --ranks 4 --competitors 0,1 --time-regex 'Loop time of ([0-9.]+)' -- lmp -in in.melt
  cosched bench --workload yielders --arms stock -- --rounds 10000
  cosched bench --jobs 2 --arms stock,auto,batch --competitors 0 --workload sor
  cosched bench --beside 'make -j2' --competitors 0 -- mpirun -n 2 ./app

Where times and CPU times come from:
  T is the job's own time where it tells it: a last line of JSON with elapsed_s, or --time-regex;
  else the wall clock of the whole command. F and waste divide CPU time and time of the same span:
  the job's own cpu_s, else MPI_Init to MPI_Finalize (arms under cosched), else the whole command
  with its start, which makes F look smaller. Programs of 3 s and more alone make that negligible.
  A workload that calibrates its grain does so in each run; --spins N behind -- fixes it.

Schedulers:
  coschedd, and each program of --scheduler, is started when an arm needs it and ended by SIGINT;
  each pass attaches each once. All other arms have the kernel's own scheduler, so none may be
  attached before. The fair share is measured under each. It takes root and a kernel with sched_ext.

Competition:
  Hogs, sleepers and the launcher live in one session. Where autogroup is on, Linux first shares a
  CPU between sessions; MPICH gives each rank a session of its own, so that a rank competes with all
  hogs of a CPU together. The fair limit is measured under the same conditions and includes that.
  Only beside programs of --beside it is computed, as if all tasks counted alike.

Exit codes:
  0 done; 1 an arm failed; 2 usage; 3 this machine cannot; 130 interrupted (the samples are kept).";

/// Measure a job under several arms, alone and beside competitors
///
/// Arms are compared in one interleaved run. `stock` is the job as it is; `yield` and `spin` set
/// Open MPI's mpi_yield_when_idle; `batch` runs several programs one after another; any other word
/// is a policy for `cosched run` (a preset, a file, or a shorthand such as spin_block:50us), without
/// coschedd. `kernel:POLICY` is stock, but a job of coschedd's; `kernel+shim:POLICY` has both.
///
/// S = time / fair limit: 1.00 is what fairness allows. F = CPU time / fair share: above 1.05 it is
/// theft. The fair limit is measured with a program that never waits, under the same conditions.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "cosched bench [OPTIONS] -- CMD...\n       cosched bench [OPTIONS] --workload NAME [-- ARGS...]",
    after_long_help = NOTES
)]
pub struct Args {
    /// Built-in workload
    #[arg(long, value_name = "NAME", value_parser = workload::NAMES)]
    workload: Option<String>,
    /// Arms to compare
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "stock,auto",
        value_name = "ARM,..."
    )]
    arms: Vec<Arm>,
    /// One more arm: stock under this sched_ext program, by its path; may be given several times
    #[arg(long, value_name = "PATH")]
    scheduler: Vec<PathBuf>,
    /// Levels of competition: hogs per CPU
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,1,2,4",
        value_name = "N,..."
    )]
    competitors: Vec<u32>,
    /// Passes over all arms and levels
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    repeats: u32,
    /// One pass only
    #[arg(long)]
    quick: bool,
    /// Ranks of the job [default: one per CPU]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096), value_name = "N")]
    ranks: Option<u32>,
    /// CPUs of job, hogs and sleepers, such as 0,2-3 [default: all allowed]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// Whose mpirun launches the job [default: the first found]
    #[arg(long, value_enum)]
    mpi: Option<Mpi>,
    /// What carries the messages [default: as the MPI likes]
    #[arg(long, value_enum)]
    transport: Option<Transport>,
    /// Rank i on the i-th CPU [default where there are CPUs enough]
    #[arg(long)]
    pin: bool,
    /// All ranks on all CPUs of --cpus
    #[arg(long, conflicts_with = "pin")]
    no_pin: bool,
    /// Copies of the job that run together
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), value_name = "N")]
    jobs: u32,
    /// A shell command to run beside the job; may be given several times
    #[arg(long, value_name = "CMD")]
    beside: Vec<String>,
    /// The arm that gives T alone [default: stock, or the best one where ranks share CPUs]
    #[arg(long, value_name = "ARM")]
    alone_arm: Option<Arm>,
    /// The job's own time in its output: seconds in the first group, last match
    #[arg(long, value_name = "REGEX")]
    time_regex: Option<Regex>,
    /// Limit of one run
    #[arg(long, default_value = "120s", value_parser = humantime::parse_duration, value_name = "TIME")]
    timeout: Duration,
    /// How long calcula measures the fair share
    #[arg(long, default_value = "3s", value_parser = humantime::parse_duration, value_name = "TIME")]
    probe: Duration,
    /// Foreign CPU time above which a run is repeated
    #[arg(long, default_value = "6%", value_name = "SHARE")]
    pub max_foreign: Percent,
    /// Leave out the interactive sleepers
    #[arg(long)]
    no_sleeper: bool,
    /// Seed of the order of runs
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Raw samples [default: bench-<time>.csv]
    #[arg(long, value_name = "FILE", overrides_with = "csv")]
    pub csv: Option<PathBuf>,
    /// Draw S and F over competitors
    #[arg(long, value_name = "FILE.svg", overrides_with = "plot")]
    pub plot: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub vm: VmArgs,
    /// The job, or the arguments of the workload
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A share of the whole, written as `6%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok());
        let share = number.filter(|share| (0.0..=100.0).contains(share));
        share
            .map(|share| Self(share / 100.0))
            .ok_or_else(|| format!("`{text}` is not a share such as 6%"))
    }
}

impl Args {
    /// The plan, and the machine to run it on.
    pub fn prepare(&self) -> Result<(Plan, Machine)> {
        let cpus = self.usable_cpus()?;
        let given = Launcher::split(&self.command)?.filter(|_| self.workload.is_none());
        let asked = given.as_ref().and_then(|given| given.ranks);
        let mpi = self.wanted_mpi()?;
        let ranks = self
            .ranks
            .or(asked)
            .unwrap_or_else(|| match (self.forks(), mpi) {
                (true, _) => workload::default_workers(cpus.0.len()),
                (_, Some(Mpi::None)) => 1,
                _ => cpus.0.len() as u32,
            });
        let pin = self.pin || (!self.no_pin && ranks as usize <= cpus.0.len());
        let placement = Placement {
            ranks,
            cpus: cpus.clone(),
            pin,
        };
        let (launcher, job) = match given {
            Some(given) => (given.launcher, given.job),
            None => (Launcher::find(mpi, &placement)?, self.job()?),
        };
        let plan = self.plan(ranks as usize > cpus.0.len())?;
        let nr_programs = self.beside.len() + self.jobs as usize;
        for arm in plan.arms.iter().chain(&plan.alone) {
            arm.check(launcher.mpi, nr_programs)?;
        }
        Ok((plan, self.machine(launcher, job, placement)?))
    }

    /// The last of --cpus.
    pub fn highest_cpu(&self) -> Option<usize> {
        self.cpus.as_ref()?.0.last().copied()
    }

    /// Whether the job is a workload that forks its ranks.
    fn forks(&self) -> bool {
        self.workload.as_deref().is_some_and(workload::forks)
    }

    /// Whose launcher to take; none where the ranks are forked.
    fn wanted_mpi(&self) -> Result<Option<Mpi>> {
        if !self.forks() {
            return Ok(self.mpi);
        }
        if self.mpi.is_none_or(|mpi| mpi == Mpi::None) && self.transport.is_none() {
            return Ok(Some(Mpi::None));
        }
        let line = "this workload forks its ranks without an MPI: leave out --mpi and --transport";
        Err(Fault::Usage(line.to_owned()).into())
    }

    fn machine(
        &self,
        launcher: Launcher,
        job: Vec<OsString>,
        placement: Placement,
    ) -> Result<Machine> {
        let exe = std::env::current_exe().context("cannot find the own executable")?;
        let workers = if self.forks() {
            workload::workers(&placement)?
        } else {
            Vec::new()
        };
        let built_in = |name: &str| -> Result<Vec<OsString>> {
            let program = workload::find(&exe, launcher.mpi, name)?.into();
            Ok([vec![program], workers.clone()].concat())
        };
        let job = match &self.workload {
            Some(name) => [built_in(name)?, job].concat(),
            None => job,
        };
        let seconds = self.probe.as_secs_f64().to_string();
        let dir = tempfile::Builder::new()
            .prefix("cosched-bench-")
            .tempdir()?;
        let stop = Arc::default();
        let probe = [built_in("calcula")?, vec!["--for-s".into(), seconds.into()]].concat();
        Ok(Machine {
            probe,
            environment: launcher.environment(self.transport),
            launcher,
            job,
            ranks: placement.ranks,
            beside: self.beside.clone(),
            copies: self.jobs,
            cpus: placement.cpus,
            regex: self.time_regex.clone(),
            timeout: self.timeout,
            sleepers: !self.no_sleeper,
            schedulers: Schedulers::new(&exe, dir.path(), Arc::clone(&stop))?,
            stop,
            exe,
            dir,
        })
    }

    /// What follows the launcher, or the arguments of the workload.
    fn job(&self) -> Result<Vec<OsString>> {
        if self.workload.is_none() && self.command.is_empty() {
            let line =
                "nothing to measure: give --workload NAME, or a command behind --".to_owned();
            return Err(Fault::Usage(line).into());
        }
        Ok(self.command.clone())
    }

    fn usable_cpus(&self) -> Result<CpuList> {
        let allowed = allowed()?;
        let Some(wanted) = &self.cpus else {
            return Ok(allowed);
        };
        match wanted.0.iter().find(|cpu| !allowed.0.contains(cpu)) {
            Some(cpu) => Err(Fault::Usage(format!(
                "CPU {cpu} of --cpus may not be used here: allowed are {allowed}"
            ))
            .into()),
            None => Ok(wanted.clone()),
        }
    }

    /// Those by name, and those by path.
    fn all_arms(&self) -> Vec<Arm> {
        let under = self.scheduler.iter().cloned().map(Arm::Under);
        self.arms.iter().cloned().chain(under).collect()
    }

    fn plan(&self, oversubscribed: bool) -> Result<Plan> {
        let mut plan = Plan {
            arms: self.all_arms(),
            levels: self.competitors.clone(),
            alone: vec![Arm::Stock],
            copies: self.jobs,
            nr_beside: self.beside.len(),
            repeats: if self.quick { 1 } else { self.repeats },
            seed: self.seed,
        };
        plan.levels.sort_unstable();
        plan.levels.dedup();
        match &self.alone_arm {
            Some(Arm::Batch) => {
                return Err(Fault::Usage(
                    "--alone-arm batch: one job alone has no order".to_owned(),
                )
                .into())
            }
            Some(arm) => plan.alone = vec![arm.clone()],
            None if oversubscribed => {
                let all = plan.arms.iter();
                plan.alone = all.filter(|&arm| *arm != Arm::Batch).cloned().collect()
            }
            None => {}
        }
        Ok(plan)
    }

    /// Where T comes from, in words.
    pub fn time_source(&self, series: &Series) -> &'static str {
        let mut jobs = series
            .samples
            .iter()
            .flat_map(|sample| &sample.outcome.programs);
        let own = jobs.any(|program| program.role == Role::Job && program.own_s.is_some());
        match (own, &self.time_regex) {
            (true, Some(_)) => {
                "the job's own time, found by --time-regex; F spans MPI_Init to MPI_Finalize under cosched, else like waste the whole run"
            }
            (true, None) => "the job's own elapsed_s, of its measured phase",
            (false, _) => "wall clock of the whole command, its start included",
        }
    }

    /// A title for the figure.
    pub fn title(&self, machine: &Machine) -> String {
        let name = machine.job[0].to_string_lossy().into_owned();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        format!(
            "{name}, {} ranks on CPUs {}, {}",
            machine.ranks, machine.cpus, machine.launcher.version
        )
    }

    /// The columns that are the same in all rows of the record.
    pub fn provenance(&self, plan: &Plan, machine: &Machine) -> Provenance {
        let here = std::env::current_dir().unwrap_or_default();
        let words = |words: &[OsString]| {
            let words = words.iter().map(|word| shown_from(&here, word));
            words.collect::<Vec<_>>().join(" ")
        };
        let environment: Vec<String> = machine
            .environment
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        Provenance::here(vec![
            ("guest", self.vm.emulator().unwrap_or("none").to_owned()),
            ("mpi", machine.launcher.version.clone()),
            ("launcher", words(&machine.launcher.prefix)),
            ("command", words(&machine.job)),
            ("beside", machine.beside.join("; ")),
            ("environment", environment.join(" ")),
            ("ranks", machine.ranks.to_string()),
            ("cpus", machine.cpus.to_string()),
            ("copies", plan.copies.to_string()),
            ("repeats", plan.repeats.to_string()),
            ("seed", plan.seed.to_string()),
            ("timeout_s", machine.timeout.as_secs_f64().to_string()),
            ("sleepers", machine.sleepers.to_string()),
            ("max_foreign", self.max_foreign.0.to_string()),
            (
                "time_regex",
                self.time_regex
                    .as_ref()
                    .map(Regex::to_string)
                    .unwrap_or_default(),
            ),
        ])
    }
}

/// A path below @here as one types it there: a record is for others to repeat.
fn shown_from(here: &Path, word: &OsStr) -> String {
    let below = Path::new(word).strip_prefix(here);
    let word = below.map_or(word, Path::as_os_str);
    word.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        Cli::parse_from(line.split_whitespace()).args
    }

    #[test]
    fn shares_are_written_in_percent() {
        assert_eq!("6%".parse(), Ok(Percent(0.06)));
        assert!("6".parse::<Percent>().is_err() && "200%".parse::<Percent>().is_err());
    }

    #[test]
    fn levels_are_sorted_and_unique() {
        let plan = args("bench --competitors 2,0,2 --quick -- ./a")
            .plan(false)
            .unwrap();
        assert_eq!((plan.levels, plan.repeats), (vec![0, 2], 1));
    }

    #[test]
    fn a_record_names_programs_as_seen_from_here() {
        let here = Path::new("/src/cosched");
        let shown = |word: &str| shown_from(here, word.as_ref());
        assert_eq!(shown("/src/cosched/target/a"), "target/a");
        assert_eq!(shown("/src/cosched2/a"), "/src/cosched2/a");
        assert_eq!(shown("--cpus"), "--cpus");
    }

    #[test]
    fn with_more_ranks_than_cpus_any_arm_may_be_the_best_alone() {
        let plan = args("bench --arms spin,auto,batch --jobs 2 -- ./a")
            .plan(true)
            .unwrap();
        assert_eq!(plan.alone, [Arm::Spin, Arm::Policy("auto".into())]);
        let plan = args("bench --arms spin --alone-arm yield -- ./a")
            .plan(true)
            .unwrap();
        assert_eq!(plan.alone, [Arm::Yield]);
    }

    #[test]
    fn nothing_to_measure_is_refused() {
        assert!(args("bench").job().is_err());
        assert!(args("bench --workload sor").job().unwrap().is_empty());
    }
}
