//! When it happened: the run second by second, and its worst samples.

use record::time::UtcTime;
use record::{Record, Scenario, Series};
use units::{InOrder, Nanos};

use super::prepared::Prepared;
use super::view::{Block, Cell, DataTable, Figure, Section, heads, in_unit, unit_name};
use crate::figures::Terms;
use crate::group::cpu_name;
use crate::svg::timeline::{self, Step, Stretch};
use crate::svg::{Frame, both};

/// The worst samples shown.
const MOST_SAMPLES: usize = 20;
/// Rows of the timeline's table; a longer run is merged into longer steps.
const MOST_ROWS: usize = 120;

/// The timeline and the worst samples.
pub(crate) fn sections(record: &Record, prepared: &Prepared<'_>) -> Vec<Section> {
    let stretches: Vec<_> = record.scenarios.iter().map(stretch).collect();
    if stretches.is_empty() {
        return Vec::new();
    }
    let page = &prepared.terms.shown.page;
    let (wide, narrow) = (Frame::new(1040.0, 280.0), Frame::new(400.0, 250.0));
    let figure = Figure {
        caption: format!("{}{}{}", page.timeline.0, in_unit(prepared.terms.unit), page.timeline.1),
        legend: Vec::new(),
        svg: both(wide, narrow, |frame| timeline::plot(&prepared.axes, &stretches, frame)),
        tables: vec![timeline_table(&stretches, prepared.terms)],
    };
    let lead = "The run from its start to its end. Where several seconds fall onto one point, the greatest is shown.";
    vec![
        Section::new("timeline", "Timeline", lead, vec![Block::Figure(figure)]),
        Section::new(
            "worst",
            "Worst samples",
            page.worst.0,
            vec![Block::Table(worst_table(record, prepared.terms))],
        ),
    ]
}

fn stretch(scenario: &Scenario) -> Stretch {
    let head = &scenario.head;
    Stretch {
        name: head.planned.load.clone(),
        from: head.offset,
        to: head.offset + scenario.length,
        steps: steps(scenario),
    }
}

/// The maxima of all series, step by step.
fn steps(scenario: &Scenario) -> Vec<Step> {
    let length = scenario.series.iter().map(|series| series.timeline.step).max().unwrap_or_default();
    let mut blocks = Vec::new();
    for (series, block, place) in scenario.series.iter().flat_map(placed) {
        let place = (series.timeline.step.saturating_mul(place).0 / length.0.max(1)) as usize;
        if blocks.len() <= place {
            blocks.resize(place + 1, record::Block::default());
        }
        blocks[place].merge(block);
    }
    let end = scenario.head.offset + scenario.length;
    let at = |place: usize| (scenario.head.offset + length.saturating_mul(place as u64)).min(end);
    blocks
        .iter()
        .enumerate()
        .filter_map(|(place, block)| {
            let maximum = block.observed.maximum()?;
            Some(Step { from: at(place), to: at(place + 1), maximum, missed: block.missed })
        })
        .filter(|step| step.from < step.to)
        .collect()
}

fn placed(series: &Series) -> impl Iterator<Item = (&Series, &record::Block, u64)> {
    series.timeline.blocks.iter().zip(0..).map(move |(block, place)| (series, block, place))
}

fn timeline_table(stretches: &[Stretch], terms: Terms) -> DataTable {
    let steps: usize = stretches.iter().map(|stretch| stretch.steps.len()).sum();
    let together = steps.div_ceil(MOST_ROWS).max(1);
    let rows = stretches
        .iter()
        .flat_map(|stretch| stretch.steps.chunks(together).map(|steps| row(stretch, steps, terms)))
        .collect();
    let mut head = heads("from", &["to", &format!("max, {}", unit_name(terms.unit))]);
    head.insert(2, Cell::text("load"));
    head.extend(terms.shown.corrects.then(|| Cell::number("missed")));
    DataTable::new("Maxima over the run", head, rows).fold()
}

fn row(stretch: &Stretch, steps: &[Step], terms: Terms) -> Vec<Cell> {
    let mut merged = steps[0];
    steps[1..].iter().for_each(|step| timeline::merge(&mut merged, step));
    let mut cells = vec![
        Cell::text(seconds(merged.from, 0)),
        Cell::number(seconds(merged.to, 0)),
        Cell::text(&*stretch.name),
        Cell::latency(Some(merged.maximum), terms),
    ];
    cells.extend(terms.shown.corrects.then(|| Cell::count(merged.missed)));
    cells
}

/// `+12.5 s` into the run, with some decimals.
fn seconds(time: Nanos, decimals: usize) -> String {
    format!("+{:.decimals$} s", time.as_secs_f64())
}

fn worst_table(record: &Record, terms: Terms) -> DataTable {
    let mut samples: Vec<_> = record
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.series.iter().map(move |series| (scenario, series)))
        .flat_map(|(scenario, series)| (0..series.worst.len()).map(move |place| (scenario, series, place)))
        .collect();
    samples.order_by_key(|(_, series, place)| std::cmp::Reverse(series.worst[*place].latency));
    let rows = samples.into_iter().take(MOST_SAMPLES).map(|found| sample_row(found, terms)).collect();
    let (value, time, number) = terms.shown.page.worst_heads;
    let mut head = vec![
        Cell::number(format!("{value}, {}", unit_name(terms.unit))),
        Cell::text("load"),
        Cell::text("CPU"),
        Cell::text(time),
        Cell::number("since the load began"),
    ];
    head.extend(number.map(Cell::number));
    head.extend(terms.shown.page.worst_parts.iter().map(|&part| Cell::number(part)));
    DataTable::new(terms.shown.page.worst.1, head, rows)
}

/// The sample at `place` among the worst of its series.
fn sample_row((scenario, series, place): (&Scenario, &Series, usize), terms: Terms) -> Vec<Cell> {
    let sample = &series.worst[place];
    let moment = UtcTime(scenario.head.started.0.saturating_add(sample.due.0 / 1_000_000_000));
    let repeat = if scenario.head.planned.repeat > 1 {
        format!(" #{}", scenario.head.planned.repeat)
    } else {
        String::new()
    };
    let mut cells = vec![
        Cell::latency(Some(sample.latency), terms),
        Cell::text(format!("{}{repeat}", scenario.head.planned.load)),
        Cell::text(cpu_name(series.cpu)),
        Cell::text(moment.to_string()),
        Cell::number(seconds(sample.due, 6)),
    ];
    cells.extend(terms.shown.page.worst_heads.2.map(|_| Cell::count(sample.activation)));
    let parts = series.own.parts_of_worst(place).unwrap_or_default();
    let part = |number: usize| parts.get(number).copied().flatten();
    let numbers = 0..terms.shown.page.worst_parts.len();
    cells.extend(numbers.map(|number| Cell::latency(part(number), terms)));
    cells
}
