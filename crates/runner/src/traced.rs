//! Scenarios measured once more while the kernel is traced, so that their worst wake-ups can be explained.
//!
//! Figures come first, untraced; what tracing costs is in none of them. How wake-ups are caught is the tracer's business.

use failure::{Error, Result};
use record::journal::Line;
use record::{ClockName, Explanation, Hit, Overview, Scenario, ScenarioEnd, Setup, Tracing};
use units::{InOrder, Nanos};

use crate::observer::Observer;
use crate::scenario;
use crate::session::Session;
use crate::tracer::{MakeTracer, Traced};

/// Measures each scenario that came to its end once more, traced, and explains its worst wake-ups.
pub(crate) fn explain(
    session: &mut Session,
    scenarios: &[Scenario],
    wanted: usize,
    make: MakeTracer,
    observer: &mut dyn Observer,
) -> Vec<Explanation> {
    let mut explanations = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        if scenario.end != ScenarioEnd::Complete {
            continue;
        }
        if session.was_asked_to_end() {
            break;
        }
        let measured = measure(session, scenario, (index, scenarios.len()), wanted, make, observer);
        let (scenario, (tracing, hits, overview), go_on) = match measured {
            Ok(measured) => measured,
            Err(error) => {
                session.outputs.speak();
                let message = format!("{} was not explained: {}", scenario.head.planned.load, error.message);
                session.explanation_failure = Some(Error::new(message, error.hint));
                break;
            }
        };
        let of = u32::try_from(index).unwrap_or(u32::MAX);
        let explanation = Explanation { of, scenario, tracing, hits, overview };
        session.outputs.append(&Line::Explained(Box::new(explanation.clone())));
        explanations.push(explanation);
        if !go_on {
            break;
        }
    }
    explanations
}

type Repetition = (Scenario, (Tracing, Vec<Hit>, Overview), bool);

fn measure(
    session: &mut Session,
    scenario: &Scenario,
    (index, count): (usize, usize),
    wanted: usize,
    make: MakeTracer,
    observer: &mut dyn Observer,
) -> Result<Repetition> {
    can_be_traced(session, scenario)?;
    let mut traced = Traced::new(make(wanted, threshold(scenario, wanted))?);
    // The journal and the samples file have the untraced scenarios alone.
    session.outputs.be_silent();
    let planned = &scenario.head.planned;
    let measured = scenario::measure(session, planned, index, count, Some(&mut traced), observer);
    session.outputs.speak();
    let measured = measured?;
    Ok((measured.scenario, traced.finish(), measured.go_on))
}

fn can_be_traced(session: &Session, scenario: &Scenario) -> Result<()> {
    let clock = session.header.plan.timer().map(|timer| timer.clock);
    match (&scenario.head.planned.setup, clock) {
        (Setup::Timer(_), Some(ClockName::Monotonic)) => Ok(()),
        (Setup::Timer(_), _) => {
            Err(Error::new("only wake-ups on CLOCK_MONOTONIC can be explained", "leave out --clock"))
        }
        _ => Err(Error::new("only wake-ups by a timer can be explained", "leave out --probe")),
    }
}

/// Of the worst, more than so many lie among ordinary wake-ups: to mark these too leaves those that are late without a trace.
const FEW: usize = 10;

/// Half of the least of the `wanted` worst latencies of the untraced scenario, and more than most wake-ups take: what is
/// met first is looked at, and the threshold rises from there.
fn threshold(scenario: &Scenario, wanted: usize) -> Nanos {
    let mut worst: Vec<Nanos> =
        scenario.series.iter().flat_map(|series| &series.worst).map(|sample| sample.latency).collect();
    worst.order_by_key(|latency| std::cmp::Reverse(*latency));
    let least = worst.get(wanted.min(FEW).saturating_sub(1)).or(worst.last()).copied().unwrap_or_default();
    let usual = scenario.series.iter().filter_map(|series| series.observed.quantile(0.9)).max();
    Nanos((least.0 / 2).max(usual.unwrap_or_default().0)).max(Nanos(1))
}
