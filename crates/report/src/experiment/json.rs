//! A ladder for programs. The other experiments have their answers as the engine gives them.

use experiment::{Compared, Difference, Effect};
use serde::Serialize;
use units::Nanos;

use super::Experiment;
use super::figures::{Place, Reckoned};

#[derive(Serialize)]
struct Out<'a> {
    title: &'a str,
    unit: &'static str,
    tail: String,
    rungs: Vec<RungOut<'a>>,
    steps: Vec<StepOut<'a>>,
}

#[derive(Serialize)]
struct RungOut<'a> {
    name: &'a str,
    booted: &'a str,
    missing: Vec<&'a String>,
    notes: &'a [String],
    loads: Vec<PlaceOut<'a>>,
}

/// Latencies are nanoseconds of the guest's clock.
#[derive(Serialize)]
struct PlaceOut<'a> {
    load: &'a str,
    samples: u64,
    minimum: Option<Nanos>,
    average: Option<Nanos>,
    maximum: Option<Nanos>,
    /// One a seed, ascending.
    tails: Vec<Nanos>,
}

#[derive(Serialize)]
struct StepOut<'a> {
    from: String,
    to: String,
    load: &'a str,
    ratio: f64,
    interval: [f64; 2],
    confidence: f64,
    /// The ratio that as many fresh runs would find with a probability of 80 %.
    detectable: Option<f64>,
    verdict: &'static str,
}

/// One JSON object: figures of every rung and load, and what each step gained.
pub fn ladder(experiment: &Experiment) -> String {
    let reckoned = Reckoned::of(experiment);
    let rungs = experiment.arms.iter().zip(&reckoned.places).map(|(rung, places)| RungOut {
        name: &rung.name,
        booted: &rung.what,
        missing: experiment
            .missing
            .iter()
            .filter(|one| one.starts_with(&format!("{}/", rung.name)))
            .collect(),
        notes: &rung.notes,
        loads: experiment.loads.iter().zip(places).map(place).collect(),
    });
    let step = |(compared, difference): (&Compared, &Difference)| StepOut {
        from: experiment.name(&compared.against),
        to: experiment.name(&compared.arm),
        load: &experiment.loads[compared.load],
        ratio: difference.ratio,
        interval: difference.interval,
        confidence: difference.confidence,
        detectable: difference.detectable,
        verdict: match difference.effect {
            Some(Effect::Helps) => "lower",
            Some(Effect::Harms) => "higher",
            _ => "no difference visible",
        },
    };
    let out = Out {
        title: &experiment.title,
        unit: experiment.unit.name(),
        tail: reckoned.tail_name(),
        rungs: rungs.collect(),
        steps: reckoned.judged().map(step).collect(),
    };
    serde_json::to_string_pretty(&out).unwrap_or_default() + "\n"
}

fn place<'a>((load, place): (&'a String, &Place)) -> PlaceOut<'a> {
    let observed = &place.together.observed;
    PlaceOut {
        load,
        samples: place.together.expected,
        minimum: observed.minimum(),
        average: observed.average(),
        maximum: observed.maximum(),
        tails: place.tails(),
    }
}
