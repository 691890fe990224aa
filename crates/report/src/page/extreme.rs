//! Estimates of latencies that were not seen, for those who ask for them, with what they can be judged by.

use record::Record;
use units::Nanos;

use super::view::{Block, Cell, DataTable, Figure, Section, heads, unit_name};
use crate::extreme::{CAUTION, Estimate, estimates};
use crate::figures::Terms;
use crate::svg::{Frame, both, quantiles};

/// Plots shown; the table has them all.
const MOST_PLOTS: usize = 24;

/// The section.
pub(crate) fn section(record: &Record, exposure: Nanos) -> Section {
    let terms = Terms { limit: None, ..Terms::of(record) };
    let estimates = estimates(record, exposure);
    let mut blocks = vec![Block::Table(table(&estimates, exposure, terms)), Block::Paragraph(CAUTION.into())];
    let plots = estimates.iter().filter_map(|estimate| figure(estimate, &estimates, terms));
    blocks.extend(plots.take(MOST_PLOTS).map(Block::Figure));
    let lead = "A generalised extreme value distribution, fitted to the greatest latencies of blocks. It is refused \
                where the run does not carry it.";
    Section::new("extreme", "Estimate of rarer latencies", lead, blocks)
}

fn table(estimates: &[Estimate], exposure: Nanos, terms: Terms) -> DataTable {
    let unit = unit_name(terms.unit);
    let head = heads("load and CPU", &["estimate", "at least", "at most", "grounds"]);
    let row = |estimate: &Estimate| {
        let level = estimate.level.as_ref();
        vec![
            Cell::text(estimate.place(estimates)),
            Cell::latency(level.map(|level| level.latency), terms),
            Cell::latency(level.map(|level| level.low), terms),
            Cell::latency(level.and_then(|level| level.high), terms),
            Cell::text(match (level, &estimate.refused) {
                (Some(level), _) => level.grounds(),
                (None, reason) => format!("no estimate: {}", reason.as_deref().unwrap_or_default()),
            }),
        ]
    };
    let caption = format!(
        "Latency exceeded once in {} on average, in {unit}, and its 95 % interval",
        exposure.rounded()
    );
    DataTable::new(caption, head, estimates.iter().map(row).collect())
}

fn figure(estimate: &Estimate, all: &[Estimate], terms: Terms) -> Option<Figure> {
    let points = &estimate.level.as_ref()?.quantiles;
    let svg = both(Frame::new(640.0, 420.0), Frame::new(400.0, 320.0), |frame| {
        quantiles::plot(points, terms.unit, frame)
    });
    let caption = format!(
        "{}: block maxima as measured (upwards) against the fitted distribution (to the right); on the line they agree",
        estimate.place(all)
    );
    Some(Figure { caption, legend: Vec::new(), svg, tables: Vec::new() })
}
