// SPDX-License-Identifier: Apache-2.0
//! cargo xtask: every step of working on cosched, the same here and in CI.
//!
//! This file only names the steps; each is one module. What cargo can do itself
//! is left to cargo.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod build;
mod check;
mod demo;
mod experiments;
mod figure;
mod install;
mod mpis;
mod rooms;
mod setup;
mod soak;
mod suite;
mod test;
mod tree;
mod vm;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Every step of working on cosched")]
struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Install the Debian packages that are missing (as root)
    Setup,
    /// Build the workspace, the shim and, for each MPI found, the workloads (release)
    Build,
    /// Format, lints, licences, lengths, and who may know whom
    Check,
    /// Check, build, and run every test; the last line counts
    Test,
    /// Kill coschedd in a guest again and again, and stress another (as root; four seconds a kill)
    Soak {
        /// How often to kill; 0: not at all
        #[arg(long, value_name = "N", default_value_t = 1000)]
        kills: u32,
        /// For how long to stress; 0: not at all
        #[arg(long, value_name = "SECONDS", default_value_t = 600)]
        stress: u32,
    },
    /// Set up, build, and show LAMMPS beside other work (about five minutes)
    Demo,
    /// Draw the figures of all experiments and write their READMEs and docs/claims.md, from their records
    Figure,
    /// Unpack newer MPIs from newer Debian suites into target/mpis (no root needed)
    Mpis {
        /// Which suites
        #[arg(default_values = mpis::SUITES)]
        suites: Vec<String>,
    },
    /// Fetch a kernel with sched_ext into target/vm, or run a command in a guest with it (as root)
    Vm {
        #[command(subcommand)]
        what: vm::What,
    },
    /// Build, and copy to PREFIX/bin and PREFIX/lib/cosched
    Install {
        /// Where to
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
    },
}

fn main() -> ExitCode {
    let step = Args::parse().step;
    match tree::Tree::find().and_then(|tree| take(&tree, step)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(tree::exit_code(&error))
        }
    }
}

fn take(tree: &tree::Tree, step: Step) -> anyhow::Result<ExitCode> {
    match step {
        Step::Setup => setup::all(),
        Step::Build => build::all(tree),
        Step::Check => check::all(tree),
        Step::Test => test::all(tree),
        Step::Soak { kills, stress } => soak::all(tree, kills, stress),
        Step::Demo => demo::all(tree),
        Step::Figure => experiments::figures(tree),
        Step::Mpis { suites } => mpis::all(tree, &suites),
        Step::Vm {
            what: vm::What::Prepare,
        } => vm::prepare(tree),
        Step::Vm {
            what: vm::What::Run(command),
        } => return vm::run(tree, &command),
        Step::Install { prefix } => install::all(tree, &prefix),
    }?;
    Ok(ExitCode::SUCCESS)
}
