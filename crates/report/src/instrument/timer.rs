//! The timer: latencies of wake-ups.

use histogram::Histogram;
use record::instrument::timer::{ContextFigures, GuestFigures, PartOfGuest};
use record::{ClockName, Phase, RunPlan, Series, Unit, Wake};
use units::Nanos;

use super::{Account, Page, Shown, longest, measured};
use crate::rows::{OwnFigure, Row};
use crate::text::joined;

pub(super) static SHOWN: Shown = ALONE;

/// Four figures of its own, and what all have.
const WITH_FOUR: [Row; 8] = [
    Row::Own(0),
    Row::Own(1),
    Row::Own(2),
    Row::Own(3),
    Row::Samples,
    Row::Missed,
    Row::Late,
    Row::OverLimit,
];

/// With what the kernel measured beside.
pub(super) static WITH_CONTEXTS: Shown = Shown {
    own: &[
        OwnFigure::longest("interrupt p99", |series| p99(interrupt(series)?)),
        OwnFigure::longest("interrupt max", |series| longest(interrupt(series)?)),
        OwnFigure::longest("thread p99", |series| p99(thread(series)?)),
        OwnFigure::longest("thread max", |series| longest(thread(series)?)),
    ],
    rows: &WITH_FOUR,
    notes: &[
        ALONE.notes[0],
        ALONE.notes[1],
        "interrupt, thread: the kernel's own (timerlat), beside: when the interrupt of a timer with the same period looked at the \
         clock, and when a thread of the kernel did that it wakes. Of several CPUs the one with the highest figure",
    ],
    ..ALONE
};

/// With the parts of activations that are a guest's.
pub(super) static WITH_GUEST: Shown = Shown {
    own: &[
        OwnFigure::longest("max host", |series| longest(part(series, PartOfGuest::Host)?)),
        OwnFigure::longest("max entry", |series| longest(part(series, PartOfGuest::Entry)?)),
        OwnFigure::longest("max interrupt", |series| longest(part(series, PartOfGuest::Interrupt)?)),
        OwnFigure::longest("max thread", |series| longest(part(series, PartOfGuest::Thread)?)),
    ],
    rows: &WITH_FOUR,
    notes: &[
        ALONE.notes[0],
        ALONE.notes[1],
        "parts, each by its own longest: host until its thread runs, entry until the guest's first instruction, interrupt until the \
         first of the guest's handler, thread until the guest goes on after it",
    ],
    page: Page { worst_parts: &["host", "entry", "interrupt", "thread"], ..ALONE.page },
    ..ALONE
};

const ALONE: Shown = Shown {
    corner: |plan| {
        let value = if plan.is_reservation() { "jitter, " } else { "" };
        format!("{value}{}, us", measured(plan))
    },
    own: &[],
    rows: &[Row::Samples, Row::Missed, Row::Late, Row::OverLimit],
    corrects: true,
    notes: &[
        "* of all activations due: a missed one counts with the latency it would have had; \
         - means too few samples",
        "late: share of activations served a period or more late, or missed",
    ],
    facts,
    aspects,
    seen: |_| None,
    again,
    longest_limit: |_| None,
    page: Page {
        title: "Wake-up latency",
        worst_value: "Worst latency",
        figures: (
            "Latency under each load",
            "Minimum, average and maximum are exact, of the wake-ups. Percentiles are of all activations \
             due: a missed one counts with the latency that it would have had. A dash means too few samples.",
        ),
        tail: "The share of activations later than a latency, missed ones included. A line that ends early and \
               steep is what a real-time system wants; one that leans to the right has a tail.",
        tail_caption: "Activations later than a latency",
        tail_table: ("Activations at or above a latency", "latency"),
        beyond: "later",
        histograms: (
            "How often each latency",
            " was met, missed activations included. Both axes are logarithmic, and the same for all loads.",
        ),
        timeline: (
            "Greatest latency of all CPUs in every second",
            "; a tick at the foot marks missed activations",
        ),
        worst: (
            "The latest wake-ups of all loads and CPUs, with the time at which each was due.",
            "The latest wake-ups",
        ),
        worst_heads: ("latency", "due, UTC", Some("activation")),
        worst_parts: &[],
        account: Account::Due("Activations"),
        over: "activations over it",
    },
};

