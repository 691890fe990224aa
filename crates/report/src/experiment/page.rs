//! An experiment as a page.

use std::collections::{BTreeMap, BTreeSet};

use record::{Effect, Unit};
use units::{InOrder, Nanos};

use super::conclusion::{conclusion, method, noise};
use super::figures::Reckoned;
use super::{Arm, Experiment, Measured, costs, published, table};
use crate::cost::Trade;
use crate::figures::{Figures, Terms};
use crate::page::conditions::doubt_view;
use crate::page::distribution::{SMALL, binned, legend, tail_figure};
use crate::page::view::{
    Block, Cell, DataTable, Figure, HistogramView, Histograms, Section, VerdictView, heads, in_unit,
};
use crate::page::{facts, summary};
use crate::svg::ccdf::Line;
use crate::svg::ranges::{self, Range};
use crate::svg::spread::{self, Axes};
use crate::svg::{SERIES_CLASSES, both, series_class};
use crate::text::shell;
use crate::warnings::{Doubt, doubts};

/// The page: one HTML file, no network.
///
/// # Errors
/// Only if the template cannot be written into memory.
pub fn page(experiment: &Experiment) -> Result<String, std::fmt::Error> {
    let reckoned = Reckoned::of(experiment);
    let mut sections = vec![answer(&reckoned), arms(experiment)];
    if !experiment.blocks.is_empty() {
        sections.push(figures(&reckoned));
    }
    sections.extend(comparisons(&reckoned));
    sections.extend(reckoned.trades().iter().map(Trade::section));
    sections.extend(costs::section(&reckoned));
    sections.extend(source(&reckoned));
    if !experiment.blocks.is_empty() {
        sections.extend(distributions(&reckoned));
    }
    sections.push(blocks(&reckoned));
    sections.extend(doubts_section(experiment));
    sections.push(conditions(experiment));
    crate::page::of_sections(&experiment.title, experiment.kind, place(experiment), experiment.unit, sections)
}

/// Where and when. Guests have a clock of their own, and one experiment can have several kernels.
fn place(experiment: &Experiment) -> Vec<String> {
    let machines = || experiment.blocks.iter().map(|one| &one.record.header.machine);
    let mut place = Vec::new();
    if let Some(machine) = machines().next() {
        place.push(machine.lab.as_ref().map_or_else(
            || machine.host.clone(),
            |lab| format!("guests of the lab in {}, clock: {}", lab.emulator, lab.time),
        ));
        let kernels: BTreeSet<&str> = machines().map(|machine| machine.kernel.release.as_str()).collect();
        place.push(match kernels.len() {
            1 => format!("Linux {}", machine.kernel.release),
            several => format!("{several} kernels"),
        });
    }
    place.push(experiment.begun.clone());
    place
}

/// The question, the verdict, and what to do next.
fn answer(reckoned: &Reckoned<'_>) -> Section {
    let experiment = reckoned.experiment;
    let found = conclusion(reckoned);
    let mut blocks = vec![Block::Verdict(VerdictView {
        class: found.verdict.to_string(),
        sign: summary::sign(found.verdict),
        headline: found.headline,
        reasons: found.lines,
    })];
    if experiment.answer.is_some() {
        blocks.push(Block::Paragraph(noise(reckoned)));
    }
    blocks.extend(experiment.caution().map(|caution| Block::Paragraph(caution.into())));
    if !found.next.is_empty() {
        blocks.push(Block::Heading("What to do next".into()));
        blocks.push(Block::Commands(found.next));
    }
    Section::new("answer", &experiment.question, "", blocks)
}

/// What the arms are.
fn arms(experiment: &Experiment) -> Section {
    let row = |arm: &Arm| {
        let notes = arm.notes.join(" ");
        [arm.name.clone(), arm.what.clone(), notes].map(Cell::text).to_vec()
    };
    let rows: Vec<Vec<Cell>> = experiment.arms.iter().map(row).collect();
    let head = ["arm", "what differs", "to be known"].map(Cell::text).to_vec();
    let mut table = DataTable::new("Each block is measured in one arm", head, rows);
    table.drop_empty_last();
    let mut blocks = vec![Block::Table(table)];
    let notes = |change: &super::Change| {
        let name = change.name.clone();
        change.notes.iter().map(move |note| (name.clone(), note.clone())).collect::<Vec<_>>()
    };
    let notes: Vec<(String, String)> = experiment.changes.iter().flat_map(notes).collect();
    if !notes.is_empty() {
        blocks.push(Block::Heading("To be known of the changes".into()));
        blocks.push(Block::Facts(notes));
    }
    Section::new("arms", "What was compared", "", blocks)
}

