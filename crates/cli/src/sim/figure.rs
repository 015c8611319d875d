// SPDX-License-Identifier: Apache-2.0
//! Figures and READMEs, from records alone.
//!
//! Each `[[figure]]` of an experiment becomes an SVG: a metric over one factor, one line for each
//! level of another, means with Student's 90 % intervals. The README shows question, figures, verdicts
//! beside what the paper says, the numbers drawn, and where they come from. Nothing is simulated here.

use super::check::{sensitivity, verdicts, word};
use super::claims;
use super::folder::Folder;
use super::live;
use crate::plot::{self, bounds, panel, Axes, Curve};
use anyhow::{Context, Result};
use cosched_sim::experiment::sweep::{lets_in, Selection};
use cosched_sim::experiment::{metrics, Claim, Figure, Judged, Record};
use cosched_sim::statistics;
use plotters::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Draw figures and write READMEs from records
#[derive(clap::Args)]
pub struct Args {
    /// Folders with an experiment.toml and a record
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Write the verdicts on the claims of all papers there
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
}

/// What is drawn.
struct Drawing<'a> {
    figure: &'a Figure,
    /// Names of the levels along the axis, and where they are.
    ticks: Vec<(f64, String)>,
    curves: Vec<Curve>,
}

impl Drawing<'_> {
    /// What stands at `x`: a number, or the name of the level there.
    fn tick(&self, x: f64) -> String {
        let named = self.ticks.iter().any(|(_, name)| number(name).is_none());
        let here = self
            .ticks
            .iter()
            .find(|(place, _)| (place - x).abs() < 1e-6);
        match (named, here) {
            (true, here) => here.map(|(_, name)| name.clone()).unwrap_or_default(),
            (false, _) => format!("{x}"),
        }
    }
}

/// Writes into the folders.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut folders = Vec::new();
    for dir in &args.dirs {
        let folder = Folder::open(dir, false)?;
        one(&folder)?;
        folders.push(folder);
    }
    if let Some(path) = &args.claims {
        write(path, &claims::text(&folders)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn one(folder: &Folder) -> Result<()> {
    let record = folder.whole()?;
    let drawings = folder
        .experiment
        .figures
        .iter()
        .map(|figure| drawing(folder, &record, figure));
    let drawings: Vec<Drawing> = drawings.collect();
    for drawing in &drawings {
        let path = folder.dir.join(format!("{}.svg", drawing.figure.name));
        draw(&path, drawing)?;
    }
    write(
        &folder.dir.join("README.md"),
        &readme(folder, &record, &drawings)?,
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn drawing<'a>(folder: &Folder, record: &Record, figure: &'a Figure) -> Drawing<'a> {
    let experiment = &folder.experiment;
    let names = |factor: &str| -> Vec<String> {
        let levels = experiment
            .factor(factor)
            .map(|f| f.levels())
            .unwrap_or_default();
        levels.into_iter().map(|level| level.name).collect()
    };
    let xs = names(&figure.x);
    let places: Option<Vec<f64>> = xs.iter().map(|name| number(name)).collect();
    let places = places.unwrap_or_else(|| (0..xs.len()).map(|i| i as f64).collect());
    let mut at = figure.at.clone();
    if let Some(factor) = &experiment.sensitivity {
        let first = names(factor).into_iter().next().unwrap_or_default();
        let free = *factor == figure.x || *factor == figure.series || at.contains_key(factor);
        if !free {
            at.insert(factor.clone(), first.into());
        }
    }
    let point = |series: &str, (x, place): (&String, &f64)| {
        let mut here: Selection = at.clone();
        here.insert(figure.x.clone(), x.as_str().into());
        here.insert(figure.series.clone(), series.into());
        let values = values(folder, record, figure, &here);
        statistics::mean(&values).map(|mean| (*place, mean))
    };
    let series = names(&figure.series)
        .into_iter()
        .filter(|name| lets_series(figure, name));
    let curves = series.map(|name| Curve {
        points: xs
            .iter()
            .zip(&places)
            .filter_map(|x| point(&name, x))
            .collect(),
        name,
    });
    Drawing {
        figure,
        curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
        ticks: places.iter().copied().zip(xs).collect(),
    }
}

fn lets_series(figure: &Figure, level: &str) -> bool {
    let wanted = figure.at.get(&figure.series);
    wanted.is_none_or(|wanted| {
        cosched_sim::experiment::sweep::selected(wanted)
            .iter()
            .any(|name| name == level)
    })
}

fn values(folder: &Folder, record: &Record, figure: &Figure, at: &Selection) -> Vec<f64> {
    let metric = metrics::named(&figure.metric).unwrap_or(0);
    let points = folder
        .plan
        .points
        .iter()
        .filter(|point| lets_in(&folder.experiment.factors, at, &point.levels));
    points
        .flat_map(|point| record.values(&point.levels, &figure.job, metric))
        .collect()
}

/// A level that is a number has its place on the axis by its value; others stand side by side.
fn number(name: &str) -> Option<f64> {
    name.parse().ok()
}

fn draw(path: &Path, drawing: &Drawing) -> Result<()> {
    let places = drawing.ticks.iter().map(|(place, _)| *place);
    let (first, last) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
        (a.min(x), b.max(x))
    });
    let pad = ((last - first) * 0.05).max(0.2);
    let figure = drawing.figure;
    let axes = Axes {
        x: &figure.x,
        y: &format!("{} of {}", figure.metric, figure.job),
        places: first - pad..last + pad,
        labels: drawing.ticks.len().clamp(2, 12),
        label: &|x| drawing.tick(x),
        legend: true,
    };
    let curves = &drawing.curves;
    let means = curves.iter().flat_map(|curve| &curve.points);
    let low = means
        .map(|(_, mean)| mean.value)
        .fold(f64::INFINITY, f64::min);
    let high = bounds(curves).1;
    plot::write(path, (760, 440), &figure.title, |body| {
        if figure.log && low > 0.0 {
            let scale = (low * 0.7..high * 2.0).log_scale();
            panel(body, &axes, scale, curves, None)
        } else {
            let scale = 0.0..high.max(f64::MIN_POSITIVE) * 1.25;
            panel(body, &axes, scale, curves, None)
        }
    })
}

