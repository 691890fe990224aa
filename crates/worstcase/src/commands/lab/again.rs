//! Guests that are run again under the microscope, for each command that asks for it.

use std::path::Path;

use histogram::Histogram;
use lab::boot::{self, Guest};
use lab::microscope::{self as scope, WakeUp};
use microscope::{Account, Comparison, Symbols};
use record::{Explanation, Hit, Record, store};
use serde::Serialize;
use sys::signal::{Signal, Signals};
use units::Nanos;

use crate::output;
use failure::{Error, Result};

/// No record is longer, in bytes.
const LONGEST_RECORD: u64 = 256 << 20;

/// The record in `place`, byte for byte.
pub fn record_bytes(place: &Path) -> Result<Vec<u8>> {
    Ok(files::read(&place.join(store::RECORD), LONGEST_RECORD)?)
}

/// The worst wake-ups under one load, taken apart.
pub struct OfLoad {
    /// The load.
    pub load: String,
    /// The worst first.
    pub accounts: Vec<Account>,
    /// How many more were asked for and not found in the second run.
    pub not_found: usize,
}

/// Runs `guest`, which left its record in `place`, again, and takes the `worst` wake-ups of each of `loads` (of all where none is
/// named) apart.
pub fn look(
    place: &Path,
    guest: &Guest,
    worst: usize,
    loads: &[String],
    signals: &Signals,
) -> Result<Vec<OfLoad>> {
    let bytes = record_bytes(place)?;
    let record = store::load(place)?;
    let wake_ups = wake_ups(&record, worst, loads)?;
    check(guest, &record)?;
    let stop = || signals.next().is_some_and(|signal| signal != Signal::User1);
    let symbols = first_boot(guest, &stop)?;
    let seen = scope::look(guest, &bytes, &wake_ups, &symbols, &stop).map_err(|failure| failure.error)?;
    let pairs: Vec<_> = wake_ups.iter().zip(&seen.accounts).collect();
    let groups = pairs.chunk_by(|(a, _), (b, _)| std::ptr::eq(a.scenario, b.scenario));
    let of_load = |group: &[(&WakeUp<'_>, &Option<Account>)]| {
        let accounts: Vec<Account> = group.iter().filter_map(|(_, account)| (*account).clone()).collect();
        let load = group.first().map_or(String::new(), |(one, _)| one.scenario.head.planned.load.clone());
        OfLoad { load, not_found: group.len() - accounts.len(), accounts }
    };
    Ok(groups.map(of_load).collect())
}

/// The kernel's symbols, before the boot that they are wanted for.
fn first_boot(guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Symbols> {
    output::words("boot 1 of 2: the kernel's symbols");
    let symbols = scope::symbols(guest, stop)?;
    output::words("boot 2 of 2: the same run under the microscope, up to twice as long as it took");
    Ok(symbols)
}

/// The worst wake-ups of a traced repetition, by the trace and by their instructions.
#[derive(Serialize)]
pub struct OfTraced {
    /// The load.
    pub load: String,
    /// The median of all wake-ups under the load when nothing was traced.
    pub median: Nanos,
    /// The worst first.
    pub comparisons: Vec<Comparison>,
    /// How many more were not found in the second run.
    pub not_found: usize,
}

/// Runs `guest` again, and lays what the instructions were beside what the trace said of the `worst` wake-ups of each of `loads`
/// (of all where none is named) that `bench --explain` has explained.
pub fn compare(
    place: &Path,
    guest: &Guest,
    worst: usize,
    loads: &[String],
    signals: &Signals,
) -> Result<Vec<OfTraced>> {
    let bytes = record_bytes(place)?;
    let record = store::load(place)?;
    let explained: Vec<&Explanation> =
        record.explanations.iter().filter(|one| !one.hits.is_empty()).collect();
    let names: Vec<&str> = explained.iter().map(|one| load(one)).collect();
    check_loads(loads, &names)?;
    let wanted = |one: &&Explanation| loads.is_empty() || loads.iter().any(|name| name == load(one));
    let explained: Vec<&Explanation> = explained.into_iter().filter(wanted).collect();
    let hits: Vec<&Hit> = explained.iter().flat_map(|one| one.hits.iter().take(worst)).collect();
    if hits.is_empty() {
        return Err(Error::new(
            "the record has no wake-ups that the trace explained",
            "worstcase lab run ... -- bench --explain explains some",
        ));
    }
    check(guest, &record)?;
    let stop = || signals.next().is_some_and(|signal| signal != Signal::User1);
    let symbols = first_boot(guest, &stop)?;
    let seen = scope::compare(guest, &bytes, &hits, &symbols, &stop).map_err(|failure| failure.error)?;
    let mut seen = seen.into_iter();
    let of_load = |one: &&Explanation| {
        let all: Vec<_> = seen.by_ref().take(one.hits.len().min(worst)).collect();
        let count = all.len();
        let comparisons: Vec<Comparison> = all.into_iter().flatten().collect();
        Ok(OfTraced {
            load: load(one).to_owned(),
            median: median(&record, one)?,
            not_found: count - comparisons.len(),
            comparisons,
        })
    };
    explained.iter().map(of_load).collect()
}

/// The median of the wake-ups of the scenario that an explanation repeats.
fn median(record: &Record, explanation: &Explanation) -> Result<Nanos> {
    let untraced = usize::try_from(explanation.of).ok().and_then(|place| record.scenarios.get(place));
    let mut latencies = Histogram::default();
    for series in untraced.iter().flat_map(|scenario| &scenario.series) {
        latencies.merge(&series.corrected());
    }
    let unknown = || {
        let load = load(explanation);
        Error::new(format!("the record has no untraced wake-ups under {load} to compare with"), "")
    };
    latencies.quantile(0.5).ok_or_else(unknown)
}

fn load(explanation: &Explanation) -> &str {
    &explanation.scenario.head.planned.load
}

fn wake_ups<'a>(record: &'a Record, worst: usize, loads: &[String]) -> Result<Vec<WakeUp<'a>>> {
    let mut all = scope::worst(record, worst);
    let load = |wake_up: &WakeUp<'_>| wake_up.scenario.head.planned.load.clone();
    let names: Vec<String> = all.iter().map(load).collect();
    check_loads(loads, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    all.retain(|wake_up| loads.is_empty() || loads.contains(&load(wake_up)));
    if all.is_empty() {
        return Err(no_wake_ups());
    }
    Ok(all)
}

/// Refuses loads that are not among `names`.
pub fn check_loads(loads: &[String], names: &[&str]) -> Result<()> {
    match loads.iter().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => Err(Error::new(
            format!("no wake-up under the load {unknown} stands in the record"),
            "worstcase report DIR shows its loads",
        )),
    }
}

/// There is nothing to look at.
pub fn no_wake_ups() -> Error {
    Error::new(
        "the record has no wake-ups of timers on the guest's clock",
        "worstcase lab run ... -- bench measures some",
    )
}

/// A guest that is made of something else is another guest, and would take as long to be found out.
pub fn check(guest: &Guest, record: &Record) -> Result<()> {
    boot::check_watched(guest)?;
    let of_record = record.header.machine.lab.as_ref();
    let Some((emulator, images)) =
        of_record.and_then(|lab| Some((lab.emulator.clone(), lab.images.clone()?)))
    else {
        return Err(Error::new(
            "the record does not say what its guest was made of",
            "only what was measured in a guest of the lab can be run again",
        ));
    };
    let made_of = lab::MadeOf { emulator, images };
    let differences = made_of.differences(&boot::made_of(guest)?);
    if differences.is_empty() {
        return Ok(());
    }
    let (message, cures) = lab::Difference::joined(&differences);
    Err(Error::new(
        format!("the guest cannot be made again: {message}"),
        format!("{cures}; or measure anew: worstcase lab run"),
    ))
}
