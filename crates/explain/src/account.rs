//! The pieces of a late wake-up.

use record::{Activity, Cause, Piece, Stage};
use units::{CpuId, Nanos};

use crate::event::{Event, Kind};
use crate::places::{Place, places};
use crate::playback::Playback;
use crate::stages::Stages;
use crate::steal::{self, Steal};
use crate::window::Window;

/// A late wake-up, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its moments.
    pub stages: Stages,
    /// Pieces in order of time; they sum to the latency.
    pub pieces: Vec<Piece>,
    /// What they come to; they sum to the latency too, the largest first.
    pub causes: Vec<Cause>,
    /// Callers at the waking, innermost first.
    pub waking_stack: Vec<String>,
    /// Callers at the switch, innermost first.
    pub switch_stack: Vec<String>,
    /// What a hypervisor took from the threads of the CPU, where the kernel's clock shows it.
    pub stolen: Steal,
    /// Switches of threads that the trace does not have.
    pub hidden: u64,
}

/// Takes a late wake-up apart; what the pieces come to is not known yet.
pub fn pieces(window: &Window) -> Account {
    let stages = Stages::find(window);
    let mut hidden = 0;
    let mut pieces = Vec::new();
    for Place { cpu, from, to } in places(window, &stages) {
        hidden += cut(window, &stages, cpu, from..to, &mut pieces);
    }
    let waking_stack = stack_after(window, stages.waking_cpu.unwrap_or(window.cpu), |event| {
        matches!(&event.kind, Kind::Waking(woken) if woken.tid == window.tid)
            && Some(event.at) >= stages.waking
    });
    let switch_stack = stack_after(window, window.cpu, |event| {
        matches!(&event.kind, Kind::Switch { next, .. } if next.tid == window.tid)
            && Some(event.at) == stages.switch
    });
    let stolen = steal::stolen(window);
    Account { stages, pieces, causes: Vec::new(), waking_stack, switch_stack, stolen, hidden }
}

/// Cuts a time at the events of a CPU. Returns how many switches were hidden in it.
fn cut(
    window: &Window,
    stages: &Stages,
    cpu: CpuId,
    time: std::ops::Range<Nanos>,
    pieces: &mut Vec<Piece>,
) -> u64 {
    let events = window.of(cpu);
    let mut playback = Playback::beginning_with(events.first(), window.tasks());
    let mut before = 0;
    let mut at = time.start;
    if let Some(first) = events.first().filter(|first| first.at > at) {
        let until = first.at.min(time.end);
        let why = "the trace does not reach back so far".to_owned();
        split(window, stages, at..until, Activity::Unknown { why }, pieces);
        at = until;
    }
    for event in events {
        if event.at <= time.start {
            playback.see(event);
            before = playback.hidden();
            continue;
        }
        if event.at > time.end {
            break;
        }
        let activity = activity_until(&playback, event);
        // Events that are not in order of time take none.
        let until = event.at.max(at);
        split(window, stages, at..until, activity, pieces);
        at = until;
        playback.see(event);
    }
    split(window, stages, at..time.end, playback.activity(), pieces);
    playback.hidden() - before
}

/// What the CPU did up to `event`, given what it was known to do after the one before.
fn activity_until(playback: &Playback, event: &Event) -> Activity {
    if matches!(event.kind, Kind::Stack(_)) {
        return Activity::Tracing;
    }
    match event.kind {
        Kind::Lost => return Activity::Unknown { why: "events were lost".to_owned() },
        Kind::Resumed => return Activity::Unknown { why: "nothing was recorded".to_owned() },
        _ => {}
    }
    if let Kind::Nmi { handler, .. } = &event.kind {
        return Activity::Nmi { name: handler.clone() };
    }
    if playback.expects(event) {
        playback.activity_until(event)
    } else {
        Activity::Unknown { why: "a switch of threads is not in the trace".to_owned() }
    }
}

/// Adds a piece, divided where the wake-up came a stage further and where its timer's slack ended. It goes on with the one before
/// where they are alike.
fn split(
    window: &Window,
    stages: &Stages,
    time: std::ops::Range<Nanos>,
    activity: Activity,
    pieces: &mut Vec<Piece>,
) {
    let mut bounds: Vec<Nanos> =
        [window.slack_until, stages.interrupt, stages.waking, stages.switch].into_iter().flatten().collect();
    bounds.retain(|bound| *bound > time.start && *bound < time.end);
    bounds.push(time.end);
    bounds.sort_unstable();
    let mut from = time.start;
    for to in bounds {
        let piece =
            Piece { length: Nanos(to.0 - from.0), stage: stages.at(from), activity: activity.clone() };
        add(piece, Some(from) != window.slack_until, pieces);
        from = to;
    }
}

fn add(piece: Piece, may_go_on: bool, pieces: &mut Vec<Piece>) {
    if piece.length == Nanos::ZERO {
        return;
    }
    match pieces.last_mut() {
        Some(last) if may_go_on && last.stage == piece.stage && last.activity == piece.activity => {
            last.length = Nanos(last.length.0 + piece.length.0);
        }
        _ => pieces.push(piece),
    }
}

/// The callers that were recorded for the last event that `is_it`: the next one of its CPU, by the same thread.
pub fn stack_after(window: &Window, cpu: CpuId, is_it: impl Fn(&Event) -> bool) -> Vec<String> {
    let events = window.of(cpu);
    let place = events.iter().rposition(|event| event.at <= window.woke && is_it(event));
    let next = place.and_then(|place| events.get(place + 1));
    match next.map(|event| &event.kind) {
        Some(Kind::Stack(callers)) => callers.clone(),
        _ => Vec::new(),
    }
}

/// How long a stage took altogether.
pub fn stage_length(pieces: &[Piece], stage: Stage) -> Nanos {
    pieces.iter().filter(|piece| piece.stage == stage).fold(Nanos::ZERO, |sum, piece| sum + piece.length)
}
