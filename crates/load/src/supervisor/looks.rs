//! When the workers are looked at.

use std::time::{Duration, Instant};

use units::Nanos;

/// The shortest time between two looks: that of a slot, by which exposure is judged.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);

/// When the workers are looked at, and what was added up.
#[derive(Debug)]
pub(super) struct Looks {
    pub next: Instant,
    pub last: Option<Nanos>,
    /// How long this thread had waited for a CPU by then.
    pub waited: Nanos,
    /// The time between two looks, as intended.
    pub every: Duration,
    /// One a stressor, of one a worker.
    pub ready: Vec<Vec<Nanos>>,
}

impl Looks {
    /// For stressors of so many workers each.
    pub fn of(workers: &[usize]) -> Self {
        let ready = workers.iter().map(|&workers| vec![Nanos::ZERO; workers]).collect();
        Self { next: Instant::now(), last: None, waited: Nanos::ZERO, every: SHORTEST, ready }
    }

    /// How long it is until the next one.
    pub fn patience(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }
}
