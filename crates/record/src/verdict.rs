//! Pass, fail, inconclusive or error, and why.
//!
//! A latency over the limit is a failure whatever the environment: it happened. Below the limit, harmed validity
//! makes the verdict inconclusive. Without a limit nothing can fail. An error weighs more than inconclusive and
//! less than a failure.
//!
//! Guests of the lab: in instruction time a limit is one of instructions, and is judged like any other. In wall time
//! a latency over the limit did not happen on any machine, because the emulator made it as long as it is: neither the
//! limit nor --stop-at can fail the run, and no verdict is better than inconclusive. What does not depend on how
//! long something took (a thread's policy, a load that did no work, output that was lost) is judged as everywhere.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{Effect, Lab, LabTime, Record, Scenario, ScenarioEnd, Unit, Warning};

/// What a run means for its requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The requirement was met, or none was given and the figures stand.
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
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Error => 2,
            Self::Inconclusive => 3,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
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
}

/// Judges a run. `losses` are outputs that could not be saved and other failures of the program itself.
pub fn judge(record: &Record, losses: &[String]) -> Judgement {
    let limit = record.header.plan.limit;
    let exceeded: Vec<String> = over_limit(record, limit).into_iter().chain(stopped(record)).collect();
    let (mut reasons, told) = if has_latencies(record) { (exceeded, vec![]) } else { (vec![], exceeded) };
    let failures: Vec<String> =
        losses.iter().cloned().chain(record.scenarios.iter().filter_map(failure)).collect();
    let doubts = doubts(record);
    let measured =
        record.scenarios.iter().flat_map(|scenario| &scenario.series).any(|series| series.expected > 0);
    let verdict = if !reasons.is_empty() {
        Verdict::Fail
    } else if !failures.is_empty() || !measured {
        Verdict::Error
    } else if !doubts.is_empty() {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    };
    if !measured {
        reasons.push("nothing was measured".into());
    }
    if verdict == Verdict::Pass {
        reasons.push(limit.map_or("measured, no requirement given".into(), |limit| {
            format!("no latency above {}", record.header.machine.unit().limit(limit))
        }));
    }
    reasons.extend(failures);
    reasons.extend(doubts);
    reasons.extend(told.into_iter().map(|what| format!("no failure, in an emulator's time: {what}")));
    let (speaks_for, does_not_speak_for) = bounds(record);
    Judgement { verdict, reasons, speaks_for, does_not_speak_for }
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
    Some(format!(
        "{}{place} under {} is above the limit of {}",
        unit.with_name(latency),
        scenario.head.load,
        unit.limit(limit)
    ))
}

/// The sample that ended the run, where one did.
fn stopped(record: &Record) -> Option<String> {
    let scenario = record.scenarios.iter().find(|scenario| scenario.end == ScenarioEnd::StopAt)?;
    let load = &scenario.head.load;
    let series = scenario.series.iter().max_by_key(|series| series.observed.summary().max);
    let sample = series.and_then(|series| Some((series.cpu, series.worst.first()?)));
    let Some((cpu, sample)) = sample else {
        return Some(format!("a latency under {load} reached --stop-at"));
    };
    let place = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let unit = record.header.machine.unit();
    let limit = record.header.plan.stop_at.map_or(String::new(), |limit| format!(" {}", unit.limit(limit)));
    let (latency, activation) = (unit.with_name(sample.latency), sample.activation);
    Some(format!("{latency}{place} under {load} reached --stop-at{limit} (activation {activation})"))
}

fn failure(scenario: &Scenario) -> Option<String> {
    match &scenario.end {
        ScenarioEnd::Failed(what) => Some(format!("{}: {what}", scenario.head.load)),
        _ => None,
    }
}

