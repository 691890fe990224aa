//! What to do after a run: the two or three commands that fit what was seen, the most useful first.

use record::claims::{CUSTOMARY, FIRST_LOOK};
use record::verdict::Verdict;
use record::{Record, RunPlan, Scenario, WarningId};
use units::Nanos;

use crate::instrument;
use crate::style::Style;

/// Commands shown.
const MOST_STEPS: usize = 3;
/// A maximum this many times the median has a cause of its own.
const TAIL: u64 = 10;

/// A command to be typed as it is, and what it is for in a few words.
type Step = (String, String);

/// What fits a record. Nothing fits a guest of the lab: its command says what comes next.
pub fn steps(record: &Record) -> Vec<Step> {
    if record.header.machine.lab.is_some() || !record.is_measured() {
        return Vec::new();
    }
    let all = [privileges(record), explain(record), check(), isolate(record), requirement(record)];
    all.into_iter().flatten().take(MOST_STEPS).collect()
}

/// For the terminal, every line ended.
pub fn text(record: &Record, style: &Style) -> String {
    super::steps(&steps(record), style).into_iter().map(|line| line + "\n").collect()
}

fn step(command: impl Into<String>, purpose: impl Into<String>) -> Option<Step> {
    Some((command.into(), purpose.into()))
}

/// Root, where neither policy nor locked memory were granted: then every figure is that of an ordinary program.
fn privileges(record: &Record) -> Option<Step> {
    let has = |id| record.all_warnings().any(|warning| warning.id == id);
    (has(WarningId::PolicyDiffers) && has(WarningId::MemoryNotLocked)).then_some(())?;
    step("sudo worstcase bench", "measure with real-time priority and locked memory")
}

/// The trace, where there is a tail or a limit was exceeded and no trace was made yet.
fn explain(record: &Record) -> Option<Step> {
    if !record.explanations.is_empty() || record.header.plan.timer().is_none() {
        return None;
    }
    let (worst, scenario, _) = record.worst()?;
    let exceeded = record.header.plan.limit.is_some_and(|limit| worst > limit);
    if !exceeded && worst.0 <= median(scenario)?.0.saturating_mul(TAIL) {
        return None;
    }
    let loads = match scenario.head.planned.load.as_str() {
        "command" => String::new(),
        load => format!(" --loads {load}"),
    };
    step(format!("worstcase bench --explain{loads}"), "find out what delayed the worst wake-ups")
}

fn median(scenario: &Scenario) -> Option<Nanos> {
    scenario.series.iter().filter_map(|series| series.corrected().quantile(0.5)).max()
}

fn check() -> Option<Step> {
    step("worstcase check", "find the settings here that are known to cost latency")
}

/// Isolation, where a limit was not met on CPUs that serve everything else too.
fn isolate(record: &Record) -> Option<Step> {
    let shared = record.all_warnings().any(|warning| warning.id == WarningId::NotIsolated);
    let cpu = record.header.plan.cpus.iter().last()?;
    let failed = record.judgement.verdict == Verdict::Fail;
    let alone = record.header.plan.cpus.len() < 2;
    if !shared || !failed || alone {
        return None;
    }
    step(
        format!("worstcase tune plan --isolate {cpu}"),
        format!("see what would keep everything else off CPU {cpu}"),
    )
}

/// A requirement where there was none, a longer run where one was met.
fn requirement(record: &Record) -> Option<Step> {
    let plan = &record.header.plan;
    let unit = record.header.machine.unit();
    let length = record.scenarios.iter().map(|scenario| scenario.length).min()?;
    match plan.limit {
        None => {
            let limit = round_up(record.worst()?.0);
            let limit = (instrument::of(plan).longest_limit)(plan).map_or(limit, |most| limit.min(most));
            step(again(plan, limit, "10m"), "turn this into a pass or a fail")
        }
        Some(limit) if record.judgement.verdict == Verdict::Pass && length < FIRST_LOOK => {
            step(again(plan, unit.limit(limit), "10m"), "this was a first look")
        }
        Some(limit) if record.judgement.verdict == Verdict::Pass && length < CUSTOMARY => step(
            again(plan, unit.limit(limit), "24h"),
            "24 h under load is customary before a worst case is believed",
        ),
        Some(_) => None,
    }
}

/// The same instrument with a limit, for longer.
fn again(plan: &RunPlan, limit: impl std::fmt::Display, duration: &str) -> String {
    let probe = (instrument::of(plan).again)(plan);
    format!("worstcase bench{probe} --limit {limit} --duration {duration}")
}

/// The next of 1, 2, 5, 10, .. microseconds at or above a latency.
fn round_up(latency: Nanos) -> Nanos {
    let mut decade = 1_000_u64;
    loop {
        for factor in [1, 2, 5] {
            let limit = decade.saturating_mul(factor);
            if limit >= latency.0 || limit == u64::MAX {
                return Nanos(limit);
            }
        }
        decade = decade.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_measures_with_the_same_instrument() {
        use record::InstrumentPlan;
        use record::instrument::noise::NoiseSetup;
        use record::instrument::response::{Receive, ResponseSetup};
        let plan = |instrument| RunPlan { instrument, ..RunPlan::default() };
        let noise = NoiseSetup { threshold: Nanos(1), window: Nanos(2), spin: Nanos(1) };
        let noise = plan(InstrumentPlan::Noise(noise));
        assert_eq!(again(&noise, "5us", "10m"), "worstcase bench --probe noise --limit 5us --duration 10m");
        let network = plan(InstrumentPlan::Response(ResponseSetup {
            interval: Nanos::from_millis(2),
            patience: Nanos::from_millis(1),
            peer: "10.0.0.2:2307".into(),
            interface: Some("eth0".into()),
            frames: 1,
            size: 64,
            socket_priority: None,
            receive: Receive::Sleep,
        }));
        let command = "worstcase bench --probe network --peer 10.0.0.2:2307 --interface eth0 --interval 2ms --limit 1ms \
                       --duration 10m";
        assert_eq!(again(&network, Nanos::from_millis(1), "10m"), command);
        assert_eq!((instrument::of(&network).longest_limit)(&network), Some(Nanos::from_millis(1)));
    }

    #[test]
    fn a_limit_is_suggested_above_what_was_seen() {
        let of = |nanos| round_up(Nanos(nanos)).to_string();
        assert_eq!(
            (of(999), of(1_001), of(1_883_500), of(5_000_000)),
            ("1us".into(), "2us".into(), "2ms".into(), "5ms".into())
        );
        assert_eq!(round_up(Nanos(u64::MAX)), Nanos(u64::MAX));
    }
}
