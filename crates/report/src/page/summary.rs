//! The top of a record's part: the verdict, four figures, and the table.

use record::verdict::Verdict;
use units::{Nanos, Total};

use super::prepared::{Column, Prepared};
use super::view::{Block, Cell, DataTable, Section, figure, grouped, unit_name};
use crate::differences::length;
use crate::figures::{LATENCIES, Row, Terms};
use crate::group::cpu_name;
use crate::idle_cost;
use crate::instrument::Account;
use crate::svg::scale;
use crate::table;
use crate::text::percent;

/// What a reader sees first.
pub(crate) struct Summary {
    pub verdict: String,
    /// A sign beside the word: no meaning hangs on a colour alone.
    pub sign: &'static str,
    pub reasons: Vec<String>,
    pub speaks_for: String,
    pub does_not_speak_for: String,
    /// Where and when.
    pub place: Vec<String>,
    pub note: Option<String>,
    pub keys: Vec<KeyFigure>,
}

/// A figure in large print.
pub(crate) struct KeyFigure {
    pub name: &'static str,
    pub value: String,
    pub detail: String,
}

/// The verdict and the key figures.
pub(crate) fn summary(prepared: &Prepared<'_>) -> Summary {
    let record = prepared.record;
    let (header, judgement) = (&record.header, &record.judgement);
    Summary {
        verdict: judgement.verdict.to_string(),
        sign: sign(judgement.verdict),
        reasons: judgement.reasons.clone(),
        speaks_for: judgement.speaks_for.clone(),
        does_not_speak_for: judgement.does_not_speak_for.clone(),
        place: place(header),
        note: header.note.clone(),
        keys: vec![worst(prepared), requirement(prepared), account(prepared), time(prepared)],
    }
}

/// Host, kernel, CPU and time.
fn place(header: &record::Header) -> Vec<String> {
    let machine = &header.machine;
    let preemption =
        machine.kernel.preemption.value().map_or(String::new(), |mode| format!(", preemption {mode}"));
    let kernel = format!("Linux {}{preemption}", machine.kernel.release);
    let mut place = vec![machine.host.clone(), kernel];
    match &machine.lab {
        Some(lab) => place.push(format!("a guest of the lab in {}, clock: {}", lab.emulator, lab.time)),
        None => place.extend(machine.cpu_model.value().cloned()),
    }
    place.push(header.started.to_string());
    place
}

/// What stands beside a verdict's word.
pub(crate) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Measured => "•",
        Verdict::Pass => "✓",
        Verdict::Inconclusive => "?",
        Verdict::Error => "!",
        Verdict::Fail => "✕",
    }
}

fn worst(prepared: &Prepared<'_>) -> KeyFigure {
    let unit = prepared.terms.unit;
    let (value, detail) = match prepared.record.worst() {
        None => ("–".into(), "nothing was measured".into()),
        Some((latency, scenario, series)) => (
            format!(
                "{}{} {}",
                if series.is_bound(latency) { ">" } else { "" },
                figure(unit, latency).trim_end_matches(['\u{2007}', '\u{2008}']),
                unit_name(unit)
            ),
            format!("under {}, {}", scenario.head.planned.load, cpu_name(series.cpu)),
        ),
    };
    KeyFigure { name: prepared.terms.shown.page.worst_value, value, detail }
}

fn requirement(prepared: &Prepared<'_>) -> KeyFigure {
    let over: u64 = prepared.columns.iter().filter_map(|column| column.figures.over_limit).total();
    let (value, detail) = match prepared.terms.limit {
        None => ("none".into(), "without a limit nothing can fail".into()),
        Some(limit) => (
            format!("≤\u{202f}{}", scale::latency(limit.0 as f64, prepared.terms.unit)),
            format!("{} {}", grouped(over), prepared.terms.shown.page.over),
        ),
    };
    KeyFigure { name: "Requirement", value, detail }
}

/// Whether what was measured and missed is what was due.
fn accounts(record: &record::Record) -> String {
    let series = record.scenarios.iter().flat_map(|scenario| &scenario.series);
    let unknown: u64 = series.map(|series| series.expected().saturating_sub(series.accounted())).total();
    if unknown == 0 {
        "every one accounted for".into()
    } else {
        format!("{} not accounted for", grouped(unknown))
    }
}

fn account(prepared: &Prepared<'_>) -> KeyFigure {
    match prepared.terms.shown.page.account {
        Account::Due(name) => due(prepared, name),
        Account::Share { name, part, whole, values } => {
            let sum = |place| prepared.columns.iter().map(|column| column.figures.own.value(place)).total();
            let count = prepared.columns.iter().map(|column| column.figures.observed.count).total();
            let (part, whole): (u64, u64) = (sum(part), sum(whole));
            KeyFigure {
                name,
                value: format!("{}\u{202f}%", percent(part, whole)),
                detail: format!("in {} {values}, of {}", grouped(count), Nanos(whole).rounded()),
            }
        }
    }
}

