//! Comma-separated values (RFC 4180).

use record::Record;

use super::row::{FigureRow, rows};

const HEAD: &str = "load,interval_ns,setup,cstates,cpu,unit,minimum,average,p50,p99,p99_9,p99_99,maximum,maximum_is_bound,\
                    samples,missed,late,over_limit,marks\n";

/// A row for each load on all CPUs and on each; an empty field where there is no value.
pub fn csv(record: &Record) -> String {
    rows(record).iter().fold(HEAD.to_owned(), |text, row| text + &line(row))
}

/// The same of several records under one head, each row with the name of its record before it.
pub fn csv_of_several<'a>(records: impl Iterator<Item = (&'a str, &'a Record)>) -> String {
    let of_one = |(name, record)| {
        let name = field(name);
        rows(record).iter().map(|row| format!("{name},{}", line(row))).collect::<String>()
    };
    std::iter::once(format!("record,{HEAD}")).chain(records.map(of_one)).collect()
}

fn line(row: &FigureRow) -> String {
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let fields = [
        field(&row.load),
        number(row.interval_ns),
        field(row.setup.as_deref().unwrap_or_default()),
        field(&row.cstates),
        field(&row.cpu),
        row.unit.to_owned(),
        number(row.minimum),
        number(row.average),
        number(row.p50),
        number(row.p99),
        number(row.p99_9),
        number(row.p99_99),
        number(row.maximum),
        row.maximum_is_bound.to_string(),
        row.samples.to_string(),
        row.missed.to_string(),
        row.late.to_string(),
        number(row.over_limit),
        field(&row.marks.join("; ")),
    ];
    fields.join(",") + "\n"
}

/// In quotation marks where it has to be.
fn field(text: &str) -> String {
    let text = printable::line(text);
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}
