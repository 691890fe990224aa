//! Records side by side, before each of them in full.

use record::{Record, Unit};
use statistics::QuantileInterval;

use super::distribution::legend;
use super::view::{Block, Cell, DataTable, Figure, Section, figure, heads, in_unit, unit_name};
use crate::compare::{Comparison, NO_COMMON_UNIT, ONE_DRAW, TABLES, letter, ratio_text};
use crate::differences::Weight;
use crate::figures::{Row, Terms};
use crate::svg::both;
use crate::svg::ranges::{self, Range};

/// Whether they may be compared, the ranges as a plot, and Enea's tables.
pub(crate) fn sections(records: &[Record]) -> Vec<Section> {
    let comparison = Comparison::of(records);
    let mut sections = vec![comparable(&comparison)];
    sections.extend(comparison.unit().map(|unit| side_by_side(&comparison, unit)));
    sections
}

fn comparable(comparison: &Comparison<'_>) -> Section {
    let pairs: Vec<_> = comparison.pairs().collect();
    let lead = comparison.consent().unwrap_or(
        "Not comparable: these runs were not made under the same conditions. The reasons come first.",
    );
    let rows: Vec<Vec<Cell>> = pairs
        .iter()
        .flat_map(|(letter, differences)| differences.iter().map(move |difference| (letter, difference)))
        .map(|(letter, difference)| {
            let weight = match difference.weight {
                Weight::Forbids => "forbids a comparison",
                Weight::Note => "note",
                Weight::Draw => "each run draws its own",
            };
            [
                format!("A and {letter}"),
                difference.what.clone(),
                difference.left.clone(),
                difference.right.clone(),
                weight.into(),
            ]
            .map(Cell::text)
            .to_vec()
        })
        .collect();
    let mut blocks = vec![Block::Table(records_table(comparison.records))];
    if !rows.is_empty() {
        let head = ["records", "what", "A", "the other", "weight"].map(Cell::text).to_vec();
        blocks.push(Block::Table(DataTable::new("Differences", head, rows)));
    }
    match comparison.unit() {
        None => blocks.push(Block::Paragraph(NO_COMMON_UNIT.into())),
        Some(Unit::Instructions) => blocks.push(Block::Paragraph(ONE_DRAW.into())),
        Some(Unit::Microseconds) => {}
    }
    Section::new("comparable", "May these records be compared?", lead, blocks)
}

/// What the letters stand for.
fn records_table(records: &[Record]) -> DataTable {
    let row = |(place, record): (usize, &Record)| {
        let (header, kernel) = (&record.header, &record.header.machine.kernel);
        [
            letter(place),
            header.machine.host.clone(),
            kernel.release.clone(),
            kernel.preemption.to_string(),
            header.started.to_string(),
            record.judgement.verdict.to_string(),
            header.note.clone().unwrap_or_default(),
        ]
        .map(Cell::text)
        .to_vec()
    };
    let head =
        ["record", "machine", "kernel", "preemption", "begun", "verdict", "note"].map(Cell::text).to_vec();
    DataTable::new("Records", head, records.iter().enumerate().map(row).collect())
}

fn side_by_side(comparison: &Comparison<'_>, unit: Unit) -> Section {
    let rows = ranges_of(comparison);
    let figure = Figure {
        caption: format!(
            "From the least over the average (upright stroke) to the greatest latency (marker){}",
            in_unit(unit)
        ),
        legend: legend((0..comparison.records.len()).map(letter), true),
        svg: both(ranges::frame(&rows, 1040.0), ranges::frame(&rows, 400.0), |frame| {
            ranges::plot(&rows, unit, frame)
        }),
        tables: Vec::new(),
    };
    let answers = comparison.answers().into_iter().map(Block::Paragraph);
    let mut blocks: Vec<Block> = answers.chain([Block::Figure(figure)]).collect();
    for (row, title) in TABLES {
        blocks.push(Block::Table(latencies(comparison, row, format!("{title}, {}", unit_name(unit)))));
    }
    blocks.push(Block::Table(intervals(comparison, unit)));
    blocks.push(Block::Table(ratios(comparison)));
    blocks.extend(comparison.cautions().into_iter().map(Block::Paragraph));
    Section::new("side-by-side", "Side by side", "", blocks)
}

fn ranges_of(comparison: &Comparison<'_>) -> Vec<ranges::Row> {
    let range = |record: usize, column: usize| {
        let figures = comparison.figures[record][column].as_ref()?;
        Some(Range {
            name: letter(record),
            minimum: figures.observed.minimum()?,
            average: figures.average()?,
            maximum: figures.observed.maximum()?,
            draws: Vec::new(),
        })
    };
    let names = comparison.heads().into_iter().map(|head| head.join(" "));
    names
        .enumerate()
        .map(|(column, name)| ranges::Row {
            name,
            first: 0,
            ranges: (0..comparison.records.len()).map(|record| range(record, column)).collect(),
        })
        .collect()
}

fn table(
    comparison: &Comparison<'_>,
    caption: String,
    skip: usize,
    cell: impl Fn(usize, usize) -> Cell,
) -> DataTable {
    let names: Vec<_> = comparison.heads().into_iter().map(|head| head.join(" ")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let row = |record: usize| {
        let cells = (0..names.len()).map(|column| cell(record, column));
        std::iter::once(Cell::text(letter(record))).chain(cells).collect()
    };
    DataTable::new(caption, heads("record", &names), (skip..comparison.records.len()).map(row).collect())
}

fn latencies(comparison: &Comparison<'_>, row: Row, title: String) -> DataTable {
    table(comparison, title, 0, |record, column| {
        let figures = comparison.figures[record][column].as_ref();
        let terms = Terms::of(&comparison.records[record]);
        Cell::latency(figures.and_then(|figures| figures.latency(row)), terms)
    })
}

/// Where p99.9 of each record lies, at 95 %.
fn intervals(comparison: &Comparison<'_>, unit: Unit) -> DataTable {
    let caption = format!("p99.9 with its 95 % interval within the run, {}", unit_name(unit));
    table(comparison, caption, 0, |record, column| {
        let text = |interval: QuantileInterval| {
            let high = interval.high.map_or("?".into(), |high| figure(unit, high));
            format!("{} to {high}", figure(unit, interval.low))
        };
        Cell::number(comparison.tails[record][column].quantile.map_or_else(|| "–".into(), text))
    })
}

fn ratios(comparison: &Comparison<'_>) -> DataTable {
    let caption = "Greatest latencies of blocks against those of A, with the 95 % interval within the runs";
    table(comparison, caption.into(), 1, |record, column| {
        let short = |ratio: f64| ratio_text(ratio).replace(" x", "\u{202f}×");
        let text = |found: statistics::Comparison| {
            format!("{} ({} to {})", short(found.ratio), short(found.interval.0), short(found.interval.1))
        };
        Cell::number(comparison.ratio(record, column).map_or_else(|| "–".into(), text))
    })
}
