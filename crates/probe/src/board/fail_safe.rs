//! A machine that measuring threads keep busy cannot be reached: they end the run where nothing else has a CPU.

use sys::shared::Word;
use units::Nanos;

use super::{common, stop};

/// Says that ordinary threads have a CPU. One caller only.
pub fn beat(board: &[Word]) {
    board[common::BEATS].add(1);
}

/// Whether a thread has ended the run because nobody else had a CPU.
pub fn has_failed_safe(board: &[Word]) -> bool {
    board[common::FAILED_SAFE].is_raised()
}

/// Ends the run where nothing has called [`beat`] for too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailSafe {
    limit: u64,
    beats: u64,
    /// When these were seen first; none where the clock was set since.
    since: Option<u64>,
}

impl FailSafe {
    pub fn new(limit: Nanos) -> Self {
        Self { limit: limit.0, beats: 0, since: None }
    }

    /// How long the count stood still is not known any more.
    pub fn clock_stepped(&mut self) {
        self.since = None;
    }

    pub fn look(&mut self, board: &[Word], now: u64) {
        let beats = board[common::BEATS].observe_now().unwrap_or(self.beats);
        let since = self.since.filter(|_| beats == self.beats).unwrap_or(now);
        (self.beats, self.since) = (beats, Some(since));
        if now.saturating_sub(since) >= self.limit {
            board[common::FAILED_SAFE].raise();
            stop(board, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use sys::shared::SharedWords;

    use super::super::{Recorder, block, stopped_at, words};
    use super::*;

    #[test]
    fn a_run_ends_where_nothing_else_has_a_cpu() {
        let (board, _file) = SharedWords::create(words(1, false)).unwrap();
        let mut recorder = Recorder::new(block(&board, 0, false), Nanos(1), false);
        let second = 1_000_000_000;
        recorder.look_out(&board, 50 * second);
        assert!(!has_failed_safe(&board), "nobody asked for it");
        recorder.fail_safe(Nanos(10 * second));
        for now in 100..150 {
            beat(&board);
            recorder.look_out(&board, now * second);
        }
        recorder.look_out(&board, 158 * second);
        // The clock is set: how long it was is not known.
        recorder.clock_stepped();
        for now in 1000..=1009 {
            recorder.look_out(&board, now * second);
            assert!(stopped_at(&board).is_none());
        }
        recorder.look_out(&board, 1010 * second);
        assert_eq!((stopped_at(&board), has_failed_safe(&board)), (Some(1010 * second), true));
    }
}
