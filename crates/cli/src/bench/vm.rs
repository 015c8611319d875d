// SPDX-License-Identifier: Apache-2.0
//! `--vm`: the same bench in a guest whose kernel has sched_ext.
//!
//! The guest has the host's files, so the same command line is run there, at the same place and
//! by the same executable. It writes samples and figure into a folder that host and guest share;
//! whatever ends the guest, what is there is moved to where the user wanted it. Under emulation
//! time runs unevenly: ratios within one run tell something, seconds do not.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use cosched_vm::{Error, Guest, Job};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

use super::options::Args;
use super::record::Record;
use super::INTERRUPTED;
use crate::fault::Fault;

/// Each run has a limit of its own; this is for a guest that hangs.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// CPUs of a guest where --cpus does not say.
const CPUS: usize = 2;
const SAMPLES: &str = "samples.csv";
const FIGURE: &str = "figure.svg";

/// Where it is to run.
#[derive(clap::Args, Debug)]
pub struct VmArgs {
    /// Run it in a guest with sched_ext, with 2 CPUs or up to the last of --cpus (needs root)
    #[arg(long)]
    vm: bool,
    /// Memory of the guest in MiB
    #[arg(long, default_value_t = 2048, requires = "vm", value_name = "MIB")]
    vm_memory: u32,
    /// We are in the guest that runs so
    #[arg(long, hide = true, value_name = "EMULATOR")]
    in_guest: Option<String>,
}

impl VmArgs {
    /// Whether a guest is to be booted.
    pub fn wanted(&self) -> bool {
        self.vm && self.in_guest.is_none()
    }

    /// What runs the guest that we are in.
    pub fn emulator(&self) -> Option<&str> {
        self.in_guest.as_deref()
    }
}

/// Boots, runs the bench there, and brings home what it wrote.
pub fn main(args: &Args) -> Result<ExitCode> {
    let guest = find()?;
    let csv = args.csv.clone().unwrap_or_else(Record::default_path);
    let home = Home::new(&csv)?;
    let stop: Arc<AtomicBool> = Arc::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let job = job(args, &guest.emulator(), &home)?.until(stop);
    let outcome = guest.run_into(&job, std::io::stdout(), std::io::stderr());
    if let Some(figure) = &args.plot {
        home.bring(FIGURE, figure)?;
    }
    if home.bring(SAMPLES, &csv)? {
        eprintln!("cosched bench: every sample is in {}", csv.display());
    }
    match outcome {
        Ok(outcome) => Ok(ExitCode::from(u8::try_from(outcome.code).unwrap_or(1))),
        Err(Error::Stopped) => Ok(ExitCode::from(INTERRUPTED)),
        Err(error) => Err(fault(error)),
    }
}

/// This very command, inside.
fn job(args: &Args, emulator: &str, home: &Home) -> Result<Job> {
    let own: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut extra = vec!["--in-guest".into(), emulator.into()];
    extra.extend(["--csv".into(), home.inside(SAMPLES).into()]);
    if args.plot.is_some() {
        extra.extend(["--plot".into(), home.inside(FIGURE).into()]);
    }
    let exe = std::env::current_exe().context("cannot find the own executable")?;
    let here = std::env::current_dir().context("cannot find the current folder")?;
    let job = Job::new(exe)
        .args(inserted(&own, extra))
        .cpus(args.highest_cpu().map_or(CPUS, |cpu| cpu + 1) as u32)
        .memory_mib(args.vm.vm_memory)
        .timeout(TIMEOUT)
        .exchange(home.0.path())
        .dir(here);
    Ok(std::env::vars_os().fold(job, |job, (name, value)| job.env(name, value)))
}

/// The guest whose kernel lies near this executable, or is named in the environment.
fn find() -> Result<Guest> {
    let exe = std::env::current_exe().context("cannot find the own executable")?;
    let near = |folder: &str| exe.parent().unwrap_or(Path::new("/")).join(folder);
    let installed = near("../lib/cosched/vm");
    let folder = if installed.is_dir() {
        installed
    } else {
        near("../vm")
    };
    Guest::find(&folder).map_err(fault)
}

fn fault(error: Error) -> anyhow::Error {
    Fault::Machine(format!("--vm: {error}")).into()
}

/// @own with @extra behind the options and before the job. The last of two values counts.
fn inserted(own: &[OsString], extra: Vec<OsString>) -> Vec<OsString> {
    let end = own.iter().position(|word| word == OsStr::new("--"));
    let (options, job) = own.split_at(end.unwrap_or(own.len()));
    [options, &extra, job].concat()
}

/// The folder that host and guest share, beside the samples to be.
struct Home(TempDir);

impl Home {
    fn new(csv: &Path) -> Result<Self> {
        if csv.exists() {
            let line = format!(
                "{} is there already; give another name by --csv",
                csv.display()
            );
            return Err(Fault::Usage(line).into());
        }
        let beside = csv.parent().filter(|path| *path != Path::new(""));
        let beside = beside.unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new()
            .prefix(".cosched-bench-")
            .tempdir_in(beside);
        let folder = folder.map_err(|error| {
            let line = format!("cannot write samples to {}: {error}", beside.display());
            Fault::Usage(line)
        })?;
        Ok(Self(folder))
    }

    fn inside(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Whether the guest wrote @name; it is then at @to.
    fn bring(&self, name: &str, to: &Path) -> Result<bool> {
        let from = self.inside(name);
        if !from.is_file() {
            return Ok(false);
        }
        let moved = fs::rename(&from, to).or_else(|_| fs::copy(&from, to).map(drop));
        moved.with_context(|| format!("cannot write {}", to.display()))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_guest_has_the_same_command_line_and_writes_elsewhere() {
        let own = words("bench --vm --csv a.csv -- ./app -- x");
        let all = inserted(&own, words("--csv b.csv"));
        assert_eq!(
            all,
            words("bench --vm --csv a.csv --csv b.csv -- ./app -- x")
        );
        let own = words("bench --vm --workload sor");
        assert_eq!(
            inserted(&own, words("-x")),
            words("bench --vm --workload sor -x")
        );
    }

    #[test]
    fn samples_come_home_and_replace_none() {
        let dir = tempfile::tempdir().unwrap();
        let csv = dir.path().join("a.csv");
        let home = Home::new(&csv).unwrap();
        assert!(!home.bring(SAMPLES, &csv).unwrap());
        fs::write(home.inside(SAMPLES), "x").unwrap();
        assert!(home.bring(SAMPLES, &csv).unwrap());
        assert_eq!(fs::read_to_string(&csv).unwrap(), "x");
        assert!(Home::new(&csv).is_err());
    }
}
