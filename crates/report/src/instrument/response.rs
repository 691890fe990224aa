//! The response probe: times until frames are answered.

use record::instrument::response::{PartName, Receive};
use record::{InstrumentPlan, RunPlan, Series};
use units::Nanos;

use super::{Account, Page, Shown, measured, unless};
use crate::rows::{Form, OwnFigure, Row};

const SEND: OwnFigure = OwnFigure::longest("max send", |series| longest(series, PartName::Send));
const TRANSMIT: OwnFigure = OwnFigure::longest("max transmit", |series| longest(series, PartName::Transmit));
const WIRE: OwnFigure = OwnFigure::longest("max wire", |series| longest(series, PartName::Wire));
const PEER: OwnFigure = OwnFigure::longest("max peer", |series| longest(series, PartName::Peer));
const DELIVER: OwnFigure = OwnFigure::longest("max deliver", |series| longest(series, PartName::Deliver));
const RECEIVE: OwnFigure = OwnFigure::longest("max receive", |series| longest(series, PartName::Receive));
const LOST: OwnFigure =
    OwnFigure { name: "lost frames", of: |series| Some(series.response()?.frames.lost), form: Form::Count };

const OF_CYCLES: &str = "* of all cycles due: one that was not answered counts with the time that it was waited for, one that was skipped \
    with how late it would have been; - means too few samples, or nothing known";

/// With the parts that the kernel's stamps tell apart.
pub(super) static SHOWN: Shown = OF_SOFTWARE;

const OF_SOFTWARE: Shown = Shown {
    corner: |plan| format!("responses, {}, us", measured(plan)),
    own: &[SEND, WIRE, PEER, RECEIVE, LOST],
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
        OF_CYCLES,
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

/// With those that the stamps of a network card tell apart.
pub(super) static WITH_HARDWARE: Shown = Shown {
    own: &[SEND, TRANSMIT, WIRE, PEER, DELIVER, RECEIVE, LOST],
    rows: &[
        Row::Own(0),
        Row::Own(1),
        Row::Own(2),
        Row::Own(3),
        Row::Own(4),
        Row::Own(5),
        Row::Samples,
        Row::Missed,
        Row::Own(6),
        Row::OverLimit,
    ],
    notes: &[
        OF_CYCLES,
        "parts, each by its own longest: send until the driver has the frame, transmit until the card has sent it, wire there and \
         back, peer from its kernel to its answer, deliver from the card to the own kernel, receive from there to the thread",
    ],
    page: Page {
        worst_parts: &["send", "transmit", "wire", "peer", "deliver", "receive"],
        ..OF_SOFTWARE.page
    },
    ..OF_SOFTWARE
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
    facts.extend(response.hardware_stamps.then(|| ("Stamps", "of the kernel and of the card".to_owned())));
    facts.extend(response.ptp_frames.then(|| ("Frames are", "messages of PTP".to_owned())));
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
        ("hardware stamps", if response.hardware_stamps { "yes" } else { "no" }.into()),
        ("raw frames", if response.ptp_frames { "messages of PTP" } else { "plain" }.into()),
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
    options += if response.hardware_stamps { " --hardware-stamps" } else { "" };
    options += if response.ptp_frames { " --ptp-frames" } else { "" };
    options
}

fn longest_limit(plan: &RunPlan) -> Option<Nanos> {
    if let InstrumentPlan::Response(response) = &plan.instrument { Some(response.patience) } else { None }
}
