//! The responder on GPIO lines: times from the kernel's stamp of an edge to its answer.

use record::{InstrumentPlan, RunPlan};
use units::Nanos;

use super::{Account, Page, Shown, longest, unless};
use crate::rows::{Form, OwnFigure, Row};

pub(super) static SHOWN: Shown = Shown {
    corner: |_| "answers since the edge's stamp, us".into(),
    own: &[
        OwnFigure { name: "max wake", of: |series| longest(&series.gpio()?.wake), form: Form::Longest },
        OwnFigure { name: "max answer", of: |series| longest(&series.gpio()?.answer), form: Form::Longest },
        OwnFigure {
            name: "max by monitor",
            of: |series| Some(series.gpio()?.monitor.as_ref()?.max?.0),
            form: Form::Longest,
        },
    ],
    rows: &[Row::Own(0), Row::Own(1), Row::Own(2), Row::Samples, Row::Missed, Row::OverLimit],
    corrects: true,
    notes: &[
        "* of all edges that the kernel counted: one that it could not keep counts with the time that the thread was late by; \
         - means too few samples, or nothing known",
        "wake: from the kernel's stamp of the edge until the thread had it; answer: from then until the line was driven; by \
         monitor: from its pulse to the edge that it looks for, with what lies before the stamp and behind the driver",
    ],
    facts,
    aspects,
    seen: |_| None,
    again,
    longest_limit: |_| None,
    page: Page {
        title: "GPIO answers",
        worst_value: "Latest answer",
        figures: (
            "Answers under each load",
            "An answer is the time from the kernel's stamp of an edge until the line of the answer was driven. What lies between the \
             wire and the stamp only a monitor sees. Minimum, average and maximum are exact. Percentiles are of all edges that the \
             kernel counted. The parts have each its own maximum: they need not be of the same edge.",
        ),
        tail: "The share of edges answered later than a time, those never answered included.",
        tail_caption: "Answers later than a time",
        tail_table: ("Edges with an answer after a time or later", "answer"),
        beyond: "later",
        histograms: (
            "How often each answer",
            " was met. Both axes are logarithmic, and the same for all loads.",
        ),
        timeline: (
            "Latest answer in every second",
            "; a tick at the foot marks edges that were never answered",
        ),
        worst: (
            "The latest answers of all loads, with the time at which the edge came.",
            "The latest answers",
        ),
        worst_heads: ("answer", "edge, UTC", None),
        worst_parts: &[],
        account: Account::Due("Edges"),
        over: "edges over it",
    },
};

fn facts(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Gpio(gpio) = &plan.instrument else { return Vec::new() };
    let edge = if gpio.rises { "rising" } else { "falling" };
    let mut facts = vec![
        ("Edges", format!("{edge} ones of {}", gpio.input)),
        ("Answers", format!("{}, falling", gpio.output)),
    ];
    facts.extend(gpio.irq_priority.map(|priority| ("Interrupt's thread", format!("priority {priority}"))));
    facts.extend((gpio.delay.0 > 0).then(|| ("Kept back", gpio.delay.to_string())));
    facts.extend(
        gpio.monitor
            .as_ref()
            .map(|monitor| ("Monitor", format!("{} every {}", monitor.address, monitor.period))),
    );
    facts
}

fn aspects(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Gpio(gpio) = &plan.instrument else { return Vec::new() };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    vec![
        ("input", gpio.input.to_string()),
        ("edge", if gpio.rises { "rising" } else { "falling" }.into()),
        ("output", gpio.output.to_string()),
        ("kept back", gpio.delay.to_string()),
        ("interrupt's thread", or_none(gpio.irq_priority.map(|priority| priority.to_string()))),
        ("pulses", or_none(gpio.monitor.as_ref().map(|monitor| monitor.period.to_string()))),
    ]
}

fn again(plan: &RunPlan) -> String {
    let InstrumentPlan::Gpio(gpio) = &plan.instrument else { return String::new() };
    let edge = if gpio.rises { "" } else { ",falling" };
    let mut options = format!(" --probe gpio --pulse {}{edge} --ack {}", gpio.input, gpio.output);
    options += &gpio.irq_priority.map_or(String::new(), |priority| format!(" --irq-priority {priority}"));
    options += &unless(" --answer-delay ", &gpio.delay, &Nanos::ZERO);
    if let Some(monitor) = &gpio.monitor {
        options += &format!(" --monitor {}", monitor.address);
        options += &unless(" --interval ", &monitor.period, &Nanos::from_millis(1));
    }
    options
}
