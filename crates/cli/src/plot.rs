// SPDX-License-Identifier: Apache-2.0
//! Curves with error bars over one axis, as SVG: what all figures of this program share.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use anyhow::{anyhow, Result};
use cosched_sim::statistics::Estimate;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// Told apart by people who see colours differently (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Pixels of a dash that no line is longer than.
const SOLID: u32 = 10_000;
const FONT: &str = "sans-serif";

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Drawn = Result<(), Box<dyn Error>>;

/// One line: places on the horizontal axis and the estimates there.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, Estimate)>,
}

/// What stands around the curves.
pub struct Axes<'a> {
    pub x: &'a str,
    pub y: &'a str,
    /// From where to where the horizontal axis goes, and how many labels it has.
    pub places: Range<f64>,
    pub labels: usize,
    /// The label at a place.
    pub label: &'a dyn Fn(f64) -> String,
    pub legend: bool,
}

/// An SVG of `size` under `title` at `path`, with what `body` draws.
pub fn write(
    path: &Path,
    size: (u32, u32),
    title: &str,
    body: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<()> {
    let root = SVGBackend::new(path, size).into_drawing_area();
    let drawn = || -> Drawn {
        root.fill(&WHITE)?;
        body(&root.titled(title, (FONT, 20))?)?;
        Ok(root.present()?)
    };
    drawn().map_err(|why| anyhow!("cannot draw {}: {why}", path.display()))
}

/// The least and the largest value that error bars reach; (infinity, 0) of no points.
pub fn bounds(curves: &[Curve]) -> (f64, f64) {
    let points = curves.iter().flat_map(|curve| &curve.points);
    points.fold((f64::INFINITY, 0.0), |(low, high), (_, at)| {
        (f64::min(low, at.low), f64::max(high, at.high))
    })
}

/// Colour and dash of a curve: when all colours are used they come again, dashed.
fn style(number: usize) -> (RGBColor, u32) {
    let dash = if number < COLOURS.len() { SOLID } else { 6 };
    (COLOURS[number % COLOURS.len()], dash)
}

/// Draws `curves` over the vertical `scale`, with a thin line at `level`.
pub fn panel<Y>(
    area: &Area<'_>,
    axes: &Axes<'_>,
    scale: Y,
    curves: &[Curve],
    level: Option<f64>,
) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let ends = [axes.places.start, axes.places.end];
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(axes.places.clone(), scale)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_labels(axes.labels)
        .x_label_formatter(&|x| (axes.label)(*x))
        .label_style((FONT, 14))
        .draw()?;
    let level = level.map(|y| LineSeries::new(ends.map(|x| (x, y)), BLACK.mix(0.5)));
    level.map(|line| chart.draw_series(line)).transpose()?;
    for (number, curve) in curves.iter().enumerate() {
        let (colour, dash) = style(number);
        let points = curve.points.iter();
        let line = points.clone().map(|(x, y)| (*x, y.value));
        let thin = colour.stroke_width(2);
        chart
            .draw_series(DashedLineSeries::new(line, dash, 4, thin))?
            .label(&curve.name)
            .legend(move |(x, y)| {
                let ends = [(x, y), (x + 18, y)];
                DashedPathElement::new(ends, dash, 4, colour.stroke_width(3))
            });
        chart.draw_series(points.map(|(x, y)| {
            let low = y.low.max(y.value * 0.01); // a logarithmic axis has no 0
            ErrorBar::new_vertical(*x, low, y.value, y.high, colour.filled(), 7)
        }))?;
    }
    if axes.legend {
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
