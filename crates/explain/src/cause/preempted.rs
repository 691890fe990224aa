//! Softirqs that are preempted, as on PREEMPT_RT: nobody waits for their end.

use record::{Activity, Piece, Stage};

use super::{Found, Judge, thread_words};
use crate::event::{Kind, Task};

impl Judge<'_> {
    /// What a thread did that was preempted in a softirq, or in a timer's function in one: as if it were not in it.
    pub(super) fn preempted_softirq(&self, piece: &Piece, is_interrupted: bool) -> Option<Found> {
        let is_softirq = matches!(piece.activity, Activity::Softirq { .. } | Activity::Timer { .. });
        let is_thread_to_blame = piece.stage == Stage::Runnable || is_interrupted;
        let thread = self.preempted_in(piece).filter(|_| is_softirq && is_thread_to_blame)?;
        let words = thread_words(&thread.name, thread.tid, None);
        Some(self.thread(piece, (thread.tid, &words), thread.priority, is_interrupted))
    }

    /// The thread that gave way to this one before the end of what ran in the piece.
    fn preempted_in(&self, piece: &Piece) -> Option<&Task> {
        let from = self.begin_of(piece);
        self.places
            .iter()
            .find(|place| place.cpu == self.window.cpu && from >= place.from && from < place.to)?;
        let mut on_top = 0_usize;
        for event in self.window.of(self.window.cpu).iter().filter(|event| event.at > from) {
            match &event.kind {
                Kind::Enter(_) => on_top += 1,
                Kind::Leave(_) => on_top = on_top.checked_sub(1)?,
                Kind::Switch { previous, next } => return (next.tid == self.window.tid).then_some(previous),
                // What came in between is not known.
                Kind::Lost | Kind::Resumed => return None,
                _ => {}
            }
        }
        None
    }
}
