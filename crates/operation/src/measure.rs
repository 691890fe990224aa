//! All operations, in rounds. Each round takes one sample of each in an order drawn from the seed, so that all have equal
//! exposure, and no drift of the machine falls on the same ones.

use std::path::Path;

use failure::Result;
use record::cost::{CONTROL, Cost, Failure, Operation as Measured, Place};
use sys::signal::{Signal, Signals};

use crate::Operation;
use crate::client::{Taken, take};
use crate::process::{Answer, Order};

/// Who follows a measurement.
pub trait Observer {
    /// A sample is about to be taken: the how manieth of how many.
    fn begins(&mut self, cost: &Cost, operation: &Measured, number: usize, of: usize);

    /// A round is over: what there is until now.
    ///
    /// # Errors
    /// It cannot be kept; the measurement ends.
    fn round(&mut self, cost: &Cost) -> Result<()>;
}

/// Whether an operation is wanted: all are, it or its family is named, or it is what shows how much of its CPU the others had.
pub fn is_wanted(operation: &Operation, only: &[String]) -> bool {
    only.is_empty()
        || operation.name == CONTROL
        || only.iter().any(|name| name == operation.name || name == operation.family())
}

/// What will be measured: an entry for each operation that is wanted and each of its places, without samples.
pub fn planned(only: &[String], has_second: Option<&str>) -> Vec<Measured> {
    let wanted: Vec<_> = crate::operations().filter(|operation| is_wanted(operation, only)).collect();
    // What others take of the second CPU matters where something is measured there.
    let needs_second = wanted.iter().any(|operation| operation.places.contains(&Place::TwoCpus));
    let is_asked = move |place: Place| place != Place::SecondCpu || (needs_second && has_second.is_none());
    let at = |operation: &'static Operation| {
        operation.places.iter().copied().filter(move |&place| is_asked(place)).map(move |place| {
            let missing = has_second.filter(|_| place == Place::TwoCpus);
            Measured {
                name: operation.name.into(),
                title: operation.title.into(),
                family: operation.family().into(),
                unit: operation.unit.into(),
                bytes: operation.bytes,
                place,
                samples: Vec::new(),
                failures: missing.map(|why| Failure { round: 0, why: why.into() }).into_iter().collect(),
            }
        })
    };
    wanted.into_iter().flat_map(at).collect()
}

/// Measures what `cost` plans, with files in `directory`, until the last round or a signal.
///
/// # Errors
/// What the observer could not keep.
pub fn measure(
    cost: &mut Cost,
    directory: &Path,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<()> {
    for number in 1..=cost.plan.rounds {
        if !round(cost, number, directory, signals, observer)? {
            break;
        }
    }
    Ok(())
}

/// The round of that number, from 1. False where a signal ended it: the record says so.
///
/// # Errors
/// What the observer could not keep.
pub fn round(
    cost: &mut Cost,
    round: u32,
    directory: &Path,
    signals: &Signals,
    observer: &mut dyn Observer,
) -> Result<bool> {
    let mut order: Vec<usize> =
        (0..cost.operations.len()).filter(|&at| !is_given_up(&cost.operations[at])).collect();
    cost.plan.seed.stream(&format!("order of round {round}")).shuffle(&mut order);
    let before = tried(cost);
    let of = before + order.len() * (cost.plan.rounds - round + 1) as usize;
    for (place, at) in order.into_iter().enumerate() {
        observer.begins(cost, &cost.operations[at], before + place + 1, of);
        let asked = asked(cost, at, round, directory);
        let measured = &mut cost.operations[at];
        match take(&asked, signals) {
            Taken::Answer(Answer::Sample(sample)) => measured.samples.push(sample),
            Taken::Answer(Answer::Unable(why)) => measured.failures.push(Failure { round, why }),
            Taken::Silent(why) => measured.failures.push(Failure { round: 0, why }),
            Taken::Interrupted(signal) => {
                cost.interrupted = Some(in_words(signal, round, cost.plan.rounds));
                observer.round(cost)?;
                return Ok(false);
            }
        }
    }
    cost.rounds = round;
    observer.round(cost)?;
    Ok(true)
}

/// What ended a run, and in which of its rounds.
fn in_words(signal: Signal, round: u32, of: u32) -> String {
    let what = match signal {
        Signal::Interrupt => "Ctrl-C (SIGINT)".to_owned(),
        Signal::Terminate => "SIGTERM".to_owned(),
        Signal::HangUp => "the end of its terminal (SIGHUP)".to_owned(),
        Signal::User1 => "SIGUSR1".to_owned(),
    };
    format!("{what} in round {round} of {of}")
}

/// How many samples were taken or failed, of operations that are not given up.
fn tried(cost: &Cost) -> usize {
    let kept = cost.operations.iter().filter(|one| !is_given_up(one));
    kept.map(|one| one.samples.len() + one.failures.len()).sum()
}

/// Whether it cannot be measured in any round.
fn is_given_up(operation: &Measured) -> bool {
    operation.failures.iter().any(|failure| failure.round == 0)
}

fn asked(cost: &Cost, at: usize, round: u32, directory: &Path) -> Order {
    let operation = &cost.operations[at];
    let second = cost.plan.second.unwrap_or(cost.plan.cpu);
    let (cpu, partner) = match operation.place {
        Place::OneCpu => (cost.plan.cpu, cost.plan.cpu),
        Place::TwoCpus => (cost.plan.cpu, second),
        Place::SecondCpu => (second, second),
    };
    Order {
        parent: std::process::id() as i32,
        operation: operation.name.clone(),
        cpu,
        partner,
        length: cost.plan.sample,
        round,
        directory: directory.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_a_run_is_named_as_users_know_it() {
        assert_eq!(in_words(Signal::Interrupt, 3, 30), "Ctrl-C (SIGINT) in round 3 of 30");
        assert_eq!(in_words(Signal::Terminate, 1, 2), "SIGTERM in round 1 of 2");
    }
}