fn contexts(series: &Series) -> Option<&ContextFigures> {
    series.timer()?.contexts.as_ref()
}

fn guest(series: &Series) -> Option<&GuestFigures> {
    series.timer()?.guest.as_ref()
}

fn part(series: &Series, name: PartOfGuest) -> Option<&Histogram> {
    guest(series)?.part(name)
}

/// `Exits beyond each activation's: irq_exits 1.` What kept the guest at its worst value at `place`, as far as its exits show.
pub(crate) fn exits_of_worst(series: &Series, place: usize, unit: Unit) -> Option<String> {
    let figures = guest(series)?;
    let held = figures.worst.get(place)?.value()?.held.as_ref();
    let held = held.map(|held| format!("{} held the guest for {}", held.by, unit.with_name(held.took)));
    let unusual = figures.unusual_exits(place).map(|exits| {
        let kinds: Vec<String> = exits.iter().map(|(name, count)| format!("{name} {count}")).collect();
        match kinds.is_empty() {
            true => "its exits were those of each activation".to_owned(),
            false => format!("exits beyond each activation's: {}", kinds.join(", ")),
        }
    });
    let said: Vec<String> = held.into_iter().chain(unusual).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn interrupt(series: &Series) -> Option<&Histogram> {
    Some(&contexts(series)?.interrupt)
}

fn thread(series: &Series) -> Option<&Histogram> {
    Some(&contexts(series)?.thread)
}

fn p99(of: &Histogram) -> Option<u64> {
    Some(of.quantile(0.99)?.0)
}

fn facts(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let Some(timer) = plan.timer() else { return Vec::new() };
    let woken = format!("{} on the {} clock, phase {}", timer.wake, timer.clock, timer.phase);
    let mut facts = vec![("Period", joined(&timer.intervals)), ("Woken by", woken)];
    let beside = "timerlat, in its interrupt and in its thread".to_owned();
    facts.extend(timer.contexts.then_some(("Measured by the kernel beside", beside)));
    facts.extend(timer.runtime.map(|runtime| ("Run time of the reservation", runtime.to_string())));
    facts
}

/// The period of bench unless it is asked for another.
const USUAL: Nanos = Nanos::from_millis(1);

/// What differs from what bench does unless it is asked.
fn again(plan: &RunPlan) -> String {
    let Some(timer) = plan.timer() else { return String::new() };
    let mut options = String::new();
    if timer.intervals != [USUAL] {
        let intervals: Vec<String> = timer.intervals.iter().map(ToString::to_string).collect();
        options += &format!(" --interval {}", intervals.join(","));
    }
    if timer.wake != Wake::default() {
        options += &format!(" --wake {}", timer.wake);
    }
    if let Some(runtime) = timer.runtime {
        options += &format!(" --runtime {runtime}");
    }
    if timer.clock != ClockName::default() {
        options += &format!(" --clock {}", timer.clock);
    }
    if timer.phase != Phase::Sweep && !timer.is_reservation() {
        options += &format!(" --phase {}", timer.phase);
    }
    if timer.contexts {
        options += " --contexts";
    }
    options
}

fn aspects(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let Some(timer) = plan.timer() else { return Vec::new() };
    vec![
        ("period", joined(&timer.intervals)),
        (
            "run time of the reservation",
            timer.runtime.map_or_else(|| "none".into(), |runtime| runtime.to_string()),
        ),
        ("clock", timer.clock.to_string()),
        ("wake-up", timer.wake.to_string()),
        ("phase", timer.phase.to_string()),
        ("timerlat beside", if timer.contexts { "yes" } else { "no" }.into()),
    ]
}
