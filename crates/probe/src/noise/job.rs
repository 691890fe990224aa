//! What threads of the noise probe are to do.

use failure::Error;
use record::instrument::OwnSetup;
use record::instrument::noise::NoiseSetup;
use record::{Header, Own, Series, Setup};
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::Thread;
use crate::job::{OwnJob, Place, Ready, Seen};
use crate::limits;

/// How long the CPU is taken from threads that spin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseJob {
    /// Threshold and windows.
    pub setup: NoiseSetup,
    /// Windows of the warm-up, in which nothing is recorded.
    pub warm_up: u64,
    /// Windows to spin in; none: until it is stopped.
    pub windows: Option<u64>,
}

impl NoiseJob {
    /// In a run that begins with `header`.
    pub fn new(setup: &NoiseSetup, header: &Header) -> Self {
        let window = setup.window.0.max(1);
        let length = header.plan.scenario_length(&Setup::Noise(setup.clone()));
        Self {
            setup: setup.clone(),
            warm_up: header.plan.warm_up.0.div_ceil(window),
            windows: length.map(|length| length.0 / window),
        }
    }
}

impl OwnJob for NoiseJob {
    fn setup(&self) -> &dyn OwnSetup {
        &self.setup
    }

    fn numbers(&self) -> Option<u64> {
        Some(self.windows?.saturating_mul(self.setup.window.0))
    }

    fn length(&self) -> Option<Nanos> {
        let count = self.windows?.saturating_add(self.warm_up).saturating_add(2);
        Some(self.setup.window.saturating_mul(count))
    }

    fn check(&self, _: usize, for_all: bool) -> Result<(), Error> {
        limits::spin(self.setup.spin, self.setup.window, for_all)
    }

    fn prepare(&self, place: Place) -> Result<Box<dyn Ready + '_>, Error> {
        Ok(Box::new(Thread { job: self, stop_at: place.stop_at }))
    }

    fn has_missed(&self) -> bool {
        false
    }

    fn so_far(&self, seen: &Seen<'_>) -> Option<Own> {
        Some(self.series(seen))
    }

    fn series(&self, seen: &Seen<'_>) -> Own {
        Own::Noise(seen.view.noise())
    }

    /// The nanosecond in which the gap began that a thread is in.
    fn pending(&self, seen: &Seen<'_>, _: &Series) -> Option<u64> {
        seen.view.read_at()?.checked_sub(seen.grid?.origin)
    }

    /// A thread sleeps between its windows.
    fn awaited(&self, seen: &Seen<'_>) -> Option<(u64, u64)> {
        let read_at = seen.view.read_at()?.checked_sub(seen.grid?.origin)?;
        Some((read_at, self.setup.window.0.saturating_mul(2)))
    }
}