/// The figures of each arm: drawn, then as a table.
fn figures(reckoned: &Reckoned<'_>) -> Section {
    let unit = reckoned.experiment.unit;
    let caption = format!(
        "From the least over the average (upright stroke) to the greatest latency (marker){}; small strokes: the {} of each \
         block",
        in_unit(unit),
        reckoned.tail_name()
    );
    let figure = ranges_figure(reckoned.experiment, &ranges_of(reckoned), unit, caption);
    let blocks = vec![Block::Figure(figure), Block::Table(table::arms(reckoned).on_page())];
    Section::new("figures", "The arms side by side", "", blocks)
}

/// A row a load with a line an arm; of a single load a row an arm, with its name.
fn ranges_of(reckoned: &Reckoned<'_>) -> Vec<ranges::Row> {
    let experiment = reckoned.experiment;
    let range = |arm: usize, load: usize| {
        let place = &reckoned.places[arm][load];
        let observed = &place.together.observed;
        Some(Range {
            name: experiment.arms[arm].name.clone(),
            minimum: observed.minimum()?,
            average: observed.average()?,
            maximum: observed.maximum()?,
            draws: place.tails(),
        })
    };
    let arms = 0..experiment.arms.len();
    if experiment.loads.len() == 1 {
        let row = |arm| {
            let range = range(arm, 0)?;
            Some(ranges::Row { name: range.name.clone(), first: arm, ranges: vec![Some(range)] })
        };
        return arms.filter_map(row).collect();
    }
    by_load(experiment, range)
}

/// A row a load with a line an arm.
fn by_load(experiment: &Experiment, range: impl Fn(usize, usize) -> Option<Range>) -> Vec<ranges::Row> {
    let row = |(load, name): (usize, &String)| ranges::Row {
        name: name.clone(),
        first: 0,
        ranges: (0..experiment.arms.len()).map(|arm| range(arm, load)).collect(),
    };
    experiment.loads.iter().enumerate().map(row).collect()
}

/// From the least over the average to the greatest, with a legend where a line has no name of its own.
fn ranges_figure(experiment: &Experiment, rows: &[ranges::Row], unit: Unit, caption: String) -> Figure {
    let names = experiment.arms.iter().map(|arm| arm.name.clone());
    let has_names = rows.iter().all(|row| row.ranges.len() == 1);
    Figure {
        caption,
        legend: if has_names { Vec::new() } else { legend(names, true) },
        svg: both(ranges::frame(rows, 1040.0), ranges::frame(rows, 400.0), |frame| {
            ranges::plot(rows, unit, frame)
        }),
        tables: Vec::new(),
    }
}

fn comparisons(reckoned: &Reckoned<'_>) -> Option<Section> {
    let mut blocks = vec![Block::Table(table::comparisons(reckoned)?.on_page())];
    let failed = reckoned.comparisons.iter().filter_map(|compared| {
        let why = compared.found.as_ref().err()?;
        Some((reckoned.pair(compared), why.clone()))
    });
    let failed: Vec<(String, String)> = failed.collect();
    if !failed.is_empty() {
        blocks.push(Block::Heading("Not compared".into()));
        blocks.push(Block::Facts(failed));
    }
    blocks.extend(method(reckoned).into_iter().map(Block::Paragraph));
    let lead = "Below 1 the first of two arms has the shorter tail.";
    Some(Section::new("comparisons", "Comparisons", lead, blocks))
}

