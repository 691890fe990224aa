//! The tables of costs, once for a terminal and for a page.

use record::Unit;
use record::cost::{Cost, Operation, Sample};
use statistics::{Median, Verdict};
use units::Nanos;

use super::against::{Against, Row, word};
use crate::grid::{Cell, Column, Grid};
use crate::page::view::{self, DataTable, heads};
use crate::style::Tone;

/// A table, its first column of words.
pub(crate) struct Table {
    /// What stands above it on a page.
    pub caption: String,
    corner: String,
    heads: Vec<String>,
    rows: Vec<(String, Vec<Cell>)>,
}

impl Table {
    /// For a terminal.
    pub fn grid(&self) -> Grid {
        let column = |(at, head): (usize, &String)| Column {
            head: vec![head.clone()],
            cells: self.rows.iter().map(|(_, cells)| cells.get(at).cloned().unwrap_or_default()).collect(),
        };
        Grid {
            corner: self.corner.clone(),
            labels: self.rows.iter().map(|(label, _)| label.clone()).collect(),
            columns: self.heads.iter().enumerate().map(column).collect(),
        }
    }

    /// For a page.
    pub fn on_page(&self) -> DataTable {
        let class = |tone| match tone {
            Tone::Good => "n gain",
            Tone::Bad => "n over",
            Tone::Faint => "n soft",
            Tone::Plain | Tone::Strong | Tone::Doubtful => "n",
        };
        let row = |(label, cells): &(String, Vec<Cell>)| {
            let cells = (0..self.heads.len()).map(|at| cells.get(at).cloned().unwrap_or_default());
            let cells = cells.map(|cell| view::Cell { class: class(cell.tone), text: cell.text });
            std::iter::once(view::Cell::text(label.replacen("  ", "\u{2003}", 1))).chain(cells).collect()
        };
        let names: Vec<&str> = self.heads.iter().map(String::as_str).collect();
        DataTable::new(&self.caption, heads(&self.corner, &names), self.rows.iter().map(row).collect())
    }

    /// A table without rows.
    pub fn new(caption: impl Into<String>, corner: impl Into<String>, heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { caption: caption.into(), corner: corner.into(), heads, rows: Vec::new() }
    }

    /// Rows below the names of their families.
    pub fn push(&mut self, family: &str, last: &mut String, row: (String, Vec<Cell>)) {
        if family != last {
            self.rows.push((format!("{family}:"), Vec::new()));
            family.clone_into(last);
        }
        self.rows.push((format!("  {}", row.0), row.1));
    }
}

