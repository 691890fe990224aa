//! A machine with many CPUs: the greatest value of each CPU under each load, in a line a CPU instead of a table.

use record::Record;
use units::{CpuId, InOrder, Nanos};

use crate::figures::{Figures, Row, Terms};
use crate::grid::{Cell, Column, Grid};
use crate::group::{Group, cpu_name, cpus};

/// Up to so many CPUs have a table each.
const FEW: usize = 16;
/// Of more, so many are shown where not all were asked for.
const WORST: usize = 10;

/// Whether a line stands for each CPU.
pub(crate) fn are_many(record: &Record) -> bool {
    cpus(record).len() > FEW
}

/// A line for each CPU, in their order.
pub(crate) fn all(
    record: &Record,
    groups: &[Group<'_>],
    terms: Terms,
    cell: fn(&Figures, Row, Terms) -> Cell,
) -> Grid {
    let lines = lines(record, groups);
    grid(&lines, groups, terms, cell, format!("max of each CPU, {}", terms.unit.name()))
}

/// A line for each of the CPUs with the greatest values, the greatest first.
pub(crate) fn worst(
    record: &Record,
    groups: &[Group<'_>],
    terms: Terms,
    cell: fn(&Figures, Row, Terms) -> Cell,
) -> Grid {
    let mut lines = lines(record, groups);
    lines.order_by_key(|line| std::cmp::Reverse(line.worst()));
    lines.truncate(WORST);
    grid(&lines, groups, terms, cell, format!("the {WORST} worst CPUs, max, {}", terms.unit.name()))
}

/// A CPU, and its figures in each column.
struct Line {
    cpu: Option<CpuId>,
    figures: Vec<Figures>,
}

impl Line {
    fn worst(&self) -> Option<Nanos> {
        self.figures.iter().filter_map(|figures| figures.latency(Row::Maximum)).max()
    }
}

fn lines(record: &Record, groups: &[Group<'_>]) -> Vec<Line> {
    let of = |cpu: Option<CpuId>| groups.iter().map(|group| group.figures_of(cpu)).collect();
    cpus(record).into_iter().map(|cpu| Line { cpu, figures: of(cpu) }).collect()
}

fn grid(
    lines: &[Line],
    groups: &[Group<'_>],
    terms: Terms,
    cell: fn(&Figures, Row, Terms) -> Cell,
    corner: String,
) -> Grid {
    let column = |(place, group): (usize, &Group<'_>)| Column {
        head: [group.head(), group.marks()].concat(),
        cells: lines.iter().map(|line| cell(&line.figures[place], Row::Maximum, terms)).collect(),
    };
    Grid {
        corner,
        labels: lines.iter().map(|line| cpu_name(line.cpu)).collect(),
        columns: groups.iter().enumerate().map(column).collect(),
    }
}