/// The source's figures, drawn the same way.
fn source(reckoned: &Reckoned<'_>) -> Option<Section> {
    let table = table::published(reckoned)?;
    let experiment = reckoned.experiment;
    let mut blocks = Vec::new();
    let micros = experiment.arms.iter().any(|arm| arm.published.as_ref().is_some_and(|one| one.unit == "us"));
    if micros {
        blocks.push(Block::Figure(drawn_source(experiment)));
    }
    blocks.push(Block::Table(table.on_page()));
    blocks.extend(published::agreement(reckoned).into_iter().map(Block::Paragraph));
    Some(Section::new("source", "The source's figures", "", blocks))
}

fn drawn_source(experiment: &Experiment) -> Figure {
    let range = |arm: usize, load: usize| {
        let arm = &experiment.arms[arm];
        let latencies = arm.published.as_ref()?.latencies.get(&experiment.loads[load])?;
        let [minimum, average, maximum] = latencies.map(|figure| Nanos(figure * 1_000));
        Some(Range { name: arm.name.clone(), minimum, average, maximum, draws: Vec::new() })
    };
    let caption = "The source's own latencies: least, average, greatest".to_owned();
    ranges_figure(experiment, &by_load(experiment, range), Unit::Microseconds, caption)
}

/// For each load the tails of the arms in one plot, and a histogram an arm; all on the same axes.
fn distributions<'a>(reckoned: &'a Reckoned<'a>) -> [Section; 2] {
    let experiment = reckoned.experiment;
    let terms = Terms::of_latencies(experiment.unit);
    let together = || reckoned.places.iter().flatten().map(|place| &place.together);
    let axes = Axes::of(together(), terms);
    let (mut tails, mut histograms) = (Vec::new(), Vec::new());
    for (load, name) in experiment.loads.iter().enumerate() {
        if experiment.loads.len() > 1 {
            tails.push(Block::Heading(name.clone()));
            histograms.push(Block::Heading(name.clone()));
        }
        let measured = experiment.arms.iter().zip(&reckoned.places);
        let measured: Vec<(usize, &Arm, &Figures)> = measured
            .enumerate()
            .filter(|(_, (_, places))| places[load].blocks > 0)
            .map(|(place, (arm, places))| (place, arm, &places[load].together))
            .collect();
        // Lines beyond the number of colours would look alike.
        for some in measured.chunks(SERIES_CLASSES) {
            let line = |(_, arm, figures): &(usize, &'_ Arm, &'a Figures)| Line {
                name: arm.name.clone(),
                corrected: &figures.corrected,
            };
            let lines: Vec<_> = some.iter().map(line).collect();
            tails.push(Block::Figure(tail_figure(&axes, &lines)));
        }
        let plots = measured.iter().map(|(place, arm, figures)| histogram(&axes, *place, &arm.name, figures));
        histograms.push(Block::Histograms(Histograms {
            name: format!("arms-{load}"),
            switch: false,
            each: "",
            legend: Vec::new(),
            plots: plots.collect(),
        }));
    }
    let tail =
        "The share of activations later than a latency, all blocks of an arm together, missed ones included.";
    let histogram = "How often each latency was met. Both axes are logarithmic, and the same for all arms.";
    [
        Section::new("tails", "The tail of each arm", tail, tails),
        Section::new("histograms", "Histograms", histogram, histograms),
    ]
}

fn histogram(axes: &Axes, place: usize, name: &str, figures: &Figures) -> HistogramView {
    let label = format!("Histogram of latencies, {name}");
    let counts = axes.bins.counts(&figures.corrected);
    HistogramView {
        name: name.to_owned(),
        summed: spread::summed(axes, &counts, &series_class(place), &label, &SMALL),
        each: String::new(),
        table: binned(axes, format!("Latencies, {name}"), &[("activations".to_owned(), &figures.corrected)]),
    }
}

