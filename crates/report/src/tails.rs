//! What one run says about a column's tail, with the uncertainty that it has within the run: for comparisons.

use record::claims::{Gathered, gather};
use record::{Record, claims};
use statistics::{Comparison, LEAST_SAMPLES, QuantileInterval, Sequence, Stationarity, interval_of};

use crate::group::{Key, variant};

/// A run less alike from beginning to end than this probability has no interval.
const LEAST_ALIKE: f64 = 0.05;

/// The tail of one column, all CPUs and passes together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    /// Where p99.9 lies, at 95 %. None where the run was not alike throughout, or says too little.
    pub quantile: Option<QuantileInterval>,
    /// Every latency, and the greatest of any CPU in each block.
    sequence: Sequence,
    alike: bool,
    /// Whether latencies changed during the run. Where it is too short to tell, they are neither alike nor changed.
    changed: bool,
}

impl Tail {
    /// Of the column `key` of `record`.
    pub fn of(record: &Record, key: &Key) -> Self {
        let gathered = gather(record);
        let cpus = gathered.iter().filter(|gathered| is_of(gathered, key)).map(Gathered::sequence);
        Self::of_cpus(&cpus.collect::<Vec<_>>(), gathered.len())
    }

    /// Of CPUs that are some of `series` in the run: one of these is called uneven by chance no more often than the run's own
    /// claims call it so.
    fn of_cpus(cpus: &[Sequence], series: usize) -> Self {
        let least = LEAST_ALIKE / series.max(1) as f64;
        let chances: Vec<Option<f64>> =
            cpus.iter().map(|cpu| Stationarity::of(cpu).map(|tests| tests.probability())).collect();
        let changed = chances.iter().flatten().any(|chance| *chance < least);
        let alike = !chances.is_empty() && !changed && chances.iter().all(Option::is_some);
        let sequence = together(cpus);
        let long = cpus.iter().all(|cpu| cpu.count() >= LEAST_SAMPLES);
        let quantile = if alike && long { interval_of(&sequence, 0.999) } else { None };
        Self { quantile, sequence, alike, changed }
    }

    /// How many times this tail's block maxima are `first`'s, in blocks of equal length. None where either has no
    /// blocks or was not alike throughout.
    pub fn against(&self, first: &Self) -> Option<Comparison> {
        if self.alike && first.alike { self.sequence.against(&first.sequence) } else { None }
    }

    /// Why that is none.
    pub fn hindrance(&self, first: &Self) -> &'static str {
        match () {
            () if self.sequence.count() == 0 || first.sequence.count() == 0 => "not measured in both",
            () if self.changed || first.changed => "latencies changed during a run",
            () => "too few block maxima",
        }
    }
}

fn is_of(gathered: &Gathered<'_>, key: &Key) -> bool {
    gathered.passes.first().is_some_and(|(scenario, _)| {
        let head = &scenario.head;
        let interval = head.planned.setup.interval();
        (&head.planned.load, interval, head.planned.cstates) == (&key.load, key.interval, key.cstates)
            && variant(&head.planned.setup) == key.variant
    })
}

/// All CPUs as one sequence: a block holds the activations of all of them in the same stretch of time, so that CPUs that
/// are late at the same moment count as one cluster. Without blocks where those of the CPUs are not the same.
fn together(cpus: &[Sequence]) -> Sequence {
    let Some(first) = cpus.first() else { return Sequence::default() };
    let (mut all, mut maxima) = (first.distribution().clone(), first.maxima().to_vec());
    for cpu in &cpus[1..] {
        all.merge(cpu.distribution());
        maxima.truncate(cpu.maxima().len());
        maxima
            .iter_mut()
            .zip(cpu.maxima())
            .for_each(|(greatest, maximum)| *greatest = (*greatest).max(*maximum));
    }
    if cpus.iter().any(|cpu| cpu.activations() != first.activations()) {
        return Sequence::new(all, 0, Vec::new());
    }
    Sequence::new(all, first.activations() * cpus.len() as u64, maxima)
}

/// The columns of a record that were not alike throughout, by what the record itself says.
pub(crate) fn uneven(record: &Record) -> Vec<String> {
    let refused = |claim: &&claims::Claim| claim.says.refused == Some(claims::Refused::NotAlike);
    let mut claims = claims::kept(record);
    for claim in &mut claims.series {
        record.load_name(&claim.load).to_owned().clone_into(&mut claim.load);
    }
    claims.series.iter().filter(refused).map(|claim| claims.place(claim)).collect()
}

#[cfg(test)]
#[path = "tails_tests.rs"]
mod tests;
