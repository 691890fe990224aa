//! What several sections need of a record, reckoned once.

use record::Record;
use units::{CpuId, Nanos};

use crate::figures::{Figures, Terms};
use crate::group::{self, Group};
use crate::svg::spread::Axes;

/// A record with the figures of its columns.
pub(crate) struct Prepared<'a> {
    pub record: &'a Record,
    pub columns: Vec<Column>,
    pub terms: Terms,
    pub axes: Axes,
}

/// One load (and period, and C-state policy).
pub(crate) struct Column {
    pub name: String,
    /// What must be known before its figures are believed.
    pub marks: Vec<String>,
    /// Up to when its percentiles hold, where it was cut off.
    pub notes: Vec<String>,
    pub figures: Figures,
    pub cpus: Vec<(Option<CpuId>, Figures)>,
}

impl<'a> Prepared<'a> {
    pub fn of(record: &'a Record) -> Self {
        let cpus = group::cpus(record);
        let terms = Terms::of(record);
        let columns: Vec<_> =
            group::groups(record).iter().map(|group| Column::of(group, &cpus, terms.limit)).collect();
        let axes = Axes::of(columns.iter().map(|column| &column.figures), terms);
        Self { record, columns, terms, axes }
    }
}

impl Column {
    fn of(group: &Group<'_>, cpus: &[Option<CpuId>], limit: Option<Nanos>) -> Self {
        let cpus: Vec<_> = cpus.iter().map(|cpu| (*cpu, group.figures_of(*cpu))).collect();
        Self {
            name: group.name(),
            marks: group.marks(),
            notes: group.cut_off_notes(),
            figures: Figures::sum(cpus.iter().map(|(_, figures)| figures), limit),
            cpus,
        }
    }

    /// The place of the CPU with the greatest latency.
    pub fn worst_cpu(&self) -> usize {
        let maxima = self.cpus.iter().map(|(_, figures)| figures.observed.max).enumerate();
        maxima.max_by_key(|(_, maximum)| *maximum).map_or(0, |(place, _)| place)
    }
}
