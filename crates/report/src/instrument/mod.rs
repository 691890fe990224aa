//! What reports show of each instrument: its rows, its plan, what must be alike in two records. One module each.

mod gpio;
mod noise;
mod response;
mod timer;

use record::{InstrumentPlan, RunPlan, Words};

use crate::rows::Row;

/// What reports show of an instrument.
#[derive(Debug)]
pub(crate) struct Shown {
    /// What its values are called.
    pub words: &'static Words,
    /// What stands over the table of all CPUs.
    pub corner: fn(&RunPlan) -> &'static str,
    /// The rows of its table.
    pub rows: &'static [Row],
    /// Whether percentiles are of more than the values observed: a missed activation counts too.
    pub corrects: bool,
    /// What must be known to read the table.
    pub notes: &'static [&'static str],
    /// The plan's own part: name and value.
    pub facts: fn(&RunPlan) -> Vec<(&'static str, String)>,
    /// What two records must have in common to be compared: name and value.
    pub aspects: fn(&RunPlan) -> Vec<(&'static str, String)>,
    /// What the page says.
    pub page: Page,
}

/// Texts of the page. Where one has two parts, the unit stands between them.
#[derive(Debug)]
pub(crate) struct Page {
    /// The page of one record.
    pub title: &'static str,
    /// Over the greatest value in large print.
    pub worst_value: &'static str,
    /// The heading of the table of figures, and what it says.
    pub figures: (&'static str, &'static str),
    /// What the curve of shares says.
    pub tail: &'static str,
    /// The caption of that curve.
    pub tail_caption: &'static str,
    /// The caption and the first head of its table.
    pub tail_table: (&'static str, &'static str),
    /// The end of that curve that lies upwards.
    pub beyond: &'static str,
    /// What histograms say.
    pub histograms: (&'static str, &'static str),
    /// The caption of the timeline.
    pub timeline: (&'static str, &'static str),
    /// What the table of worst values says, and its caption.
    pub worst: (&'static str, &'static str),
    /// Its heads for the value, its time and its number; none where the number says nothing.
    pub worst_heads: (&'static str, &'static str, Option<&'static str>),
    /// Values over the limit.
    pub over: &'static str,
}

/// Of the timer, whose latencies are compared where there are several records.
pub(crate) fn latencies() -> &'static Shown {
    &timer::SHOWN
}

/// Of the instrument that measured.
pub(crate) fn of(plan: &RunPlan) -> &'static Shown {
    match plan.instrument {
        InstrumentPlan::Timer(_) => &timer::SHOWN,
        InstrumentPlan::Noise(_) => &noise::SHOWN,
        InstrumentPlan::Response(_) => &response::SHOWN,
        InstrumentPlan::Gpio(_) => &gpio::SHOWN,
    }
}
