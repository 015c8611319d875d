// SPDX-License-Identifier: Apache-2.0
//! The table: the verdict for people. The numbers are medians; `--json` has everything.

use comfy_table::{presets, CellAlignment, ContentArrangement, Table};
use cosched_sim::statistics::Estimate;

use super::fair::Fair;
use super::scheduler::Scheduler;
use super::verdict::Line;

/// A column: its title and what it says of a line; empty = unknown.
type Column = (&'static str, fn(&Line) -> String);

const COLUMNS: [Column; 15] = [
    ("hogs/CPU", |line| line.hogs.to_string()),
    ("arm", |line| line.arm.clone()),
    ("program", |line| shorten(&line.program)),
    ("runs", runs),
    ("T s", |line| {
        bound(line, line.time_s.map(|t| t.median.value), 3)
    }),
    ("T s, interval", |line| {
        line.time_s
            .map(|t| interval(&t.median, 3))
            .unwrap_or_default()
    }),
    ("mean T s", |line| {
        line.time_s.map(|t| plus_minus(&t.mean)).unwrap_or_default()
    }),
    ("S", |line| {
        bound(line, line.slowdown.map(|s| s.median.value), 2)
    }),
    ("F", |line| number(line.fairness.map(|f| f.median.value), 2)),
    ("waste", |line| number(line.waste, 2)),
    ("T / stock", |line| {
        line.against_stock
            .map(|r| with_interval(&r))
            .unwrap_or_default()
    }),
    ("switches v/i", switches),
    ("hog work", |line| percent(line.hog_work)),
    ("sleeper p99 us", |line| number(line.sleeper_p99_us, 0)),
    ("blocks: n, missed, spurious", blocks),
];

/// The lines as a table. Columns that say the same or nothing everywhere are left out where that
/// loses nothing.
pub fn render(lines: &[Line]) -> String {
    let columns: Vec<Column> = COLUMNS
        .into_iter()
        .filter(|(title, say)| match *title {
            "program" => lines.iter().any(|line| line.program != "job"),
            "T s, interval" | "mean T s" => lines.iter().any(|line| line.nr_runs > 1),
            _ => lines.iter().any(|line| !say(line).is_empty()),
        })
        .collect();
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|(title, _)| *title));
    for line in lines {
        table.add_row(columns.iter().map(|(_, say)| say(line)));
    }
    for (column, (title, _)) in table.column_iter_mut().zip(&columns) {
        if !matches!(*title, "arm" | "program") {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n{}", table.trim_fmt(), failures(lines))
}

fn failures(lines: &[Line]) -> String {
    let told = lines.iter().filter_map(|line| {
        let why = line.failed.as_ref()?;
        Some(format!(
            "failed: {} at {} hogs/CPU: {why}\n",
            line.arm, line.hogs
        ))
    });
    told.collect()
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}

/// A lower bound where runs were ended at the time limit.
fn bound(line: &Line, value: Option<f64>, digits: usize) -> String {
    let sign = if line.nr_timed_out > 0 { "> " } else { "" };
    value.map_or_else(String::new, |value| format!("{sign}{value:.digits$}"))
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!("{:.1} %", rate * 100.0))
}

fn plus_minus(mean: &Estimate) -> String {
    format!("{:.3} ± {:.3}", mean.value, mean.high - mean.value)
}

fn with_interval(ratio: &Estimate) -> String {
    if ratio.low == ratio.high {
        return format!("{:.3}", ratio.value);
    }
    format!("{:.3} ({})", ratio.value, interval(ratio, 3))
}

fn switches(line: &Line) -> String {
    let both = line.voluntary.zip(line.involuntary);
    both.map_or_else(String::new, |(v, i)| format!("{v:.0}/{i:.0}"))
}

fn blocks(line: &Line) -> String {
    let Some(blocks) = line.blocks else {
        return String::new();
    };
    let missed = line.missed_per_block.unwrap_or(0.0) * 100.0;
    let spurious = line.spurious_per_wake.unwrap_or(0.0);
    format!("{blocks:.0}, {missed:.3} %, {spurious:.2}")
}

fn runs(line: &Line) -> String {
    let mut text = line.nr_runs.to_string();
    if line.failed.is_some() {
        text.push_str(" failed");
    }
    if line.nr_timed_out > 0 {
        text.push_str(&format!(", {} late", line.nr_timed_out));
    }
    if line.nr_disturbed > 0 {
        text.push_str(&format!(", {} disturbed", line.nr_disturbed));
    }
    text
}

