//! Pass, fail, inconclusive, error or measured, and why.
//!
//! A latency over the limit is a failure whatever the environment: it happened. Below the limit, harmed validity
//! makes the verdict inconclusive. Without a limit nothing can pass or fail but --stop-at: the verdict is measured, and
//! doubts about the environment are notes. What was planned and not measured (an early end, a failed probe, a load that
//! did not run, an activation that is not accounted for) is inconclusive with or without a limit. An error weighs more
//! than inconclusive and less than a failure.
//!
//! Guests of the lab: in instruction time a limit is one of instructions, and is judged like any other. In wall time
//! a latency over the limit did not happen on any machine, because the emulator made it as long as it is: neither the
//! limit nor --stop-at can fail the run, and no verdict is better than inconclusive. What does not depend on how
//! long something took (a thread's policy, a load that did no work, output that was lost) is judged as everywhere.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::claims::{self, Claims};
use crate::{Effect, LabTime, Record, Scenario, ScenarioEnd, Warning, WarningId};

/// What a run means for its requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There was no requirement, and what was planned was measured.
    Measured,
    /// The requirement was met.
    Pass,
    /// The environment was not what the figures need.
    #[default]
    Inconclusive,
    /// Something could not be done or was lost.
    Error,
    /// A latency over the limit was seen.
    Fail,
}

impl Verdict {
    /// The exit code of a command that ends with this verdict.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Measured | Self::Pass => 0,
            Self::Fail => 1,
            Self::Error => 2,
            Self::Inconclusive => 3,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Measured => "measured",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// A verdict with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, weightiest first.
    pub reasons: Vec<String>,
    /// For which requirement this evidence speaks.
    pub speaks_for: String,
    /// For which it does not.
    pub does_not_speak_for: String,
    /// What the figures say about latencies that were not seen; empty in records of older programs.
    #[serde(default)]
    pub claims: Claims,
    /// Outputs that could not be saved. They stand among the reasons too, and a record that is read has them there alone.
    #[serde(skip)]
    pub losses: Vec<String>,
}

/// Judges a run. `losses` are outputs that could not be saved and other failures of the program itself.
pub fn judge(record: &Record, losses: &[String]) -> Judgement {
    let limit = record.header.plan.limit;
    let exceeded =
        over_limit(record, limit).into_iter().chain(unanswered(record, limit)).chain(stopped(record));
    let exceeded: Vec<String> = exceeded.collect();
    let (mut reasons, set_aside) =
        if has_latencies(record) { (exceeded, vec![]) } else { (vec![], exceeded) };
    let early: Vec<String> = early_end(record).into_iter().collect();
    let (incomplete, doubts) = doubts(record);
    let measured = record.is_measured();
    let verdict = if !reasons.is_empty() {
        Verdict::Fail
    } else if !losses.is_empty() || !measured {
        Verdict::Error
    } else if !early.is_empty() || !incomplete.is_empty() || (limit.is_some() && !doubts.is_empty()) {
        Verdict::Inconclusive
    } else if limit.is_some() {
        Verdict::Pass
    } else {
        Verdict::Measured
    };
    if !measured {
        reasons.push("nothing was measured".into());
    }
    match (verdict, limit) {
        (Verdict::Pass, Some(limit)) => {
            let limit = record.header.machine.unit().limit(limit);
            reasons.push(format!("limit of {limit} not exceeded in this run"));
        }
        (Verdict::Measured, _) => reasons.push(format!("no limit given{}", as_what(record))),
        _ => {}
    }
    reasons.extend(losses.iter().cloned());
    reasons.extend(early);
    reasons.extend(incomplete);
    match verdict {
        Verdict::Measured => {}
        // Without a requirement they decide nothing.
        Verdict::Inconclusive | Verdict::Error if limit.is_none() => {}
        // A failure has its reason: a doubt beside it is no second one.
        Verdict::Fail => reasons.extend(doubts.into_iter().map(|doubt| format!("in doubt: {doubt}"))),
        _ => reasons.extend(doubts),
    }
    reasons.extend(set_aside.into_iter().map(|what| format!("no failure, in an emulator's time: {what}")));
    let claims = claims::of(record);
    let (speaks_for, does_not_speak_for) = claims.bounds(record);
    Judgement { verdict, reasons, speaks_for, does_not_speak_for, claims, losses: losses.to_vec() }
}

