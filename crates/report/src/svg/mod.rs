//! Plots as SVG text. Each plot is drawn from figures alone and fits both colour schemes: colours, dashes and fonts
//! come from the page's style sheet by class.
//!
//! Whatever is drawn is first merged by columns of pixels, keeping maxima, so that the size of a plot depends on its
//! width and never on the length of the run.

pub(crate) mod ccdf;
pub(crate) mod lane;
pub(crate) mod quantiles;
pub(crate) mod ranges;
pub(crate) mod scale;
pub(crate) mod spread;
pub(crate) mod timeline;

mod bins;
mod canvas;

pub(crate) use bins::Bins;
pub(crate) use canvas::{Canvas, Frame};

/// Classes that the style sheet has colours, dashes and markers for; more series begin anew.
pub(crate) const SERIES_CLASSES: usize = 8;

/// The class of the series at `place`.
pub(crate) fn series_class(place: usize) -> String {
    format!("s{}", place % SERIES_CLASSES)
}

/// The same plot for a wide screen or paper and for a narrow one: the style sheet shows one of them.
pub(crate) fn both(wide: Frame, narrow: Frame, draw: impl Fn(&Frame) -> String) -> String {
    let (wide, narrow) = (draw(&wide), draw(&narrow));
    format!("<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>")
}

/// A small drawing for a legend: a line or shape of another class than those of series.
pub(crate) fn legend_class(class: &str, d: &str) -> String {
    format!("<svg viewBox=\"0 0 34 14\" aria-hidden=\"true\"><path class=\"{class}\" d=\"{d}\"/></svg>")
}

/// A small drawing for a legend: the line of the series at `place`, with its marker where the plot has one.
pub(crate) fn legend_sample(place: usize, marked: bool) -> String {
    let class = series_class(place);
    let marker = match marked {
        true => format!("<path class=\"marker {class}\" d=\"{}\"/>", canvas::marker(place, (17.0, 7.0))),
        false => String::new(),
    };
    format!(
        "<svg viewBox=\"0 0 34 14\" aria-hidden=\"true\"><path class=\"line {class}\" d=\"M1 7H33\"/>{marker}</svg>"
    )
}