fn interval(estimate: &Estimate, digits: usize) -> String {
    format!("{:.digits$}-{:.digits$}", estimate.low, estimate.high)
}

fn shorten(name: &str) -> String {
    const MAX: usize = 24;
    match name.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// What the numbers rest on.
pub fn legend(lines: &[Line], fair: Option<&Fair>, time_source: &str, nr_repeated: u32) -> String {
    let mut text = format!(
        "T: {time_source}. Medians; the interval of T and `T / stock` (paired) covers {:.1} % at {} runs; mean T with Student's 90 %.\n",
        lines.iter().filter_map(|l| Some(l.time_s?.median.coverage)).fold(1.0, f64::min) * 100.0,
        lines.iter().map(|l| l.nr_runs).max().unwrap_or(0),
    );
    match fair {
        Some(fair) => {
            text.push_str(&format!(
                "T alone {:.3} s (arm {}), CPU {:.3} s, a rank's share of a CPU alone {:.3}.\n",
                fair.job.time_s, fair.job.name, fair.job.cpu_s, fair.share_alone
            ));
            for level in &fair.levels {
                let how = if level.derived {
                    "computed from the programs alone"
                } else {
                    "measured by calcula"
                };
                text.push_str(&format!(
                    "Fair limit at {} hogs/CPU{}{}: {:.3} s (share {:.3}, {how}).\n",
                    level.hogs,
                    under(&level.scheduler),
                    if level.together { ", all together" } else { "" },
                    level.limit_s,
                    level.share
                ));
            }
        }
        None => text
            .push_str("S, F and waste are unknown: the job alone did not end in time, or it or calcula was not measured.\n"),
    }
    text.push_str(&format!(
        "Repeated since disturbed by foreign CPU time: {nr_repeated} runs.\n"
    ));
    text
}

/// Nothing where it is the kernel's own.
fn under(scheduler: &Scheduler) -> String {
    match scheduler {
        Scheduler::Stock => String::new(),
        other => format!(" under {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_sim::statistics::summarise;

    fn line() -> Line {
        Line {
            arm: "auto".to_owned(),
            hogs: 2,
            program: "a program with a very long command".to_owned(),
            nr_runs: 5,
            nr_disturbed: 1,
            nr_timed_out: 2,
            failed: None,
            time_s: summarise(&[1.0, 2.0, 3.0, 4.0, 5.0]),
            slowdown: summarise(&[1.25]),
            fairness: None,
            waste: Some(1.5),
            against_stock: None,
            voluntary: Some(10.0),
            involuntary: Some(3.0),
            hog_work: Some(0.98),
            sleeper_p99_us: Some(60.4),
            blocks: Some(1000.0),
            missed_per_block: Some(0.001),
            spurious_per_wake: Some(0.25),
        }
    }

    fn cells(lines: &[Line], row: usize) -> Vec<String> {
        let text = render(lines);
        let row = text.lines().nth(row).unwrap();
        row.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn bounds_and_rates_are_shown_as_such() {
        let row = cells(&[line()], 1);
        for wanted in [
            "5, 2 late, 1 disturbed",
            "> 3.000",
            "1.000-5.000",
            "> 1.25",
            "98.0 %",
            "1000, 0.100 %, 0.25",
        ] {
            assert!(row.iter().any(|cell| cell == wanted), "{wanted} in {row:?}");
        }
    }

    #[test]
    fn what_is_unknown_everywhere_has_no_column() {
        let header = cells(&[line()], 0);
        assert!(header.contains(&"S".to_owned()) && !header.contains(&"F".to_owned()));
        let single = Line {
            nr_runs: 1,
            program: "job".to_owned(),
            ..line()
        };
        let header = cells(&[single], 0);
        assert!(
            !header.contains(&"mean T s".to_owned()) && !header.contains(&"program".to_owned())
        );
    }

    #[test]
    fn failures_are_told_below_the_table() {
        let failed = Line {
            failed: Some("no such file".to_owned()),
            ..line()
        };
        assert!(render(&[failed]).ends_with("failed: auto at 2 hogs/CPU: no such file\n"));
    }

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(shorten(&"ä".repeat(30)), format!("{}...", "ä".repeat(24)));
    }
}
