//! What one block came to.

use histogram::Histogram;
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
    /// What they count.
    pub unit: Unit,
}

impl Figures {
    /// Of the record of a run that had one scenario.
    ///
    /// # Errors
    /// Where that was not measured to its end, or nothing came of it.
    pub fn of(record: &Record) -> Result<Self, Error> {
        let broken = |why: String| Error::new(format!("a block was not measured to its end: {why}"), "");
        let [scenario] = record.scenarios.as_slice() else {
            return Err(broken(format!("it has {} scenarios, and not one", record.scenarios.len())));
        };
        if scenario.end != ScenarioEnd::Complete {
            return Err(broken(format!("{:?}", scenario.end)));
        }
        let mut figures = Self { unit: record.header.machine.unit(), ..Self::default() };
        for series in &scenario.series {
            figures.latencies.merge(&series.corrected());
            let seconds = series.timeline.blocks.iter();
            figures.maxima.extend(seconds.filter_map(|second| second.observed.maximum()));
        }
        match figures.latencies.summary().count {
            0 => Err(broken("no CPU was measured".into())),
            _ => Ok(figures),
        }
    }
}
