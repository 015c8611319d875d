// SPDX-License-Identifier: Apache-2.0
//! `cosched run --no-shim`: a job of the kernel body, and nothing else.
//!
//! For programs that no library helps: static ones, those without MPI, and benches that
//! want to know what the kernel body does by itself. The command keeps its environment and
//! waits as it does by itself. Without a coschedd that schedules nothing would be left,
//! so that is an error here, and not in a plain run.

use super::{child, name_of, start_fault};
use crate::{
    daemon::{self, Travelling},
    fault::Fault,
    policy,
};
use anyhow::Result;
use cosched_control::Mode;
use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

/// Runs @argv as a job under the policy that @word names; returns its exit code.
pub fn main(word: &str, argv: &[OsString]) -> Result<ExitCode> {
    let preset = policy::read(word)?;
    let found = daemon::find().filter(|found| found.mode == Mode::Schedule);
    let found = found.ok_or_else(|| {
        Fault::Machine(
            "--no-shim leaves all to coschedd, and none schedules here: see `cosched doctor`"
                .into(),
        )
    })?;
    let held = found
        .hold(&Travelling::of(word, &preset), &name_of(argv), 0)
        .map_err(daemon::fault)?;
    let joiner = held.joiner();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    // SAFETY: join() is system calls only.
    unsafe { command.pre_exec(move || Ok(joiner.join()?)) };
    let end = child::run(&mut command, || ())?.map_err(|error| start_fault(&argv[0], &error))?;
    Ok(child::end_alike(end))
}
