//! Records or arms side by side: for each load a line each, from its least over its average to its greatest latency.

use record::Unit;
use units::Nanos;

use super::canvas::Anchor;
use super::scale::{Log, latency};
use super::{Canvas, Frame, series_class};

/// One record, or the blocks of one arm, under one load.
pub(crate) struct Range {
    pub name: String,
    pub minimum: Nanos,
    pub average: Nanos,
    pub maximum: Nanos,
    /// The tail of each of several runs or blocks.
    pub draws: Vec<Nanos>,
}

/// All records under one load, or one arm by itself; none where a record has no such column.
pub(crate) struct Row {
    pub name: String,
    /// The series that the first range is: they are drawn as in every other plot.
    pub first: usize,
    pub ranges: Vec<Option<Range>>,
}

const LINE: f64 = 15.0;
const GAP: f64 = 13.0;
/// Width of a letter in a row's name.
const LETTER: f64 = 7.4;

/// The frame that `rows` need at a width.
pub(crate) fn frame(rows: &[Row], width: f64) -> Frame {
    let lines: usize = rows.iter().map(|row| row.ranges.len()).sum();
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * LETTER + 20.0).clamp(84.0, width / 3.0);
    let frame = Frame { left, ..Frame::new(width, 0.0) };
    Frame { height: frame.top + frame.bottom + lines as f64 * LINE + rows.len() as f64 * GAP, ..frame }
}

/// The plot.
pub(crate) fn plot(rows: &[Row], unit: Unit, frame: &Frame) -> String {
    let mut canvas = Canvas::new(frame);
    let ranges = || rows.iter().flat_map(|row| row.ranges.iter().flatten());
    let lowest = ranges().map(|range| range.minimum).min().unwrap_or_default();
    let highest = ranges().map(|range| range.maximum).max().unwrap_or_default();
    let x = Log::new((lowest.0.max(50) as f64 * 0.9, highest.0 as f64 * 1.12), frame.x());
    canvas.latency_axis_below(&x, unit);
    let mut y = frame.top;
    for row in rows {
        y += GAP;
        let middle = y + (row.ranges.len() as f64 - 1.0) * LINE / 2.0;
        canvas.text("row-label", (frame.left - 14.0, middle + 4.0), Anchor::End, &row.name);
        for (place, range) in row.ranges.iter().enumerate() {
            if let Some(range) = range {
                draw(&mut canvas, row.first + place, range, (y, &x), unit);
            }
            y += LINE;
        }
    }
    canvas.base();
    canvas.finish("Least, average and greatest latencies", "")
}

fn draw(canvas: &mut Canvas, place: usize, range: &Range, (y, x): (f64, &Log), unit: Unit) {
    let class = series_class(place);
    let at = |latency: Nanos| x.at(latency.0 as f64);
    canvas.line(&format!("range {class}"), (at(range.minimum), y), (at(range.maximum), y));
    canvas.line(&format!("range {class}"), (at(range.average), y - 4.0), (at(range.average), y + 4.0));
    for draw in &range.draws {
        canvas.line(&format!("draw {class}"), (at(*draw), y - 2.5), (at(*draw), y + 2.5));
    }
    let title = format!("{}: worst {}", range.name, latency(range.maximum.0 as f64, unit));
    canvas.marker(&class, place, (at(range.maximum), y), &title);
}
