//! The ladder as a page.

use record::Unit;
use statistics::{Comparison, Verdict};
use units::Nanos;

use super::figures::{Place, Reckoned, confidence, interval, no_comparison, one_in, ratio};
use super::{Ladder, Rung, published};
use crate::figures::{Figures, Terms};
use crate::page::distribution::legend;
use crate::page::view::{Block, Cell, DataTable, Figure, Section, grouped, heads, in_unit, unit_name};
use crate::svg::ccdf::{self, Line};
use crate::svg::ranges::{self, Range};
use crate::svg::spread::Axes;
use crate::svg::{Frame, both};

/// The page: one HTML file, no network.
///
/// # Errors
/// Only if the template cannot be written into memory.
pub fn page(ladder: &Ladder) -> Result<String, std::fmt::Error> {
    let reckoned = Reckoned::of(ladder);
    let mut sections = vec![summary(&reckoned), gains(&reckoned)];
    sections.extend(published_side(&reckoned));
    sections.push(tails(&reckoned));
    sections.push(rungs(&reckoned));
    sections.push(conditions(ladder));
    crate::page::of_sections(ladder.title.clone(), ladder.unit, sections)
}

/// The worst case of every load on every rung: drawn, then as tables.
fn summary(reckoned: &Reckoned<'_>) -> Section {
    let unit = reckoned.ladder.unit;
    let name = unit_name(unit);
    let blocks = vec![
        Block::Paragraph(reckoned.ladder.caution().into()),
        Block::Figure(figure(reckoned, &ranges_of(reckoned), unit)),
        Block::Table(by_rung(reckoned, format!("Greatest latency of all seeds, {name}"), Place::maximum)),
        Block::Table(by_rung(
            reckoned,
            format!("{}, the seed in the middle, {name}", reckoned.tail_name()),
            Place::tail,
        )),
    ];
    Section::new("summary", "Worst cases", "", blocks)
}

fn figure(reckoned: &Reckoned<'_>, rows: &[ranges::Row], unit: Unit) -> Figure {
    let names = reckoned.ladder.rungs.iter().map(|rung| rung.name.clone());
    Figure {
        caption: format!(
            "From the least over the average (upright stroke) to the greatest latency (marker){}; small strokes: the \
             tail of each seed",
            in_unit(unit)
        ),
        legend: legend(names, true),
        svg: both(ranges::frame(rows, 1040.0), ranges::frame(rows, 400.0), |frame| {
            ranges::plot(rows, unit, frame)
        }),
        tables: Vec::new(),
    }
}

fn ranges_of(reckoned: &Reckoned<'_>) -> Vec<ranges::Row> {
    let range = |rung: usize, load: usize| {
        let place = &reckoned.places[rung][load];
        Some(Range {
            name: reckoned.ladder.rungs[rung].name.clone(),
            minimum: place.minimum()?,
            average: place.average()?,
            maximum: place.maximum()?,
            draws: place.tails(),
        })
    };
    by_load(reckoned.ladder, range)
}

/// A row of the plot for each load.
fn by_load(ladder: &Ladder, range: impl Fn(usize, usize) -> Option<Range>) -> Vec<ranges::Row> {
    let row = |(load, name): (usize, &String)| ranges::Row {
        name: name.clone(),
        ranges: (0..ladder.rungs.len()).map(|rung| range(rung, load)).collect(),
    };
    ladder.loads.iter().enumerate().map(row).collect()
}

fn by_rung(reckoned: &Reckoned<'_>, caption: String, of: fn(&Place) -> Option<Nanos>) -> DataTable {
    let terms = Terms::of_latencies(reckoned.ladder.unit);
    let row = |(rung, places): (&Rung, &Vec<Place>)| {
        let cells = places.iter().map(|place| Cell::latency(of(place), terms));
        std::iter::once(Cell::text(&rung.name)).chain(cells).collect()
    };
    let rows = reckoned.ladder.rungs.iter().zip(&reckoned.places).map(row).collect();
    DataTable::new(caption, load_heads(reckoned.ladder, "rung"), rows)
}

