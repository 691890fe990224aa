//! The noise probe: gaps in which a CPU was taken from a thread that spins.

use record::instrument::noise::NoiseSetup;
use record::{InstrumentPlan, RunPlan};

use super::{Page, Shown};
use crate::rows::Row;

pub(super) static SHOWN: Shown = Shown {
    words: NoiseSetup::WORDS,
    corner: |_| "gaps, all CPUs, us",
    rows: &[
        Row::Minimum,
        Row::Average,
        Row::Percentile(0),
        Row::Percentile(1),
        Row::Percentile(2),
        Row::Maximum,
        Row::Samples,
        Row::Lost,
        Row::Watched,
        Row::Unexplained,
        Row::OverLimit,
    ],
    corrects: false,
    notes: &[
        "lost: share of the watched time in which something else had the CPU; watched: seconds of CPU time",
        "unexplained: gaps beyond all interrupts and preemptions that the kernel counted, at least: firmware or hardware, \
         which rt-tests' hwlatdetect looks for with interrupts off, or a silent hypervisor",
    ],
    facts,
    aspects: facts,
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
        over: "gaps over it",
    },
};

fn facts(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Noise(noise) = &plan.instrument else { return Vec::new() };
    vec![
        ("Gaps from", noise.threshold.to_string()),
        ("Watched", format!("{} of each {}", noise.spin, noise.window)),
    ]
}
