//! The few SVG elements that plots need, written as text.

use std::fmt::Write;

use record::Unit;

use super::scale::{Linear, Log};
use crate::figures::Terms;

/// A plot's size, and the room around its axes, in units of about a pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// Room for axis labels at the left and below.
    pub const fn new(width: f64, height: f64) -> Self {
        Self { width, height, left: 64.0, right: 14.0, top: 28.0, bottom: 28.0 }
    }

    /// The horizontal range of the axes.
    pub fn x(&self) -> (f64, f64) {
        (self.left, self.width - self.right)
    }

    /// The vertical range of the axes, bottom first.
    pub fn y(&self) -> (f64, f64) {
        (self.height - self.bottom, self.top)
    }
}

/// Room for a character of the class `tick`, whose font has 11.5 pixels.
const TICK_CHARACTER: f64 = 6.8;

/// SVG in the making.
pub(crate) struct Canvas {
    body: String,
    frame: Frame,
}

/// Where a text is held.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub fn new(frame: &Frame) -> Self {
        Self { body: String::new(), frame: *frame }
    }

    /// The whole, with what a screen reader says of it. `data` is what the page's pointer read-out needs.
    pub fn finish(self, label: &str, data: &str) -> String {
        let Frame { width, height, .. } = self.frame;
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{data}>{}</svg>",
            number(width),
            number(height),
            escape(label),
            self.body
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(element);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let d = format!("M{} {}L{} {}", number(from.0), number(from.1), number(to.0), number(to.1));
        self.path(class, &d);
    }

    pub fn path(&mut self, class: &str, d: &str) {
        self.push(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    /// A rectangle with what a pointer held over it reads, if anything.
    pub fn rect(&mut self, class: &str, from: (f64, f64), to: (f64, f64), title: &str) {
        let (x, y) = (from.0.min(to.0), from.1.min(to.1));
        let (width, height) = ((from.0 - to.0).abs(), (from.1 - to.1).abs());
        let title =
            if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{title}</rect>",
            number(x),
            number(y),
            number(width),
            number(height)
        ));
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            number(at.0),
            number(at.1),
            escape(text)
        ));
    }

    /// The shape that tells series `place` from others where colours cannot.
    pub fn marker(&mut self, class: &str, place: usize, at: (f64, f64), title: &str) {
        let title =
            if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        let d = marker(place, at);
        self.push(format_args!("<path class=\"marker {class}\" d=\"{d}\">{title}</path>"));
    }

    /// Vertical grid lines with latencies below them.
    pub fn latency_axis_below(&mut self, scale: &Log, unit: Unit) {
        let (bottom, top) = self.frame.y();
        for tick in scale.latency_ticks(56.0, unit) {
            let x = scale.at(tick.value);
            self.line("grid", (x, bottom), (x, top));
            self.tick_below(x, &tick.label);
        }
    }

    /// Horizontal grid lines with latencies at their left.
    pub fn latency_axis_left(&mut self, scale: &Log, unit: Unit) {
        let ticks = scale.latency_ticks(24.0, unit);
        self.grid_left(ticks.iter().map(|tick| (scale.at(tick.value), tick.label.as_str())));
    }

    /// Horizontal grid lines with labels at their left.
    pub fn grid_left<'a>(&mut self, lines: impl Iterator<Item = (f64, &'a str)>) {
        let (left, right) = self.frame.x();
        for (y, label) in lines {
            self.line("grid", (left, y), (right, y));
            self.text("tick", (left - 8.0, y + 4.0), Anchor::End, label);
        }
    }

    /// Times below the plot.
    pub fn time_axis_below(&mut self, scale: &Linear) {
        let (bottom, _) = self.frame.y();
        for tick in scale.time_ticks(64.0) {
            let x = scale.at(tick.value);
            self.line("axis", (x, bottom), (x, bottom + 4.0));
            self.tick_below(x, &tick.label);
        }
    }

    /// A label below the axis, centred on `x` as far as the edge of the plot lets it.
    fn tick_below(&mut self, x: f64, label: &str) {
        let (bottom, _) = self.frame.y();
        let half = label.chars().count() as f64 * TICK_CHARACTER / 2.0;
        let x = x.min(self.frame.width - half).max(half);
        self.text("tick", (x, bottom + 18.0), Anchor::Middle, label);
    }

    /// The line below the plot.
    pub fn base(&mut self) {
        let ((left, right), (bottom, _)) = (self.frame.x(), self.frame.y());
        self.line("axis", (left, bottom), (right, bottom));
    }

    /// The limit as an upright line, if it lies within the scale.
    pub fn limit_upright(&mut self, scale: &Log, terms: Terms) {
        let (bottom, top) = self.frame.y();
        if let Some(limit) = terms.limit {
            let x = scale.at(limit.0 as f64);
            let near_right = x > self.frame.width * 0.75;
            let (anchor, shift) = if near_right { (Anchor::End, -5.0) } else { (Anchor::Start, 5.0) };
            self.line("limit", (x, bottom), (x, top - 10.0));
            self.text(
                "limit-label",
                (x + shift, top - 6.0),
                anchor,
                &format!("limit {}", super::scale::latency(limit.0 as f64, terms.unit)),
            );
        }
    }
}

