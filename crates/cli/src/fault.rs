// SPDX-License-Identifier: Apache-2.0
//! What goes wrong, as one line and an exit code.
//!
//! The line says what failed, on what, why, and what to do. Errors of other
//! crates travel as `anyhow` with context; one that is not a [`Fault`] means
//! that this machine refused something (exit 3).

use std::process::ExitCode;
use thiserror::Error;

/// An error with an exit code of its own.
#[derive(Debug, Error)]
pub enum Fault {
    /// Usage or configuration.
    #[error("{0}")]
    Usage(String),
    /// This machine cannot; the line names the missing piece.
    #[error("{0}")]
    Machine(String),
    /// The command to run does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The command to run cannot be executed.
    #[error("{0}")]
    NotExecutable(String),
}

impl Fault {
    fn code(&self) -> u8 {
        match self {
            Fault::Usage(_) => 2,
            Fault::Machine(_) => 3,
            Fault::NotExecutable(_) => 126,
            Fault::NotFound(_) => 127,
        }
    }
}

/// One line on stderr; returns the code to exit with.
pub fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("cosched: {error:#}");
    ExitCode::from(error.downcast_ref().map_or(3, Fault::code))
}
