// SPDX-License-Identifier: Apache-2.0
//! Figure: horizontal bars in groups, with the number at each bar's end, as SVG.
//! One scale for all groups, from zero, so that lengths may be compared by eye.

use std::path::Path;

use anyhow::{anyhow, Context, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Bars that belong together.
pub struct Group {
    /// Above the bars.
    pub title: String,
    /// Name and seconds.
    pub bars: Vec<(String, f64)>,
}

const COLOURS: [RGBColor; 3] = [
    RGBColor(150, 150, 150),
    RGBColor(217, 120, 60),
    RGBColor(30, 120, 180),
];
const WIDTH: i32 = 760;
const BAR: i32 = 18;
const STEP: i32 = 22;
const TITLE: i32 = 26;
const HEAD: i32 = 44;
/// Where bars begin, and how long the longest may be.
const LEFT: i32 = 180;
const LONGEST: i32 = WIDTH - LEFT - 80;

/// Draws `groups` into the file at `path`.
pub fn bars(path: &Path, title: &str, groups: &[Group]) -> Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    draw(path, title, groups).map_err(|why| anyhow!("cannot draw {}: {why}", path.display()))
}

fn draw(path: &Path, title: &str, groups: &[Group]) -> Result<(), Box<dyn std::error::Error>> {
    let all = groups.iter().flat_map(|group| &group.bars);
    let most = all
        .map(|(_, seconds)| *seconds)
        .fold(f64::MIN_POSITIVE, f64::max);
    let heights = groups.iter().map(height_of);
    let size = (WIDTH as u32, (HEAD + heights.sum::<i32>()) as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |size: i32| ("sans-serif", size).into_font().color(&BLACK);
    let right = |size| text(size).pos(Pos::new(HPos::Right, VPos::Center));
    let left = |size| text(size).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(title, (12, 22), left(20)))?;
    let mut top = HEAD;
    for group in groups {
        area.draw(&Text::new(
            group.title.as_str(),
            (12, top + TITLE / 2),
            left(17),
        ))?;
        for ((name, seconds), (row, colour)) in group.bars.iter().zip((0..).zip(COLOURS)) {
            let (y, end) = (
                top + TITLE + row * STEP,
                LEFT + (seconds / most * f64::from(LONGEST)) as i32,
            );
            let middle = y + BAR / 2;
            area.draw(&Rectangle::new(
                [(LEFT, y), (end.max(LEFT + 1), y + BAR)],
                colour.filled(),
            ))?;
            area.draw(&Text::new(name.as_str(), (LEFT - 8, middle), right(16)))?;
            area.draw(&Text::new(
                format!("{seconds:.2} s"),
                (end + 8, middle),
                left(16),
            ))?;
        }
        top += height_of(group);
    }
    area.present()?;
    Ok(())
}

fn height_of(group: &Group) -> i32 {
    TITLE + STEP * group.bars.len() as i32 + 12
}
