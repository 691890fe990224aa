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
pub(crate) mod trade;

mod bins;
mod canvas;

pub(crate) use bins::Bins;
pub(crate) use canvas::{Canvas, Frame};

/// Classes that the style sheet has colours, dashes and markers for; more series have these colours with other dashes and
/// markers.
pub(crate) const SERIES_CLASSES: usize = 8;

/// The class of the series at `place`: its colour, and from the ninth on its dashes. So 64 lines differ.
pub(crate) fn series_class(place: usize) -> String {
    let colour = place % SERIES_CLASSES;
    if place < SERIES_CLASSES { format!("s{colour}") } else { format!("s{colour} d{}", shape(place)) }
}

/// Which dashes or marker the series at `place` has: each round of the colours begins one further.
fn shape(place: usize) -> usize {
    (place + place / SERIES_CLASSES) % SERIES_CLASSES
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const SHEET: &str = include_str!("../../templates/page.css");

    #[test]
    fn sixty_four_lines_are_drawn_in_different_ways() {
        let classes: BTreeSet<_> = (0..64).map(series_class).collect();
        assert_eq!(classes.len(), 64);
        for class in 0..SERIES_CLASSES {
            assert!(
                SHEET.contains(&format!(".s{class} {{")) && SHEET.contains(&format!(".line.d{class} {{"))
            );
        }
        let markers: BTreeSet<_> =
            (0..64).map(|place| (place % 8, canvas::marker(place, (0.0, 0.0)))).collect();
        assert_eq!(markers.len(), 64, "colour and marker together");
    }

    /// Colours of the light scheme and of the dark one, by their names.
    fn schemes() -> Vec<BTreeMap<&'static str, [f64; 3]>> {
        let (light, dark) = SHEET.split_once("prefers-color-scheme: dark").unwrap();
        [light, dark.split_once("* {").unwrap().0].map(colours).to_vec()
    }

    fn colours(sheet: &'static str) -> BTreeMap<&'static str, [f64; 3]> {
        let all = sheet.split("--").skip(1).filter_map(|part| part.split_once(": #"));
        let channel =
            |hex: &str, from: usize| f64::from(u8::from_str_radix(&hex[from..from + 2], 16).unwrap());
        all.map(|(name, hex)| (name, [0, 2, 4].map(|from| linear(channel(hex, from) / 255.0)))).collect()
    }

    fn linear(channel: f64) -> f64 {
        if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
    }

    /// What an eye makes of a colour: CIE L*a*b* under D65.
    fn lab([red, green, blue]: [f64; 3]) -> [f64; 3] {
        let x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505;
        let y = luminance([red, green, blue]);
        let z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089;
        let cube = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        [116.0 * cube(y) - 16.0, 500.0 * (cube(x) - cube(y)), 200.0 * (cube(y) - cube(z))]
    }

    fn luminance([red, green, blue]: [f64; 3]) -> f64 {
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn colours_of_lines_can_be_distinguished_from_each_other_and_from_the_paper() {
        for scheme in schemes() {
            let names: Vec<String> = (0..SERIES_CLASSES).map(|place| format!("c{place}")).collect();
            let paper = luminance(scheme["paper"]) + 0.05;
            for (place, name) in names.iter().enumerate() {
                let colour = scheme[name.as_str()];
                let contrast = (luminance(colour) + 0.05) / paper;
                assert!(contrast.max(contrast.recip()) >= 2.9, "{name} on paper: {contrast}");
                for other in &names[..place] {
                    let (one, two) = (lab(colour), lab(scheme[other.as_str()]));
                    let distance = one.iter().zip(two).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(distance >= 15.0, "{name} and {other}: {distance}");
                }
            }
        }
    }
}
