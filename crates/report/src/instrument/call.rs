//! Calls of the kernel, each a scenario.

use record::instrument::call::CallPlan;
use record::{InstrumentPlan, RunPlan};

use super::{Account, Page, Shown, measured, unless};
use crate::rows::Row;

pub(super) static SHOWN: Shown = Shown {
    corner: |plan| format!("times of calls, {}, us", measured(plan)),
    own: &[],
    rows: &[Row::Samples, Row::OverLimit],
    corrects: false,
    notes: &[
        "a time: from the call that wakes until the woken thread runs, or how late a clock woke; of a mutex what was waited beyond the \
         critical section of the thread that had it; of a shootdown and a mapping the longest gap of 100 us; else the call itself",
        "across: the other thread was on another CPU",
    ],
    facts,
    aspects: facts,
    seen: |_| None,
    again,
    longest_limit: |_| None,
    page: Page {
        title: "Calls",
        worst_value: "Longest call",
        figures: (
            "Calls under each load",
            "Each column is one call of the kernel under one load. Of calls that wake, a time is from the waking thread's call until the \
             woken thread runs; of clocks, how late it ran. Of a mutex it is what the thread of the highest priority waited beyond the critical \
             section of the one that had it, while a third of a priority between theirs computed: without inheritance that \
             computing is in it.",
        ),
        tail: "The share of calls longer than a time.",
        tail_caption: "Calls longer than a time",
        tail_table: ("Calls of a time or longer", "time"),
        beyond: "longer",
        histograms: (
            "How many calls of each length",
            " there were. Both axes are logarithmic, and the same for all.",
        ),
        timeline: ("Longest call of all CPUs in every second", ""),
        worst: (
            "The longest calls of all loads and CPUs, with the time at which each began.",
            "The longest calls",
        ),
        worst_heads: ("length", "began, UTC", None),
        worst_parts: &[],
        account: Account::Due("Calls"),
        over: "calls over it",
    },
};

fn facts(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Call(call) = &plan.instrument else { return Vec::new() };
    vec![
        ("Calls", names(plan).join(", ")),
        ("Every", call.interval.to_string()),
        ("Burst in the middle", call.burst.to_string()),
    ]
}

fn names(plan: &RunPlan) -> Vec<String> {
    plan.instrument.setups(plan, 1).iter().map(ToString::to_string).collect()
}

/// What differs from what is measured unless it is asked.
fn again(plan: &RunPlan) -> String {
    let InstrumentPlan::Call(call) = &plan.instrument else { return String::new() };
    let mut names: Vec<_> = call.calls.iter().map(|chosen| chosen.call.as_str()).collect();
    names.dedup();
    let calls = match (call.all, &names[..]) {
        (true, _) => " --calls all".to_owned(),
        (false, [CallPlan::USUAL]) => String::new(),
        (false, names) => format!(" --calls {}", names.join(",")),
    };
    let interval = unless(" --interval ", &call.interval, &CallPlan::INTERVAL);
    format!(" --probe call{calls}{interval}{}", unless(" --burst ", &call.burst, &CallPlan::BURST))
}
