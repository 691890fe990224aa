//! The response probe: times until frames are answered.

use record::instrument::response::{PartName, Receive};
use record::{InstrumentPlan, RunPlan, Series};
use units::Nanos;

use super::{Account, Page, Shown, measured, unless};
use crate::rows::{Form, OwnFigure, Row};

pub(super) static SHOWN: Shown = Shown {
    corner: |plan| format!("responses, {}, us", measured(plan)),
    own: &[
        OwnFigure { name: "max send", of: |series| longest(series, PartName::Send), form: Form::Longest },
        OwnFigure { name: "max wire", of: |series| longest(series, PartName::Wire), form: Form::Longest },
        OwnFigure { name: "max peer", of: |series| longest(series, PartName::Peer), form: Form::Longest },
        OwnFigure {
            name: "max receive",
            of: |series| longest(series, PartName::Receive),
            form: Form::Longest,
        },
        OwnFigure {
            name: "lost frames",
            of: |series| Some(series.response()?.frames.lost),
            form: Form::Count,
        },
    ],
    rows: &[
        Row::Own(0),
        Row::Own(1),
        Row::Own(2),
        Row::Own(3),
        Row::Samples,
        Row::Missed,
        Row::Own(4),
        Row::OverLimit,
    ],
    corrects: true,
    notes: &[
        "* of all cycles due: one that was not answered counts with the time that it was waited for, one that was skipped \
         with how late it would have been; - means too few samples, or nothing known",
        "parts, each by its own longest: send until the driver has the frame, wire there and back, peer from its kernel \
         to its answer, receive from the own kernel to the thread",
    ],
    facts,
    aspects,
    seen: |_| None,
    again,
    longest_limit,
    page: Page {
        title: "Response",
        worst_value: "Longest response",
        figures: (
            "Responses under each load",
            "A response is the time from the begin of a cycle until the last of its frames is answered. Minimum, average and \
             maximum are exact, of the cycles that were answered. Percentiles are of all cycles due: a missed one counts with \
             the time that it was waited for. The parts have each its own maximum: they need not be of the same cycle.",
        ),
        tail: "The share of cycles with a response longer than a time, missed ones included.",
        tail_caption: "Responses longer than a time",
        tail_table: ("Cycles with a response of a time or longer", "response"),
        beyond: "longer",
        histograms: (
            "How often each response",
            " was met, missed cycles included. Both axes are logarithmic, and the same for all loads.",
        ),
        timeline: (
            "Longest response of all CPUs in every second",
            "; a tick at the foot marks missed cycles",
        ),
        worst: (
            "The longest responses of all loads and CPUs, with the time at which each cycle was due.",
            "The longest responses",
        ),
        worst_heads: ("response", "due, UTC", Some("cycle")),
        worst_parts: &["send", "wire", "peer", "receive"],
        account: Account::Due("Cycles"),
        over: "cycles over it",
    },
};

fn facts(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Response(response) = &plan.instrument else { return Vec::new() };
    let by = response.interface.as_ref().map_or(String::new(), |interface| format!(" by {interface}"));
    let mut facts = vec![
        ("Peer", format!("{}{by}", response.peer)),
        ("Cycle", format!("{}, answers awaited for {}", response.interval, response.patience)),
        ("Frames", format!("{} a cycle, {} bytes", response.frames, response.size)),
        ("Waiting", response.receive.to_string()),
    ];
    facts.extend(response.socket_priority.map(|priority| ("Socket priority", priority.to_string())));
    facts
}

fn aspects(plan: &RunPlan) -> Vec<(&'static str, String)> {
    let InstrumentPlan::Response(response) = &plan.instrument else { return Vec::new() };
    vec![
        ("peer", response.peer.clone()),
        ("interface", response.interface.clone().unwrap_or_else(|| "by route".into())),
        ("cycle", response.interval.to_string()),
        ("patience", response.patience.to_string()),
        ("frames a cycle", response.frames.to_string()),
        ("bytes a frame", response.size.to_string()),
        ("waiting", response.receive.to_string()),
        (
            "socket priority",
            response.socket_priority.map_or_else(|| "none".into(), |priority| priority.to_string()),
        ),
    ]
}

fn longest(series: &Series, part: PartName) -> Option<u64> {
    Some(series.response()?.part(part)?.summary().maximum()?.0)
}

/// The cycle unless another is asked for.
const USUAL_CYCLE: Nanos = Nanos::from_millis(1);

fn again(plan: &RunPlan) -> String {
    let InstrumentPlan::Response(response) = &plan.instrument else { return String::new() };
    let by = response.interface.as_ref().map_or(String::new(), |name| format!(" --interface {name}"));
    let mut options = format!(" --probe network --peer {}{by}", response.peer);
    options += &unless(" --interval ", &response.interval, &USUAL_CYCLE);
    options += &unless(" --frames ", &response.frames, &1);
    options += &unless(" --size ", &response.size, &64);
    // Nine tenths of the cycle unless asked otherwise.
    options += &unless(" --patience ", &response.patience, &Nanos(response.interval.0 / 10 * 9));
    options += &unless(" --receive ", &response.receive, &Receive::default());
    options += &response.socket_priority.map_or(String::new(), |one| format!(" --socket-priority {one}"));
    options
}

fn longest_limit(plan: &RunPlan) -> Option<Nanos> {
    if let InstrumentPlan::Response(response) = &plan.instrument { Some(response.patience) } else { None }
}
