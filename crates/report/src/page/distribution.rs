//! How latencies are spread: the tail of all loads in one plot, and a histogram for each load.

use histogram::Histogram;
use record::Unit;

use super::prepared::{Column, Prepared};
use super::view::{
    Block, Cell, DataTable, Figure, HistogramView, Histograms, Key, Section, grouped, heads, in_unit,
    unit_name,
};
use crate::group::cpu_name;
use crate::svg::ccdf::{self, Line};
use crate::svg::scale::latency;
use crate::svg::spread::{self, Axes, Band};
use crate::svg::{Bins, Frame, both, legend_class, legend_sample};

/// The frame of one histogram of many.
pub(crate) const SMALL: Frame = Frame { left: 46.0, ..Frame::new(500.0, 230.0) };

/// The complementary distribution, then the histograms.
pub(crate) fn sections(prepared: &Prepared<'_>, place: usize) -> Vec<Section> {
    if prepared.columns.is_empty() {
        return Vec::new();
    }
    let page = &prepared.terms.shown.page;
    let columns = prepared.columns.iter();
    let lines: Vec<_> =
        columns.map(|one| Line { name: one.name.clone(), corrected: &one.figures.corrected }).collect();
    let spread = format!("{}{}{}", page.histograms.0, in_unit(prepared.terms.unit), page.histograms.1);
    vec![
        Section::new("tail", "The tail", page.tail, vec![Block::Figure(tail_figure(&prepared.axes, &lines))]),
        Section::new(
            "histograms",
            "Histograms",
            &spread,
            vec![Block::Histograms(histograms(prepared, place))],
        ),
    ]
}

/// The share of values beyond each latency, a line each, and the same as a table.
pub(crate) fn tail_figure(axes: &Axes, lines: &[Line<'_>]) -> Figure {
    let (wide, narrow) = (Frame::new(1040.0, 400.0), Frame::new(400.0, 330.0));
    let terms = axes.terms;
    Figure {
        caption: format!("{}{}, as a share of all", terms.shown.page.tail_caption, in_unit(terms.unit)),
        legend: legend(lines.iter().map(|line| line.name.clone()), true),
        svg: both(wide, narrow, |frame| ccdf::plot(axes, lines, frame)),
        tables: vec![tail_table(axes, lines)],
    }
}

/// Entries with the colour, the dashes and, where the plot has them, the marker of each series.
pub(crate) fn legend(names: impl Iterator<Item = String>, marked: bool) -> Vec<Key> {
    names.enumerate().map(|(place, name)| Key { sample: legend_sample(place, marked), name }).collect()
}

/// How many activations came later than round latencies.
fn tail_table(axes: &Axes, lines: &[Line<'_>]) -> DataTable {
    let terms = axes.terms;
    let row = |threshold: &f64| {
        let later = |line: &Line<'_>| Cell::count(line.corrected.at_least(units::Nanos(*threshold as u64)));
        let cells = lines.iter().map(later);
        std::iter::once(Cell::text(latency(*threshold, terms.unit))).chain(cells).collect()
    };
    let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
    let rows = axes.x(&Frame::new(1_000.0, 100.0)).round_values(1.0).iter().map(row).collect();
    let (caption, head) = terms.shown.page.tail_table;
    DataTable::new(caption, heads(head, &names), rows).fold()
}

fn histograms(prepared: &Prepared<'_>, place: usize) -> Histograms {
    let cpus = prepared.columns.first().map_or(0, |column| column.cpus.len());
    let banded = cpus > spread::MOST_LINES;
    let legend = match prepared.columns.first() {
        Some(column) if !banded => legend(column.cpus.iter().map(|(cpu, _)| cpu_name(*cpu)), false),
        _ => band_legend(),
    };
    Histograms {
        name: format!("cpus-{place}"),
        switch: cpus > 1,
        each: if banded { "range over the CPUs" } else { "each CPU" },
        legend,
        plots: prepared
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| histogram_view(prepared, column, place, banded))
            .collect(),
    }
}

fn band_legend() -> Vec<Key> {
    vec![
        Key {
            sample: legend_class("band", "M1 1H33V13H1z"),
            name: "from the least to the most of any CPU".into(),
        },
        Key { sample: legend_class("line worst", "M1 7H33"), name: "the CPU with the worst latency".into() },
    ]
}

fn histogram_view(prepared: &Prepared<'_>, column: &Column, place: usize, banded: bool) -> HistogramView {
    let axes = &prepared.axes;
    let counts = |histogram: &Histogram| axes.bins.counts(histogram);
    let each: Vec<_> = column.cpus.iter().map(|(_, figures)| counts(&figures.corrected)).collect();
    let label =
        |what: &str| format!("Histogram of {} under {}, {what}", prepared.terms.words.values, column.name);
    let worst = column.worst_cpu();
    let class = crate::svg::series_class(place);
    HistogramView {
        name: column.name.clone(),
        summed: spread::summed(axes, &counts(&column.figures.corrected), &class, &label("all CPUs"), &SMALL),
        each: match each.len() {
            0 | 1 => String::new(),
            _ if banded => spread::band(axes, &Band::of(&each, worst), &label("range over the CPUs"), &SMALL),
            _ => spread::each(axes, &each, &label("each CPU"), &SMALL),
        },
        table: histogram_table(prepared, column, banded),
    }
}

/// The same in coarser bins: all CPUs, and each of them while they are few.
fn histogram_table(prepared: &Prepared<'_>, column: &Column, banded: bool) -> DataTable {
    let shown = if banded { &[] } else { column.cpus.as_slice() };
    let cpus = shown.iter().map(|(cpu, figures)| (cpu_name(*cpu), &figures.corrected));
    let all = ("all CPUs".to_owned(), &column.figures.corrected);
    let columns: Vec<_> = std::iter::once(all).chain(cpus).collect();
    binned(&prepared.axes, format!("Latencies under {}", column.name), &columns)
}

/// Histograms as a folded table, in coarser bins than they are drawn in.
pub(crate) fn binned(axes: &Axes, caption: String, columns: &[(String, &Histogram)]) -> DataTable {
    let bins = Bins::new(axes.lowest, axes.highest, 1.25);
    let unit = axes.terms.unit;
    let counts: Vec<_> = columns.iter().map(|(_, histogram)| bins.counts(histogram)).collect();
    let rows = bins
        .spans()
        .enumerate()
        .filter(|(bin, _)| counts.iter().any(|counts| counts[*bin] > 0))
        .map(|(bin, edges)| {
            let cells = counts.iter().map(|counts| Cell::number(grouped(counts[bin])));
            std::iter::once(Cell::text(span(bin, edges, unit))).chain(cells).collect()
        })
        .collect();
    let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
    DataTable::new(caption, heads(unit_name(unit), &names), rows).fold()
}

/// `1.2 to 1.5`; the upper edge belongs to the next bin, and the first bin holds all below it.
fn span(bin: usize, (low, high): (u64, u64), unit: Unit) -> String {
    let plain = |nanos| unit.figure(units::Nanos(nanos));
    if bin == 0 { format!("below {}", plain(high)) } else { format!("{} to {}", plain(low), plain(high)) }
}
