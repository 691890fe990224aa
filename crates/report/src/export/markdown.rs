//! A Markdown table, for issues and merge requests: a row a load, all CPUs together.

use record::{Record, Unit};
use units::Nanos;

use super::row::{ALL, FigureRow, rows};

/// The table, then the verdict in a sentence.
pub fn markdown(record: &Record) -> String {
    let unit = record.header.machine.unit();
    let mut text = format!(
        "| load | median, {0} | p99, {0} | p99.9, {0} | max, {0} | samples | missed |\n|:--|--:|--:|--:|--:|--:|--:|\n",
        unit.name()
    );
    for row in rows(record).iter().filter(|row| row.cpu == ALL) {
        text += &line(row, unit);
    }
    text + "\n" + &escaped(&super::line(record))
}

fn line(row: &FigureRow, unit: Unit) -> String {
    let value = |value: Option<u64>| value.map_or_else(|| "-".into(), |value| unit.figure(Nanos(value)));
    let bound = if row.maximum_is_bound { ">" } else { "" };
    let marks = if row.marks.is_empty() { String::new() } else { format!(" ({})", row.marks.join(", ")) };
    format!(
        "| {}{} | {} | {} | {} | {bound}{} | {} | {} |\n",
        escaped(&row.head),
        escaped(&marks),
        value(row.p50),
        value(row.p99),
        value(row.p99_9),
        value(row.maximum),
        row.samples,
        row.missed
    )
}

pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable::lines(text).chars() {
        if matches!(c, '\\' | '|' | '*' | '_' | '`' | '<' | '[') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
