//! Why the worst wake-ups were late: causes of each load, and the account of its worst wake-ups.

use explain::{CauseTotal, totals};
use record::{Activity, Explanation, Hit, Overview, Record, Unit};
use units::Nanos;

use super::view::{Block, Cell, DataTable, Figure, Key, Section, figure, heads, unit_name};
use crate::explanation::{certainty, doubts, head, is_guest, no_parts, traced, what_helps, words, words_of};
use crate::overview;
use crate::svg::{Frame, both, lane, legend_class};
use crate::text::{percent, sentence};

/// Wake-ups of each load whose account is drawn.
const DRAWN: usize = 3;
/// Pieces in a table.
const PIECES: usize = 60;

/// The section; none where nothing was traced.
pub(crate) fn section(record: &Record) -> Option<Section> {
    if record.explanations.is_empty() {
        return None;
    }
    let unit = record.header.machine.unit();
    let blocks = record.explanations.iter().flat_map(|one| of_load(record, one, unit)).collect();
    let lead = "Each load was measured once more while the kernel recorded what the CPUs did. The pieces of a wake-up sum to its \
                latency, the causes too. No limit is judged by these figures: they contain what tracing costs.";
    Some(Section::new("causes", "Why the worst wake-ups were late", lead, blocks))
}

fn of_load(record: &Record, explanation: &Explanation, unit: Unit) -> Vec<Block> {
    let load = &explanation.scenario.head.planned.load;
    let mut blocks =
        vec![Block::Heading(load.clone()), Block::Paragraph(sentence(&head(record, explanation, unit)))];
    let doubts = doubts(explanation, unit);
    blocks.extend(doubts.iter().map(|doubt| Block::Paragraph(sentence(doubt))));
    if explanation.hits.is_empty() {
        blocks.extend(of_all(record, explanation, unit));
        return blocks;
    }
    let totals = totals(&explanation.hits);
    blocks.push(Block::Table(causes(&totals.causes, totals.time, unit)));
    let helps = what_helps(&totals.causes, is_guest(record));
    blocks.extend(helps.iter().map(|help| Block::Paragraph(sentence(help))));
    blocks.extend(explanation.hits.iter().take(DRAWN).map(|hit| Block::Figure(account(hit, unit))));
    blocks.extend(of_all(record, explanation, unit));
    blocks
}

/// Parts of all activations, and what ran beside threads.
fn of_all(record: &Record, explanation: &Explanation, unit: Unit) -> Vec<Block> {
    let (overview, all) = (&explanation.overview, traced(explanation));
    let why_no_parts = no_parts(record, explanation);
    let mut blocks: Vec<Block> = why_no_parts.iter().map(|why| Block::Paragraph(sentence(why))).collect();
    if !overview.parts.is_empty() {
        blocks.push(Block::Table(parts(overview, all, unit)));
        blocks.extend(overview::end_to_end(overview, unit).map(|text| Block::Paragraph(sentence(&text))));
    }
    if !overview.handlers.is_empty() {
        blocks.push(Block::Table(handlers(overview, unit)));
    }
    blocks
}

fn parts(overview: &Overview, all: u64, unit: Unit) -> DataTable {
    let rows = overview.parts.iter().map(|part| {
        let name = Cell::text(part.name.words());
        [name].into_iter().chain(overview::figures(part, unit).map(Cell::number)).collect()
    });
    let unit = unit_name(unit);
    let rest = ["median", "p99", "worst"].map(|figure| format!("{figure}, {unit}"));
    DataTable::new(
        overview::heading(overview, all),
        heads("part", &rest.each_ref().map(String::as_str)),
        rows.collect(),
    )
}

fn handlers(overview: &Overview, unit: Unit) -> DataTable {
    let rows = overview.handlers.iter().map(|handler| {
        vec![
            Cell::text(overview::name(handler)),
            Cell::count(handler.count),
            Cell::number(figure(unit, handler.time)),
            Cell::number(figure(unit, handler.longest)),
            Cell::number(handler.longest_on.to_string()),
            Cell::text(overview::what_can_be_done(handler)),
        ]
    });
    let unit = unit_name(unit);
    let mut head = heads("what ran and is no thread", &["number", &format!("time, {unit}")]);
    head.extend([
        Cell::number(format!("longest, {unit}")),
        Cell::number("on CPU"),
        Cell::text("as a thread, elsewhere?"),
    ]);
    DataTable::new(
        "Interrupts, softirqs, calls, timers and work items, the longest first",
        head,
        rows.collect(),
    )
    .at_most(PIECES)
    .fold()
}

