//! How often each latency was met under one load: both axes logarithmic, because the rare ones matter.

use units::Nanos;

use super::canvas::{Anchor, Path};
use super::scale::Log;
use super::{Bins, Canvas, Frame, series_class};
use crate::figures::{Figures, Terms};

/// CPUs that are drawn each in their own colour; more are drawn as a band.
pub(crate) const MOST_LINES: usize = super::SERIES_CLASSES;

/// What all histograms of a record share, so that they can be compared by eye.
pub(crate) struct Axes {
    pub lowest: Nanos,
    pub highest: Nanos,
    /// The greatest count of any bin.
    pub most: u64,
    pub terms: Terms,
    pub bins: Bins,
}

impl Axes {
    /// Axes that hold all wake-ups of `figures` and the limit. Latencies of missed activations can be as short as
    /// none at all; those below every wake-up are counted in the first bin, lest they squeeze all others.
    pub fn of<'a>(figures: impl Iterator<Item = &'a Figures> + Clone, terms: Terms) -> Self {
        let observed = || figures.clone().map(|figures| &figures.observed);
        let lowest = observed().filter_map(|summary| summary.minimum()).min().unwrap_or_default();
        let highest = observed().filter_map(|summary| summary.maximum()).max().unwrap_or_default();
        let bins = Bins::new(lowest, highest, 1.06);
        let most = figures.flat_map(|figures| bins.counts(&figures.corrected)).max().unwrap_or(0);
        Self { lowest, highest, most, terms, bins }
    }

    /// The latency scale; a little room at both ends.
    pub fn x(&self, frame: &Frame) -> Log {
        let highest = self.terms.limit.map_or(self.highest, |limit| limit.max(self.highest));
        let lowest = self.terms.limit.map_or(self.lowest, |limit| limit.min(self.lowest));
        Log::new((lowest.0.max(50) as f64 * 0.9, highest.0 as f64 * 1.12), frame.x())
    }

    /// The scale of counts: a single latency stands a little above the base.
    fn y(&self, frame: &Frame) -> Log {
        // `Log` begins at 1, so counts are doubled: half a count is the base.
        Log::new((1.0, self.most.max(10) as f64 * 2.0 * 1.3), frame.y())
    }
}

/// All CPUs together, as an area.
pub(crate) fn summed(axes: &Axes, counts: &[u64], class: &str, label: &str, frame: &Frame) -> String {
    let mut canvas = begin(axes, frame);
    let (x, y) = (axes.x(frame), axes.y(frame));
    canvas.path(&format!("area {class}"), &outline(axes, counts, &x, &y, true));
    canvas.limit_upright(&x, axes.terms);
    canvas.finish(label, &pointer(&x, &y))
}

/// One line for each CPU.
pub(crate) fn each(axes: &Axes, counts: &[Vec<u64>], label: &str, frame: &Frame) -> String {
    let mut canvas = begin(axes, frame);
    let (x, y) = (axes.x(frame), axes.y(frame));
    for (place, counts) in counts.iter().enumerate() {
        canvas.path(&format!("line {}", series_class(place)), &outline(axes, counts, &x, &y, false));
    }
    canvas.limit_upright(&x, axes.terms);
    canvas.finish(label, &pointer(&x, &y))
}

/// Too many CPUs for a line each: the band between the least and the most of any CPU, and the CPU with the worst
/// latency as a line.
pub(crate) fn band(axes: &Axes, band: &Band, label: &str, frame: &Frame) -> String {
    let mut canvas = begin(axes, frame);
    let (x, y) = (axes.x(frame), axes.y(frame));
    let mut path = outline(axes, &band.most, &x, &y, true);
    path.push_str(&outline(axes, &band.least, &x, &y, true));
    canvas.path("band", &path);
    canvas.path("line worst", &outline(axes, &band.worst, &x, &y, false));
    canvas.limit_upright(&x, axes.terms);
    canvas.finish(label, &pointer(&x, &y))
}

/// The counts of many CPUs, bin by bin.
pub(crate) struct Band {
    pub least: Vec<u64>,
    pub most: Vec<u64>,
    /// Those of the CPU with the greatest latency.
    pub worst: Vec<u64>,
}

impl Band {
    /// From the counts of each CPU, and which of them is the worst.
    pub fn of(counts: &[Vec<u64>], worst: usize) -> Self {
        let bins = counts.first().map_or(0, Vec::len);
        let column = |bin: usize| counts.iter().map(move |counts| counts[bin]);
        Self {
            least: (0..bins).map(|bin| column(bin).min().unwrap_or(0)).collect(),
            most: (0..bins).map(|bin| column(bin).max().unwrap_or(0)).collect(),
            worst: counts.get(worst).cloned().unwrap_or_default(),
        }
    }
}

fn begin(axes: &Axes, frame: &Frame) -> Canvas {
    let mut canvas = Canvas::new(frame);
    canvas.latency_axis_below(&axes.x(frame), axes.terms.unit);
    let y = axes.y(frame);
    let ticks: Vec<_> = Log { from: y.from / 2.0, to: y.to / 2.0, ..y }
        .round_values(30.0)
        .into_iter()
        .filter(|count| *count >= 1.0)
        .map(|count| (y.at(count * 2.0), power(count)))
        .collect();
    canvas.grid_left(ticks.iter().map(|(y, label)| (*y, label.as_str())));
    canvas.base();
    canvas.text("axis-label", (frame.left - 8.0, frame.top - 15.0), Anchor::End, "count");
    canvas
}

/// A count in few letters: `1`, `200`, `5k`, `10M`.
fn power(count: f64) -> String {
    match count {
        n if n < 1e3 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.0}k", n / 1e3),
        n if n < 1e9 => format!("{:.0}M", n / 1e6),
        n => format!("{:.0}G", n / 1e9),
    }
}

/// The steps over the bins: a closed shape goes down to the base on both sides of every gap; a line leaves gaps
/// open, so that several lines over one another can be distinguished.
fn outline(axes: &Axes, counts: &[u64], x: &Log, y: &Log, closed: bool) -> String {
    let mut path = Path::default();
    let mut open = false;
    for ((low, high), count) in axes.bins.spans().zip(counts) {
        let (left, right) = (x.at(low as f64), x.at(high as f64));
        let top = y.at(*count as f64 * 2.0);
        if *count == 0 {
            end(&mut path, open && closed, left, y.start);
            open = false;
            continue;
        }
        if !open {
            path.start(left, if closed { y.start } else { top });
        }
        path.step(left, top);
        path.step(right, top);
        open = true;
    }
    let last = axes.bins.edges.last().map_or(x.end, |edge| x.at(*edge as f64));
    end(&mut path, open && closed, last, y.start);
    path.as_str().to_owned()
}

fn end(path: &mut Path, shape: bool, x: f64, base: f64) {
    if shape {
        path.step(x, base);
        path.close();
    }
}

/// What the pointer's read-out needs to turn places into values.
fn pointer(x: &Log, y: &Log) -> String {
    format!(
        " data-x=\"{:.0} {:.0} {:.0} {:.0}\" data-y=\"count {:.1} {:.1} {:.0} {:.0}\"",
        x.from,
        x.to,
        x.start,
        x.end,
        y.from / 2.0,
        y.to / 2.0,
        y.start,
        y.end
    )
}
