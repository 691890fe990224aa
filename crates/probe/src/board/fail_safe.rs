//! A machine that measuring threads keep busy cannot be reached: they end the run where nothing else has a CPU.

use sys::shared::Word;
use units::Nanos;

use super::{common, stop};

/// How often an ordinary thread is to [`beat`] in the time without a beat that ends a run.
pub const BEATS: u32 = 20;

/// Says that ordinary threads have a CPU. One caller only.
pub fn beat(board: &[Word]) {
    board[common::BEATS].add(1);
}

/// Whether a thread has ended the run because nobody else had a CPU.
pub fn has_failed_safe(board: &[Word]) -> bool {
    board[common::FAILED_SAFE].is_raised()
}

/// Ends the run where nothing has called [`beat`] for too long, as far as this thread itself had a CPU: where the whole program
/// or the whole machine stood still, nobody was kept from running.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailSafe {
    limit: u64,
    /// The longest that may count between two looks.
    step: u64,
    beats: u64,
    /// How long they have stood still.
    starved: u64,
    last_look: Option<u64>,
}

impl FailSafe {
    pub fn new(limit: Nanos) -> Self {
        let step = (limit.0 / u64::from(BEATS)).max(1);
        Self { limit: limit.0, step, beats: 0, starved: 0, last_look: None }
    }

    #[inline]
    pub fn look(&mut self, board: &[Word], now: u64) {
        let beats = board[common::BEATS].observe_now().unwrap_or(self.beats);
        let passed = self.last_look.map_or(0, |last| now.saturating_sub(last)).min(self.step);
        self.last_look = Some(now);
        if beats != self.beats {
            (self.beats, self.starved) = (beats, 0);
            return;
        }
        self.starved += passed;
        if self.starved >= self.limit {
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

    const SECOND: u64 = 1_000_000_000;
    const LIMIT: u64 = 10 * SECOND;

    #[test]
    fn a_run_ends_where_nothing_else_has_a_cpu() {
        let (board, _file) = SharedWords::create(words(1, false)).unwrap();
        let mut recorder = Recorder::new(block(&board, 0, false), Nanos(1), false);
        recorder.look_out(&board, 50 * SECOND);
        assert!(!has_failed_safe(&board), "nobody asked for it");
        recorder.fail_safe(Nanos(LIMIT));
        for now in 100..150 {
            beat(&board);
            recorder.look_out(&board, now * SECOND);
        }
        let end = (1..).find(|look| {
            recorder.look_out(&board, 149 * SECOND + look * SECOND / 10);
            has_failed_safe(&board)
        });
        assert_eq!(end, Some(100), "ten seconds of looks without a beat");
        assert_eq!(stopped_at(&board), Some(159 * SECOND));
    }

    #[test]
    fn a_pause_of_the_whole_machine_keeps_nobody_from_running() {
        let (board, _file) = SharedWords::create(words(1, false)).unwrap();
        let mut recorder = Recorder::new(block(&board, 0, false), Nanos(1), false);
        recorder.fail_safe(Nanos(LIMIT));
        // Stopped for a minute each time, set a day ahead, set back.
        for now in [0, 60, 120, 180, 90_000, 10, 70] {
            recorder.look_out(&board, now * SECOND);
        }
        assert!(!has_failed_safe(&board));
        beat(&board);
        recorder.look_out(&board, 130 * SECOND);
        (0..19).for_each(|minute| recorder.look_out(&board, (minute * 60 + 200) * SECOND));
        assert!(!has_failed_safe(&board), "a beat begins it anew");
        recorder.look_out(&board, 5_000 * SECOND);
        assert!(has_failed_safe(&board), "that many looks of a thread that seldom wakes");
    }
}