fn load_heads(ladder: &Ladder, first: &str) -> Vec<Cell> {
    heads(first, &ladder.loads.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Two rows a step: the ratios, and their intervals.
fn gains(reckoned: &Reckoned<'_>) -> Section {
    let class = |comparison: &Comparison| match comparison.verdict {
        Verdict::Lower => "n gain",
        Verdict::Higher => "n over",
        Verdict::NoDifference => "n soft",
    };
    let cells = |comparison: &Option<Comparison>| match comparison {
        None => (Cell::number("–"), Cell::number("")),
        Some(comparison) => {
            let text = ratio(comparison).trim_matches(['(', ')', ' ']).to_owned();
            (Cell { text, class: class(comparison) }, Cell { text: interval(comparison), class: "n soft" })
        }
    };
    let rows = reckoned.steps.iter().flat_map(|step| {
        let (ratios, intervals): (Vec<_>, Vec<_>) = step.loads.iter().map(cells).unzip();
        let row = |head: String, cells: Vec<Cell>| std::iter::once(Cell::text(head)).chain(cells).collect();
        [row(step.name(reckoned.ladder), ratios), row(String::new(), intervals)]
    });
    let lead = confidence(reckoned).map_or_else(String::new, |confidence| {
        format!(
            "How many times the {} before it, and the interval that the seeds allow ({confidence:.0} % sure): below 1 \
             it gains. Pale: no more than the spread from seed to seed. Of steps that change nothing {} looks as if it did.",
            reckoned.tail_name(),
            one_in(confidence)
        )
    });
    let mut blocks = vec![Block::Table(DataTable::new(
        "Each rung against the one before, the last against the first",
        load_heads(reckoned.ladder, "step"),
        rows.collect(),
    ))];
    blocks.extend(reckoned.steps.iter().map(|step| {
        let [lower, higher, neither] = step.counts();
        Block::Paragraph(format!(
            "{}: lower under {lower} of the loads, higher under {higher}, no difference visible under {neither}.",
            step.name(reckoned.ladder)
        ))
    }));
    blocks.extend(no_comparison(reckoned).map(Block::Paragraph));
    Section::new("steps", "What each step gained", &lead, blocks)
}

/// The source's figures, drawn the same way.
fn published_side(reckoned: &Reckoned<'_>) -> Option<Section> {
    let ladder = reckoned.ladder;
    let unit = ladder.rungs.iter().find_map(|rung| Some(rung.published.as_ref()?.unit.clone()))?;
    let figures = |rung: usize, load: usize| {
        ladder.rungs[rung].published.as_ref()?.latencies.get(&ladder.loads[load]).copied()
    };
    let micros = |figure: u64| Nanos(figure * 1_000);
    let range = |rung: usize, load: usize| {
        figures(rung, load).map(|[minimum, average, maximum]| Range {
            name: ladder.rungs[rung].name.clone(),
            minimum: micros(minimum),
            average: micros(average),
            maximum: micros(maximum),
            draws: Vec::new(),
        })
    };
    let row = |(rung, each): (usize, &Rung)| {
        let cell =
            |load| figures(rung, load).map_or_else(|| "–".into(), |[a, b, c]| format!("{a} / {b} / {c}"));
        let cells = (0..ladder.loads.len()).map(|load| Cell::number(cell(load)));
        std::iter::once(Cell::text(&each.name)).chain(cells).collect()
    };
    let table = DataTable::new(
        format!("min / avg / max, {unit}"),
        load_heads(ladder, "rung"),
        ladder.rungs.iter().enumerate().map(row).collect(),
    );
    let sources: Vec<_> =
        ladder.rungs.iter().filter_map(|rung| Some(rung.published.as_ref()?.source.as_str())).collect();
    let mut blocks = Vec::new();
    if unit == "us" {
        blocks.push(Block::Figure(Figure {
            caption: "The source's own latencies: least, average, greatest".into(),
            ..figure(reckoned, &by_load(ladder, range), Unit::Microseconds)
        }));
    }
    blocks.push(Block::Table(table));
    if let Some(agreement) = published::agreement(reckoned) {
        blocks.push(Block::Paragraph(agreement.sentence()));
        blocks.extend(agreement.other.into_iter().map(Block::Paragraph));
    }
    Some(Section::new("source", "The source's figures", &sources.join(", "), blocks))
}

/// The complementary distribution of each load, a line a rung, on the same axes for all loads.
fn tails(reckoned: &Reckoned<'_>) -> Section {
    let terms = Terms::of_latencies(reckoned.ladder.unit);
    let together: Vec<Vec<Figures>> =
        reckoned.places.iter().map(|places| places.iter().map(Place::together).collect()).collect();
    let axes = Axes::of(together.iter().flatten(), terms);
    let figure = |(at, load): (usize, &String)| {
        let lines = reckoned
            .ladder
            .rungs
            .iter()
            .zip(&together)
            .map(|(rung, figures)| Line { name: rung.name.clone(), corrected: &figures[at].corrected });
        let lines: Vec<_> = lines.collect();
        let (wide, narrow) = (Frame::new(1040.0, 280.0), Frame::new(400.0, 280.0));
        let names = reckoned.ladder.rungs.iter().map(|rung| rung.name.clone());
        [
            Block::Heading(load.clone()),
            Block::Figure(Figure {
                caption: format!(
                    "Activations later than a latency{}, as a share of all",
                    in_unit(terms.unit)
                ),
                legend: legend(names, true),
                svg: both(wide, narrow, |frame| ccdf::plot(&axes, &lines, frame)),
                tables: Vec::new(),
            }),
        ]
    };
    let blocks = reckoned.ladder.loads.iter().enumerate().flat_map(figure).collect();
    let lead = "The share of activations later than a latency, all seeds together, missed ones included.";
    Section::new("tails", "The tail under each load", lead, blocks)
}

fn rungs(reckoned: &Reckoned<'_>) -> Section {
    let mut blocks = Vec::new();
    for (rung, places) in reckoned.ladder.rungs.iter().zip(&reckoned.places) {
        blocks.push(Block::Heading(format!("{}: {}", rung.name, rung.title)));
        blocks.push(Block::Paragraph(rung.booted.clone()));
        blocks.push(Block::Table(rung_table(reckoned, places)));
        blocks.extend(rung.missing.iter().chain(&rung.notes).cloned().map(Block::Paragraph));
    }
    Section::new("rungs", "Each rung", "", blocks)
}

fn rung_table(reckoned: &Reckoned<'_>, places: &[Place]) -> DataTable {
    let terms = Terms::of_latencies(reckoned.ladder.unit);
    let spread = |place: &Place| match place.tails().as_slice() {
        [] => "–".to_owned(),
        [first, .., last] if first != last => format!("{}–{}", grouped(first.0), grouped(last.0)),
        [only, ..] => grouped(only.0),
    };
    let row = |(load, place): (&String, &Place)| {
        vec![
            Cell::text(load),
            Cell::latency(place.minimum(), terms),
            Cell::latency(place.average(), terms),
            Cell::latency(place.tail(), terms),
            Cell::number(spread(place)),
            Cell::latency(place.maximum(), terms),
            Cell::count(place.samples()),
        ]
    };
    let tail = reckoned.tail_name();
    let head = heads("load", &["min", "avg", &tail, &format!("{tail}, seeds"), "max", "samples"]);
    let rows = reckoned.ladder.loads.iter().zip(places).map(row).collect();
    DataTable::new(unit_name(reckoned.ladder.unit), head, rows)
}

fn conditions(ladder: &Ladder) -> Section {
    let mut blocks: Vec<_> = ladder.conditions.iter().cloned().map(Block::Paragraph).collect();
    if !ladder.differs.is_empty() {
        blocks.push(Block::Heading("What differs from the source".into()));
        blocks.extend(ladder.differs.iter().cloned().map(Block::Paragraph));
    }
    Section::new("conditions", "How it was run", ladder.source.as_deref().unwrap_or_default(), blocks)
}
