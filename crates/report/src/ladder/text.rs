//! The ladder on a terminal.

use statistics::{Comparison, Verdict};
use units::Nanos;

use super::figures::{Place, Reckoned, confidence, interval, no_comparison, one_in, ratio};
use super::{Ladder, Rung, published};
use crate::grid::{Cell, Column, Grid};
use crate::style::{Style, Tone};
use crate::text::{aligned, wrap};

/// What it is, a table a rung, the worst cases side by side, what each step gained.
pub fn text(ladder: &Ladder, style: &Style) -> String {
    let reckoned = Reckoned::of(ladder);
    let mut text = style.paint(Tone::Strong, &ladder.title) + "\n";
    push(&mut text, &ladder.source.iter().chain(&ladder.conditions).cloned().collect::<Vec<_>>(), style);
    for (rung, places) in ladder.rungs.iter().zip(&reckoned.places) {
        text.push('\n');
        text.push_str(&rung_text(&reckoned, rung, places, style));
    }
    for grid in [worst(&reckoned), tails(&reckoned), gains(&reckoned)] {
        text.push('\n');
        text.push_str(&grid.render(style));
    }
    text.push('\n');
    push(&mut text, &notes(&reckoned), style);
    text
}

fn push(text: &mut String, lines: &[String], style: &Style) {
    lines.iter().flat_map(|line| wrap("", line, 2, style.width)).for_each(|line| *text += &(line + "\n"));
}

fn rung_text(reckoned: &Reckoned<'_>, rung: &Rung, places: &[Place], style: &Style) -> String {
    let mut text = String::new();
    let head = format!("{}: {} ({})", rung.name, rung.title, rung.booted);
    wrap("", &head, 2, style.width).iter().for_each(|line| text += &(style.paint(Tone::Strong, line) + "\n"));
    text += &rung_grid(reckoned, rung, places).render(style);
    for sentence in rung.missing.iter().chain(&rung.notes) {
        wrap("", sentence, 2, style.width)
            .iter()
            .for_each(|line| text += &(style.paint(Tone::Bad, line) + "\n"));
    }
    text
}

/// S0's table: minimum, average and maximum for each load, and the tail; below it the source's own figures.
fn rung_grid(reckoned: &Reckoned<'_>, rung: &Rung, places: &[Place]) -> Grid {
    let unit = reckoned.ladder.unit;
    let latency = |latency: Option<Nanos>| latency.map_or_else(Cell::none, |l| Cell::plain(aligned(unit, l)));
    let published = rung.published.as_ref();
    let cells = |load: &str, place: &Place| {
        let mut cells = vec![
            latency(place.minimum()),
            latency(place.average()),
            latency(place.tail()),
            latency(place.maximum()),
            Cell::plain(place.samples().to_string()),
        ];
        let figures = published.map(|published| published.latencies.get(load));
        let figure = |figures: Option<&[u64; 3]>, at: usize| {
            figures
                .map_or_else(Cell::none, |figures| Cell { text: figures[at].to_string(), tone: Tone::Faint })
        };
        cells.extend(figures.into_iter().flat_map(|figures| (0..3).map(move |at| figure(figures, at))));
        cells
    };
    let mut labels: Vec<String> =
        vec!["min".into(), "avg".into(), reckoned.tail_name(), "max".into(), "samples".into()];
    let unit_of = |published: &super::Published| {
        ["min", "avg", "max"].map(|row| format!("{row}, source, {}", published.unit))
    };
    labels.extend(published.into_iter().flat_map(unit_of));
    let column =
        |(load, place): (&String, &Place)| Column { head: vec![load.clone()], cells: cells(load, place) };
    Grid {
        corner: unit.name().into(),
        labels,
        columns: reckoned.ladder.loads.iter().zip(places).map(column).collect(),
    }
}

fn worst(reckoned: &Reckoned<'_>) -> Grid {
    by_rung(reckoned, &format!("max, {}", reckoned.ladder.unit.name()), Place::maximum)
}

fn tails(reckoned: &Reckoned<'_>) -> Grid {
    by_rung(reckoned, &format!("{}, {}", reckoned.tail_name(), reckoned.ladder.unit.name()), Place::tail)
}

/// A line a rung, a column a load.
fn by_rung(reckoned: &Reckoned<'_>, corner: &str, of: fn(&Place) -> Option<Nanos>) -> Grid {
    let unit = reckoned.ladder.unit;
    let cell =
        |place: &Place| of(place).map_or_else(Cell::none, |latency| Cell::plain(aligned(unit, latency)));
    let column = |(at, load): (usize, &String)| Column {
        head: vec![load.clone()],
        cells: reckoned.places.iter().map(|places| cell(&places[at])).collect(),
    };
    Grid {
        corner: corner.into(),
        labels: reckoned.ladder.rungs.iter().map(|rung| rung.name.clone()).collect(),
        columns: reckoned.ladder.loads.iter().enumerate().map(column).collect(),
    }
}

/// Two lines a step: the ratio, and its interval.
fn gains(reckoned: &Reckoned<'_>) -> Grid {
    let tone = |comparison: &Comparison| match comparison.verdict {
        Verdict::Lower => Tone::Good,
        Verdict::Higher => Tone::Bad,
        Verdict::NoDifference => Tone::Faint,
    };
    let cells = |comparison: &Option<Comparison>| match comparison {
        None => [Cell::none(), Cell { text: String::new(), tone: Tone::Faint }],
        Some(comparison) => [
            Cell { text: ratio(comparison), tone: tone(comparison) },
            Cell { text: interval(comparison), tone: Tone::Faint },
        ],
    };
    let column = |(at, load): (usize, &String)| Column {
        head: vec![load.clone()],
        cells: reckoned.steps.iter().flat_map(|step| cells(&step.loads[at])).collect(),
    };
    Grid {
        corner: format!("{}, each step", reckoned.tail_name()),
        labels: reckoned.steps.iter().flat_map(|step| [step.name(reckoned.ladder), String::new()]).collect(),
        columns: reckoned.ladder.loads.iter().enumerate().map(column).collect(),
    }
}

fn notes(reckoned: &Reckoned<'_>) -> Vec<String> {
    let ladder = reckoned.ladder;
    let tail = reckoned.tail_name();
    let mut notes = vec![
        "min, max: of all seeds together; avg: the mean of all".to_owned(),
        format!(
            "{tail}: of each seed for itself, missed activations included; the seed in the middle is shown"
        ),
    ];
    if let Some(confidence) = confidence(reckoned) {
        notes.push(format!(
            "each step: how many times the {tail} before it, with its interval ({confidence:.0} % sure); below 1 it \
             gains; in brackets: no more than the spread from seed to seed. Of steps that change nothing {wrong} looks as \
             if it did.",
            wrong = one_in(confidence)
        ));
    }
    notes.extend(no_comparison(reckoned));
    if let Some(agreement) = published::agreement(reckoned) {
        notes.push(agreement.sentence());
        notes.extend(agreement.other.iter().map(|line| format!("- {line}")));
    }
    if !ladder.differs.is_empty() {
        notes.push("What differs from the source:".into());
        notes.extend(ladder.differs.iter().map(|line| format!("- {line}")));
    }
    notes.push(ladder.caution().into());
    notes
}
