//! The source's own figures beside ours: which steps go the same way.

use experiment::Effect;

use super::figures::{Reckoned, times};
use super::table::word;

/// How the steps of the source's maxima relate to the steps of our tails, in sentences; none where the source gives no
/// figures that could be compared.
pub(super) fn agreement(reckoned: &Reckoned<'_>) -> Vec<String> {
    let (mut steps, mut same, mut unseen, mut other) = (0, 0, 0, Vec::new());
    for (compared, ours) in reckoned.judged() {
        let load = &reckoned.experiment.loads[compared.load];
        let maximum = |arm| maximum(reckoned, arm, load);
        let (Some(from), Some(to)) = (maximum(&compared.against), maximum(&compared.arm)) else { continue };
        let Some(effect) = ours.effect else { continue };
        steps += 1;
        let lower = to < from;
        match effect {
            Effect::Undecided | Effect::NoneVisible => unseen += 1,
            effect if from != to && lower == (effect == Effect::Helps) => same += 1,
            effect => other.push(format!(
                "{}, {load}: the source's maximum {from} to {to} ({} times), here {} times ({})",
                reckoned.pair(compared),
                times(to as f64 / from as f64),
                times(ours.ratio),
                word(effect)
            )),
        }
    }
    if steps == 0 {
        return Vec::new();
    }
    let sentence = format!(
        "Of {steps} steps whose maxima the source gives, {same} go the same way here, {unseen} are undecided here, {} go \
         the other way.",
        other.len()
    );
    std::iter::once(sentence).chain(other).collect()
}

fn maximum(reckoned: &Reckoned<'_>, arm: &experiment::Arm, load: &str) -> Option<u64> {
    let known = reckoned.experiment.arms.iter().find(|known| known.arm == *arm)?;
    let latencies = known.published.as_ref()?.latencies.get(load)?;
    Some(latencies[2]).filter(|maximum| *maximum > 0)
}
