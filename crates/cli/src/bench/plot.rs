// SPDX-License-Identifier: Apache-2.0
//! The figure: S and F over competitors per CPU, one line per arm, as SVG.
//!
//! Two panels share the horizontal axis. In both the fair value is 1, drawn as a thin line; each
//! point is a median with the interval between its order statistics. S is drawn on a logarithmic
//! axis, since arms lie an order of magnitude apart; its panel holds the legend, since lines of S
//! rise from its lower left corner. Of several copies of a job the first is drawn.

use std::path::Path;

use anyhow::Result;
use cosched_sim::statistics::Summary;
use plotters::prelude::*;

use super::verdict::Line;
use crate::plot::{bounds, panel, write, Area, Axes, Curve, Drawn};

/// Draws `lines` into `path`.
pub fn draw(path: &Path, title: &str, lines: &[Line]) -> Result<()> {
    write(path, (960, 480), title, |body| draw_panels(body, lines))
}

fn draw_panels(body: &Area<'_>, lines: &[Line]) -> Drawn {
    let (left, right) = body.split_horizontally(480);
    let slowdown = curves(lines, |line| line.slowdown);
    let fairness = curves(lines, |line| line.fairness);
    let places = lines.iter().map(|line| f64::from(line.hogs));
    let last = places.fold(1.0, f64::max);
    let axes = |y, legend| Axes {
        x: "competitors per CPU",
        y,
        places: -0.15..last + 0.15,
        labels: last as usize + 1,
        label: &|x| format!("{x:.0}"),
        legend,
    };
    let (low, high) = bounds(&slowdown);
    let scale = (low.min(0.9)..high.max(2.0) * 1.1).log_scale();
    let slower = axes("S = time / fair limit", true);
    panel(&left, &slower, scale, &slowdown, Some(1.0))?;
    let scale = 0.0..bounds(&fairness).1.max(1.0) * 1.15;
    let fair = axes("F = CPU time / fair share", false);
    panel(&right, &fair, scale, &fairness, Some(1.0))
}

fn curves(lines: &[Line], value: impl Fn(&Line) -> Option<Summary>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for line in lines.iter().filter(|line| line.program == "job") {
        let Some(summary) = value(line) else { continue };
        let point = (f64::from(line.hogs), summary.median);
        match curves.iter_mut().find(|curve| curve.name == line.arm) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                name: line.arm.clone(),
                points: vec![point],
            }),
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_sim::statistics::summarise;

    fn line(arm: &str, hogs: u32, slowdown: f64) -> Line {
        Line {
            arm: arm.to_owned(),
            hogs,
            program: "job".to_owned(),
            nr_runs: 3,
            nr_disturbed: 0,
            nr_timed_out: 0,
            failed: None,
            time_s: None,
            slowdown: summarise(&[slowdown * 0.9, slowdown, slowdown * 1.1]),
            fairness: summarise(&[0.9]),
            waste: None,
            against_stock: None,
            voluntary: None,
            involuntary: None,
            hog_work: None,
            sleeper_p99_us: None,
            blocks: None,
            missed_per_block: None,
            spurious_per_wake: None,
        }
    }

    #[test]
    fn every_arm_is_in_the_legend_once_and_a_line_in_both_panels() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("figure.svg");
        let lines = [
            line("stock", 0, 1.0),
            line("stock", 4, 4.0),
            line("auto", 0, 1.0),
            line("auto", 4, 1.1),
        ];
        draw(&path, "barrier, 2 ranks", &lines).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        let lines = |wanted: &dyn Fn(&str) -> bool| svg.lines().filter(|line| wanted(line)).count();
        for (arm, colour) in [("stock", "#0072B2"), ("auto", "#D55E00")] {
            assert_eq!(lines(&|line| line.trim() == arm), 1, "{arm}");
            let drawn = |line: &str| line.contains("<polyline") && line.contains(colour);
            assert_eq!(
                lines(&drawn),
                3,
                "{arm}: one in each panel, one in the legend"
            );
        }
        assert!(svg.contains("competitors per CPU") && svg.contains("fair limit"));
    }

    #[test]
    fn copies_and_other_programs_are_left_out() {
        let other = Line {
            program: "job 2".to_owned(),
            ..line("stock", 0, 1.0)
        };
        assert_eq!(curves(&[other], |line| line.slowdown).len(), 0);
    }
}
