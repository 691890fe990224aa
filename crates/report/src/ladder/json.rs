//! The ladder for programs.

use serde::Serialize;
use statistics::Comparison;
use units::Nanos;

use super::Ladder;
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
    missing: &'a [String],
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
    from: &'a str,
    to: &'a str,
    load: &'a str,
    ratio: f64,
    interval: (f64, f64),
    confidence: f64,
    /// The ratio that as many fresh runs would find with a probability of 80 %.
    detectable: f64,
    verdict: String,
}

/// One JSON object: figures of every rung and load, and what each step gained.
pub fn json(ladder: &Ladder) -> String {
    let reckoned = Reckoned::of(ladder);
    let rungs = ladder.rungs.iter().zip(&reckoned.places).map(|(rung, places)| RungOut {
        name: &rung.name,
        booted: &rung.booted,
        missing: &rung.missing,
        notes: &rung.notes,
        loads: ladder.loads.iter().zip(places).map(place).collect(),
    });
    let out = Out {
        title: &ladder.title,
        unit: ladder.unit.name(),
        tail: reckoned.tail_name(),
        rungs: rungs.collect(),
        steps: steps(&reckoned),
    };
    serde_json::to_string_pretty(&out).unwrap_or_default() + "\n"
}

fn place<'a>((load, place): (&'a String, &Place)) -> PlaceOut<'a> {
    PlaceOut {
        load,
        samples: place.samples(),
        minimum: place.minimum(),
        average: place.average(),
        maximum: place.maximum(),
        tails: place.tails(),
    }
}

fn steps<'a>(reckoned: &Reckoned<'a>) -> Vec<StepOut<'a>> {
    let ladder = reckoned.ladder;
    let out = |from: usize, to: usize, load: &'a str, comparison: &Comparison| StepOut {
        from: &ladder.rungs[from].name,
        to: &ladder.rungs[to].name,
        load,
        ratio: comparison.ratio,
        interval: comparison.interval,
        confidence: comparison.confidence,
        detectable: comparison.detectable,
        verdict: comparison.verdict.to_string(),
    };
    let steps = reckoned.steps.iter().flat_map(|step| {
        let judged = ladder.loads.iter().zip(&step.loads);
        judged.filter_map(move |(load, comparison)| Some(out(step.from, step.to, load, comparison.as_ref()?)))
    });
    steps.collect()
}