/// The policy that the threads really had, where it is another than was asked for: the first thing to know of a figure.
fn as_what(record: &Record) -> String {
    let asked = record.header.plan.policy.filter(|_| !record.header.plan.is_reservation());
    let threads = record.scenarios.iter().flat_map(|scenario| &scenario.evidence.threads);
    let mut policies = threads.filter_map(|thread| thread.policy);
    let other = policies.find(|&policy| asked.is_some_and(|asked| asked != policy));
    other.map_or(String::new(), |policy| format!(", measured as {}", policy.kernel_name()))
}

/// What ended the run before everything was measured, and what was not measured to its end.
fn early_end(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let planned = plan.scenarios();
    let is_whole = |index: &usize| {
        record.scenarios.get(*index).is_some_and(|scenario| scenario.end == ScenarioEnd::Complete)
    };
    let missing: Vec<usize> = (0..planned.len()).filter(|index| !is_whole(index)).collect();
    let first = *missing.first()?;
    let cause = match record.scenarios.get(first).map(|scenario| &scenario.end) {
        Some(ScenarioEnd::Interrupted) => "interrupted".into(),
        Some(ScenarioEnd::StopAt) => "ended by --stop-at".into(),
        Some(ScenarioEnd::TooHot) => "ended by heat".into(),
        Some(ScenarioEnd::FailSafe) => "ended by --fail-safe".into(),
        Some(ScenarioEnd::CutOff) => "cut off".into(),
        Some(ScenarioEnd::Failed(what)) => format!("the probe failed ({what})"),
        Some(ScenarioEnd::Complete) | None if record.ended.is_none() => "cut off".into(),
        Some(ScenarioEnd::Complete) | None => "ended early".into(),
    };
    let missing = missing.iter().map(|&index| planned[index].name(record.load_name(&planned[index].load)));
    let names = distinct(missing).join(", ");
    let sum =
        |lengths: &mut dyn Iterator<Item = Nanos>| lengths.fold(Nanos::ZERO, |sum, length| sum + length);
    let whole: Option<Vec<Nanos>> = planned.iter().map(|next| plan.scenario_length(&next.setup)).collect();
    let span = whole.map_or(String::new(), |lengths| {
        let measured = sum(&mut record.scenarios.iter().map(|scenario| scenario.length)).rounded();
        format!(" after {measured} of {}", sum(&mut lengths.into_iter()).rounded())
    });
    Some(format!("{cause}{span}: not measured to the end: {names}"))
}

/// Whether the record's latencies are those of something: not in a guest whose clock is the emulator's host's.
fn has_latencies(record: &Record) -> bool {
    record.header.machine.lab.as_ref().is_none_or(|lab| lab.time != LabTime::Wall)
}

fn over_limit(record: &Record, limit: Option<Nanos>) -> Option<String> {
    let limit = limit?;
    let (latency, scenario, series) = record.worst().filter(|(latency, ..)| *latency > limit)?;
    let place = series.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let unit = record.header.machine.unit();
    let at_least = if series.is_bound(latency) { "at least " } else { "" };
    Some(format!(
        "{at_least}{}{place} under {} is above the limit of {}",
        unit.with_name(latency),
        record.load_name(&scenario.head.planned.load),
        unit.limit(limit)
    ))
}

/// Cycles that were not answered: they were waited for as long as the limit, or were over before they were begun.
fn unanswered(record: &Record, limit: Option<Nanos>) -> Option<String> {
    let limit = limit?;
    let of = |scenario: &Scenario| {
        let cycles = scenario.series.iter().filter(|series| series.own.fails_by_missing());
        let (missed, due) = cycles.fold((0_u64, 0_u64), |(missed, due), series| {
            (missed + series.missed().summary().count, due + series.expected())
        });
        (missed > 0).then(|| {
            let load = record.load_name(&scenario.head.planned.load);
            let limit = record.header.machine.unit().limit(limit);
            let what = record.header.plan.instrument.words().count;
            format!("{missed} of {due} {what} under {load} were not answered within the limit of {limit}")
        })
    };
    record.scenarios.iter().find_map(of)
}

