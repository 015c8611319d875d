// SPDX-License-Identifier: Apache-2.0
//! Holding simulations to measurements of the same cases.
//!
//! An experiment that simulates what `cosched bench` measured has factors `hogs` and `arm`, named as
//! the bench names them, a job of the folder's name, and the bench's samples in `measured.csv` beside its
//! record. A cell's error is |T simulated / T measured - 1|, both medians. Cells without a hog show whether the
//! speed of the program is right, and those of `--calibration` were used to set parameters: neither is judged.
//! Of the folders of `--order` not the times are held to each other, but the order of arms (order.rs).

use super::folder::Folder;
use super::order;
use crate::fault::Fault;
use crate::plot::{self, bounds, panel, Axes, Curve};
use crate::say::say;
use anyhow::{Context, Result};
use cosched_sim::experiment::metrics;
use cosched_sim::statistics::{summarise, Estimate, Statistic};
use plotters::prelude::IntoLogRange;
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Hold simulations to measurements by `cosched bench`
#[derive(clap::Args)]
pub struct Args {
    /// Folders with an experiment.toml, its record and measured.csv
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Of these, show the cells and judge none
    #[arg(long, value_name = "NAME")]
    calibration: Vec<String>,
    /// In this folder hold the order of arms to what was measured; may be given several times
    #[arg(long, value_name = "DIR")]
    order: Vec<PathBuf>,
    /// So many pairs of arms may be in opposite orders
    #[arg(long, value_name = "N", default_value_t = 0)]
    opposite: usize,
    /// Judge quick.csv
    #[arg(long)]
    quick: bool,
    /// The median error of the judged cells that is still good, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    at_most: f64,
    /// Write it there, in Markdown, instead of on stdout, and draw validated.svg in each folder
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// A row of the bench's samples, as far as it matters here.
#[derive(Deserialize)]
struct Measured {
    arm: String,
    hogs_per_cpu: u32,
    role: String,
    counts: bool,
    exit: String,
    own_s: Option<f64>,
}

/// One case: all its times, measured and simulated, sorted.
pub(super) struct Cell {
    pub hogs: u32,
    pub arm: String,
    pub measured_s: Vec<f64>,
    pub simulated_s: Vec<f64>,
}

impl Cell {
    /// The median.
    pub(super) fn measured(&self) -> f64 {
        median(&self.measured_s)
    }

