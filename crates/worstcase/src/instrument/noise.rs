//! The options of `--probe noise`.

use clap::Args;
use failure::Error;
use record::InstrumentPlan;
use record::instrument::noise::NoiseSetup;
use units::Nanos;

use super::{Common, Options, refuse};
use crate::headings::MEASURED;
use crate::lengths::between;

/// oslat's resolution: below it lie the turns of the loop.
const THRESHOLD: Nanos = Nanos::from_micros(1);
/// The noise probe spins for nine tenths of each window, so that the machine goes on, and neither RT throttling (950 ms of
/// a second) nor the fair server (50 ms of a second) finds anything to do.
const WINDOW: Nanos = Nanos::from_millis(100);
const SPIN: Nanos = Nanos::from_millis(90);

/// What counts as a gap.
#[derive(Args, Clone, Debug)]
pub struct NoiseOptions {
    /// The shortest gap that --probe noise records [default: 1us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = threshold, help_heading = MEASURED)]
    threshold: Option<Nanos>,
}

impl Options for NoiseOptions {
    fn given(&self) -> Vec<(&'static str, bool)> {
        vec![("--threshold", self.threshold.is_some())]
    }

    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error> {
        let foreign = [("--samples", common.has_samples), ("--interval", common.intervals.are_given())];
        refuse(&foreign, "--probe noise: its threads spin and are not woken")?;
        let threshold = self.threshold.unwrap_or(THRESHOLD);
        Ok(InstrumentPlan::Noise(NoiseSetup { threshold, window: WINDOW, spin: SPIN }))
    }
}

/// Of a gap: turns of the loop take some tens of nanoseconds, and what is longer than a second is no noise.
fn threshold(text: &str) -> Result<Nanos, String> {
    between(text, Nanos(200), Nanos::from_secs(1), "200ns to 1s")
}
