// SPDX-License-Identifier: Apache-2.0
//! `cosched bench`: one job under several arms and levels of competition, in one interleaved run.
//!
//! The parts, in the order in which a run meets them:
//!
//!   vm         --vm: all of it in a guest
//!   options    what was asked, turned into a plan and a machine that can run it
//!   plan       the cells and their shuffled order
//!   series     goes through them, repeats what was disturbed
//!   execute    runs one cell: scheduler, child (processes), hog, sleeper, cpus, launch, workload, arm
//!   sample     what one run gave;  record: writes it to CSV
//!   fair, ideal   the fair limit;  verdict: T, S, F, waste
//!   table, plot   show it
//!
//! Everything competes in the session of the bench. With autogroup the kernel shares a CPU between
//! sessions first; since `calcula` is started in exactly the job's way, the fair limit knows.

mod arm;
mod child;
mod cpus;
mod execute;
mod fair;
mod hog;
mod ideal;
mod launch;
mod options;
mod plan;
mod plot;
mod record;
mod sample;
mod scheduler;
mod series;
mod sleeper;
mod table;
mod verdict;
mod vm;
mod workload;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::fair::Fair;
use self::plan::{Plan, Work};
use self::record::Record;
use self::series::{Sample, Series};
use self::verdict::Line;
use crate::say::say;

pub use self::cpus::PinArgs;
pub use self::hog::HogArgs;
pub use self::options::Args;

/// What a shell says of a command that ^C ended.
const INTERRUPTED: u8 = 130;

/// Measures, and shows what came out.
pub fn main(args: &Args) -> Result<ExitCode> {
    if args.vm.wanted() {
        return vm::main(args);
    }
    child::adopt_orphans()?;
    let (plan, mut machine) = args.prepare()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&machine.stop))?;
    }
    let path = args.csv.clone().unwrap_or_else(Record::default_path);
    let mut record = Record::create(&path, args.provenance(&plan, &machine))?;
    let nr_cells = plan.order().len();
    // Its terminal is on the host: no bar, but a line for each run.
    let in_guest = args.vm.emulator().is_some();
    let bar = progress_bar(nr_cells);
    let mut note = |sample: &Sample, done: usize| {
        let what = describe(sample);
        if in_guest {
            eprintln!("{done}/{nr_cells}: {what}");
        }
        bar.set_message(what);
        bar.set_position(done as u64);
        record.add(sample)
    };
    let series = series::run(&plan, args.max_foreign.0, &mut machine, &mut note)?;
    bar.finish_and_clear();
    if series.interrupted {
        let done = series.samples.len();
        eprintln!("cosched bench: interrupted after {done} of {nr_cells} runs");
    }
    let fair = Fair::measure(&plan, &series, machine.ranks, machine.cpus.0.len());
    let lines = verdict::judge(&plan, &series, fair.as_ref());
    show(args, &plan, &series, fair.as_ref(), &lines)?;
    if !in_guest {
        eprintln!("cosched bench: every sample is in {}", path.display());
    }
    if let Some(figure) = &args.plot {
        plot::draw(figure, &args.title(&machine), &lines)?;
    }
    Ok(
        match (
            series.interrupted,
            lines.iter().any(|line| line.failed.is_some()),
        ) {
            (true, _) => ExitCode::from(INTERRUPTED),
            (_, true) => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        },
    )
}

fn show(
    args: &Args,
    plan: &Plan,
    series: &Series,
    fair: Option<&Fair>,
    lines: &[Line],
) -> Result<()> {
    let time_source = args.time_source(series);
    if args.json {
        let all = serde_json::json!({
            "time": time_source,
            "seed": plan.seed,
            "fair": fair,
            "repeated_runs": series.nr_repeated,
            "interrupted": series.interrupted,
            "lines": lines,
        });
        return say(serde_json::to_string_pretty(&all).context("cannot write JSON")?);
    }
    if lines.is_empty() {
        return Ok(());
    }
    let legend = table::legend(lines, fair, time_source, series.nr_repeated);
    say((table::render(lines) + &legend).trim_end())
}

/// On a terminal; silent elsewhere.
fn progress_bar(cells: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(cells as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left; last: {wide_msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_secs(1));
    bar
}

fn describe(sample: &Sample) -> String {
    let what = match &sample.cell.work {
        Work::Arm(arm) => arm.to_string(),
        Work::Probe(_) => "calcula".to_owned(),
        Work::Beside(_) => "alone".to_owned(),
    };
    let time_s = sample
        .outcome
        .programs
        .first()
        .map_or(0.0, |program| program.time_s());
    let again = if sample.kept {
        ""
    } else {
        ", disturbed: again"
    };
    format!(
        "{what} at {} hogs/CPU {time_s:.3} s{again}",
        sample.cell.hogs
    )
}

/// The hidden sub-command that is a hog.
pub fn hog(args: &HogArgs) -> Result<ExitCode> {
    hog::run(args).map(|()| ExitCode::SUCCESS)
}

/// The hidden sub-command that pins a program.
pub fn exec_pinned(args: &PinArgs) -> Result<ExitCode> {
    cpus::exec_pinned(args).map(|()| ExitCode::SUCCESS)
}