/// Order and seeds of the blocks, and what was left out.
fn blocks(reckoned: &Reckoned<'_>) -> Section {
    let experiment = reckoned.experiment;
    let terms = Terms::of_latencies(experiment.unit);
    let tail = reckoned.tail_name();
    let row = |(place, (one, figures)): (usize, (&Measured, &Vec<Option<Figures>>))| {
        let block = &one.block;
        let figures = Figures::sum(figures.iter().flatten(), None);
        let value = reckoned.tail.and_then(|tail| tail.of(&figures.corrected));
        vec![
            Cell::number((place + 1).to_string()),
            Cell::number(block.phase.to_string()),
            Cell::number(block.round.to_string()),
            Cell::number(block.seed.to_string()),
            Cell::text(experiment.name(&block.arm)),
            Cell::latency(value.map(|value| Nanos(value.figure() as u64)), terms),
            Cell::latency(figures.observed.maximum(), terms),
            Cell::text(&one.place),
        ]
    };
    let rows = experiment.blocks.iter().zip(&reckoned.blocks).enumerate().map(row).collect();
    let mut head = heads("block", &["phase", "round", "seed", "arm", &tail, "max", "record"]);
    for place in [4, 7] {
        head[place].class = "w";
    }
    head[0].class = "n";
    let mut blocks = vec![Block::Table(DataTable::new("Every block", head, rows).at_most(2_000).fold())];
    blocks.push(Block::Heading("Left out".into()));
    match experiment.missing.is_empty() {
        true => blocks.push(Block::Paragraph(
            "Nothing: every block that was asked for was measured, and counts.".into(),
        )),
        false => blocks.extend(experiment.missing.iter().cloned().map(Block::Paragraph)),
    }
    let lead = "Blocks with one seed have the same load and the same phases of the timer. Blocks are compared within a phase \
                only; the tables of arms and the plots hold all phases together.";
    Section::new("blocks", "Order and seeds", lead, blocks)
}

/// What the records of the blocks doubt, each doubt once; none where no record doubts anything.
fn doubts_section(experiment: &Experiment) -> Option<Section> {
    let mut all: Vec<(Doubt, BTreeMap<&str, usize>)> = Vec::new();
    for one in &experiment.blocks {
        for doubt in doubts(&one.record) {
            let known = all.iter().position(|(known, _)| known.id == doubt.id);
            let place = known.unwrap_or_else(|| {
                all.push((doubt, BTreeMap::new()));
                all.len() - 1
            });
            *all[place].1.entry(arm_name(experiment, one)).or_default() += 1;
        }
    }
    // What can have made latencies shorter comes first.
    all.order_by_key(|(doubt, _)| std::cmp::Reverse(doubt.effect == Effect::Inconclusive));
    let of = experiment.blocks.len();
    let view = |(doubt, arms): &(Doubt, BTreeMap<&str, usize>)| {
        let count: usize = arms.values().sum();
        let each: Vec<String> = arms.iter().map(|(arm, count)| format!("{arm} {count}")).collect();
        let first =
            doubt.findings.first().map_or(String::new(), |one| format!(" For one: {}.", one.evidence));
        let mut view = doubt_view(doubt, 1);
        view.findings = vec![format!("In {count} of {of} blocks: {}.{first}", each.join(", "))];
        view
    };
    let views: Vec<_> = all.iter().map(view).collect();
    let lead = "What the blocks' own records doubt. A doubt that all arms share blurs the comparison; one that an arm has for \
                itself can be what makes the difference.";
    (!views.is_empty()).then(|| Section::new("doubts", "Doubts", lead, vec![Block::Doubts(views)]))
}

fn arm_name<'a>(experiment: &'a Experiment, one: &Measured) -> &'a str {
    let known = experiment.arms.iter().find(|arm| arm.arm == one.block.arm);
    known.map_or("", |arm| &arm.name)
}

/// How it was measured, how to repeat it, and the machine.
fn conditions(experiment: &Experiment) -> Section {
    let mut blocks = vec![
        Block::Facts(experiment.conditions.clone()),
        Block::Heading("How to repeat it".into()),
        Block::Commands(vec![(shell(&experiment.command), String::new())]),
    ];
    if let Some((source, differs)) = &experiment.source {
        blocks.push(Block::Heading(format!("Source: {source}")));
        blocks.extend(differs.iter().cloned().map(Block::Paragraph));
    }
    if let Some(one) = experiment.blocks.first() {
        blocks.push(Block::Heading("Machine, as the first block found it".into()));
        let lab = one.record.header.machine.lab.as_ref();
        blocks.extend(lab.map(|lab| Block::Facts(facts::guest(lab))));
        blocks.push(Block::Facts(facts::machine(&one.record.header.machine)));
    }
    Section::new("conditions", "How it was measured", "", blocks)
}
