// SPDX-License-Identifier: Apache-2.0
//! `cosched run`: start a command so that its MPI ranks coschedule, and be
//! invisible otherwise.

use crate::fault::Fault;
use anyhow::Result;
use std::{ffi::OsString, io, os::unix::process::CommandExt, process::Command, process::ExitCode};

/// Run a command; its MPI ranks coschedule
#[derive(clap::Args)]
pub struct Args {
    /// The command and its arguments, as without cosched
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

/// Never returns where the command starts.
pub fn main(args: Args) -> Result<ExitCode> {
    let (program, rest) = args.command.split_first().expect("clap requires one");
    let error = Command::new(program).args(rest).exec();
    Err(start_fault(program, &error).into())
}

/// Exit codes as a shell gives them.
fn start_fault(program: &OsString, error: &io::Error) -> Fault {
    let line = format!("cannot start {}: {error}", program.display());
    match error.kind() {
        io::ErrorKind::NotFound => Fault::NotFound(line + "; check the name and PATH"),
        _ => Fault::NotExecutable(line + "; is it a program that you may execute?"),
    }
}
