//! A late wake-up as one lane: what the CPU did from the time it was due, and where it came a stage further.

use record::{Activity, Hit, Stage, Unit};
use units::Nanos;

use super::canvas::Anchor;
use super::scale::Linear;
use super::{Canvas, Frame};

/// Height of the lane.
const LANE: f64 = 30.0;

/// Which colour an activity has: the same in the legend.
pub(crate) fn series(activity: &Activity, own: i32) -> usize {
    match activity {
        Activity::Idle { .. } | Activity::Unknown { .. } => 0,
        Activity::Interrupt { .. } | Activity::Nmi { .. } => 1,
        Activity::Thread { tid, .. } if *tid == own => 3,
        Activity::Thread { .. } => 2,
        Activity::Softirq { .. } => 4,
        Activity::Timer { .. } => 5,
        Activity::Call { .. } => 6,
        Activity::Tracing => 7,
    }
}

/// What colours mean.
pub(crate) const LEGEND: [(usize, &str); 8] = [
    (2, "another thread"),
    (1, "interrupt"),
    (5, "timer function"),
    (4, "softirq"),
    (6, "called by another CPU"),
    (3, "the measuring thread"),
    (7, "recording the trace"),
    (0, "idle, or unknown"),
];

/// The plot; `describe` says what a piece is.
pub(crate) fn plot(hit: &Hit, unit: Unit, frame: &Frame, describe: impl Fn(&Activity) -> String) -> String {
    let mut canvas = Canvas::new(frame);
    let x = Linear::new(hit.latency.0.max(1) as f64, frame.x());
    let (top, bottom) = (frame.y().1, frame.y().1 + LANE);
    let (mut at, mut stage) = (0_u64, None);
    for piece in &hit.pieces {
        let end = at.saturating_add(piece.length.0);
        let title = format!("{}: {}", describe(&piece.activity), unit.with_name(piece.length));
        let class = format!("area s{}", series(&piece.activity, hit.tid));
        canvas.rect(&class, (x.at(at as f64), top), (x.at(end as f64), bottom), &title);
        if stage.is_some_and(|stage| stage != piece.stage) {
            canvas.line("axis", (x.at(at as f64), top - 8.0), (x.at(at as f64), bottom + 8.0));
        }
        stage = Some(piece.stage);
        at = end;
    }
    for (stage, from, to) in spans(hit) {
        let (left, right) = (x.at(from.0 as f64), x.at(to.0 as f64));
        // Stages of a few pixels have no room for their name; the table has them.
        if right - left > 70.0 {
            canvas.text("tick", ((left + right) / 2.0, bottom + 16.0), Anchor::Middle, stage);
        }
    }
    canvas.text("tick", (frame.x().0, top - 12.0), Anchor::Start, "due");
    canvas.text("tick", (frame.x().1, top - 12.0), Anchor::End, &unit.with_name(hit.latency));
    canvas.finish("What the CPU did until the thread ran again", "")
}

/// Stages with where they begin and end.
fn spans(hit: &Hit) -> Vec<(&'static str, Nanos, Nanos)> {
    let mut spans: Vec<(Stage, Nanos, Nanos)> = Vec::new();
    let mut at = Nanos::ZERO;
    for piece in &hit.pieces {
        let end = at + piece.length;
        match spans.last_mut() {
            Some((stage, _, to)) if *stage == piece.stage => *to = end,
            _ => spans.push((piece.stage, at, end)),
        }
        at = end;
    }
    spans.into_iter().map(|(stage, from, to)| (stage.words(), from, to)).collect()
}
