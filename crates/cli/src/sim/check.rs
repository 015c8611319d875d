// SPDX-License-Identifier: Apache-2.0
//! Judging claims by the records alone.
//!
//! One line per claim: its verdict, what it comes from, and where the unstated parameters change
//! it. Exit 1 where a claim that must hold does not, or cannot be judged.

use super::folder::Folder;
use crate::say::say;
use anyhow::Result;
use comfy_table::{presets::NOTHING, ContentArrangement, Table};
use cosched_sim::experiment::{judge, Claim, Judged, Verdict};
use std::path::PathBuf;
use std::process::ExitCode;

/// Judge the claims of experiments by their records
#[derive(clap::Args)]
pub struct Args {
    /// Folders with an experiment.toml and a record
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Judge quick.csv
    #[arg(long)]
    quick: bool,
}

/// Prints verdicts on stdout.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut broken = Vec::new();
    for dir in &args.dirs {
        let folder = Folder::open(dir, args.quick)?;
        let verdicts = verdicts(&folder)?;
        let (name, question) = (folder.name(), &folder.experiment.question);
        say(format_args!("{name}: {question}\n{}\n", table(&verdicts)))?;
        let wrong = verdicts
            .iter()
            .filter(|(claim, judged)| is_broken(claim, judged));
        broken.extend(wrong.map(|(claim, _)| format!("{} {}", folder.name(), claim.id)));
    }
    if broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "cosched: claims that must hold do not: {}",
        broken.join(", ")
    );
    Ok(ExitCode::from(1))
}

/// Every claim of `folder` with its verdict, from its record.
pub fn verdicts(folder: &Folder) -> Result<Vec<(&Claim, Judged)>> {
    let record = folder.whole()?;
    let judged = |claim| {
        (
            claim,
            judge(&folder.experiment, &folder.plan, &record, claim),
        )
    };
    Ok(folder.experiment.claims.iter().map(judged).collect())
}

/// A claim that must hold and does not.
pub fn is_broken(claim: &Claim, judged: &Judged) -> bool {
    claim.must_hold && judged.verdict != Verdict::Holds
}

/// In one word, or two.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Unjudged => "not judged",
    }
}

/// How far the verdict depends on what is unstated; nothing where nothing was varied.
pub fn sensitivity(judged: &Judged) -> String {
    let all = judged.elsewhere.len();
    let others = judged
        .elsewhere
        .iter()
        .filter(|(_, verdict)| *verdict != judged.verdict);
    let others: Vec<&str> = others.map(|(level, _)| level.as_str()).collect();
    match (all, others.len()) {
        (0, _) => String::new(),
        (_, 0) => format!("same in all {all} variants"),
        (_, n) => format!(
            "same in {} of {all} variants, not in: {}",
            all - n,
            others.join(", ")
        ),
    }
}

fn table(verdicts: &[(&Claim, Judged)]) -> String {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["CLAIM", "VERDICT", "WHAT", "FROM", "UNSTATED PARAMETERS"]);
    for (claim, judged) in verdicts {
        let must = if claim.must_hold { " (must hold)" } else { "" };
        let verdict = format!("{}{must}", word(judged.verdict));
        table.add_row([
            claim.id.clone(),
            verdict,
            claim.text.clone(),
            judged.evidence.clone(),
            sensitivity(judged),
        ]);
    }
    table.trim_fmt()
}