/// A length of time in picoseconds, in three or four digits with its unit.
pub(crate) fn figure(picoseconds: u64, unit: Unit) -> String {
    if unit == Unit::Instructions {
        return unit.figure(Nanos(picoseconds / 1_000));
    }
    let scales = [("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
    let figure = picoseconds as f64;
    let (name, scale) = scales.into_iter().find(|(_, scale)| figure < scale * 999.5).unwrap_or(scales[3]);
    format!("{} {name}", digits(figure / scale))
}

/// Times name their unit; instructions do not.
fn corner(unit: Unit) -> &'static str {
    if unit == Unit::Instructions { "one operation, instructions" } else { "one operation" }
}

/// `1.23`, `12.3`, `123`.
fn digits(figure: f64) -> String {
    match figure {
        figure if figure < 9.995 => format!("{figure:.2}"),
        figure if figure < 99.95 => format!("{figure:.1}"),
        figure => format!("{figure:.0}"),
    }
}

/// The upper end of an interval of ratios: of a few samples it can be a number of any length.
fn upper(ratio: f64) -> String {
    if ratio < 999.5 { digits(ratio) } else { ">999".into() }
}

/// What each operation took.
pub(super) fn of_one(cost: &Cost) -> Table {
    let mut table = Table::new(
        "The median of all rounds, with the interval that holds it at 95 %; CPU time of all threads that took part; \
         context switches",
        corner(super::unit(cost)),
        &["time", "from", "to", "CPU time", "switches"],
    );
    let mut family = String::new();
    // Those without a figure are named below, with the reason.
    let measured = cost.operations.iter().filter_map(|one| Some((one, super::median(one)?)));
    for (operation, median) in measured {
        let cells = cells(operation, &median, super::unit(cost));
        table.push(&operation.family, &mut family, (operation.words(), cells));
    }
    table
}

fn cells(operation: &Operation, median: &Median, unit: Unit) -> Vec<Cell> {
    let end = |end: Option<u64>| end.map_or_else(Cell::none, |end| faint(figure(end, unit)));
    let cpu = median_of(operation, Sample::cpu_picoseconds);
    let thousandths = |sample: &Sample| sample.switches.saturating_mul(1_000) / sample.count.max(1);
    vec![
        Cell::plain(figure(median.figure, unit)),
        end(median.interval.map(|(low, _)| low)),
        end(median.interval.map(|(_, high)| high)),
        Cell::plain(figure(cpu, unit)),
        Cell::plain(format!("{:.2}", median_of(operation, thousandths) as f64 / 1e3)),
    ]
}

fn median_of(operation: &Operation, of: impl Fn(&Sample) -> u64) -> u64 {
    let figures: Vec<u64> = operation.samples.iter().map(of).collect();
    statistics::median(&figures).map_or(0, |median| median.figure)
}

fn faint(text: String) -> Cell {
    Cell { text, tone: Tone::Faint }
}

/// Of operations that move bytes: how many in a second, and what of the CPU that takes.
pub(super) fn streams(cost: &Cost) -> Option<Table> {
    let moving = |operation: &&Operation| operation.bytes > 0 && !operation.samples.is_empty();
    let row = |operation: &Operation| {
        let time = median_of(operation, Sample::picoseconds).max(1) as f64;
        let cpu = median_of(operation, Sample::cpu_picoseconds) as f64;
        let bytes = operation.bytes as f64;
        let cells = [
            format!("{} MB/s", digits(bytes / time * 1e6)),
            format!("{:.0} %", cpu / time * 100.0),
            format!("{:.3}", cpu / 1e6 / (bytes / 1024.0)),
        ];
        (operation.words(), cells.map(Cell::plain).to_vec())
    };
    let rows: Vec<_> = cost.operations.iter().filter(moving).map(row).collect();
    // Instructions are no seconds.
    let is_time = super::unit(cost) == Unit::Microseconds;
    let caption = "Operations that move bytes: throughput, the share of one CPU, CPU time for 1024 bytes";
    (is_time && !rows.is_empty())
        .then(|| Table { rows, ..Table::new(caption, "streams", &["rate", "CPU", "us/KB"]) })
}

/// How many times as long each operation takes.
pub(super) fn of_two(against: &Against, unit: Unit) -> Table {
    let confidence = against.rows.first().map_or(0.0, |row| row.found.confidence * 100.0);
    let caption = format!(
        "How many times as long an operation takes, with an interval at {confidence:.2} %: all of them together at 95 %"
    );
    let heads = ["before", "after", "times", "interval", ""];
    // A column of verdicts that none of the rows has would be a part of its own on a narrow terminal, with names alone.
    let is_judged = against.rows.iter().any(|row| row.found.verdict != Verdict::NoDifference);
    let heads = &heads[..if is_judged { 5 } else { 4 }];
    let mut table = Table::new(caption, corner(unit), heads);
    let mut family = String::new();
    for row in &against.rows {
        let mut cells = compared(row, unit);
        cells.truncate(heads.len());
        table.push(&row.family, &mut family, (row.words.clone(), cells));
    }
    table
}

fn compared(row: &Row, unit: Unit) -> Vec<Cell> {
    let (tone, words) = match row.found.verdict {
        Verdict::Higher => (Tone::Bad, word(Verdict::Higher)),
        Verdict::Lower => (Tone::Good, word(Verdict::Lower)),
        Verdict::NoDifference => (Tone::Faint, ""),
    };
    let (low, high) = row.found.interval;
    vec![
        Cell::plain(figure(row.medians.0, unit)),
        Cell::plain(figure(row.medians.1, unit)),
        Cell { text: format!("{:.2}", row.found.ratio), tone },
        faint(format!("{low:.2}-{}", upper(high))),
        Cell { text: words.into(), tone },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_without_an_upper_bound_to_speak_of_is_not_spelled_out() {
        assert_eq!(
            [1.294, 28.95, 558.1, 999.4, 6_182_747.0, f64::INFINITY].map(upper),
            ["1.29", "28.9", "558", "999", ">999", ">999"]
        );
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let text = |picoseconds| figure(picoseconds, Unit::Microseconds);
        assert_eq!([text(6), text(84_100), text(999_600)], ["0.01 ns", "84.1 ns", "1.00 us"]);
        assert_eq!(
            [text(5_370_000), text(12_000_000_000), text(u64::MAX)],
            ["5.37 us", "12.0 ms", "18446744 s"]
        );
        assert_eq!(figure(337_000, Unit::Instructions), "337");
    }
}