/// The kinds of doubt that make a pass inconclusive, each once.
fn doubts(record: &Record) -> Vec<String> {
    let harmful = |warning: &&Warning| warning.effect == Effect::Inconclusive;
    let mut doubts: Vec<String> = Vec::new();
    for warning in record.all_warnings().filter(harmful) {
        let doubt = format!("{} ({})", warning.id.title(), warning.id);
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    doubts
}

/// What practice asks of a test for a worst case, S1: a day under load.
const CUSTOMARY: Nanos = Nanos::from_secs(24 * 3600);
/// Runs shorter than this are a first look.
const FIRST_LOOK: Nanos = Nanos::from_secs(600);

/// For which requirement the evidence speaks, and for which it does not.
fn bounds(record: &Record) -> (String, String) {
    let Some((worst, ..)) = record.worst() else { return Default::default() };
    let fewest =
        record.scenarios.iter().flat_map(|scenario| &scenario.series).map(|series| series.expected).min();
    let fewest = fewest.unwrap_or_default();
    let loads: Vec<&str> = distinct(record.scenarios.iter().map(|scenario| scenario.head.load.as_str()));
    if let Some(lab) = &record.header.machine.lab {
        return bounds_in_lab(lab, record.header.machine.unit().with_name(worst), fewest, &loads.join(", "));
    }
    // Rule of three: none of n independent events gives, at 95 % confidence, a rate below 3/n.
    let rate = match fewest / 3 {
        0 => String::new(),
        odds => format!(
            ", where one activation in {odds} may exceed it (95 % confidence from {fewest} activations a CPU and load, \
             if they are alike and independent)"
        ),
    };
    let speaks_for = format!(
        "a requirement of {} or more on CPUs {} under {}{rate}",
        Unit::Microseconds.with_name(worst),
        record.header.plan.cpus,
        loads.join(", ")
    );
    let longest = record.scenarios.iter().map(|scenario| scenario.length).max().unwrap_or_default();
    let length = longest.rounded();
    let load_count = if loads.len() == 1 { "1 load".into() } else { format!("{} loads", loads.len()) };
    let does_not_speak_for = if longest < FIRST_LOOK {
        format!(
            "a bound: {length} under {load_count} is a first look; 24 h under load is customary for a worst case"
        )
    } else if longest < CUSTOMARY {
        format!(
            "a bound: {length} under {load_count} is a test; 24 h under load is customary for a worst case"
        )
    } else {
        format!(
            "a bound: {length} under {load_count} is customary practice, not proof; other loads, devices and rarer events"
        )
    };
    (speaks_for, does_not_speak_for)
}

/// The same for a guest of the lab, which is no machine.
fn bounds_in_lab(lab: &Lab, worst: String, fewest: u64, loads: &str) -> (String, String) {
    match lab.time {
        LabTime::Instructions => (
            format!(
                "the kernel's path: at most {worst} under {loads}, in one draw of {fewest} activations a load"
            ),
            format!(
                "a bound: another seed draws another maximum, and {} count too",
                lab.not_modelled.join(", ")
            ),
        ),
        LabTime::Wall => (
            format!("counts and findings under {loads}: what ran, where, as what, and what was lost"),
            "any latency: its clock is that of the emulator's host".into(),
        ),
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
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
    use crate::time::UtcTime;
    use crate::*;
    use histogram::Histogram;
    use units::{CpuId, Policy};

    pub(crate) fn header() -> Header {
        let plan = RunPlan {
            policy: Some(Policy::Fifo),
            priority: "98".parse().ok(),
            cpus: "0".parse().unwrap(),
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
        }
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
            ..ThreadEvidence::default()
        };
        let head = ScenarioHead {
            load: "idle".into(),
            interval: Nanos::from_millis(1),
            cstates: CStates::AsIs,
            repeat: 1,
            started: UtcTime(0),
            offset: Nanos(0),
            cpus: vec![Some(CpuId(0))],
            phases: vec![Nanos(0)],
        };
        let cpu = Some(CpuId(0));
        Scenario {
            head,
            end: ScenarioEnd::Complete,
            length: Nanos::from_secs(10),
            series: vec![Series { cpu, expected: latencies.len() as u64, observed, ..Series::default() }],
            load: LoadEvidence { name: "idle".into(), cpus: "0".parse().unwrap(), ..LoadEvidence::default() },
            evidence: Evidence { threads: vec![thread], ..Evidence::default() },
            warnings: vec![],
        }
    }

    pub(crate) fn guest(time: LabTime) -> Lab {
        Lab {
            time,
            kernel: "debian-6.1-rt-amd64".into(),
            words: vec![],
            emulator: "QEMU 7.2.17".into(),
            cpu_model: "max,-rdrand".into(),
            processors: 1,
            not_modelled: time.not_modelled(),
        }
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
        let (ended, warnings) = (Some(UtcTime(10)), crate::validity::of_run(&header, &[]));
        let record =
            Record { header, ended, scenarios: vec![scenario], warnings, judgement: Judgement::default() };
        let losses: Vec<String> = lost.then(|| "journal.ndjson: disk full".to_owned()).into_iter().collect();
        let judgement = judge(&record, &losses);
        assert_eq!(
            judgement.verdict, expected,
            "{time:?} over {over} lost {lost} doubtful {doubtful} limit {limit}: {judgement:?}"
        );
        assert!(!judgement.reasons.is_empty());
    }

    #[test]
    fn fail_goes_before_error_before_inconclusive_before_pass() {
        use Verdict::{Error, Fail, Inconclusive, Pass};
        for (over, lost, doubtful, with_limit, without) in [
            (false, false, false, Pass, Pass),
            (false, false, true, Inconclusive, Inconclusive),
            (false, true, false, Error, Error),
            (false, true, true, Error, Error),
            (true, false, false, Fail, Pass),
            (true, false, true, Fail, Inconclusive),
            (true, true, false, Fail, Error),
            (true, true, true, Fail, Error),
        ] {
            check(over, lost, doubtful, true, with_limit);
            check(over, lost, doubtful, false, without);
        }
        assert_eq!([Pass, Fail, Error, Inconclusive].map(Verdict::exit_code), [0, 1, 2, 3]);
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
    fn a_latency_that_stops_a_guest_in_wall_time_is_told_and_is_no_failure() {
        let mut header = header();
        header.plan.stop_at = Some(Nanos::from_micros(100));
        let mut scenario = scenario(&[5_000, 200_000]);
        scenario.end = ScenarioEnd::StopAt;
        let judged = |time: Option<LabTime>| {
            let mut header = header.clone();
            header.machine.lab = time.map(guest);
            let warnings = crate::validity::of_run(&header, &[]);
            let scenarios = vec![scenario.clone()];
            judge(&Record { header, ended: None, scenarios, warnings, judgement: Judgement::default() }, &[])
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
        let (ended, scenarios, warnings) = (None, vec![scenario(&[7_300; 3000])], vec![]);
        let record = Record { header, ended, scenarios, warnings, judgement: Judgement::default() };
        let judgement = judge(&record, &[]);
        assert!(judgement.speaks_for.contains("at most 7,300 instructions under idle, in one draw of 3000"));
        assert!(judgement.does_not_speak_for.contains("caches"), "{judgement:?}");
    }

    #[test]
    fn a_run_that_measured_nothing_is_an_error() {
        let (ended, scenarios, warnings) = (None, vec![scenario(&[])], vec![]);
        let record = Record { header: header(), ended, scenarios, warnings, judgement: Judgement::default() };
        assert_eq!(judge(&record, &[]).verdict, Verdict::Error);
    }

    #[test]
    fn a_verdict_says_what_it_speaks_for() {
        let (ended, scenarios, warnings) = (None, vec![scenario(&[7_300; 3000])], vec![]);
        let record = Record { header: header(), ended, scenarios, warnings, judgement: Judgement::default() };
        let judgement = judge(&record, &[]);
        assert!(judgement.speaks_for.starts_with(
            "a requirement of 7.3 us or more on CPUs 0 under idle, where one activation in 1000"
        ));
        assert!(judgement.does_not_speak_for.contains("10 s under 1 load is a first look"));
    }
}
