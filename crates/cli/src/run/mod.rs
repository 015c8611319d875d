// SPDX-License-Identifier: Apache-2.0
//! `cosched run`: start a command so that its MPI ranks coschedule, and be
//! invisible otherwise.
//!
//! It makes the job page of this node, starts the command with the preloaded
//! library, and stands in for it: signals, terminal, exit code. Stdout is the
//! command's. Whatever cosched itself lacks is one line on stderr, and then the
//! command runs as if cosched were not there.

mod child;
pub mod keep;
pub mod launch;
mod untouched;

use crate::{
    daemon::{self, Held, Travelling},
    fault::{self, Fault},
    keeper::{self, house, house::House, JobPage, Keeper, Leave},
    policy, report,
};
use anyhow::{Context, Result};
use child::End;
use cosched_model::abi;
use cosched_policy::{Body, Resolved};
use launch::Kit;
use rustix::event::{eventfd, EventfdFlags};
use std::{
    borrow::Cow,
    env,
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

/// 100 us is the shortest that EEVDF takes, and the best of those measured.
const ADAPTIVE_SLICE: Duration = Duration::from_micros(100);

/// Run a command; its MPI ranks coschedule
///
/// The command is started as it stands: signals, terminal and exit code are
/// those of the command. What is not an MPI rank is not touched.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cosched run -- mpirun -n 4 ./app
  cosched run --report -- mpirun -n 4 ./app
  cosched run --policy spin_block:50us --report=json --report-to r.json -- srun ./app

COSCHED=off in the environment runs the command as if cosched were not there,
COSCHED_DAEMON=off as if coschedd were not.
Exit code: the command's; 126 where it cannot be executed, 127 where it is not
found, 2 for wrong usage, 3 where a part of cosched is missing.")]
pub struct Args {
    /// How ranks wait: a preset (see `cosched policy list`), a TOML file, or ANSWER[:DURATION]
    #[arg(long, value_name = "NAME|FILE", default_value = "auto")]
    policy: String,
    /// Length of a rank's turn on its CPU, 100us to 100ms, or `off` [default: the policy's]
    #[arg(long, value_name = "DUR|off", value_parser = parse_slice)]
    slice: Option<Duration>,
    /// Leave coschedd alone, if it is there
    #[arg(long)]
    no_daemon: bool,
    /// Leave the ranks as they are: coschedd alone acts (for static programs, and those without MPI)
    #[arg(long, conflicts_with_all = ["no_daemon", "slice", "report", "report_to", "explain", "alone"])]
    no_shim: bool,
    #[command(flatten)]
    report: report::Options,
    /// The command and its arguments, as without cosched
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

/// The kernel takes slices from 100 us to 100 ms; zero stands for its own.
fn parse_slice(text: &str) -> Result<Duration, String> {
    if text == "off" {
        return Ok(Duration::ZERO);
    }
    let slice = humantime::parse_duration(text).map_err(|e| format!("{e}; write e.g. 100us"))?;
    let taken = Duration::from_micros(100)..=Duration::from_millis(100);
    if taken.contains(&slice) {
        Ok(slice)
    } else {
        Err("the kernel takes slices from 100us to 100ms".into())
    }
}

/// Runs the command; returns its exit code.
pub fn main(args: Args) -> Result<ExitCode> {
    if env::var_os("COSCHED").is_some_and(|value| value == "off") {
        return Err(exec_untouched(&args.command));
    }
    if args.no_shim {
        return untouched::main(&args.policy, &args.command);
    }
    let (policy, mut held) = settle(&args)?;
    let slice_us = slice_us(args.slice, &policy);
    let report = args.report.open(&args.command, &policy, slice_us)?;
    let shim = launch::find_shim()?;
    house::sweep();
    let oncpu = held.as_mut().and_then(Held::take_oncpu);
    let service = match Service::start(&policy, slice_us, oncpu) {
        Ok(service) => service,
        Err(error) => {
            eprintln!("cosched: {error:#}; running the command without cosched");
            return Err(exec_untouched(&args.command));
        }
    };
    let end = stand_in(
        &args.command,
        &policy,
        slice_us,
        (shim, held.as_ref()),
        &service,
    );
    let page = service.stop();
    let end = end?;
    if let Some(report) = report {
        let kernel = held.as_ref().and_then(Held::job);
        if let Err(error) = report.write(&page.slots(), kernel) {
            fault::report(&error);
        }
    }
    Ok(child::end_alike(end))
}

/// With the kernel body, where coschedd is there and grants it; else without. A
/// refusal is told where something is lost by it.
fn settle(args: &Args) -> Result<(Resolved, Option<Held>)> {
    let preset = policy::read(&args.policy)?;
    let found = if args.no_daemon { None } else { daemon::find() };
    let Some(found) = found else {
        return Ok((policy::settle(&preset, &[Body::Shim])?, None));
    };
    let policy = policy::settle(&preset, &daemon::present(Some(&found)))?;
    let travelling = Travelling::of(&args.policy, &preset);
    match found.hold(&travelling, &name_of(&args.command), abi::COS_CONTROL_SHIM) {
        Ok(held) => Ok((policy, Some(held))),
        Err(error) => {
            if policy.taken.iter().any(|taken| taken.owner == Body::Kernel) {
                eprintln!("cosched: {error}; running without the kernel body");
            }
            Ok((policy::settle(&preset, &[Body::Shim])?, None))
        }
    }
}

/// What a person calls the job of @argv.
fn name_of(argv: &[OsString]) -> Cow<'_, str> {
    let name = Path::new(&argv[0]).file_name().unwrap_or_default();
    name.to_string_lossy()
}

/// A short slice is part of adaptive waiting: a woken rank gets its CPU sooner
/// and takes no more of it. The presets of the papers know nothing of it.
fn slice_us(wanted: Option<Duration>, policy: &Resolved) -> u32 {
    let waits_adaptively = policy
        .taken
        .iter()
        .any(|taken| taken.choice.answer.word == "adaptive");
    let default = if waits_adaptively {
        ADAPTIVE_SLICE
    } else {
        Duration::ZERO
    };
    u32::try_from(wanted.unwrap_or(default).as_micros()).expect("at most 100 ms")
}

fn stand_in(
    argv: &[OsString],
    policy: &Resolved,
    slice_us: u32,
    (shim, held): (PathBuf, Option<&Held>),
    service: &Service,
) -> Result<End> {
    let socket = service.house.socket();
    let kit = Kit {
        shim,
        socket,
        params_hex: policy.params().to_hex(),
        slice_us,
    };
    let mut command = launch::prepare(argv, &kit)?;
    if let Some(joiner) = held.map(Held::joiner) {
        // Who does not join runs as without coschedd, which is no reason not to run.
        let join = move || {
            let _ = joiner.join();
            Ok(())
        };
        // SAFETY: join() is system calls only.
        unsafe { command.pre_exec(join) };
    }
    // The limit is the keeper's need, and nothing that the command should inherit.
    child::run(&mut command, keeper::raise_descriptor_limit)?
        .map_err(|error| start_fault(&argv[0], &error).into())
}

/// The keeper of this node at work in a thread of its own.
struct Service {
    house: House,
    page: Arc<JobPage>,
    stop: OwnedFd,
    thread: JoinHandle<io::Result<()>>,
}

impl Service {
    fn start(policy: &Resolved, slice_us: u32, oncpu: Option<OwnedFd>) -> Result<Service> {
        let nr_slots = abi::COS_MAX_SLOTS;
        let page = Arc::new(JobPage::new(nr_slots, &policy.params().bytes(), slice_us)?);
        let house = House::build()?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).context("cannot create an eventfd")?;
        let leave = Leave::WhenTold(stop.try_clone().context("cannot duplicate an eventfd")?);
        let mut keeper = Keeper::new(page.clone(), keeper::listen(&house.socket())?, oncpu);
        let thread = thread::Builder::new()
            .name("keeper".into())
            .spawn(move || keeper.serve(&leave))
            .context("cannot start the keeper's thread")?;
        Ok(Service {
            house,
            page,
            stop,
            thread,
        })
    }

    /// Ends the keeper and removes its directory; the page is left to read.
    fn stop(self) -> Arc<JobPage> {
        let told = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if told.is_err() || !matches!(self.thread.join(), Ok(Ok(()))) {
            eprintln!("cosched: the keeper ended early; ranks that came later ran without cosched");
        }
        self.page
    }
}

/// Returns only where the command does not start.
fn exec_untouched(argv: &[OsString]) -> anyhow::Error {
    let error = Command::new(&argv[0]).args(&argv[1..]).exec();
    start_fault(&argv[0], &error).into()
}

/// Exit codes as a shell gives them.
fn start_fault(program: &OsString, error: &io::Error) -> Fault {
    let line = format!("cannot start {}: {error}", program.display());
    match error.kind() {
        io::ErrorKind::NotFound => Fault::NotFound(line + "; check the name and PATH"),
        _ => Fault::NotExecutable(line + "; is it a program that you may execute?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_slices_that_the_kernel_takes() {
        assert_eq!(parse_slice("off"), Ok(Duration::ZERO));
        assert_eq!(parse_slice("3ms"), Ok(Duration::from_millis(3)));
        for wrong in ["99us", "1s", "100", "", "-1ms"] {
            assert!(parse_slice(wrong).is_err(), "{wrong}");
        }
    }
}
