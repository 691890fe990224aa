//! What a guest is to measure, and whether it did.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use record::cost::Cost;
use record::instrument::timer::TimerPlan;
use record::{InstrumentPlan, LabTime, Out, Record, Request, ScenarioEnd, Wake};
use units::{Nanos, Seed};

use crate::Error;
use crate::boot::Outcome;

/// A guest is given up after this, and this many times the time that it is to measure: under the heaviest loads a second
/// of instructions takes a quiet host 10 s.
const PATIENCE: (Duration, u32) = (Duration::from_secs(900), 100);
/// Lines of what a guest said that explain why it failed.
const LAST_LINES: usize = 3;

/// When a guest is given up that is to measure for so long.
pub fn patience(measured: Nanos) -> Duration {
    PATIENCE.0 + measured.duration() * PATIENCE.1
}

/// The command that measures `loads` in a guest, in the guest's directory.
pub(crate) fn command(
    loads: &[String],
    duration: Nanos,
    warm_up: Nanos,
    seed: Seed,
) -> Result<Vec<OsString>, Error> {
    let request = Request {
        loads: loads.to_vec(),
        instrument: InstrumentPlan::Timer(TimerPlan::every(Nanos::from_millis(1), Wake::default())),
        duration: Some(duration),
        warm_up,
        seed: Some(seed),
        out: Some(Out::Directory(".".into())),
        // Nobody needs to reach a guest.
        fail_safe: None,
        ..Request::default()
    };
    Ok(worstcase(request.arguments()?))
}

/// The command of a guest that runs worstcase with `arguments`.
pub fn worstcase(arguments: [String; 2]) -> Vec<OsString> {
    std::iter::once("worstcase".into()).chain(arguments.map(OsString::from)).collect()
}

/// How long a sample of an operation is in a guest: several ticks of the scheduler, which treats threads that take turns
/// otherwise in the first few milliseconds than later.
const COST_SAMPLE: Nanos = Nanos::from_millis(40);
/// How long a guest may take for what operations take, in the host's time: some 35 of them, and boots.
pub(crate) const COST_PATIENCE: Duration = Duration::from_secs(900);

/// The command that measures once what each operation takes, in the guest's directory.
pub(crate) fn cost_command(seed: Seed) -> Vec<OsString> {
    let (seed, sample) = (seed.to_string(), COST_SAMPLE.to_string());
    let words = ["worstcase", "cost", "--rounds", "1", "--sample", &sample, "--seed", &seed, "--out", "."];
    words.map(OsString::from).to_vec()
}

/// What operations took in a guest, if it has measured all of its rounds.
///
/// # Errors
/// What is missing, with the last that the guest said.
pub(crate) fn cost_measured(outcome: &Outcome) -> Result<Cost, Error> {
    let said = String::from_utf8_lossy(&outcome.left.errors).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let broken = |what: &str| Error::new(format!("{what} (exit code {}): {last}", outcome.code));
    let file = outcome.left.files.iter().find(|(path, _)| path == Path::new(record::cost::FILE));
    let (_, bytes) = file.ok_or_else(|| broken("the guest left no record of costs"))?;
    let cost = record::json::read::<Cost>(bytes);
    let cost = cost.map_err(|error| broken(&format!("the guest's record cannot be read: {error}")))?;
    match cost.rounds == cost.plan.rounds && cost.rounds > 0 {
        true => Ok(cost),
        false => Err(broken("the guest did not measure the operations to the end")),
    }
}

/// The record that a guest left, if it has measured all of `loads` to their end.
///
/// # Errors
/// What is missing, with the last that the guest said.
pub(crate) fn measured(outcome: &Outcome, loads: &[String], time: LabTime) -> Result<Record, Error> {
    let said = || {
        let text = String::from_utf8_lossy(&outcome.left.errors).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("; ")
    };
    let broken = |what: String| Error::new(format!("{what} (exit code {}): {}", outcome.code, said()));
    let file = outcome.left.files.iter().find(|(path, _)| path == Path::new(record::store::RECORD));
    let left_out = || {
        let out = outcome.left.left_out.iter();
        let out = out.map(|(path, why)| format!(" ({} did not come back: {why})", path.display()));
        out.collect::<String>()
    };
    let (_, bytes) = file.ok_or_else(|| broken(format!("the guest left no record{}", left_out())))?;
    let record: Record = record::store::parse(bytes)
        .map_err(|error| broken(format!("the guest's record cannot be read: {error}")))?;
    if let Some(load) = unfinished(&record, loads) {
        return Err(broken(format!("the guest did not measure {load} to the end")));
    }
    match record.header.machine.lab.as_ref().map(|lab| lab.time) {
        Some(found) if found == time => Ok(record),
        _ => Err(broken("the guest's record does not say that it is one".into())),
    }
}

/// The first of `loads` that was not measured to its end.
pub(crate) fn unfinished<'a>(record: &Record, loads: &'a [String]) -> Option<&'a String> {
    let complete = |load: &&String| {
        record.scenarios.iter().any(|scenario| {
            scenario.head.planned.load == **load
                && scenario.end == ScenarioEnd::Complete
                && !scenario.series.is_empty()
        })
    };
    loads.iter().find(|load| !complete(load))
}
