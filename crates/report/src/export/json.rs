//! The record as JSON, with the figures that a program without histograms wants.

use record::Record;
use serde::Serialize;

use super::row::{FigureRow, rows};

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    record: &'a Record,
    figures: Vec<FigureRow>,
}

/// The record's fields, and `figures`: percentiles and extremes of each load on all CPUs and on each.
pub fn json(record: &Record) -> String {
    serde_json::to_string(&Printed { record, figures: rows(record) }).unwrap_or_default() + "\n"
}