/// The sample that ended the run, where one did.
fn stopped(record: &Record) -> Option<String> {
    let scenario = record.scenarios.iter().find(|scenario| scenario.end == ScenarioEnd::StopAt)?;
    let load = record.load_name(&scenario.head.planned.load);
    let series = scenario.series.iter().max_by_key(|series| series.observed.summary().max);
    let sample = series.and_then(|series| Some((series.cpu, series.worst.first()?)));
    // An answer that never came is no sample.
    let reached =
        |(_, sample): &(_, &crate::Sample)| record.header.plan.stop_at.is_none_or(|at| sample.latency >= at);
    let Some((cpu, sample)) = sample.filter(reached) else {
        let value = record.header.plan.instrument.words().value;
        return Some(format!("a {value} under {load} reached --stop-at"));
    };
    let place = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let unit = record.header.machine.unit();
    let limit = record.header.plan.stop_at.map_or(String::new(), |limit| format!(" {}", unit.limit(limit)));
    let (latency, activation) = (unit.with_name(sample.latency), sample.activation);
    Some(format!("{latency}{place} under {load} reached --stop-at{limit} (activation {activation})"))
}

/// The kinds of doubt that make a pass inconclusive, each once: first those that no run can do without, then those
/// that matter to a limit. What says how a run ended is left to [`early_end`].
fn doubts(record: &Record) -> (Vec<String>, Vec<String>) {
    let harmful = |warning: &&Warning| warning.effect == Effect::Inconclusive;
    let (mut incomplete, mut doubts) = (Vec::new(), Vec::new());
    for warning in record.all_warnings().filter(harmful) {
        if matches!(warning.id, WarningId::EndedEarly | WarningId::TooHot | WarningId::ProbeFailed) {
            continue;
        }
        let doubt = format!("{} ({})", warning.id.title(), warning.id);
        let list = if warning.id.is_incomplete() { &mut incomplete } else { &mut doubts };
        if !list.contains(&doubt) {
            list.push(doubt);
        }
    }
    (incomplete, doubts)
}

