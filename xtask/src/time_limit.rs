//! When a run begins nothing more.

use std::time::{Duration, Instant};

/// When no further test is begun: some machines take twice as long as others for the same, and CI ends a run that takes too
/// long without a word of what had passed.
#[derive(Clone, Copy)]
pub struct TimeLimit(Option<Instant>);

impl TimeLimit {
    /// Begins now.
    pub fn of(seconds: Option<u64>) -> Self {
        Self(seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)))
    }

    /// Whether it is over; what is not begun then is named as skipped, for [`OVER`].
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// Why something was not begun.
pub const OVER: &str = "no time was left (--within)";
