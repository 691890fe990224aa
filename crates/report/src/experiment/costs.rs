//! What operations take in each arm, beside the arm that it is compared with.

use record::Unit;
use statistics::{Comparison, Verdict};

use super::figures::{Costs, Reckoned};
use crate::cost::{Row, Table, by_reason, figure};
use crate::grid::Cell;
use crate::page::view::{Block, Section};
use crate::style::{Style, Tone};
use crate::text::wrap;

/// No more arms stand side by side.
const SIDE_BY_SIDE: usize = 5;

/// Arms that stand in one table: all are compared with the same one.
pub(super) fn groups<'r, 'a>(costs: &'r [Costs<'a>]) -> impl Iterator<Item = &'r [Costs<'a>]> {
    costs.chunk_by(|one, other| one.base == other.base).flat_map(|own| own.chunks(SIDE_BY_SIDE))
}

/// The operations of a table: what each takes in the arm that others are compared with, and how many times as much in those.
pub(super) fn rows<'r>(group: &'r [Costs<'_>]) -> impl Iterator<Item = (&'r Row, Vec<Option<&'r Row>>)> {
    let first = group.first().into_iter().flat_map(|costs| &costs.found.rows);
    first.map(|row| {
        let same = |other: &&Row| (&other.name, other.place) == (&row.name, row.place);
        (row, group.iter().map(|costs| costs.found.rows.iter().find(same)).collect())
    })
}

/// How many times as much somebody else found it to take.
pub(super) fn elsewhere(costs: &Costs<'_>, row: &Row) -> Option<f64> {
    costs.arm.published.as_ref()?.operations.get(&row.name).copied()
}

/// Whether somebody else's figures stand beside an arm's.
pub(super) fn has_elsewhere(costs: &Costs<'_>) -> bool {
    costs.arm.published.as_ref().is_some_and(|published| !published.operations.is_empty())
}

/// What was not compared, by the reason: as in the first arm of the table.
pub(super) fn left_out(group: &[Costs<'_>]) -> Vec<(Vec<String>, String)> {
    let all = group.first().into_iter().flat_map(|costs| &costs.found.left_out);
    by_reason(all.map(|(words, why)| (words.clone(), why.as_str())))
}

/// Where no latencies were measured, operations are all there is.
pub(super) fn text(reckoned: &Reckoned<'_>, style: &Style) -> String {
    if !reckoned.experiment.loads.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for group in groups(&reckoned.costs()) {
        text += &(table(group, reckoned.experiment.unit).grid().render(style) + "\n");
        for (names, why) in left_out(group) {
            let line = format!("{}: {why}", names.join(", "));
            text += &(wrap("Not compared: ", &line, 4, style.width).join("\n") + "\n\n");
        }
    }
    text
}

/// All operations of all arms.
pub(super) fn section(reckoned: &Reckoned<'_>) -> Option<Section> {
    let costs = reckoned.costs();
    let tables = groups(&costs).map(|group| Block::Table(table(group, reckoned.experiment.unit).on_page()));
    let blocks: Vec<Block> = tables.collect();
    let lead = "How many times as long one takes as in the arm that it is compared with.";
    (!blocks.is_empty()).then(|| Section::new("operations", "What operations take", lead, blocks))
}

fn table(group: &[Costs<'_>], unit: Unit) -> Table {
    let base = group.first().map_or("", |costs| costs.base.as_str());
    let mut heads = vec![base.to_owned()];
    for costs in group {
        heads.extend([costs.arm.name.clone(), "interval".to_owned()]);
        heads.extend(has_elsewhere(costs).then(|| "elsewhere".to_owned()));
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(format!("Operations beside {base}"), "one operation, times", &heads);
    let mut family = String::new();
    for (row, found) in rows(group) {
        let mut cells = vec![Cell::plain(figure(row.medians.0, unit))];
        for (costs, found) in group.iter().zip(found) {
            cells.extend(found.map_or([Cell::none(), Cell::none()], |row| ratio(&row.found)));
            if has_elsewhere(costs) {
                let known = elsewhere(costs, row);
                cells.push(known.map_or_else(Cell::none, |known| Cell::plain(format!("{known:.2}"))));
            }
        }
        table.push(&row.family, &mut family, (row.words.clone(), cells));
    }
    let mut cells = vec![Cell::default()];
    for costs in group {
        cells.extend(costs.found.mean.as_ref().map_or([Cell::none(), Cell::none()], ratio));
        cells.extend(has_elsewhere(costs).then(Cell::default));
    }
    table.push("all", &mut family, ("geometric mean, families alike".into(), cells));
    table
}

fn ratio(found: &Comparison) -> [Cell; 2] {
    let tone = match found.verdict {
        Verdict::Higher => Tone::Bad,
        Verdict::Lower => Tone::Good,
        Verdict::NoDifference => Tone::Faint,
    };
    let (low, high) = found.interval;
    let interval = Cell { text: format!("{low:.2}-{high:.2}"), tone: Tone::Faint };
    [Cell { text: format!("{:.2}", found.ratio), tone }, interval]
}
