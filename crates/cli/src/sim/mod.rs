// SPDX-License-Identifier: Apache-2.0
//! `cosched sim`: experiments on a simulated cluster, from their files to verdicts.
//!
//! One module per action: `run` makes a record, `check` judges its claims, `trace` shows one
//! schedule, `bench` measures the simulator, `figure` draws and writes from the record alone, `validate`
//! holds records to measurements of the same cases, and `order` their order.
//! What an experiment, a record and a verdict are is the simulator's business
//! (`cosched_sim::experiment`); here are files, progress and words.

mod bench;
mod check;
mod claims;
mod figure;
mod folder;
mod live;
mod order;
mod run;
mod trace;
mod validate;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// Simulate experiments and judge their claims
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Run(run::Args),
    Check(check::Args),
    Trace(trace::Args),
    Bench(bench::Args),
    Figure(figure::Args),
    Validate(validate::Args),
}

/// Does what `args` say; exit 1 where a claim that must hold does not.
pub fn main(args: &Args) -> Result<ExitCode> {
    match &args.action {
        Action::Run(args) => run::main(args),
        Action::Check(args) => check::main(args),
        Action::Trace(args) => trace::main(args),
        Action::Bench(args) => bench::main(args),
        Action::Figure(args) => figure::main(args),
        Action::Validate(args) => validate::main(args),
    }
}