fn causes(causes: &[CauseTotal], time: Nanos, unit: Unit) -> DataTable {
    let rows = causes.iter().map(|cause| {
        vec![
            Cell::text(words(cause)),
            Cell::count(cause.hits as u64),
            Cell::number(figure(unit, cause.time)),
            Cell::number(percent(cause.time.0, time.0) + " %"),
            Cell::number(figure(unit, cause.worst)),
        ]
    });
    let unit = unit_name(unit);
    let rest = ["wake-ups", &format!("time, {unit}"), "share", &format!("worst, {unit}")];
    DataTable::new("Causes, the one that took most time first", heads("cause", &rest), rows.collect())
}

fn account(hit: &Hit, unit: Unit) -> Figure {
    let frame = |width| Frame { left: 10.0, right: 10.0, top: 28.0, ..Frame::new(width, 92.0) };
    let draw = |frame: &Frame| lane::plot(hit, unit, frame, Activity::words);
    let used =
        |series: usize| hit.pieces.iter().any(|piece| lane::series(&piece.activity, hit.tid) == series);
    let sample = |series: usize| legend_class(&format!("area s{series}"), "M1 2H33V12H1Z");
    let legend = lane::LEGEND.iter().filter(|(series, _)| used(*series));
    Figure {
        caption: format!("{} on CPU {}, activation {}", unit.with_name(hit.latency), hit.cpu, hit.activation),
        legend: legend
            .map(|(series, name)| Key { sample: sample(*series), name: (*name).to_owned() })
            .collect(),
        svg: both(frame(900.0), frame(380.0), draw),
        tables: vec![causes_of(hit, unit), pieces(hit, unit), stacks(hit)]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect(),
    }
}

/// What the wake-up's pieces come to, how sure that is, and what shows it.
fn causes_of(hit: &Hit, unit: Unit) -> DataTable {
    let rows = hit.causes.iter().map(|cause| {
        vec![
            Cell::text(words_of(cause)),
            Cell::number(figure(unit, cause.length)),
            Cell::number(percent(cause.length.0, hit.latency.0) + " %"),
            Cell::text(certainty(cause.certainty)),
            Cell::text(cause.witness.clone()),
        ]
    });
    let time = format!("time, {}", unit_name(unit));
    let mut head = heads("cause", &[&time, "share"]);
    head.extend([Cell::text("certainty"), Cell::text("seen by")]);
    DataTable::new("Its causes", head, rows.collect()).at_most(PIECES)
}

fn pieces(hit: &Hit, unit: Unit) -> DataTable {
    let mut at = Nanos::ZERO;
    let rows = hit.pieces.iter().map(|piece| {
        let begin = at;
        at += piece.length;
        vec![
            Cell::text(figure(unit, begin)),
            Cell::text(piece.stage.words()),
            Cell::text(piece.activity.words()),
            Cell::number(figure(unit, piece.length)),
        ]
    });
    let after = format!("after due, {}", unit_name(unit));
    let head = vec![Cell::text(after), Cell::text("stage"), Cell::text("the CPU"), Cell::number("length")];
    DataTable::new("Its account", head, rows.collect()).at_most(PIECES).fold()
}

fn stacks(hit: &Hit) -> DataTable {
    let stacks =
        [("where it was woken", &hit.waking_stack), ("where the thread before gave way", &hit.switch_stack)];
    let known = stacks.into_iter().filter(|(_, stack)| !stack.is_empty());
    let rows = known.map(|(name, stack)| vec![Cell::text(name), Cell::text(stack.join(" < "))]);
    let head = vec![Cell::text("stack"), Cell::text("callers, innermost first")];
    DataTable::new("Stacks", head, rows.collect()).fold()
}