/// The outline of a marker: round, square, triangle, diamond, triangle upside down, cross, bar, plus.
pub(crate) fn marker(place: usize, (x, y): (f64, f64)) -> String {
    let shape = match super::shape(place) {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        1 => "m-3.5-3.5h7v7h-7z",
        2 => "m0-4.5l4.5 8h-9z",
        3 => "m0-5l5 5l-5 5l-5-5z",
        4 => "m0 4.5l4.5-8h-9z",
        5 => "m-4-4l8 8m0-8l-8 8",
        6 => "m-5-2h10v4h-10z",
        _ => "m-5 0h10m-5-5v10",
    };
    format!("M{} {}{shape}", number(x), number(y))
}

/// A coordinate with at most one decimal; what is not a number would be a bug, and stands at zero.
pub(crate) fn number(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() as i64 } else { 0 };
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{:.1}", tenths as f64 / 10.0) }
}

/// Text within an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, c| {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        escaped
    })
}

/// A path that is written step by step, without points that fall onto the one before.
#[derive(Default)]
pub(crate) struct Path {
    d: String,
    last: Option<(f64, f64)>,
}

impl Path {
    /// Begins anew at a point.
    pub fn start(&mut self, x: f64, y: f64) {
        let _ = write!(self.d, "M{} {}", number(x), number(y));
        self.last = Some((x, y));
    }

    /// Goes level to `x`, then upright to `y`.
    pub fn step(&mut self, x: f64, y: f64) {
        if let Some((last_x, last_y)) = self.last {
            if number(x) != number(last_x) {
                let _ = write!(self.d, "H{}", number(x));
            }
            if number(y) != number(last_y) {
                let _ = write!(self.d, "V{}", number(y));
            }
        }
        self.last = Some((x, y));
    }

    /// Back to where it began.
    pub fn close(&mut self) {
        self.d.push('z');
    }

    pub fn as_str(&self) -> &str {
        &self.d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_label_of_a_time_axis_stays_within_its_plot() {
        let mut moved = 0;
        for seconds in [10.0, 60.0, 90.0, 150.0, 5_400.0, 9_000.0, 86_400.0] {
            let mut canvas = Canvas::new(&Frame::new(400.0, 250.0));
            let range = canvas.frame.x();
            canvas.time_axis_below(&Linear::new(seconds, range));
            for text in canvas.body.split("<text").skip(1) {
                let x: f64 = text.split(" x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
                let label = text.split('>').nth(1).unwrap().split('<').next().unwrap();
                let half = label.chars().count() as f64 * 3.0;
                assert!(x + half <= 400.0, "{seconds}: {label} at {x}");
                moved += usize::from(range.1 + half > 400.0 && x > 300.0);
            }
        }
        assert!(moved > 0, "no label was long enough");
    }
}