    fn error(&self) -> f64 {
        median(&self.simulated_s) / median(&self.measured_s) - 1.0
    }
}

pub(super) struct Program {
    pub name: String,
    /// `reality/barrier`.
    folder: String,
    /// Its cells with hogs count.
    judged: bool,
    pub cells: Vec<Cell>,
}

/// Exit 1 where the median error is above the limit, or too many pairs are in opposite orders.
pub fn main(args: &Args) -> Result<ExitCode> {
    let read = |dirs: &[PathBuf]| -> Result<Vec<_>> {
        dirs.iter().map(|dir| program(dir, args)).collect()
    };
    let (programs, ordered) = (read(&args.dirs)?, read(&args.order)?);
    let errors = errors(&programs);
    if errors.is_empty() {
        return Err(
            Fault::Usage("no cell is judged: name a folder that is no calibration".into()).into(),
        );
    }
    let mut text = text(&programs, &errors, args.at_most)?;
    if !ordered.is_empty() {
        text += &order::text(&ordered)?;
    }
    if args.write.is_some() {
        for (dir, program) in args.dirs.iter().zip(&programs) {
            draw(dir, program)?;
        }
    }
    match &args.write {
        Some(path) => std::fs::write(path, &text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => say(text.trim_end())?,
    }
    let near = 100.0 * median(&errors) <= args.at_most;
    let same = order::discordant(&ordered) <= args.opposite;
    Ok(ExitCode::from(u8::from(!(near && same))))
}

fn program(dir: &Path, args: &Args) -> Result<Program> {
    let folder = Folder::open(dir, args.quick)?;
    let name = folder
        .name()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let record = folder.whole()?;
    let measured = measured(&dir.join("measured.csv"))?;
    let [hogs, arm] = ["hogs", "arm"].map(|name| {
        folder
            .experiment
            .factors
            .iter()
            .position(|f| f.name == name)
    });
    let (Some(hogs), Some(arm)) = (hogs, arm) else {
        return Err(Fault::Usage(format!("{}: write factors hogs and arm", dir.display())).into());
    };
    let response = metrics::named("response_s").unwrap_or(0);
    let cells = folder.plan.points.iter().map(|point| {
        let levels = &point.levels;
        let here =
            |it: &&Measured| it.arm == levels[arm] && it.hogs_per_cpu.to_string() == levels[hogs];
        let times = measured.iter().filter(here).filter_map(|it| it.own_s);
        Cell {
            hogs: levels[hogs].parse().unwrap_or(0),
            arm: levels[arm].clone(),
            measured_s: sorted(times.collect()),
            simulated_s: sorted(record.values(levels, &name, response)),
        }
    });
    let cells: Vec<Cell> = cells.collect();
    if let Some(cell) = cells
        .iter()
        .find(|cell| cell.measured_s.is_empty() || cell.simulated_s.is_empty())
    {
        let why = format!(
            "{}: {} beside {} hogs was not measured, or not simulated",
            dir.display(),
            cell.arm,
            cell.hogs
        );
        return Err(Fault::Usage(why).into());
    }
    Ok(Program {
        folder: folder.name(),
        judged: !args.calibration.contains(&name),
        name,
        cells,
    })
}

/// The runs of the job that count.
fn measured(path: &Path) -> Result<Vec<Measured>> {
    let usage = |error: csv::Error| Fault::Usage(format!("{}: {error}", path.display()));
    let mut reader = csv::Reader::from_path(path).map_err(usage)?;
    let rows = reader
        .deserialize()
        .collect::<Result<Vec<Measured>, _>>()
        .map_err(usage)?;
    let counts = |row: &Measured| row.role == "job" && row.counts && row.exit == "0";
    Ok(rows.into_iter().filter(counts).collect())
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: &[f64]) -> f64 {
    Statistic::Median.of(values).unwrap_or(f64::NAN)
}

/// Of each judged cell, without sign, sorted.
fn errors(programs: &[Program]) -> Vec<f64> {
    let judged = programs.iter().filter(|program| program.judged);
    let cells = judged
        .flat_map(|program| &program.cells)
        .filter(|cell| cell.hogs > 0);
    sorted(cells.map(|cell| cell.error().abs()).collect())
}

fn text(programs: &[Program], errors: &[f64], at_most: f64) -> Result<String> {
    let worse = errors
        .iter()
        .filter(|error| 100.0 * **error > at_most)
        .count();
    let mut text = format!(
        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# The simulator, held to a real machine\n\n\
         Generated by `cosched sim validate`; what was measured, and how, is in [experiments/reality](../experiments/reality/README.md).\n\n\
         **Median error of the {} judged cells: {:.0} %** (goal: at most {at_most} %); {worse} of them are worse than that, the worst by {:.0} %.\n\n\
         Times are in seconds: medians with their intervals. An error is T simulated / T measured - 1.\n",
        errors.len(),
        100.0 * median(errors),
        100.0 * errors.last().unwrap_or(&f64::NAN),
    );
    for program in programs {
        let role = if program.judged {
            "judged"
        } else {
            "used for calibration, not judged"
        };
        write!(
            text,
            "\n## {}: {role}\n\n![{}](../experiments/{}/validated.svg)\n\n{}",
            program.name,
            program.name,
            program.folder,
            table(program, at_most)
        )?;
    }
    Ok(text)
}

fn table(program: &Program, at_most: f64) -> String {
    let mut text = String::from(
        "| hogs per CPU | arm | measured | simulated | error |\n|---|---|---|---|---|\n",
    );
    for cell in &program.cells {
        let error = 100.0 * cell.error();
        let (mark, note) = match (cell.hogs, error.abs() > at_most) {
            (0, _) => ("", " (not judged)"),
            (_, true) => ("**", ""),
            _ => ("", ""),
        };
        text += &format!(
            "| {} | {} | {} | {} | {mark}{error:+.0} %{mark}{note} |\n",
            cell.hogs,
            cell.arm,
            times(&cell.measured_s),
            times(&cell.simulated_s),
        );
    }
    text
}

pub(super) fn times(values: &[f64]) -> String {
    interval(values).map_or(String::new(), |it| {
        format!("{:.3} ({:.3}-{:.3})", it.value, it.low, it.high)
    })
}

/// The median with its interval.
pub(super) fn interval(values: &[f64]) -> Option<Estimate> {
    Some(summarise(values)?.median)
}

/// Measured and simulated times of each arm over hogs.
fn draw(dir: &Path, program: &Program) -> Result<()> {
    let mut curves: Vec<Curve> = Vec::new();
    for cell in &program.cells {
        let sides = [
            ("measured", &cell.measured_s),
            ("simulated", &cell.simulated_s),
        ];
        for (side, values) in sides {
            let name = format!("{}, {side}", cell.arm);
            let at = interval(values).map(|it| (f64::from(cell.hogs), it));
            match curves.iter_mut().find(|curve| curve.name == name) {
                Some(curve) => curve.points.extend(at),
                None => curves.push(Curve {
                    name,
                    points: at.into_iter().collect(),
                }),
            }
        }
    }
    let most = program
        .cells
        .iter()
        .map(|cell| cell.hogs)
        .max()
        .unwrap_or(1);
    let axes = Axes {
        x: "hogs per CPU",
        y: "time in s",
        places: -0.2..f64::from(most) + 0.2,
        labels: most as usize + 1,
        label: &|x| format!("{x}"),
        legend: true,
    };
    let (low, high) = bounds(&curves);
    plot::write(
        &dir.join("validated.svg"),
        (760, 440),
        &program.name,
        |body| {
            panel(
                body,
                &axes,
                (low * 0.7..high * 4.0).log_scale(),
                &curves,
                None,
            )
        },
    )
}
