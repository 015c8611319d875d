// SPDX-License-Identifier: Apache-2.0
//! The figure: S and F over competitors per CPU, one line per arm, as SVG.
//!
//! Two panels share the horizontal axis. In both the fair value is 1, drawn as a thin line; each
//! point is a median with the interval between its order statistics. S is drawn on a logarithmic
//! axis, since arms lie an order of magnitude apart; its panel holds the legend, since lines of S
//! rise from its lower left corner. Of several copies of a job the first is drawn.

use std::path::Path;

use anyhow::{anyhow, Result};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::stats::{Estimate, Summary};
use super::verdict::Line;

/// Told apart by people who see colours differently (Okabe and Ito).
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
pub const FONT: &str = "sans-serif";

/// One arm's points: hogs per CPU and the estimate there.
struct Curve<'a> {
    arm: &'a str,
    points: Vec<(f64, Estimate)>,
}

/// Draws `lines` into `path`.
pub fn draw(path: &Path, title: &str, lines: &[Line]) -> Result<()> {
    let root = SVGBackend::new(path, (960, 480)).into_drawing_area();
    let result = draw_panels(&root, title, lines).map_err(|error| error.to_string());
    result.map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_panels(root: &Area<'_>, title: &str, lines: &[Line]) -> Drawn {
    root.fill(&WHITE)?;
    let body = root.titled(title, (FONT, 20))?;
    let (left, right) = body.split_horizontally(480);
    let slowdown = curves(lines, |line| line.slowdown);
    let fairness = curves(lines, |line| line.fairness);
    let (low, high) = bounds(&slowdown);
    let scale = (low.min(0.9)..high.max(2.0) * 1.1).log_scale();
    panel(&left, "S = time / fair limit", scale, &slowdown, true)?;
    let (_, high) = bounds(&fairness);
    panel(
        &right,
        "F = CPU time / fair share",
        0.0..high.max(1.0) * 1.15,
        &fairness,
        false,
    )?;
    root.present()?;
    Ok(())
}

fn curves<'a>(lines: &'a [Line], value: impl Fn(&Line) -> Option<Summary>) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for line in lines.iter().filter(|line| line.program == "job") {
        let Some(summary) = value(line) else { continue };
        let point = (f64::from(line.hogs), summary.median);
        match curves.iter_mut().find(|curve| curve.arm == line.arm) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                arm: &line.arm,
                points: vec![point],
            }),
        }
    }
    curves
}

fn bounds(curves: &[Curve<'_>]) -> (f64, f64) {
    let points = curves.iter().flat_map(|curve| &curve.points);
    points.fold((f64::INFINITY, 0.0), |(low, high), (_, at)| {
        (low.min(at.low), f64::max(high, at.high))
    })
}

fn panel<Y>(area: &Area<'_>, label: &str, scale: Y, curves: &[Curve<'_>], legend: bool) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let last = curves
        .iter()
        .flat_map(|c| &c.points)
        .map(|p| p.0)
        .fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(-0.15..last + 0.15, scale)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("competitors per CPU")
        .y_desc(label)
        .x_labels(last as usize + 1)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.1}"))
        .label_style((FONT, 14))
        .draw()?;
    let fair = [(-0.15, 1.0), (last + 0.15, 1.0)];
    chart.draw_series(LineSeries::new(fair, BLACK.mix(0.5)))?;
    for (index, curve) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points = curve.points.iter();
        chart
            .draw_series(LineSeries::new(
                points.clone().map(|(x, y)| (*x, y.value)),
                colour.stroke_width(2),
            ))?
            .label(curve.arm)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3)));
        chart.draw_series(points.map(|(x, y)| {
            ErrorBar::new_vertical(*x, y.low, y.value, y.high, colour.filled(), 7)
        }))?;
    }
    if legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 14))
            .draw()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::stats::summarise;
    use super::*;

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
