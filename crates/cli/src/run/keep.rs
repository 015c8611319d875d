// SPDX-License-Identifier: Apache-2.0
//! `cosched keep`: the keeper of a node that `cosched run` was not started on.
//!
//! The first rank there that finds no keeper starts this. It returns when a
//! keeper listens, and leaves one behind that outlives it: a second process in
//! a session of its own, which goes 2 s after the last rank left, or 30 s after
//! its start if none came. Of several started at once one wins; the others
//! wait until it listens, and are content.

use crate::say::say;
use crate::{
    fault::Fault,
    keeper::{self, house, house::House, JobPage, Keeper, Leave},
};
use anyhow::{bail, Context, Result};
use cosched_policy::Params;
use rustix::process::setsid;
use std::{
    env,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const FIRST: Duration = Duration::from_secs(30);
const LAST: Duration = Duration::from_secs(2);
const START: Duration = Duration::from_secs(2);

/// Keep the job page of a node on which cosched run was not started
#[derive(clap::Args)]
pub struct Args {
    /// Print where the keeper listens, and do nothing
    #[arg(long)]
    print_path: bool,
    /// Be the process that stays
    #[arg(long, hide = true, conflicts_with = "print_path")]
    stay: bool,
}

/// Returns when a keeper listens (or, with --stay, when it is no longer needed).
pub fn main(args: &Args) -> Result<ExitCode> {
    let keeper = env::var_os("COSCHED_KEEPER").ok_or_else(|| {
        Fault::Usage("COSCHED_KEEPER is not set; the ranks of `cosched run` start this".into())
    })?;
    let socket = house::shared_socket(&keeper);
    if args.print_path {
        say(socket.display())?;
    } else if args.stay {
        stay(&socket)?;
    } else if !keeper::is_listening(&socket) {
        start(&socket)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn start(socket: &Path) -> Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["keep", "--stay"])
        .current_dir("/")
        .env_remove("LD_PRELOAD");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: setsid() is async-signal-safe.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
    command
        .spawn()
        .context("cannot start the keeper of this node")?;
    let begin = Instant::now();
    while !keeper::is_listening(socket) {
        if begin.elapsed() > START {
            bail!(
                "no keeper came up at {} within {} s",
                socket.display(),
                START.as_secs()
            );
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn stay(socket: &Path) -> Result<()> {
    let dir = socket.parent().context("a socket is in a directory")?;
    let Some(house) = House::claim(dir)? else {
        return Ok(());
    };
    let page = Arc::new(page_from_env()?);
    let listener = keeper::listen(&house.socket())?;
    let leave = Leave::WhenIdle {
        first: FIRST,
        last: LAST,
    };
    keeper::raise_descriptor_limit();
    Keeper::new(page, listener, None)
        .serve(&leave)
        .context("the keeper's poll loop failed")
}

fn page_from_env() -> Result<JobPage> {
    let params = env::var("COSCHED_PARAMS")
        .ok()
        .and_then(|hex| Params::from_hex(&hex));
    let params = params.context("COSCHED_PARAMS is not set or not of this version of cosched")?;
    let slice_us = env::var("COSCHED_SLICE_US")
        .ok()
        .and_then(|us| us.parse().ok())
        .unwrap_or(0);
    JobPage::new(cosched_model::abi::COS_MAX_SLOTS, &params.bytes(), slice_us)
}
