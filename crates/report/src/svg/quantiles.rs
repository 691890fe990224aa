//! Measured quantiles against those of a fitted distribution: points on the diagonal where it fits.

use record::Unit;
use units::Nanos;

use super::scale::Log;
use super::{Canvas, Frame, series_class};

/// The plot of (expected, observed).
pub(crate) fn plot(points: &[(Nanos, Nanos)], unit: Unit, frame: &Frame) -> String {
    let mut canvas = Canvas::new(frame);
    let all = || points.iter().flat_map(|(expected, observed)| [expected.0, observed.0]);
    let ends = (all().min().unwrap_or(1).max(1) as f64 * 0.95, all().max().unwrap_or(1) as f64 * 1.05);
    let (x, y) = (Log::new(ends, frame.x()), Log::new(ends, frame.y()));
    canvas.latency_axis_below(&x, unit);
    canvas.latency_axis_left(&y, unit);
    canvas.line("grid", (x.at(x.from), y.at(x.from)), (x.at(x.to), y.at(x.to)));
    for (expected, observed) in points {
        canvas.marker(&series_class(0), 0, (x.at(expected.0 as f64), y.at(observed.0 as f64)), "");
    }
    canvas.base();
    canvas.finish("Block maxima against the fitted distribution", "")
}
