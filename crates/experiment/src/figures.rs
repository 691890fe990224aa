//! What one block came to.

use histogram::Histogram;
use record::verdict::{Judgement, Verdict};
use record::{Record, ScenarioEnd, Unit};
use units::Nanos;

use crate::Error;

/// The latencies of one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Those of all activations on all CPUs, missed ones included.
    pub latencies: Histogram,
    /// The greatest of each second on each CPU.
    pub maxima: Vec<Nanos>,
    /// Activations that were due and have no latency: [`crate::stolen`] set them apart.
    pub set_apart: u64,
    /// What they count.
    pub unit: Unit,
}

impl Figures {
    /// Of the record of a run that had one scenario.
    ///
    /// # Errors
    /// Where that was not measured as it was planned, or nothing came of it: a block without its load would look better than
    /// it is. Blocks have no limit, so that doubts about the environment alone leave them measured.
    pub fn of(record: &Record) -> Result<Self, Error> {
        incomplete(&record.judgement).map_or(Ok(()), |why| Err(broken(why)))?;
        Self::without_judgement(record)
    }

    /// The same of guests under loads of which their record cannot prove that they ran: in a guest of one CPU, one of the
    /// grinder's copies may not have its turn among 400 processes.
    ///
    /// # Errors
    /// Where the scenario did not come to its end.
    pub fn without_judgement(record: &Record) -> Result<Self, Error> {
        let [scenario] = record.scenarios.as_slice() else {
            return Err(broken(format!("it has {} scenarios, and not one", record.scenarios.len())));
        };
        if scenario.end != ScenarioEnd::Complete {
            return Err(broken(format!("{:?}", scenario.end)));
        }
        let mut figures = Self { unit: record.header.machine.unit(), ..Self::default() };
        for series in &scenario.series {
            let corrected = series.corrected();
            figures.set_apart += series.expected().saturating_sub(corrected.summary().count);
            figures.latencies.merge(&corrected);
            let seconds = series.timeline.blocks.iter();
            figures.maxima.extend(seconds.filter_map(|second| second.observed.maximum()));
        }
        match figures.latencies.summary().count {
            0 => Err(broken("no CPU was measured".into())),
            _ => Ok(figures),
        }
    }
}

fn broken(why: String) -> Error {
    let hint = "its record says more: worstcase report DIR; --resume measures it again";
    Error::new(format!("a block was not measured as planned: {why}"), hint)
}

/// Why a run without a limit was not measured as planned: it ended early, its probe failed, or its load did not run.
fn incomplete(judgement: &Judgement) -> Option<String> {
    matches!(judgement.verdict, Verdict::Inconclusive | Verdict::Error).then(|| judgement.reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_only_if_it_was_measured_as_planned() {
        let of = |verdict| {
            let reasons = vec!["the load did no work".into()];
            incomplete(&Judgement { verdict, reasons, ..Judgement::default() })
        };
        assert_eq!([Verdict::Measured, Verdict::Pass].map(of), [None, None]);
        let why = Some("the load did no work".to_owned());
        assert_eq!([Verdict::Inconclusive, Verdict::Error].map(of), [why.clone(), why]);
    }
}
