// SPDX-License-Identifier: Apache-2.0
//! `cosched doctor`: what this machine offers.

use anyhow::{Context, Result};
use std::{fs, process::ExitCode};

/// Say what this machine offers, and what is missing
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Prints one line per fact.
pub fn main(args: &Args) -> Result<ExitCode> {
    let path = "/proc/sys/kernel/osrelease";
    let release = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    if args.json {
        println!("{}", serde_json::json!({ "kernel": release.trim() }));
    } else {
        println!("kernel {}", release.trim());
    }
    Ok(ExitCode::SUCCESS)
}
