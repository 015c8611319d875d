// SPDX-License-Identifier: Apache-2.0
//! Being invisible between a shell and its command.
//!
//! The command stays in our process group, so the terminal speaks to both at
//! once: a signal from the kernel has reached it already, and one that was sent
//! to us alone is passed on. When the command stops at the terminal's request
//! we stop too, so that the shell gets its prompt back; when it dies by a signal we die by
//! the same. A signal that we were started with as ignored stays ignored, for
//! the command as for us.

use anyhow::{Context, Result};
use rustix::{
    io::Errno,
    process::{
        getpid, kill_process, setrlimit, waitpid, Pid, Resource, Rlimit, Signal, WaitOptions,
        WaitStatus,
    },
};
use signal_hook::{
    consts::signal::{
        SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
        SIGUSR1, SIGUSR2,
    },
    iterator::{exfiltrator::WithOrigin, SignalsInfo},
    low_level::{
        emulate_default_handler,
        siginfo::{Cause, Origin},
    },
};
use std::{
    io,
    process::{Command, ExitCode},
};

const PASSED_ON: [i32; 8] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT,
];

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Starts `command` and stands in for it until it ended. The outer error is
/// ours; the inner one says that the command did not start.
pub fn run(command: &mut Command, started: impl FnOnce()) -> Result<io::Result<End>> {
    let mut wanted = not_ignored()?;
    wanted.push(SIGCHLD);
    let mut signals: SignalsInfo<WithOrigin> =
        SignalsInfo::new(wanted).context("cannot catch signals")?;
    let child = match command.spawn() {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return Ok(Err(error)),
    };
    started();
    for origin in &mut signals {
        if origin.signal != SIGCHLD {
            pass_on(&origin, child);
        } else if let Some(end) = reap(child)? {
            return Ok(Ok(end));
        }
    }
    unreachable!("signals never end while they are iterated")
}

/// SIGHUP under nohup, SIGINT of a background job in a script, ...
fn not_ignored() -> Result<Vec<i32>> {
    let status = procfs::process::Process::myself().and_then(|me| me.status());
    let ignored = status
        .context("cannot read /proc/self/status; is /proc mounted?")?
        .sigign;
    Ok(PASSED_ON
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0)
        .collect())
}

fn pass_on(origin: &Origin, child: Pid) {
    if let (Cause::Sent(_), Some(signal)) = (origin.cause, Signal::from_named_raw(origin.signal)) {
        // It may just have ended; then the next SIGCHLD says so.
        let _ = kill_process(child, signal);
    }
}

/// How the child ended, if it did; stops with it where it was stopped by job control.
fn reap(child: Pid) -> Result<Option<End>> {
    loop {
        match waitpid(Some(child), WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(None) => return Ok(None),
            Ok(Some((_, status))) => match end_of(status) {
                Some(end) => return Ok(Some(end)),
                None => stop_with(status),
            },
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the command"),
        }
    }
}

fn end_of(status: WaitStatus) -> Option<End> {
    status
        .exit_status()
        .map(End::Exited)
        .or(status.terminating_signal().map(End::Killed))
}

/// Not on SIGSTOP: who stops the command alone will continue it alone.
fn stop_with(status: WaitStatus) {
    if matches!(status.stopping_signal(), Some(SIGTSTP | SIGTTIN | SIGTTOU)) {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Ends as the command did; returns only where that is by an exit code. A core,
/// if it was wanted, the command has left already.
pub fn end_alike(end: End) -> ExitCode {
    let signal = match end {
        End::Exited(code) => return ExitCode::from(code as u8),
        End::Killed(signal) => signal,
    };
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    if signal == SIGKILL {
        let _ = kill_process(getpid(), Signal::KILL);
    } else {
        let _ = emulate_default_handler(signal);
    }
    ExitCode::from(128u8.saturating_add(signal as u8)) // a signal that is no one's default
}
