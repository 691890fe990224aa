//! The complementary distribution: which share of activations is later than a latency. The tail is what a
//! requirement is about, and here it has as much room as everything else.

use histogram::Histogram;
use record::Unit;
use units::Nanos;

use super::canvas::{Anchor, Path};
use super::scale::{Log, latency};
use super::spread::Axes;
use super::{Canvas, Frame, series_class};

/// One line of the plot.
pub(crate) struct Line<'a> {
    pub name: String,
    /// Observed and missed latencies together.
    pub corrected: &'a Histogram,
}

/// The plot of all loads, with the limit marked.
pub(crate) fn plot(axes: &Axes, lines: &[Line<'_>], frame: &Frame) -> String {
    let mut canvas = Canvas::new(frame);
    let most = lines.iter().map(|line| line.corrected.cell_count()).max().unwrap_or(1).max(10);
    let x = axes.x(frame);
    // The scale counts in "1 in n": n grows downwards.
    let y = Log::new((1.0, most as f64 * 1.6), (frame.y().1, frame.y().0));
    canvas.latency_axis_below(&x, axes.terms.unit);
    let ticks: Vec<_> = y.round_values(30.0).into_iter().map(|n| (y.at(n), one_in(n))).collect();
    canvas.grid_left(ticks.iter().map(|(y, label)| (*y, label.as_str())));
    canvas.base();
    canvas.text(
        "axis-label",
        (frame.left - 8.0, frame.top - 15.0),
        Anchor::End,
        axes.terms.shown.page.beyond,
    );
    canvas.limit_upright(&x, axes.terms);
    for (place, line) in lines.iter().enumerate() {
        draw(&mut canvas, place, line, (&x, &y), axes.terms.unit);
    }
    let title = format!("Share of {}", lower(axes.terms.shown.page.tail_caption));
    canvas.finish(&title, &pointer(&x, &y))
}

/// A caption within a sentence.
fn lower(caption: &str) -> String {
    let mut letters = caption.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

fn draw(canvas: &mut Canvas, place: usize, line: &Line<'_>, (x, y): (&Log, &Log), unit: Unit) {
    let total = line.corrected.cell_count();
    let class = series_class(place);
    let mut path = Path::default();
    let mut last = None;
    for (highest, later) in points(line.corrected) {
        let (at_x, at_y) = (x.at(highest.0 as f64), y.at(total as f64 / later.max(1) as f64));
        match last {
            None => {
                path.start(x.start, y.start);
                path.step(at_x, at_y);
            }
            // Merged by pixel: a level stretch and a drop are drawn only where they can be seen.
            Some((last_x, last_y)) if at_x - last_x < 0.8 && at_y - last_y < 0.8 && later > 0 => continue,
            Some(_) => path.step(at_x, at_y),
        }
        last = Some((at_x, at_y));
    }
    canvas.path(&format!("line {class}"), path.as_str());
    if let (Some((at_x, at_y)), Some(maximum)) = (last, line.corrected.summary().maximum()) {
        let title = format!("{}: worst {}", line.name, latency(maximum.0 as f64, unit));
        canvas.marker(&class, place, (at_x, at_y), &title);
    }
}

/// The upper edge of each cell, and how many latencies lie above it.
fn points(histogram: &Histogram) -> impl Iterator<Item = (Nanos, u64)> + '_ {
    let maximum = histogram.summary().maximum().unwrap_or_default();
    let mut later = histogram.cell_count();
    histogram.rows().map(move |row| {
        later -= row.count;
        (row.highest.min(maximum), later)
    })
}

/// `all`, `1 in 10`, `1 in 10⁶`.
fn one_in(n: f64) -> String {
    match n {
        n if n < 1.5 => "all".into(),
        n if n < 9.5e3 => format!("1 in {n:.0}"),
        n => {
            let exponent = n.log10().floor();
            let digits = format!("{exponent:.0}").chars().map(superscript).collect::<String>();
            match n / 10_f64.powf(exponent) {
                factor if factor < 1.5 => format!("1 in 10{digits}"),
                factor => format!("1 in {factor:.0}·10{digits}"),
            }
        }
    }
}

fn superscript(digit: char) -> char {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    digit.to_digit(10).map_or(digit, |digit| digits[digit as usize])
}

fn pointer(x: &Log, y: &Log) -> String {
    format!(
        " data-x=\"{:.0} {:.0} {:.0} {:.0}\" data-y=\"in {:.1} {:.1} {:.0} {:.0}\"",
        x.from, x.to, x.start, x.end, y.from, y.to, y.start, y.end
    )
}
