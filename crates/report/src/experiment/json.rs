//! A ladder for programs. The other experiments have their answers as the engine gives them.

use experiment::{Compared, Difference, Effect};
use serde_json::{Value, json};
use statistics::Comparison;

use super::figures::{Costs, Place, Reckoned};
use super::{Arm, Experiment};
use crate::cost::Row;

/// One JSON object: figures of every rung and load in nanoseconds of the guest's clock, the tails one a seed and ascending,
/// and what each step gained.
pub fn ladder(experiment: &Experiment) -> String {
    let reckoned = Reckoned::of(experiment);
    let rungs = experiment.arms.iter().zip(&reckoned.places);
    let out = json!({
        "title": experiment.title,
        "unit": experiment.unit.name(),
        "tail": reckoned.tail_name(),
        "rungs": rungs.map(|(rung, places)| of_rung(experiment, rung, places)).collect::<Vec<_>>(),
        "trade_off": reckoned.trades().first().map(|trade| trade.json()),
        "costs": reckoned.costs().iter().map(of_costs).collect::<Vec<_>>(),
        "steps": reckoned.judged().map(|step| of_step(experiment, step)).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&out).unwrap_or_default() + "\n"
}

fn of_rung(experiment: &Experiment, rung: &Arm, places: &[Place]) -> Value {
    let own = format!("{}/", rung.name);
    let of_load = |(load, place): (&String, &Place)| {
        let observed = &place.together.observed;
        json!({
            "load": load,
            "samples": place.together.expected,
            "minimum": observed.minimum(),
            "average": observed.average(),
            "maximum": observed.maximum(),
            "tails": place.tails(),
        })
    };
    json!({
        "name": rung.name,
        "booted": rung.what,
        "missing": experiment.missing.iter().filter(|one| one.starts_with(&own)).collect::<Vec<_>>(),
        "notes": rung.notes,
        "loads": experiment.loads.iter().zip(places).map(of_load).collect::<Vec<_>>(),
    })
}

/// What each operation takes on a rung, as many times as on the one that it is compared with.
fn of_costs(costs: &Costs<'_>) -> Value {
    let ratio = |found: &Comparison| json!({ "ratio": found.ratio, "interval": found.interval });
    let row = |row: &Row| {
        json!({
            "operation": row.name, "ratio": row.found.ratio, "interval": row.found.interval,
            "published": costs.arm.published.as_ref().and_then(|one| one.operations.get(&row.name)),
        })
    };
    json!({
        "from": costs.base,
        "to": costs.arm.name,
        "inconclusive": costs.found.inconclusive,
        "mean": costs.found.mean.as_ref().map(ratio),
        "operations": costs.found.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// `detectable` is the ratio that as many fresh runs would find with a probability of 80 %.
fn of_step(experiment: &Experiment, (compared, found): (&Compared, &Difference)) -> Value {
    json!({
        "from": experiment.name(&compared.against),
        "to": experiment.name(&compared.arm),
        "load": experiment.loads[compared.load],
        "ratio": found.ratio,
        "interval": found.interval,
        "confidence": found.confidence,
        "detectable": found.detectable,
        "verdict": match found.effect {
            Some(Effect::Helps) => "lower",
            Some(Effect::Harms) => "higher",
            _ => "no difference visible",
        },
    })
}
