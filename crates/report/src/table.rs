//! The table that a run ends with: Enea's minimum, average and maximum for each load, and what Enea lacks.

use record::{Record, Unit};
use units::{CpuId, Nanos, Total};

use crate::figures::{Figures, LATENCIES, Row, Terms};
use crate::foot::{self, Notes};
use crate::grid::{Cell, Column, Grid};
use crate::group::{Group, cpu_name, cpus, groups, histograms_end};
use crate::idle_cost::{self, IdleCost};
use crate::many;
use crate::style::{Style, Tone};
use crate::text::{aligned, percent, wrap};

/// The table, for every CPU as well if `per_cpu`, with its foot: what `bench` prints at its end, but for the next steps.
pub fn bench(record: &Record, per_cpu: bool, notes: Notes, style: &Style) -> String {
    format!("{}\n{}", table(record, per_cpu, style), foot::foot(record, notes, style))
}

/// The table of all CPUs together, then one for each CPU if `per_cpu`. Wraps into stacked tables where the columns
/// do not fit side by side.
pub fn table(record: &Record, per_cpu: bool, style: &Style) -> String {
    let groups = groups(record);
    if groups.is_empty() || !record.is_measured() {
        return "nothing was measured\n".into();
    }
    let terms = Terms::of(record);
    // A guest in instruction time has one CPU: no need to say that all are meant.
    let corner = match terms.unit {
        Unit::Instructions => "instructions".into(),
        _ => (terms.shown.corner)(&record.header.plan),
    };
    let mut text = grid(&groups, |group| group.figures(), terms, &corner).render(style);
    for grid in cpu_grids(record, &groups, per_cpu, terms) {
        text.push('\n');
        text.push_str(&grid.render(style));
    }
    let costs = idle_cost::costs(record);
    if !costs.is_empty() {
        text.push('\n');
        text.push_str(&idle_grid(&costs, terms).render(style));
    }
    text.push('\n');
    text.push_str(&notes(&groups, terms, style));
    text
}

/// What the idle states cost, a column a load.
fn idle_grid(costs: &[IdleCost], terms: Terms) -> Grid {
    let cell = |cost: &Option<i64>| Cell::plain(idle_cost::shown(*cost, terms.unit));
    let cells = |cost: &IdleCost| cost.differences.iter().map(cell).collect();
    Grid {
        corner: "as-is - restrict".into(),
        labels: LATENCIES.iter().map(|row| label(*row, terms)).collect(),
        columns: costs.iter().map(|cost| Column { head: cost.name.clone(), cells: cells(cost) }).collect(),
    }
}

/// What stands below the table of all CPUs: one for each, or a line for each where they are many; the worst lines of many if
/// not all were asked for.
fn cpu_grids(record: &Record, groups: &[Group<'_>], per_cpu: bool, terms: Terms) -> Vec<Grid> {
    match (many::are_many(record), per_cpu) {
        (true, true) => vec![many::all(record, groups, terms, cell)],
        (true, false) => vec![many::worst(record, groups, terms, cell)],
        // The table of a single CPU is that of all.
        (false, true) => match cpus(record).as_slice() {
            [Some(_)] => Vec::new(),
            cpus => cpus.iter().map(|cpu| cpu_grid(groups, *cpu, terms)).collect(),
        },
        (false, false) => Vec::new(),
    }
}

fn cpu_grid(groups: &[Group<'_>], cpu: Option<CpuId>, terms: Terms) -> Grid {
    let corner = format!("{}, {}", cpu_name(cpu), terms.unit.name());
    grid(groups, |group| group.figures_of(cpu), terms, &corner)
}

fn grid(groups: &[Group<'_>], figures: impl Fn(&Group<'_>) -> Figures, terms: Terms, corner: &str) -> Grid {
    let rows = terms.rows();
    let column = |group: &Group<'_>| {
        let figures = figures(group);
        let head = [group.head(), group.marks()].concat();
        Column { head, cells: rows.iter().map(|row| cell(&figures, *row, terms)).collect() }
    };
    Grid {
        corner: corner.into(),
        labels: rows.iter().map(|row| label(*row, terms)).collect(),
        columns: groups.iter().map(column).collect(),
    }
}

/// Corrected figures carry a mark that the notes explain.
fn label(row: Row, terms: Terms) -> String {
    let corrected = terms.shown.corrects && matches!(row, Row::Percentile(_) | Row::OverLimit);
    format!("{}{}", terms.name(row), if corrected { " *" } else { "" })
}

fn cell(figures: &Figures, row: Row, terms: Terms) -> Cell {
    if terms.is_latency(row) {
        return figures.latency(row).map_or_else(Cell::none, |latency| Cell {
            text: bounded(figures, latency, aligned(terms.unit, latency)),
            tone: if terms.exceeded(latency) { Tone::Bad } else { Tone::Plain },
        });
    }
    Cell::plain(plain_cell(figures, row))
}

/// `text` with the mark of a lower bound, where it is one.
pub(crate) fn bounded(figures: &Figures, latency: Nanos, text: String) -> String {
    if figures.is_bound(latency) { format!(">{}", text.trim_start()) } else { text }
}

/// A cell that is no latency.
pub(crate) fn plain_cell(figures: &Figures, row: Row) -> String {
    match row {
        Row::Samples => figures.observed.count.to_string(),
        Row::Missed => figures.missed.to_string(),
        Row::Late => percent(figures.not_in_time(), figures.expected),
        Row::Own(place) => figures.own.shown(place),
        Row::OverLimit => figures.over_limit.unwrap_or(0).to_string(),
        _ => String::new(),
    }
}

/// What the marks in the table mean, and up to when its percentiles hold.
fn notes(groups: &[Group<'_>], terms: Terms, style: &Style) -> String {
    let mut notes: Vec<String> = terms.shown.notes.iter().map(|&note| note.to_owned()).collect();
    let missed: u64 = groups.iter().map(|group| group.figures().missed).total();
    if missed > 0 && terms.shown.corrects {
        notes.push(format!("min, avg, max: of the samples alone, without the {missed} missed"));
    }
    notes.extend(groups.iter().flat_map(Group::cut_off_notes));
    notes.iter().flat_map(|note| wrap("", note, 2, style.width)).map(|line| line + "\n").collect()
}

impl Group<'_> {
    /// Up to when the percentiles hold of scenarios that were cut off between two saves of their histograms.
    pub(crate) fn cut_off_notes(&self) -> Vec<String> {
        let note = |end: Nanos, length: Nanos| {
            let (name, length) = (self.name(), length.rounded());
            if end == Nanos::ZERO {
                return format!(
                    "{name}: cut off after {length}, before a histogram was saved: no percentiles"
                );
            }
            format!("{name}: cut off after {length}; percentiles hold for the first {}", end.rounded())
        };
        self.scenarios
            .iter()
            .filter_map(|scenario| Some(note(histograms_end(scenario)?, scenario.length)))
            .collect()
    }
}
