// SPDX-License-Identifier: Apache-2.0
//! `cosched doctor`: what this machine offers, and which body can do what on it.
//!
//! One line per fact: is it there, what was found, and what to do where it is
//! missing. It looks only; whatever it tries out (a slice) it tries in a thread
//! that ends with it. Nothing here decides anything for `cosched run`, which finds out by itself.

mod body;
mod limits;
mod linux;
mod mpi;

use anyhow::Result;
use serde::Serialize;
use std::{io::Write, process::ExitCode};

/// Say what this machine offers, what is missing, and what to do about it
///
/// Exit code 3 where nothing could run at all: no preloaded library, or no MPI.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Is it there?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// Yes.
    Ok,
    /// It works, but numbers read differently.
    Note,
    /// No.
    Missing,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
struct Fact {
    name: String,
    status: Status,
    found: String,
    to_do: Option<String>,
}

impl Fact {
    fn ok(name: impl Into<String>, found: impl Into<String>) -> Fact {
        Fact {
            name: name.into(),
            status: Status::Ok,
            found: found.into(),
            to_do: None,
        }
    }

    fn note(name: impl Into<String>, found: impl Into<String>, to_do: impl Into<String>) -> Fact {
        Fact {
            status: Status::Note,
            to_do: Some(to_do.into()),
            ..Fact::ok(name, found)
        }
    }

    fn missing(
        name: impl Into<String>,
        found: impl Into<String>,
        to_do: impl Into<String>,
    ) -> Fact {
        Fact {
            status: Status::Missing,
            to_do: Some(to_do.into()),
            ..Fact::ok(name, found)
        }
    }

    fn is_there(&self) -> bool {
        self.status != Status::Missing
    }
}

#[derive(Serialize)]
struct Diagnosis {
    machine: Vec<Fact>,
    mpi: Vec<mpi::Mpi>,
    bodies: Vec<Fact>,
}

/// Prints one line per fact.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut machine = linux::facts();
    machine.extend(limits::facts());
    let shim = limits::shim();
    let mpi = mpi::find();
    let daemon = body::told()?;
    let runs = shim.is_there() && !mpi.is_empty();
    let bodies = body::facts(&machine, &shim, &mpi, daemon);
    machine.push(shim);
    let diagnosis = Diagnosis {
        machine,
        mpi,
        bodies,
    };
    let text = if args.json {
        serde_json::to_string_pretty(&diagnosis)? + "\n"
    } else {
        render(&diagnosis)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(if runs { 0 } else { 3 }))
}

fn render(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for fact in &diagnosis.machine {
        text += &line(fact);
    }
    if diagnosis.mpi.is_empty() {
        text += &line(&Fact::missing(
            "MPI",
            "no mpirun in PATH",
            "install openmpi-bin or mpich",
        ));
    }
    for mpi in &diagnosis.mpi {
        text += &line(&mpi.fact());
    }
    text += "\n";
    for fact in &diagnosis.bodies {
        text += &line(fact);
    }
    text
}

fn line(fact: &Fact) -> String {
    let status = match fact.status {
        Status::Ok => "ok",
        Status::Note => "note",
        Status::Missing => "missing",
    };
    let to_do = fact
        .to_do
        .as_ref()
        .map(|what| format!(": {what}"))
        .unwrap_or_default();
    format!("{status:<8}{:<20}{}{to_do}\n", fact.name, fact.found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_to_do() {
        let fact = Fact::missing("BTF", "no /sys/kernel/btf", "boot another kernel");
        assert_eq!(
            line(&fact),
            "missing BTF                 no /sys/kernel/btf: boot another kernel\n"
        );
    }
}