fn distinct<T: PartialEq>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::instrument::timer::{TimerPlan, TimerSeries};
    use crate::time::UtcTime;
    use crate::*;
    use histogram::Histogram;
    use units::{CpuId, Policy};

    /// A run that has not said when it ended, and is not judged yet.
    fn record(header: Header, scenarios: Vec<Scenario>, warnings: Vec<Warning>) -> Record {
        let judgement = Judgement::default();
        Record { header, ended: None, scenarios, explanations: vec![], warnings, judgement }
    }

    pub(crate) fn header() -> Header {
        let plan = RunPlan {
            policy: Some(Policy::Fifo),
            priority: "98".parse().ok(),
            loads: vec!["idle".into()],
            instrument: InstrumentPlan::Timer(TimerPlan {
                intervals: vec![Nanos::from_millis(1)],
                ..TimerPlan::default()
            }),
            duration: Some(Nanos::from_secs(10)),
            repeat: 1,
            cpus: "0".parse().unwrap(),
            pinned: "0".parse().unwrap(),
            cstates: vec![CStates::AsIs],
            ..RunPlan::default()
        };
        let cpus = Cpus { isolated: Fact::Value("0".parse().unwrap()), ..Cpus::default() };
        Header {
            schema_version: SCHEMA_VERSION,
            tool: Tool { version: "0".into(), build: "test".into() },
            command_line: vec![],
            note: None,
            started: UtcTime(0),
            machine: Machine { cpus, ..Machine::default() },
            plan,
            held: vec![],
            tuned: None,
        }
    }

    /// What a scenario's instrument doubts of it.
    pub(crate) fn doubts(scenario: &Scenario) -> Vec<(WarningId, Effect)> {
        let warnings = scenario.head.planned.setup.warnings(scenario);
        warnings.iter().map(|warning| (warning.id, warning.effect)).collect()
    }

    pub(crate) fn scenario(latencies: &[u64]) -> Scenario {
        let mut observed = Histogram::default();
        latencies.iter().for_each(|&latency| observed.record(Nanos(latency)));
        let thread = ThreadEvidence {
            policy: Some(Policy::Fifo),
            priority: 98,
            affinity: "0".parse().unwrap(),
            timer_slack: Nanos(1),
            memory_locked: true,
            cpu_reading: Some(crate::CpuReading::Library),
            ..ThreadEvidence::default()
        };
        let head = ScenarioHead {
            planned: PlannedScenario {
                load: "idle".into(),
                cstates: CStates::AsIs,
                repeat: 1,
                setup: Setup::every(Nanos::from_millis(1)),
            },
            started: UtcTime(0),
            offset: Nanos(0),
            cpus: vec![Some(CpuId(0))],
        };
        let cpu = Some(CpuId(0));
        let timer = TimerSeries { expected: latencies.len() as u64, ..TimerSeries::default() };
        let watch = crate::Watch { readings: 40, ..crate::Watch::default() };
        Scenario {
            head,
            end: ScenarioEnd::Complete,
            length: Nanos::from_secs(10),
            series: vec![Series { cpu, observed, own: Own::Timer(timer), ..Series::default() }],
            load: LoadEvidence { name: "idle".into(), cpus: "0".parse().unwrap(), ..LoadEvidence::default() },
            evidence: Evidence { threads: vec![thread], watch, ..Evidence::default() },
            warnings: vec![],
        }
    }

    pub(crate) fn guest(time: LabTime) -> Lab {
        Lab {
            time,
            kernel: None,
            words: vec![],
            emulator: "QEMU 7.2.17".into(),
            cpu_model: "max,-rdrand".into(),
            under: None,
            processors: 1,
            not_modelled: time.not_modelled(),
            images: Some(crate::LabImages {
                kernel: crate::Digest("0123456789abcdef".into()),
                booted: crate::Digest("0".into()),
                binary: crate::Digest("1".into()),
                initramfs: crate::Digest("2".into()),
            }),
            parameters: Some(Vec::new()),
        }
    }

    #[test]
    fn a_cycle_that_is_not_answered_fails_a_limit_although_nothing_was_observed() {
        use crate::instrument::response::{ResponseSeries, tests::setup};
        let judged = |missed: &[u64], limit| {
            let mut scenario = scenario(&[5_000]);
            scenario.head.planned.setup = Setup::Response(setup());
            let mut response = ResponseSeries { expected: 1 + missed.len() as u64, ..Default::default() };
            missed.iter().for_each(|&waited| response.missed.record(Nanos(waited)));
            scenario.series[0].own = Own::Response(response);
            let mut header = header();
            header.plan.instrument = InstrumentPlan::Response(setup());
            header.plan.limit = limit;
            let mut record = record(header, vec![scenario], vec![]);
            record.ended = Some(UtcTime(1));
            judge(&record, &[])
        };
        let limit = Some(Nanos::from_micros(900));
        assert_eq!(judged(&[], limit).verdict, Verdict::Pass);
        let failed = judged(&[900_000, 900_000], limit);
        assert_eq!(failed.verdict, Verdict::Fail);
        assert!(failed.reasons[0].starts_with("2 of 3 cycles under no load were not answered"), "{failed:?}");
        assert_eq!(judged(&[900_000], None).verdict, Verdict::Measured);
    }

    /// A run with the given flaws, and the verdict it must get on a machine.
    fn check(over: bool, lost: bool, doubtful: bool, limit: bool, expected: Verdict) {
        check_in(None, [over, lost, doubtful, limit], expected);
    }

    fn check_in(time: Option<LabTime>, [over, lost, doubtful, limit]: [bool; 4], expected: Verdict) {
        let mut header = header();
        header.machine.lab = time.map(guest);
        header.plan.limit = limit.then_some(Nanos::from_micros(100));
        let mut scenario = scenario(&[5_000, if over { 100_001 } else { 100_000 }]);
        if doubtful {
            scenario.warnings.push(Warning::inconclusive(WarningId::PageFaults, "2", "lock"));
        }
        scenario.warnings.push(Warning::note(WarningId::Guest, "kvm", "none"));
        let (ended, warnings) =
            (Some(UtcTime(10)), crate::validity::of_run(&header, std::slice::from_ref(&scenario)));
        let record = Record { ended, ..record(header, vec![scenario], warnings) };
        let losses: Vec<String> = lost.then(|| "journal.ndjson: disk full".to_owned()).into_iter().collect();
        let judgement = judge(&record, &losses);
        assert_eq!(
            judgement.verdict, expected,
            "{time:?} over {over} lost {lost} doubtful {doubtful} limit {limit}: {judgement:?}"
        );
        assert!(!judgement.reasons.is_empty());
        assert_eq!(judgement.losses, losses);
    }

    #[test]
    fn fail_goes_before_error_before_inconclusive_before_pass() {
        use Verdict::{Error, Fail, Inconclusive, Measured, Pass};
        for (over, lost, doubtful, with_limit, without) in [
            (false, false, false, Pass, Measured),
            (false, false, true, Inconclusive, Measured),
            (false, true, false, Error, Error),
            (false, true, true, Error, Error),
            (true, false, false, Fail, Measured),
            (true, false, true, Fail, Measured),
            (true, true, false, Fail, Error),
            (true, true, true, Fail, Error),
        ] {
            check(over, lost, doubtful, true, with_limit);
            check(over, lost, doubtful, false, without);
        }
        assert_eq!([Measured, Pass, Fail, Error, Inconclusive].map(Verdict::exit_code), [0, 0, 1, 2, 3]);
    }

    #[test]
    fn instructions_are_judged_like_time() {
        use Verdict::{Fail, Inconclusive, Pass};
        let time = Some(LabTime::Instructions);
        check_in(time, [false, false, false, true], Pass);
        check_in(time, [false, false, true, true], Inconclusive);
        check_in(time, [true, false, false, true], Fail);
    }

    /// Neither can a limit be met in an emulator's time, nor be exceeded; all else is judged as on a machine.
    #[test]
    fn no_latency_in_an_emulators_time_is_judged() {
        use Verdict::{Error, Inconclusive};
        let time = Some(LabTime::Wall);
        for over in [false, true] {
            for limit in [false, true] {
                check_in(time, [over, false, false, limit], Inconclusive);
                check_in(time, [over, true, false, limit], Error);
            }
        }
    }

    #[test]
    fn a_latency_that_stops_a_guest_in_wall_time_is_reported_and_is_no_failure() {
        let mut header = header();
        header.plan.stop_at = Some(Nanos::from_micros(100));
        let mut scenario = scenario(&[5_000, 200_000]);
        scenario.end = ScenarioEnd::StopAt;
        let judged = |time: Option<LabTime>| {
            let mut header = header.clone();
            header.machine.lab = time.map(guest);
            let warnings = crate::validity::of_run(&header, std::slice::from_ref(&scenario));
            judge(&record(header, vec![scenario.clone()], warnings), &[])
        };
        assert_eq!(judged(None).verdict, Verdict::Fail);
        assert_eq!(judged(Some(LabTime::Instructions)).verdict, Verdict::Fail);
        let wall = judged(Some(LabTime::Wall));
        assert_eq!(wall.verdict, Verdict::Inconclusive);
        assert!(wall.reasons.iter().any(|reason| reason.contains("reached --stop-at")), "{wall:?}");
    }

    #[test]
    fn a_guest_of_the_lab_speaks_for_no_machine() {
        let mut header = header();
        header.machine.lab = Some(guest(LabTime::Instructions));
        let judgement = judge(&record(header, vec![scenario(&[7_300; 3000])], vec![]), &[]);
        assert!(judgement.speaks_for.contains("7,300 instructions under no load, in one draw of 3000"));
        assert!(judgement.does_not_speak_for.contains("caches"), "{judgement:?}");
    }

    #[test]
    fn a_run_that_measured_nothing_is_an_error() {
        let record = record(header(), vec![scenario(&[])], vec![]);
        assert_eq!(judge(&record, &[]).verdict, Verdict::Error);
    }

    #[test]
    fn a_verdict_says_what_it_speaks_for() {
        let judgement = judge(&record(header(), vec![scenario(&[7_300; 3000])], vec![]), &[]);
        assert!(
            judgement.speaks_for.starts_with("the highest latency observed, 7.3 us on CPU 0 under no load")
        );
        assert!(judgement.does_not_speak_for.contains("10 s under 1 load is a first look"));
    }
}
