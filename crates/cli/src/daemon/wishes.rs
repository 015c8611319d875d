// SPDX-License-Identifier: Apache-2.0
//! `cosched adopt`, `switch` and `end`: what runs already becomes a job, a job
//! gets another policy, a job's tasks are ordinary again.

use super::{ask, read, Travelling};
use crate::{fault::Fault, policy, say::say};
use anyhow::Result;
use cosched_control::{document::Answer, Wish};
use cosched_model::abi;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::{
    fs::File,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Where version 2 is mounted beside version 1, and where it is alone.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Make a job of what runs already (needs coschedd)
///
/// A process joins with all its descendants, a cgroup with every process that is in
/// it or comes later. Ranks wait as their program does: only a run under `cosched
/// run` can change that.
#[derive(clap::Args)]
pub struct AdoptArgs {
    /// A process, with its descendants
    #[arg(
        long,
        value_name = "PID",
        required_unless_present = "cgroup",
        conflicts_with = "cgroup"
    )]
    pid: Option<i32>,
    /// A cgroup of version 2: its directory, or its path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// A preset (see `cosched policy list`) or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "auto")]
    policy: String,
    /// What `cosched jobs` shows
    #[arg(long, default_value = "")]
    name: String,
}

/// Give a job another policy while it runs (needs coschedd)
#[derive(clap::Args)]
pub struct SwitchArgs {
    /// Its number, see `cosched jobs`
    job: u32,
    /// A preset (see `cosched policy list`) or a TOML file
    policy: String,
}

/// Make a job's tasks ordinary again; they go on (needs coschedd)
#[derive(clap::Args)]
pub struct EndArgs {
    /// Its number, see `cosched jobs`
    job: u32,
}

/// Prints the job's number, and who answers what.
pub fn adopt(args: &AdoptArgs) -> Result<ExitCode> {
    let beside = match (&args.cgroup, args.pid) {
        (Some(path), _) => cgroup(path)?,
        (None, pid) => process(pid.unwrap_or(0))?,
    };
    let policy = Travelling::of(&args.policy, &policy::read(&args.policy)?);
    let wish = Wish {
        name: &args.name,
        beside: Some(beside.as_fd()),
        ..policy.wish(0)
    };
    ask_for_answers(abi::COS_CONTROL_BEGIN, &wish)
}

/// Prints who answers what.
pub fn switch(args: &SwitchArgs) -> Result<ExitCode> {
    let policy = Travelling::of(&args.policy, &policy::read(&args.policy)?);
    let wish = Wish {
        job: args.job,
        ..policy.wish(0)
    };
    ask_for_answers(abi::COS_CONTROL_SWITCH, &wish)
}

/// Prints the job's number, and who answers what from now on.
fn ask_for_answers(kind: u32, wish: &Wish<'_>) -> Result<ExitCode> {
    let reply = ask(kind, wish)?;
    let answers = read::<Vec<Answer>>(&reply)?;
    say(format!("job {}: {}", reply.job, owners(&answers)))?;
    Ok(ExitCode::SUCCESS)
}

/// Says nothing where all is well.
pub fn end(args: &EndArgs) -> Result<ExitCode> {
    let wish = Wish {
        job: args.job,
        ..Wish::default()
    };
    ask(abi::COS_CONTROL_END, &wish)?;
    Ok(ExitCode::SUCCESS)
}

/// `arrival: boost (kernel), ...`: what is not left to the local scheduler.
pub fn owners(answers: &[Answer]) -> String {
    let ours = answers
        .iter()
        .filter(|answer| answer.owner != "local scheduler");
    let words = ours.map(|a| format!("{}: {} ({})", a.question, a.answer, a.owner));
    words.collect::<Vec<_>>().join(", ")
}

fn process(pid: i32) -> Result<OwnedFd> {
    let held = Pid::from_raw(pid).filter(|pid| pid.as_raw_nonzero().get() > 0);
    let held = held.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    Ok(held.ok_or_else(|| {
        Fault::Usage(format!(
            "no process {pid}: it has ended, or its number is wrong"
        ))
    })?)
}

fn cgroup(path: &Path) -> Result<OwnedFd> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let below = CGROUPS.map(|top| Path::new(top).join(relative));
    let mut places = std::iter::once(path.to_owned()).chain(below);
    let dir = places.find(|place| place.is_dir());
    let dir = dir.unwrap_or_else(|| path.to_owned());
    let file = File::open(&dir).map_err(|error| {
        let line = format!(
            "cannot open the cgroup {}: {error}: name its directory",
            dir.display()
        );
        Fault::Usage(line)
    })?;
    Ok(file.into())
}
