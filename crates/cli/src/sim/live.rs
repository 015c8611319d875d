// SPDX-License-Identifier: Apache-2.0
//! What was measured on a running Linux, for the README of an experiment: how, the numbers, the verdicts.

use super::figure::verdict_table;
use super::folder::Folder;
use crate::fault::Fault;
use anyhow::Result;
use cosched_sim::experiment::claim::Values;
use cosched_sim::experiment::{Live, Measured};
use cosched_sim::statistics::Statistic;
use std::fmt::Write;

/// Nothing where nothing was measured.
pub fn section(folder: &Folder) -> Result<String> {
    let Some((live, measured)) = folder.live()? else {
        return Ok(String::new());
    };
    let verdicts = live.judge(&measured).map_err(Fault::Usage)?;
    let mut text = String::from("\n## On a running Linux\n\n");
    for line in &live.measured {
        writeln!(text, "- {line}")?;
    }
    write!(
        text,
        "\n{}\n{}\nMedians; every value is in `live.csv`.\n",
        verdict_table(&verdicts),
        numbers(&live, &measured)?
    )?;
    Ok(text)
}

/// What the claims are about, at each point.
fn numbers(live: &Live, measured: &Measured) -> Result<String> {
    let claims = live.claims.iter();
    let mut columns: Vec<(&str, &str)> = claims
        .map(|claim| (claim.job.as_str(), claim.metric.as_str()))
        .collect();
    columns.sort_unstable();
    columns.dedup();
    let factors = live.factors.iter().map(|factor| factor.name.clone());
    let names = columns
        .iter()
        .map(|(job, metric)| format!("{job}: {metric}"));
    let head: Vec<String> = factors.chain(names).collect();
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for levels in live.points(measured).map_err(Fault::Usage)? {
        let median = |(job, metric): &(&str, &str)| {
            let value = Statistic::Median.of(&measured.of(&levels, job, metric));
            value.map(|value| format!("{value:.3}")).unwrap_or_default()
        };
        let cells: Vec<String> = levels
            .iter()
            .cloned()
            .chain(columns.iter().map(median))
            .collect();
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    Ok(text)
}
