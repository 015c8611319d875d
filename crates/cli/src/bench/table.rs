// SPDX-License-Identifier: Apache-2.0
//! The table: the verdict for people. The numbers are medians; `--json` has everything.

use comfy_table::{presets, CellAlignment, ContentArrangement, Table};

use super::fair::Fair;
use super::stats::{Estimate, Summary};
use super::verdict::Line;

const HEADER: [&str; 15] = [
    "hogs/CPU",
    "arm",
    "program",
    "runs",
    "T s",
    "T 90 %",
    "mean T s",
    "S",
    "F",
    "waste",
    "vs stock",
    "switches v/i",
    "hog work",
    "sleeper p99",
    "blocks (missed, spurious)",
];

/// The lines as a table, columns in the order of interest.
pub fn render(lines: &[Line]) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    for line in lines {
        table.add_row(row(line));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index > 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let failures = lines.iter().filter_map(|line| {
        let why = line.failed.as_ref()?;
        Some(format!(
            "failed: {} at {} hogs/CPU: {why}\n",
            line.arm, line.hogs
        ))
    });
    format!("{table}\n{}", failures.collect::<String>())
}

fn row(line: &Line) -> Vec<String> {
    let value = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
    };
    let middle = |summary: &Option<Summary>| value(summary.map(|s| s.median.value), 2);
    let bound = if line.nr_timed_out > 0 { "> " } else { "" };
    let percent =
        |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{:.2} %", rate * 100.0));
    vec![
        line.hogs.to_string(),
        line.arm.clone(),
        shorten(&line.program),
        runs(line),
        format!("{bound}{}", value(line.time_s.map(|t| t.median.value), 3)),
        line.time_s
            .map_or("-".to_owned(), |t| interval(&t.median, 3)),
        line.time_s.map_or("-".to_owned(), |t| {
            format!("{:.3} ± {:.3}", t.mean.value, t.mean.high - t.mean.value)
        }),
        format!("{bound}{}", middle(&line.slowdown)),
        middle(&line.fairness),
        value(line.waste, 2),
        line.against_stock.map_or("-".to_owned(), |r| {
            format!("{:.3} {}", r.value, interval(&r, 3))
        }),
        format!(
            "{}/{}",
            value(line.voluntary, 0),
            value(line.involuntary, 0)
        ),
        percent(line.hog_work),
        line.sleeper_p99_us
            .map_or("-".to_owned(), |us| format!("{us:.0} us")),
        line.blocks.map_or("-".to_owned(), |blocks| {
            format!(
                "{blocks:.0} ({}, {})",
                percent(line.missed_per_block),
                value(line.spurious_per_wake, 2)
            )
        }),
    ]
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
        "T: {time_source}. Medians; the interval of T and `vs stock` (paired) covers {:.1} % at {} runs; mean T with Student's 90 %.\n",
        lines.iter().filter_map(|l| Some(l.time_s?.median.coverage)).fold(1.0, f64::min) * 100.0,
        lines.iter().map(|l| l.nr_runs).max().unwrap_or(0),
    );
    match fair {
        Some(fair) => {
            text.push_str(&format!(
                "T alone {:.3} s (arm {}), CPU {:.3} s, a rank's share of a CPU alone {:.3}.\n",
                fair.alone_s, fair.alone_arm, fair.alone_cpu_s, fair.share_alone
            ));
            for level in &fair.levels {
                let how = if level.derived {
                    "derived from the number of tasks"
                } else {
                    "measured by calcula"
                };
                text.push_str(&format!(
                    "Fair limit at {} hogs/CPU{}: {:.3} s (share {:.3}, {how}).\n",
                    level.hogs,
                    if level.together { ", all together" } else { "" },
                    level.limit_s,
                    level.share
                ));
            }
        }
        None => text
            .push_str("S, F and waste are unknown: the job alone or calcula was not measured.\n"),
    }
    text.push_str(&format!(
        "Repeated since disturbed by foreign CPU time: {nr_repeated} runs.\n"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::super::stats::summarise;
    use super::*;

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

    #[test]
    fn bounds_and_unknowns_are_shown_as_such() {
        let row = row(&line());
        assert_eq!(row[3], "5, 2 late, 1 disturbed");
        assert_eq!(
            (row[4].as_str(), row[5].as_str()),
            ("> 3.000", "1.000-5.000")
        );
        assert_eq!((row[7].as_str(), row[8].as_str()), ("> 1.25", "-"));
        assert_eq!(row[14], "1000 (0.10 %, 0.25)");
        assert_eq!(row.len(), HEADER.len());
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
