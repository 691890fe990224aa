//! What harms the figures of the noise probe.

use units::Nanos;

use crate::WarningId as Id;
use crate::{Scenario, Warning};

use super::{NoiseSeries, NoiseSetup};

/// A share of the planned time in per mille: what was watched below it does not speak for the rest.
const LEAST_WATCHED_PERMILLE: u64 = 900;

/// Warnings about each CPU that was watched for gaps.
pub(super) fn of_scenario(setup: &NoiseSetup, scenario: &Scenario) -> Vec<Warning> {
    let series = scenario.series.iter().enumerate();
    let noise = series.filter_map(|(index, series)| Some((scenario.thread_name(index), series.noise()?)));
    noise
        .flat_map(|(who, noise)| {
            let planned = Nanos(scenario.length.0 / setup.window.0.max(1) * setup.spin.0);
            [watched_too_little(&who, noise, planned), unexplained(&who, noise)]
        })
        .flatten()
        .collect()
}

/// Whoever had the CPU in the pauses and kept it, or a thread that was stopped, hides gaps.
fn watched_too_little(who: &str, noise: &NoiseSeries, planned: Nanos) -> Option<Warning> {
    let is_little = noise.watched.0.saturating_mul(1000) < planned.0.saturating_mul(LEAST_WATCHED_PERMILLE);
    is_little.then(|| {
        Warning::inconclusive(
            Id::NoiseUnwatched,
            format!(
                "{who} watched for {} of {}; {} windows were over before it got its CPU",
                noise.watched.rounded(),
                planned.rounded(),
                noise.windows_missed
            ),
            "something of a higher priority kept the CPU: see `ps -eLo pid,cls,rtprio,pcpu,comm`",
        )
    })
}

fn unexplained(who: &str, noise: &NoiseSeries) -> Option<Warning> {
    let counted = &noise.counted;
    (counted.unexplained_gaps > 0).then(|| {
        Warning::note(
            Id::NoiseUnexplained,
            format!(
                "{who}: {} gaps at least, beyond all interrupts and preemptions that the kernel counted, without steal",
                counted.unexplained_gaps
            ),
            "firmware (SMIs), hardware, or a hypervisor that does not report steal: rt-tests' hwlatdetect looks for the first",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::noise::Counted;
    use crate::verdict::tests::{doubts, scenario};
    use crate::{Effect, Own, Setup};

    fn ids(noise: NoiseSeries) -> Vec<(Id, Effect)> {
        let mut scenario = scenario(&[5_000]);
        let (threshold, window, spin) = (Nanos(1_000), Nanos::from_millis(100), Nanos::from_millis(90));
        scenario.head.planned.setup = Setup::Noise(NoiseSetup { threshold, window, spin });
        scenario.series[0].own = Own::Noise(noise);
        doubts(&scenario)
    }

    #[test]
    fn time_that_was_not_watched_and_gaps_that_nobody_explains_are_named() {
        let whole = NoiseSeries { watched: Nanos::from_secs(9), ..NoiseSeries::default() };
        assert_eq!(ids(whole.clone()), []);
        let little = NoiseSeries { watched: Nanos::from_secs(8), ..NoiseSeries::default() };
        assert_eq!(ids(little), [(Id::NoiseUnwatched, Effect::Inconclusive)]);
        let counted = Counted { unexplained_gaps: 3, ..Counted::default() };
        assert_eq!(ids(NoiseSeries { counted, ..whole }), [(Id::NoiseUnexplained, Effect::Note)]);
    }
}
