//! The table that a run ends with: S0's minimum, average and maximum for each load, and what S0 lacks.

use record::Record;
use units::{CpuId, Nanos};

use crate::figures::{Figures, ROWS, Row};
use crate::foot;
use crate::grid::{Cell, Column, Grid};
use crate::group::{Group, cpu_name, cpus, groups, histograms_end};
use crate::idle_cost::{self, IdleCost};
use crate::style::{Style, Tone};
use crate::text::{micros_aligned, percent, wrap};

/// The table, for every CPU as well if `per_cpu`, with its foot: everything that `bench` prints at its end.
pub fn bench(record: &Record, per_cpu: bool, style: &Style) -> String {
    format!("{}\n{}", table(record, per_cpu, style), foot::foot(record, style))
}

/// The table of all CPUs together, then one for each CPU if `per_cpu`. Wraps into stacked tables where the columns
/// do not fit side by side.
pub fn table(record: &Record, per_cpu: bool, style: &Style) -> String {
    let groups = groups(record);
    if groups.is_empty() {
        return "nothing was measured\n".into();
    }
    let limit = record.header.plan.limit;
    let mut text = grid(&groups, |group| group.figures(), limit, "all CPUs, us").render(style);
    let cpus = if per_cpu { cpus(record) } else { Vec::new() };
    for cpu in cpus {
        text.push('\n');
        text.push_str(&cpu_grid(&groups, cpu, limit).render(style));
    }
    let costs = idle_cost::costs(record);
    if !costs.is_empty() {
        text.push('\n');
        text.push_str(&idle_grid(&costs).render(style));
    }
    text.push('\n');
    text.push_str(&notes(&groups, style));
    text
}

/// What the idle states cost, a column a load.
fn idle_grid(costs: &[IdleCost]) -> Grid {
    let cells =
        |cost: &IdleCost| cost.differences.iter().map(|cost| Cell::plain(idle_cost::shown(*cost))).collect();
    Grid {
        corner: "as-is - restrict".into(),
        labels: idle_cost::rows().iter().map(|row| label(*row, None)).collect(),
        columns: costs.iter().map(|cost| Column { head: cost.name.clone(), cells: cells(cost) }).collect(),
    }
}

fn cpu_grid(groups: &[Group<'_>], cpu: Option<CpuId>, limit: Option<Nanos>) -> Grid {
    grid(groups, |group| group.figures_of(cpu), limit, &format!("{}, us", cpu_name(cpu)))
}

fn grid(
    groups: &[Group<'_>],
    figures: impl Fn(&Group<'_>) -> Figures,
    limit: Option<Nanos>,
    corner: &str,
) -> Grid {
    let rows = rows(limit);
    let column = |group: &Group<'_>| {
        let figures = figures(group);
        let head = [group.head(), group.marks()].concat();
        Column { head, cells: rows.iter().map(|row| cell(&figures, *row, limit)).collect() }
    };
    Grid {
        corner: corner.into(),
        labels: rows.iter().map(|row| label(*row, limit)).collect(),
        columns: groups.iter().map(column).collect(),
    }
}

/// The rows of a run with or without a limit.
pub(crate) fn rows(limit: Option<Nanos>) -> Vec<Row> {
    ROWS.into_iter().filter(|row| *row != Row::OverLimit || limit.is_some()).collect()
}

/// Corrected figures carry a mark that the notes explain.
fn label(row: Row, limit: Option<Nanos>) -> String {
    let corrected = matches!(row, Row::Percentile(_) | Row::OverLimit);
    format!("{}{}", row.name(limit), if corrected { " *" } else { "" })
}

fn cell(figures: &Figures, row: Row, limit: Option<Nanos>) -> Cell {
    if row.is_latency() {
        return figures.latency(row).map_or_else(Cell::none, |latency| Cell {
            text: micros_aligned(latency),
            tone: if limit.is_some_and(|limit| latency > limit) { Tone::Bad } else { Tone::Plain },
        });
    }
    Cell::plain(plain_cell(figures, row))
}

/// A cell that is no latency.
pub(crate) fn plain_cell(figures: &Figures, row: Row) -> String {
    match row {
        Row::Samples => figures.observed.count.to_string(),
        Row::Missed => figures.missed.to_string(),
        Row::Late => percent(figures.not_in_time(), figures.expected),
        Row::OverLimit => figures.over_limit.unwrap_or(0).to_string(),
        _ => String::new(),
    }
}

/// What the marks in the table mean, and up to when its percentiles hold.
fn notes(groups: &[Group<'_>], style: &Style) -> String {
    let mut notes = vec![
        "* of all activations due: a missed one counts with the latency it would have had; \
         - means too few samples"
            .to_owned(),
        "late: share of activations served a period or more late, or missed".to_owned(),
    ];
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
