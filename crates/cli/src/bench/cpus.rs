// SPDX-License-Identifier: Apache-2.0
//! CPUs: which ones a run uses, who is pinned where, and who else used them.
//!
//! Pinning goes through a wrapper (`cosched exec-pinned`) in front of the rank, which reads the
//! local rank that the launcher gave it: the same for every MPI, unlike the launchers' own options.
//!
//! Foreign CPU time is what the kernel says these CPUs were busy with, minus what is known to be
//! ours. Stolen time of a virtual machine counts as foreign. It decides whether a run is repeated.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::str::FromStr;

use anyhow::{bail, Context, Result};
use procfs::{CpuTime, CurrentSI, KernelStats};
use rustix::process::{set_parent_process_death_signal, Signal};
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// A list of CPUs as `0,2-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |_| format!("`{text}` is not a list of CPUs such as 0,2-3");
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(bad)?;
            cpus.extend(first..=last.trim().parse().map_err(bad)?);
        }
        cpus.sort_unstable();
        cpus.dedup();
        match cpus.last() {
            Some(&last) if last < CpuSet::MAX_CPU => Ok(Self(cpus)),
            _ => Err(format!(
                "`{text}` names no CPU, or one beyond {}",
                CpuSet::MAX_CPU - 1
            )),
        }
    }
}

impl std::fmt::Display for CpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&names.join(","))
    }
}

/// The CPUs that this process may use.
pub fn allowed() -> Result<CpuList> {
    let set = sched_getaffinity(None).context("cannot read the CPU affinity")?;
    Ok(CpuList(
        (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect(),
    ))
}

/// Confines the calling thread, and what it starts, to `cpus`.
pub fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on CPUs {cpus:?}"))
}

/// Arguments of the hidden sub-command that pins a program and becomes it.
#[derive(clap::Args, Debug)]
pub struct PinArgs {
    /// The CPUs to use
    #[arg(long)]
    cpus: CpuList,
    /// Use one CPU: that of this process's rank on its node
    #[arg(long)]
    by_rank: bool,
    /// Be asked to end when the parent ends
    #[arg(long)]
    die_with_parent: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Pins itself and becomes the program; returns only on failure.
pub fn exec_pinned(args: &PinArgs) -> Result<()> {
    if args.die_with_parent {
        set_parent_process_death_signal(Some(Signal::TERM))?;
    }
    let CpuList(cpus) = &args.cpus;
    if args.by_rank {
        let rank = local_rank(|name| std::env::var(name).ok())?;
        pin(&[cpus[rank % cpus.len()]])?;
    } else {
        pin(cpus)?;
    }
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    Err(error).with_context(|| format!("cannot execute {:?}", args.command[0]))
}

fn local_rank(variable: impl Fn(&str) -> Option<String>) -> Result<usize> {
    let names = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_RANK"];
    match names.iter().find_map(|name| variable(name)) {
        Some(text) => text
            .parse()
            .with_context(|| format!("`{text}` is not a rank")),
        None => bail!(
            "cannot pin by rank: none of {} is set; start it with mpirun",
            names.join(", ")
        ),
    }
}

/// Seconds that `cpus` were not idle since boot, other machines' use of them (steal) included.
pub fn busy_s(cpus: &[usize]) -> Result<f64> {
    let stat = KernelStats::current().context("cannot read /proc/stat")?;
    let busy_ms = |time: &CpuTime| {
        time.user_ms()
            + time.nice_ms()
            + time.system_ms()
            + time.irq_ms().unwrap_or(0)
            + time.softirq_ms().unwrap_or(0)
            + time.steal_ms().unwrap_or(0)
    };
    let of = |&cpu: &usize| stat.cpu_time.get(cpu).map_or(0, busy_ms);
    Ok(cpus.iter().map(of).sum::<u64>() as f64 / 1e3)
}

/// The share of `nr_cpus` CPUs during `wall_s` that was busy with work that is not `ours_s`.
/// Two clock ticks of each CPU are beyond what the kernel counts.
pub fn foreign_share(busy_s: f64, ours_s: f64, wall_s: f64, nr_cpus: usize) -> f64 {
    const TICKS_S: f64 = 0.02;
    let nr_cpus = nr_cpus as f64;
    ((busy_s - ours_s - TICKS_S * nr_cpus) / (wall_s * nr_cpus)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!("0,2-3".parse(), Ok(CpuList(vec![0, 2, 3])));
        assert_eq!("3,3,1".parse::<CpuList>().unwrap().to_string(), "1,3");
        for bad in ["", "a", "1-", "3-1", "99999"] {
            assert!(bad.parse::<CpuList>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_rank_comes_from_whichever_launcher_there_is() {
        let only = |name: &'static str| move |asked: &str| (asked == name).then(|| "3".to_owned());
        assert_eq!(local_rank(only("OMPI_COMM_WORLD_LOCAL_RANK")).unwrap(), 3);
        assert_eq!(local_rank(only("PMI_RANK")).unwrap(), 3);
        assert!(local_rank(only("HOME")).is_err());
    }

    #[test]
    fn foreign_is_what_is_left() {
        assert!((foreign_share(3.04, 2.0, 2.0, 2) - 0.25).abs() < 1e-9);
        assert_eq!(foreign_share(1.0, 2.0, 2.0, 2), 0.0);
    }

    #[test]
    fn busy_time_grows() {
        let CpuList(cpus) = allowed().unwrap();
        let before = busy_s(&cpus).unwrap();
        assert!(before > 0.0 && busy_s(&cpus).unwrap() >= before);
    }
}
