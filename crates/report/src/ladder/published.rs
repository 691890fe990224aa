//! The source's own figures beside ours: which steps go the same way.

use statistics::Verdict;

use super::Rung;
use super::figures::Reckoned;
use crate::compare::ratio_text;

/// How the steps of the source's maxima relate to the steps of our tails.
pub(super) struct Agreement {
    /// Steps that both have.
    pub steps: usize,
    /// Those that go the same way.
    pub same: usize,
    /// Those of which nothing can be seen here.
    pub unseen: usize,
    /// Those that go the other way, a line each.
    pub other: Vec<String>,
}

/// None where the source gives no figures that could be compared.
pub(super) fn agreement(reckoned: &Reckoned<'_>) -> Option<Agreement> {
    let mut agreement = Agreement { steps: 0, same: 0, unseen: 0, other: Vec::new() };
    for step in &reckoned.steps {
        for (load, ours) in reckoned.ladder.loads.iter().zip(&step.loads) {
            let Some(ours) = ours else { continue };
            let (from, to) = (&reckoned.ladder.rungs[step.from], &reckoned.ladder.rungs[step.to]);
            let (Some(from), Some(to)) = (maximum(from, load), maximum(to, load)) else { continue };
            agreement.steps += 1;
            let lower = to < from;
            match ours.verdict {
                Verdict::NoDifference => agreement.unseen += 1,
                verdict if from != to && lower == (verdict == Verdict::Lower) => agreement.same += 1,
                _ => agreement.other.push(format!(
                    "{}, {load}: the source's maximum {from} to {to} ({}), here {} ({})",
                    step.name(reckoned.ladder),
                    ratio_text(to as f64 / from as f64),
                    ratio_text(ours.ratio),
                    ours.verdict
                )),
            }
        }
    }
    (agreement.steps > 0).then_some(agreement)
}

fn maximum(rung: &Rung, load: &str) -> Option<u64> {
    rung.published.as_ref()?.latencies.get(load).map(|latencies| latencies[2]).filter(|maximum| *maximum > 0)
}

impl Agreement {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "Of {} steps whose maxima the source gives, {} go the same way here, of {} nothing can be seen, {} go the \
             other way.",
            self.steps,
            self.same,
            self.unseen,
            self.other.len()
        )
    }
}
