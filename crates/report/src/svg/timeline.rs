//! When it happened: the greatest latency of every second of the run, with the loads as bands behind it.

use units::Nanos;

use super::canvas::{Anchor, Path};
use super::scale::{Linear, Log, latency};
use super::spread::Axes;
use super::{Canvas, Frame};

/// One scenario's stretch of the run.
pub(crate) struct Stretch {
    pub name: String,
    /// Since the run's start.
    pub from: Nanos,
    pub to: Nanos,
    pub steps: Vec<Step>,
}

/// The worst that any CPU saw in one step of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub from: Nanos,
    pub to: Nanos,
    pub maximum: Nanos,
    pub missed: u64,
}

/// The plot of the whole run.
pub(crate) fn plot(axes: &Axes, stretches: &[Stretch], frame: &Frame) -> String {
    let mut canvas = Canvas::new(frame);
    let end = stretches.iter().map(|stretch| stretch.to).max().unwrap_or_default();
    let x = Linear::new(end.as_secs_f64(), frame.x());
    let y = Log { start: frame.y().0, end: frame.y().1, ..axes.x(frame) };
    bands(&mut canvas, stretches, &x, frame);
    canvas.latency_axis_left(&y, axes.terms.unit);
    canvas.base();
    canvas.time_axis_below(&x);
    for stretch in stretches {
        draw(&mut canvas, stretch, &x, &y, frame);
    }
    if let Some(limit) = axes.terms.limit {
        let height = y.at(limit.0 as f64);
        let label = format!("limit {}", latency(limit.0 as f64, axes.terms.unit));
        canvas.line("limit", (x.start, height), (x.end, height));
        canvas.text("limit-label", (x.start + 6.0, height - 5.0), Anchor::Start, &label);
    }
    canvas.finish("Greatest latency of all CPUs in every second of the run", &pointer(&x, &y))
}

/// Bands take turns in shade; a name is written where it fits.
fn bands(canvas: &mut Canvas, stretches: &[Stretch], x: &Linear, frame: &Frame) {
    let (bottom, top) = frame.y();
    for (place, stretch) in stretches.iter().enumerate() {
        let (left, right) = (x.at(stretch.from.as_secs_f64()), x.at(stretch.to.as_secs_f64()));
        let shade = if place % 2 == 0 { "shade" } else { "shade other" };
        canvas.rect(shade, (left, top), (right, bottom), &stretch.name);
        if right - left > 7.2 * stretch.name.chars().count() as f64 {
            canvas.text("band-label", ((left + right) / 2.0, top - 7.0), Anchor::Middle, &stretch.name);
        }
    }
}

fn draw(canvas: &mut Canvas, stretch: &Stretch, x: &Linear, y: &Log, frame: &Frame) {
    let mut path = Path::default();
    let mut misses = Path::default();
    let mut end = None;
    for column in columns(&stretch.steps, x) {
        let (left, right) = (x.at(column.from.as_secs_f64()), x.at(column.to.as_secs_f64()));
        let height = y.at(column.maximum.0 as f64);
        if end.is_none_or(|end: Nanos| end < column.from) {
            path.start(left, height);
        } else {
            path.step(left, height);
        }
        path.step(right, height);
        end = Some(column.to);
        if column.missed > 0 {
            misses.start((left + right) / 2.0, frame.y().0);
            misses.step((left + right) / 2.0, frame.y().0 - 7.0);
        }
    }
    canvas.path("line maxima", path.as_str());
    if !misses.as_str().is_empty() {
        canvas.path("misses", misses.as_str());
    }
}

/// The steps merged so that each is at least a pixel wide; maxima are kept.
fn columns(steps: &[Step], x: &Linear) -> Vec<Step> {
    let mut columns: Vec<Step> = Vec::new();
    for step in steps {
        match columns.last_mut() {
            Some(last) if last.to == step.from && narrow(last, x) => merge(last, step),
            _ => columns.push(*step),
        }
    }
    columns
}

fn narrow(step: &Step, x: &Linear) -> bool {
    x.at(step.to.as_secs_f64()) - x.at(step.from.as_secs_f64()) < 1.0
}

/// Takes the step that follows into `last`.
pub(crate) fn merge(last: &mut Step, step: &Step) {
    last.to = step.to;
    last.maximum = last.maximum.max(step.maximum);
    last.missed += step.missed;
}

fn pointer(x: &Linear, y: &Log) -> String {
    format!(
        " data-t=\"{:.3} {:.0} {:.0}\" data-y=\"latency {:.0} {:.0} {:.0} {:.0}\"",
        x.to, x.start, x.end, y.from, y.to, y.start, y.end
    )
}