/// How many values were due, by `name`, and what became of them.
fn due(prepared: &Prepared<'_>, name: &'static str) -> KeyFigure {
    let missed: u64 = prepared.columns.iter().map(|column| column.figures.missed).total();
    KeyFigure {
        name,
        value: grouped(prepared.record.activations()),
        detail: format!("{}, {} missed", accounts(prepared.record), grouped(missed)),
    }
}

fn time(prepared: &Prepared<'_>) -> KeyFigure {
    let record = prepared.record;
    let plan = &record.header.plan;
    let time = record.scenarios.iter().fold(Nanos::ZERO, |sum, scenario| sum + scenario.length);
    let length = match plan.duration {
        Some(duration) if plan.samples.is_none() => duration.rounded(),
        _ => length(plan),
    };
    let count = crate::text::count_of(record.scenarios.len() as u64, "scenario");
    KeyFigure {
        name: "Measured",
        value: time.rounded(),
        detail: format!("{count} of {length}, {}", plan.cpus.named()),
    }
}

/// The table of all loads, and one a load for each CPU.
pub(crate) fn figures(prepared: &Prepared<'_>) -> Section {
    let terms = prepared.terms;
    let (rows, unit) = (terms.rows(), unit_name(terms.unit));
    let mut head: Vec<_> = rows.iter().map(|row| Cell::number(terms.name(*row))).collect();
    head.insert(0, Cell::text("load"));
    let body = prepared.columns.iter().map(|column| load_row(column, &rows, terms)).collect();
    let caption = format!("{}, all CPUs, in {unit}", terms.shown.page.figures.0);
    let mut blocks = vec![Block::Table(DataTable::new(caption, head, body))];
    blocks.extend(idle_table(prepared).map(Block::Table));
    let notes = prepared.columns.iter().flat_map(|column| column.notes.iter().cloned());
    blocks.extend(notes.map(Block::Paragraph));
    let cpus = prepared.columns.iter().map(|column| cpu_table(column, terms)).collect();
    blocks.push(Block::Folded("Each CPU under each load".into(), cpus));
    let (heading, lead) = terms.shown.page.figures;
    Section::new("figures", heading, lead, blocks)
}

/// What the idle states cost, where both C-state policies were measured.
fn idle_table(prepared: &Prepared<'_>) -> Option<DataTable> {
    let costs = idle_cost::costs(prepared.record);
    let mut head: Vec<_> = LATENCIES.iter().map(|row| Cell::number(prepared.terms.name(*row))).collect();
    head.insert(0, Cell::text("load"));
    let body = costs.iter().map(|cost| {
        let mut cells = vec![Cell::text(cost.name.join(" "))];
        cells.extend(
            cost.differences
                .iter()
                .map(|difference| Cell::number(idle_cost::shown(*difference, prepared.terms.unit))),
        );
        cells
    });
    let caption =
        format!("What the idle states cost: as-is less restrict, in {}", unit_name(prepared.terms.unit));
    (!costs.is_empty()).then(|| DataTable::new(caption, head, body.collect()))
}

fn load_row(column: &Column, rows: &[Row], terms: Terms) -> Vec<Cell> {
    let marks =
        if column.marks.is_empty() { String::new() } else { format!(" ({})", column.marks.join(", ")) };
    let mut cells = vec![Cell::text(format!("{}{marks}", column.name))];
    cells.extend(rows.iter().map(|row| cell(&column.figures, *row, terms)));
    cells
}

fn cell(figures: &crate::figures::Figures, row: Row, terms: Terms) -> Cell {
    match row {
        Row::Samples => Cell::count(figures.observed.count),
        Row::Missed => Cell::count(figures.missed),
        Row::OverLimit => Cell::count(figures.over_limit.unwrap_or(0)),
        row if terms.is_latency(row) => {
            let cell = Cell::latency(figures.latency(row), terms);
            let text =
                figures.latency(row).map(|latency| table::bounded(figures, latency, cell.text.clone()));
            Cell { text: text.unwrap_or(cell.text), ..cell }
        }
        row => Cell::number(table::plain_cell(figures, row)),
    }
}

/// The CPUs of one load.
fn cpu_table(column: &Column, terms: Terms) -> DataTable {
    let rows = terms.rows();
    let mut head: Vec<_> = rows.iter().map(|row| Cell::number(terms.name(*row))).collect();
    head.insert(0, Cell::text("CPU"));
    let body = column.cpus.iter().map(|(cpu, figures)| {
        let mut cells = vec![Cell::text(cpu_name(*cpu))];
        cells.extend(rows.iter().map(|row| cell(figures, *row, terms)));
        cells
    });
    DataTable::new(
        format!("Each CPU under {}, in {}", column.name, unit_name(terms.unit)),
        head,
        body.collect(),
    )
}
