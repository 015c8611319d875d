// SPDX-License-Identifier: Apache-2.0
//! cargo xtask: every step of working on cosched, the same here and in CI.
//!
//! This file only names the steps; each is one module. What cargo can do itself
//! is left to cargo.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod build;
mod tree;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Every step of working on cosched")]
struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Build the workspace, the shim and, for each MPI found, the workloads (release)
    Build,
}

fn main() -> ExitCode {
    let step = Args::parse().step;
    let done = tree::Tree::find().and_then(|tree| match step {
        Step::Build => build::all(&tree),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(tree::exit_code(&error))
        }
    }
}
