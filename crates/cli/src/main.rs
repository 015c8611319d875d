// SPDX-License-Identifier: Apache-2.0
//! cosched: run a parallel job beside other work at its fair share.
//!
//! One module per sub-command; this file only tells them apart and turns what
//! they return into one line and an exit code: 0 done, 1 a comparison failed,
//! 2 usage or configuration, 3 this machine cannot. `run` passes on the code of
//! its command instead.

mod bench;
mod daemon;
mod doctor;
mod fault;
mod keeper;
mod plot;
mod policy;
mod report;
mod run;
mod say;
mod sim;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Run a parallel job beside other work at its fair share.
///
/// MPI ranks wait by spinning. On a CPU that has other work, a spinning rank
/// burns its share waiting for a peer that is not running. cosched makes ranks
/// sleep when that is cheaper and wakes them the moment a message comes,
/// without root and without touching the program, the MPI library or the kernel.
#[derive(Parser)]
#[command(name = "cosched", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Bench(Box<bench::Args>),
    Policy(policy::Args),
    Doctor(doctor::Args),
    Status(daemon::status::Args),
    Jobs(daemon::jobs::Args),
    Adopt(daemon::wishes::AdoptArgs),
    Switch(daemon::wishes::SwitchArgs),
    End(daemon::wishes::EndArgs),
    Sim(sim::Args),
    #[command(hide = true)]
    Keep(run::keep::Args),
    /// Burn one CPU for a bench
    #[command(hide = true)]
    Hog(bench::HogArgs),
    /// Become a program on given CPUs
    #[command(hide = true)]
    ExecPinned(bench::PinArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::main(args),
        Command::Bench(args) => bench::main(&args),
        Command::Policy(args) => policy::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::Status(args) => daemon::status::main(&args),
        Command::Jobs(args) => daemon::jobs::main(&args),
        Command::Adopt(args) => daemon::wishes::adopt(&args),
        Command::Switch(args) => daemon::wishes::switch(&args),
        Command::End(args) => daemon::wishes::end(&args),
        Command::Sim(args) => sim::main(&args),
        Command::Keep(args) => run::keep::main(&args),
        Command::Hog(args) => bench::hog(&args),
        Command::ExecPinned(args) => bench::exec_pinned(&args),
    };
    outcome.unwrap_or_else(|error| fault::report(&error))
}
