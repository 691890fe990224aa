//! The noise probe: gaps in which a CPU was taken from a thread that spins.

use record::{InstrumentPlan, Record, RunPlan};
use units::{Nanos, Total};

use super::{Account, Page, Shown, measured, unless};
use crate::rows::{Form, OwnFigure, Row};
use crate::text::count_of;

/// Places of its own figures.
const LOST: usize = 0;
const WATCHED: usize = 1;

pub(super) static SHOWN: Shown = Shown {
    corner: |plan| format!("gaps, {}, us", measured(plan)),
    own: &[
        OwnFigure {
            name: "lost %",
            of: |series| Some(series.observed.summary().sum),
            form: Form::ShareOf(WATCHED),
        },
        OwnFigure { name: "watched s", of: |series| Some(series.noise()?.watched.0), form: Form::Seconds },
        OwnFigure {
            name: "unexplained",
            of: |series| Some(series.noise()?.counted.unexplained_gaps),
            form: Form::Count,
        },
    ],
    rows: &[Row::Samples, Row::Own(LOST), Row::Own(WATCHED), Row::Own(2), Row::OverLimit],
    corrects: false,
    notes: &[
        "lost: share of the watched time in which something else had the CPU; watched: seconds of CPU time",
        "unexplained: gaps beyond all interrupts and preemptions that the kernel counted, at least: firmware or hardware, \
         which rt-tests' hwlatdetect looks for with interrupts off, or a silent hypervisor",
    ],
    facts,
    aspects: facts,
    seen: resolution,
    again,
    longest_limit: |_| None,
    page: Page {
        title: "Gaps",
        worst_value: "Longest gap",
        figures: (
            "Gaps under each load",
            "A gap is the time between two readings of the clock by a thread that does nothing else. Percentiles are of gaps \
             from the threshold on. Unexplained are gaps beyond all interrupts and preemptions that the kernel counted in the \
             same window, where it counted no steal: firmware, hardware, or a silent hypervisor.",
        ),
        tail: "The share of gaps longer than a length.",
        tail_caption: "Gaps longer than a length",
        tail_table: ("Gaps at or above a length", "length"),
        beyond: "longer",
        histograms: (
            "How many gaps of each length",
            " there were. Both axes are logarithmic, and the same for all loads.",
        ),
        timeline: ("Longest gap of all CPUs in every second", ""),
        worst: (
            "The longest gaps of all loads and CPUs, with the time at which each began.",
            "The longest gaps",
        ),
        worst_heads: ("length", "began, UTC", None),
        worst_parts: &[],
        account: Account::Share { name: "Lost", part: LOST, whole: WATCHED, values: "gaps" },
        over: "gaps over it",
    },
};

fn again(plan: &RunPlan) -> String {
    let InstrumentPlan::Noise(noise) = &plan.instrument else { return String::new() };
    format!(" --probe noise{}", unless(" --threshold ", &noise.threshold, &Nanos::from_micros(1)))
}

fn facts(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Noise(noise) = &plan.instrument else { return Vec::new() };
    vec![
        ("Gaps from", noise.threshold.to_string()),
        ("Watched", format!("{} of each {}", noise.spin, noise.window)),
    ]
}

/// What the noise probe can see at best, and what it took itself: the worst of all threads.
fn resolution(record: &Record) -> Option<String> {
    let series = || record.scenarios.iter().flat_map(|scenario| &scenario.series);
    let noise = || series().filter_map(|series| Some((series, series.noise()?)));
    let turn =
        noise().filter_map(|(series, noise)| noise.turn(Nanos(series.observed.summary().sum))).max()?;
    let shortest = noise().map(|(_, noise)| noise.resolution).max()?;
    let bookkeeping: u64 = noise().map(|(_, noise)| noise.bookkeeping.0).total();
    let missed: u64 = noise().map(|(_, noise)| noise.windows_missed).total();
    Some(format!(
        "a turn of the loop takes {} ns ({} at least), recording gaps took {} us, {} missed",
        turn.0,
        shortest.0,
        bookkeeping / 1_000,
        count_of(missed, "window")
    ))
}
