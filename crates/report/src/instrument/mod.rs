//! What reports show of each instrument: its rows, its plan, what must be alike in two records. One module each, and
//! its line in the list below.

mod call;
mod gpio;
mod noise;
mod response;
mod timer;

pub(crate) use timer::exits_of_worst;

use histogram::Histogram;
use record::{InstrumentPlan, Own, Record, RunPlan, Series, Wake};
use units::Nanos;

use crate::rows::{OwnFigure, OwnFigures, Row};

/// The rows that every instrument's table begins with: how long what it measures took.
const FIRST_ROWS: [Row; 6] =
    [Row::Minimum, Row::Average, Row::Percentile(0), Row::Percentile(1), Row::Percentile(2), Row::Maximum];

/// What reports show of an instrument.
#[derive(Debug)]
pub(crate) struct Shown {
    /// What stands over the table of all CPUs together.
    pub corner: fn(&RunPlan) -> String,
    /// Figures that only it has.
    pub own: &'static [OwnFigure],
    /// The rows of its table below [`FIRST_ROWS`].
    pub rows: &'static [Row],
    /// Whether percentiles are of more than the values observed: a missed activation counts too.
    pub corrects: bool,
    /// What must be known to read the table.
    pub notes: &'static [&'static str],
    /// The plan's own part: name and value.
    pub facts: fn(&RunPlan) -> Vec<(&'static str, String)>,
    /// What two records must have in common to be compared: name and value.
    pub aspects: fn(&RunPlan) -> Vec<(&'static str, String)>,
    /// How well it saw, where that is to be said.
    pub seen: fn(&Record) -> Option<String>,
    /// The options by which bench measures the same again, each after a blank.
    pub again: fn(&RunPlan) -> String,
    /// The longest limit that can be asked for.
    pub longest_limit: fn(&RunPlan) -> Option<Nanos>,
    /// What the page says.
    pub page: Page,
}

impl Shown {
    /// All rows of its table.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        FIRST_ROWS.into_iter().chain(self.rows.iter().copied())
    }
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
    /// The parts that a value consists of, in the order in which the record has them.
    pub worst_parts: &'static [&'static str],
    /// In large print: what was due or watched, and what became of it.
    pub account: Account,
    /// Values over the limit.
    pub over: &'static str,
}

/// What is said in large print beside the greatest value.
#[derive(Debug)]
pub(crate) enum Account {
    /// How many values were due, by this name.
    Due(&'static str),
    /// What share one of the instrument's own figures is of another: its name, their places, what its values are.
    Share { name: &'static str, part: usize, whole: usize, values: &'static str },
}

/// Of the timer, whose latencies are compared where there are several records.
pub(crate) fn latencies() -> &'static Shown {
    &timer::SHOWN
}

/// An option with its value, unless that is the usual one: a command that is printed names what differs.
fn unless<T: PartialEq + std::fmt::Display>(option: &str, value: &T, usual: &T) -> String {
    if value == usual { String::new() } else { format!("{option}{value}") }
}

/// The longest of a part, in nanoseconds; none where it has no values.
fn longest(part: &Histogram) -> Option<u64> {
    Some(part.summary().maximum()?.0)
}

/// The CPUs that the table of all of them is of.
fn measured(plan: &RunPlan) -> String {
    if plan.cpus.len() == 1 { plan.cpus.named() } else { "all CPUs".into() }
}

/// What is shown of each instrument.
macro_rules! shown {
    ($($variant:ident = $module:ident;)+) => {
        /// Of the instrument that measured.
        fn by_name(plan: &RunPlan) -> &'static Shown {
            match plan.instrument { $(InstrumentPlan::$variant(_) => &$module::SHOWN),+ }
        }

        /// What a series has of its instrument's own figures.
        pub(crate) fn own_figures(series: &Series) -> OwnFigures {
            let shown = match &series.own {
                Own::Timer(timer) if timer.contexts.is_some() => &timer::WITH_CONTEXTS,
                Own::Response(response) if response.is_stamped_by_card() => &response::WITH_HARDWARE,
                Own::Timer(timer) if timer.guest.is_some() => &timer::WITH_GUEST,
                $(Own::$variant(_) => &$module::SHOWN),+
            };
            OwnFigures::of(shown.own, series)
        }
    };
}

/// Of the instrument that measured.
pub(crate) fn of(plan: &RunPlan) -> &'static Shown {
    match &plan.instrument {
        InstrumentPlan::Timer(timer) if timer.contexts => &timer::WITH_CONTEXTS,
        InstrumentPlan::Response(response) if response.hardware_stamps => &response::WITH_HARDWARE,
        InstrumentPlan::Timer(timer) if timer.wake == Wake::Kvm => &timer::WITH_GUEST,
        _ => by_name(plan),
    }
}

shown! {
    Timer = timer;
    Noise = noise;
    Response = response;
    Gpio = gpio;
    Call = call;
}
