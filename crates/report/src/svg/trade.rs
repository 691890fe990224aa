//! What set-ups cost against what they gain: a point for each set-up and load.

use super::canvas::Anchor;
use super::scale::Log;
use super::{Canvas, Frame, series_class};

/// A set-up under one load: figures with their intervals.
pub(crate) struct Point {
    /// Which set-up: its colour and marker.
    pub series: usize,
    pub name: String,
    /// How many times as long operations take.
    pub cost: (f64, (f64, f64)),
    /// How many times shorter the tail is.
    pub gain: (f64, (f64, f64)),
}

/// Scales begin at 1 or above, ratios do not.
const THOUSANDTHS: f64 = 1e3;
/// Distances between labels of costs.
const STEPS: [f64; 6] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// The frame at a width.
pub(crate) fn frame(width: f64) -> Frame {
    Frame::new(width, (width * 0.5).clamp(240.0, 380.0))
}

/// The plot.
pub(crate) fn plot(points: &[Point], frame: &Frame) -> String {
    let mut canvas = Canvas::new(frame);
    let ends = |of: fn(&Point) -> (f64, f64)| {
        let all = || points.iter().map(of);
        let low = all().map(|(low, _)| low).fold(1.0, f64::min);
        (low, all().map(|(_, high)| high).fold(1.0, f64::max))
    };
    let (costs, gains) = (ends(|point| point.cost.1), ends(|point| point.gain.1));
    let scale = |(low, high): (f64, f64), room: f64, axis| {
        Log::new((low / room * THOUSANDTHS, high * room * THOUSANDTHS), axis)
    };
    let (x, y) = (scale(costs, 1.03, frame.x()), scale(gains, 1.15, frame.y()));
    let at = |cost: f64, gain: f64| (x.at(cost * THOUSANDTHS), y.at(gain * THOUSANDTHS));
    let ticks: Vec<(f64, String)> = y
        .round_values(24.0)
        .into_iter()
        .map(|value| (y.at(value), format!("{}x", value / THOUSANDTHS)))
        .collect();
    canvas.grid_left(ticks.iter().map(|(y, label)| (*y, label.as_str())));
    costs_below(&mut canvas, &x, frame);
    for point in points {
        let class = format!("range {}", series_class(point.series));
        let ((cost, (cheap, dear)), (gain, (least, most))) = (point.cost, point.gain);
        canvas.line(&class, at(cheap, gain), at(dear, gain));
        canvas.line(&class, at(cost, least), at(cost, most));
    }
    for point in points {
        let place = at(point.cost.0, point.gain.0);
        canvas.marker(&series_class(point.series), point.series, place, &point.name);
    }
    canvas.base();
    canvas.finish("What set-ups cost against what they gain", "")
}

fn costs_below(canvas: &mut Canvas, x: &Log, frame: &Frame) {
    let (from, to) = (x.from / THOUSANDTHS, x.to / THOUSANDTHS);
    const MOST: f64 = 8.0;
    let step = STEPS.into_iter().find(|step| (to - from) / step <= MOST).unwrap_or((to - from) / MOST);
    let (bottom, top) = frame.y();
    let mut tick = (from / step).ceil() * step;
    while tick <= to {
        let at = x.at(tick * THOUSANDTHS);
        canvas.line("grid", (at, bottom), (at, top));
        canvas.text("tick", (at, bottom + 18.0), Anchor::Middle, &format!("{tick:.2}x"));
        tick += step;
    }
}
