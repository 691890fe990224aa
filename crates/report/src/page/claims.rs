//! What the figures say about latencies that were not seen, and how long a run would have to be to say more.

use record::Record;
use record::claims::{self, Claim, Claims, rounded};
use units::Nanos;

use super::view::{Block, Cell, DataTable, Section, grouped, heads, unit_name};
use crate::figures::Terms;
use crate::group::cpu_name;

/// Rows of the table; the record has the rest.
const MOST_ROWS: usize = 400;
/// One activation in so many: what the table of run lengths is for.
const ODDS: [u64; 3] = [10_000, 1_000_000, 100_000_000];

/// The section; none where nothing was measured.
pub(crate) fn section(record: &Record) -> Option<Section> {
    let claims = claims::kept(record);
    if claims.series.is_empty() {
        return None;
    }
    let terms = Terms { limit: None, ..Terms::of(record) };
    let mut blocks = vec![Block::Paragraph(claims.sentence()), Block::Table(table(&claims, terms))];
    if claims.series.iter().any(|claim| claim.passes.len() > 1) {
        blocks.push(Block::Table(passes(&claims, terms)));
    }
    blocks.extend(lengths(&claims).map(Block::Table));
    let lead = "A run shows delays that come often enough to be met while it lasts. Each row says how rare a wake-up later than \
                the highest observed is: at most one activation in so many, and at most once in so long, at 95 %, as long as the \
                machine and its loads stay as they were. Late wake-ups come in clusters, so the activations are worth fewer \
                independent ones. No figure speaks for loads that were not run. Method and limits: docs/claims.md.";
    Some(Section::new("claims", "How rare later wake-ups are", lead, blocks))
}

fn table(claims: &Claims, terms: Terms) -> DataTable {
    let highest = format!("highest observed, {}", unit_name(terms.unit));
    let rest = [
        "CPU",
        "activations",
        "extremal index",
        "worth, independent",
        &highest,
        "same throughout, p",
        "later at most once in",
        "later at most one in",
    ];
    let rows = claims.series.iter().map(|claim| row(claim, claims.column(claim), terms)).collect();
    DataTable::new("What each load on each CPU says", heads("load", &rest), rows).at_most(MOST_ROWS)
}

fn row(claim: &Claim, column: String, terms: Terms) -> Vec<Cell> {
    let says = &claim.says;
    let dash = || "–".to_owned();
    let refused = says.refused.map(|refused| refused.reason());
    let odds = says.one_in.map_or_else(dash, |odds| grouped(rounded(odds)));
    vec![
        Cell::text(column),
        Cell::text(cpu_name(claim.cpu)),
        Cell::count(claim.activations),
        Cell::number(claim.extremal_index.map_or_else(dash, |theta| format!("{theta:.3}"))),
        Cell::number(says.effective.map_or_else(dash, |worth| grouped(rounded(worth)))),
        Cell::latency(claim.passes.iter().copied().max(), terms),
        Cell::number(claim.alike.map_or_else(dash, probability)),
        match (says.once_in, refused) {
            (Some(time), _) => Cell::number(time.rounded()),
            (None, reason) => Cell::text(reason.unwrap_or_else(dash)),
        },
        Cell::number(odds),
    ]
}

fn probability(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}

/// How far the passes of a repeated run lie apart.
fn passes(claims: &Claims, terms: Terms) -> DataTable {
    let head = heads("load", &["CPU", "passes", "lowest", "median", "highest", "highest / lowest"]);
    let row = |claim: &Claim| {
        let mut maxima = claim.passes.clone();
        maxima.sort_unstable();
        let (low, high) = (maxima.first().copied(), maxima.last().copied());
        let median = maxima.get(maxima.len() / 2).copied();
        let ratio =
            low.zip(high).filter(|(low, _)| low.0 > 0).map(|(low, high)| high.0 as f64 / low.0 as f64);
        vec![
            Cell::text(claims.column(claim)),
            Cell::text(cpu_name(claim.cpu)),
            Cell::count(claim.passes.len() as u64),
            Cell::latency(low, terms),
            Cell::latency(median, terms),
            Cell::latency(high, terms),
            Cell::number(ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}"))),
        ]
    };
    let caption = format!("Highest latency of each pass, in {}", unit_name(terms.unit));
    DataTable::new(caption, head, claims.series.iter().map(row).collect()).at_most(MOST_ROWS)
}

/// How long a run would have to be, by the series whose late activations cluster most.
fn lengths(claims: &Claims) -> Option<DataTable> {
    let time = |claim: &Claim| claim.run_length(1_000_000).map(|(_, time)| time);
    let slowest = claims
        .series
        .iter()
        .filter(|claim| claim.extremal_index.is_some())
        .max_by_key(|claim| time(claim))?;
    let row = |odds: u64| {
        let (activations, time) = slowest.run_length(odds)?;
        Some(vec![
            Cell::text(format!("one activation in {}", grouped(odds))),
            Cell::count(rounded(activations)),
            Cell::number(long(time)),
        ])
    };
    let caption = format!(
        "Length of a run without a latency above the limit, to claim at 95 % that at most so many are later, if late \
         ones cluster as they did here (by {}, extremal index {:.3}); that run has the last word",
        claims.place(slowest),
        slowest.extremal_index?
    );
    let head = heads("at most", &["activations", "time per load"]);
    Some(DataTable::new(caption, head, ODDS.into_iter().filter_map(row).collect()))
}

/// `30 s`, `12 min`, `8.3 h`, `41 days`.
fn long(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 7_200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3_600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    if value < 10.0 { format!("{value:.1}\u{202f}{unit}") } else { format!("{value:.0}\u{202f}{unit}") }
}
