// SPDX-License-Identifier: Apache-2.0
//! Holding the order of arms in simulations to the one that was measured.
//!
//! Where seconds cannot be compared (a guest under emulation) orders can: beside as many hogs the arms of a program are put into the
//! order of T on both sides, measured and simulated. Arms whose intervals of the median overlap, or whose medians are nearly the
//! same, are a tie on that side (`cosched_sim::order`). Each pair in opposite orders is named with its times.

use super::validate::{interval, times, Cell, Program};
use anyhow::Result;
use cosched_sim::order::{agreement, Agreement, MARGIN};
use std::fmt::Write;

/// The arms of one program beside as many hogs.
struct Level<'a> {
    hogs: u32,
    cells: Vec<&'a Cell>,
    found: Agreement,
}

/// Each level of hogs but 0, in order.
fn levels(program: &Program) -> Vec<Level<'_>> {
    let mut hogs: Vec<u32> = program.cells.iter().map(|cell| cell.hogs).collect();
    hogs.sort_unstable();
    hogs.dedup();
    hogs.retain(|hogs| *hogs > 0);
    let level = |hogs: u32| {
        let here = program.cells.iter().filter(|cell| cell.hogs == hogs);
        let cells: Vec<&Cell> = here.collect();
        let side = |of: fn(&Cell) -> &[f64]| -> Vec<_> {
            cells.iter().filter_map(|cell| interval(of(cell))).collect()
        };
        let found = agreement(&side(|it| &it.measured_s), &side(|it| &it.simulated_s));
        Level { hogs, cells, found }
    };
    hogs.into_iter().map(level).collect()
}

/// How many pairs are in opposite orders, over all programs.
pub fn discordant(programs: &[Program]) -> usize {
    let levels = programs.iter().flat_map(levels);
    levels.map(|level| level.found.discordant.len()).sum()
}

/// The section of docs/validation.md.
pub fn text(programs: &[Program]) -> Result<String> {
    let all: Vec<Level> = programs.iter().flat_map(levels).collect();
    let sum = |of: fn(&Agreement) -> usize| all.iter().map(|level| of(&level.found)).sum::<usize>();
    let mut text = format!(
        "\n## The order of presets under our scheduler\n\n\
         Kernel body in a guest against its model; what was measured, and how, is in [experiments/guest](../experiments/guest/README.md). Presets whose \
         intervals overlap or whose medians are within {} % are a tie.\n\n\
         **Of {} pairs of presets {} are in the same order on both sides, {} are ties on both, {} on one side only, {} are in opposite orders.**\n\n\
         | program | hogs per CPU | pairs | same order | ties on both | tie on one | opposite | Kendall's tau |\n|---|---|---|---|---|---|---|---|\n",
        100.0 * MARGIN,
        sum(Agreement::pairs),
        sum(|it| it.ordered),
        sum(|it| it.tied),
        sum(|it| it.open),
        sum(|it| it.discordant.len()),
    );
    for program in programs {
        for level in levels(program) {
            writeln!(text, "| {} | {}", program.name, row(&level))?;
        }
    }
    for program in programs {
        write!(text, "\n### {}\n\n{}", program.name, table(program))?;
    }
    Ok(text)
}

fn row(level: &Level) -> String {
    let it = &level.found;
    let tau = it.tau().map_or("-".to_owned(), |tau| format!("{tau:.2}"));
    format!(
        "{} | {} | {} | {} | {} | {} | {tau} |",
        level.hogs,
        it.pairs(),
        it.ordered,
        it.tied,
        it.open,
        it.discordant.len(),
    )
}

/// Arms by their measured time, and below the pairs that are the other way round in the simulator.
fn table(program: &Program) -> String {
    let mut text =
        String::from("| hogs per CPU | arm | measured | simulated |\n|---|---|---|---|\n");
    let mut opposite = String::new();
    for level in levels(program) {
        let mut cells = level.cells.clone();
        cells.sort_by(|a, b| a.measured().total_cmp(&b.measured()));
        for cell in cells {
            text += &format!(
                "| {} | {} | {} | {} |\n",
                cell.hogs,
                cell.arm,
                times(&cell.measured_s),
                times(&cell.simulated_s),
            );
        }
        for (less, more) in &level.found.discordant {
            let (less, more) = (&level.cells[*less].arm, &level.cells[*more].arm);
            opposite += &format!(
                "- {} hogs: measured {less} before {more}, simulated the other way round\n",
                level.hogs
            );
        }
    }
    if !opposite.is_empty() {
        text += &format!("\nIn opposite orders:\n\n{opposite}");
    }
    text
}