fn readme(folder: &Folder, record: &Record, drawings: &[Drawing]) -> Result<String> {
    let (it, name) = (&folder.experiment, folder.name());
    let mut text = format!(
        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# {name}\n\n{}\n\nSource: {}.\n",
        it.question, it.source
    );
    for drawing in drawings {
        let figure = drawing.figure;
        writeln!(
            text,
            "\n![{}]({}.svg)\n\n{}",
            figure.title,
            figure.name,
            numbers(drawing)
        )?;
    }
    writeln!(
        text,
        "\n## Verdicts\n\n{}",
        verdict_table(&verdicts(folder)?)
    )?;
    text += &live::section(folder)?;
    if !it.deviations.is_empty() {
        writeln!(text, "\n## Assumptions and deviations\n")?;
        for deviation in &it.deviations {
            writeln!(text, "- {deviation}")?;
        }
    }
    let mut revisions: Vec<&str> = record
        .rows
        .iter()
        .map(|row| row.revision.as_str())
        .collect();
    revisions.sort_unstable();
    revisions.dedup();
    writeln!(
        text,
        "\n## Again\n\n`cosched sim run experiments/{name} && cosched sim check experiments/{name}`\n\n\
         {} points, {} replications each, seed {}; recorded by revision {}. Means with Student's 90 % intervals; \
         every value is in `record.csv`. Generated from it by `cargo xtask figure`.",
        folder.plan.points.len(),
        folder.plan.replications,
        it.seed,
        revisions.join(", ")
    )?;
    Ok(text)
}

/// The numbers of a figure.
fn numbers(drawing: &Drawing) -> String {
    let figure = drawing.figure;
    let mut text = format!(
        "| {} by {} | {} |\n",
        figure.metric,
        figure.x,
        column(drawing, |curve| curve.name.clone())
    );
    text += &format!("|---|{}\n", "---|".repeat(drawing.curves.len()));
    for (place, name) in &drawing.ticks {
        let cell = |curve: &Curve| {
            let point = curve.points.iter().find(|(x, ..)| x == place);
            point
                .map(|(_, mean)| format!("{:.4} ± {:.4}", mean.value, mean.high - mean.value))
                .unwrap_or_default()
        };
        text += &format!("| {name} | {} |\n", column(drawing, cell));
    }
    text
}

fn column(drawing: &Drawing, cell: impl Fn(&Curve) -> String) -> String {
    drawing
        .curves
        .iter()
        .map(cell)
        .collect::<Vec<_>>()
        .join(" | ")
}

/// A line for each claim.
pub fn verdict_table(verdicts: &[(&Claim, Judged)]) -> String {
    let mut text =
        String::from("| claim | verdict | from | unstated parameters |\n|---|---|---|---|\n");
    for (claim, judged) in verdicts {
        let must = if claim.must_hold { " (must hold)" } else { "" };
        let finding = claim
            .finding
            .as_ref()
            .map(|why| format!(" {why}"))
            .unwrap_or_default();
        text += &format!(
            "| {}: {} | {}{must} | {}.{finding} | {} |\n",
            claim.id,
            claim.text,
            word(judged.verdict),
            judged.evidence,
            sensitivity(judged)
        );
    }
    text
}
