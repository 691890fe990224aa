//! Whether everything was measured that was planned: activations, threads, sleeps, scenarios.

use crate::WarningId as Id;
use crate::{Header, RecorderEvidence, Scenario, ScenarioEnd, ThreadEvidence, Warning};
use units::Nanos;

const SEE_LOG: &str = "see the end of dmesg; then measure again";

/// Threads that did not come back, and activations that nothing is known of.
pub fn of_accounts(header: &Header, scenario: &Scenario) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (index, series) in scenario.series.iter().enumerate() {
        let who = scenario.thread_name(index);
        let known = scenario.evidence.threads.iter().any(|thread| thread.thread as usize == index);
        if let Some(censored) = series.censored {
            let at_least = header.machine.unit().with_name(censored.latency);
            let evidence = format!("{who} {}", series.own.not_come(censored.activation, &at_least));
            warnings.push(Warning::inconclusive(Id::ThreadLost, evidence, SEE_LOG));
        } else if !known && scenario.end != ScenarioEnd::CutOff {
            let evidence = format!("{who} left no report: its policy, CPU and memory are unknown");
            warnings.push(Warning::inconclusive(Id::ThreadLost, evidence, SEE_LOG));
        }
        let accounted = series.accounted();
        if series.account().is_some_and(|(expected, _)| expected != accounted) {
            let evidence = format!(
                "{who}: {} activations were due, {} were measured and {} missed",
                series.expected(),
                series.observed.summary().count,
                series.missed().summary().count
            );
            warnings.push(Warning::inconclusive(
                Id::Unaccounted,
                evidence,
                "was the probe stopped or killed, or its journal damaged? measure again",
            ));
        }
    }
    warnings
}

/// Threads whose activations met the same few phases of the tick for ever, in a scenario so long that a sweep would have
/// met others.
pub fn of_phases(scenario: &Scenario) -> Vec<Warning> {
    if scenario.length <= SHORT {
        return Vec::new();
    }
    let series = scenario.series.iter().enumerate();
    let stuck = series.filter_map(|(index, series)| {
        let phases = series.timer()?.tick_phases.value().filter(|phases| phases.is_stuck())?;
        Some(Warning::note(
            Id::FewPhases,
            format!("{}: {phases}", scenario.thread_name(index)),
            "what delays wake-ups at other phases was not seen, however long the run: --phase sweep meets all in a minute",
        ))
    });
    stuck.collect()
}

/// A sweep gets nowhere in a scenario as short as this.
const SHORT: Nanos = Nanos::from_secs(10);

/// A thread that spins looks perfect: every wake-up is on time. What shows it is that it never gave the CPU away, or
/// that it was awake before its time again and again.
pub fn of_sleep(header: &Header, scenario: &Scenario, thread: &ThreadEvidence) -> Option<Warning> {
    // A reservation waits by sched_yield, which the kernel does not count as voluntary.
    // One that keeps its CPU by design is not to sleep.
    if header.plan.is_reservation() || header.plan.keeps_the_cpu() {
        return None;
    }
    scenario.head.planned.setup.timer()?;
    let index = thread.thread as usize;
    let woken = scenario.series.get(index)?.observed.summary().count;
    let slept_too_little = thread.voluntary_switches.saturating_mul(2) < thread.sleeps;
    let woke_too_early = thread.early_wakes > EARLY_ALWAYS && thread.early_wakes > woken / 10;
    (slept_too_little || woke_too_early).then(|| {
        Warning::inconclusive(
            Id::DidNotSleep,
            format!(
                "{} gave the CPU away {} times in {} waits of 20 us or more, and woke before its time {} times",
                scenario.thread_name(index),
                thread.voluntary_switches,
                thread.sleeps,
                thread.early_wakes
            ),
            "does a sandbox (seccomp) filter the sleep? try another --wake, or run outside it",
        )
    })
}

/// Fewer early wake-ups than this are signals and steps of the clock.
const EARLY_ALWAYS: u64 = 100;

/// Figures that the recorder lost.
pub fn of_recording(recorder: &RecorderEvidence) -> Option<Warning> {
    let (seconds, samples) = (recorder.seconds_lost, recorder.samples_lost);
    (seconds > 0 || samples > 0).then(|| {
        Warning::note(
            Id::RecordingLost,
            format!("{seconds} per-second figures and {samples} samples came too late"),
            "leave the recorder a CPU, or a faster disk; the histograms are whole",
        )
    })
}

/// The cure of every run that ended early.
const UNFINISHED: &str = "measure again what was not measured to its end: it is not part of a verdict";

/// A scenario that did not come to its planned end.
pub fn of_end(scenario: &Scenario) -> Option<Warning> {
    let load = &scenario.head.planned.load;
    let early = |what: String| Some(Warning::inconclusive(Id::EndedEarly, what, UNFINISHED));
    match &scenario.end {
        ScenarioEnd::Complete => None,
        ScenarioEnd::Interrupted => early(format!("{load}: interrupted")),
        ScenarioEnd::StopAt => early(format!("{load}: a latency reached --stop-at")),
        ScenarioEnd::CutOff => Some(Warning::inconclusive(
            Id::EndedEarly,
            format!("{load}: the run was cut off"),
            "this is what its journal held; percentiles may lag the other figures by up to two minutes",
        )),
        ScenarioEnd::TooHot => Some(Warning::inconclusive(
            Id::TooHot,
            format!("{load}: {} thousandths of a degree C", scenario.evidence.temperature_millidegrees),
            "improve the cooling before stressing this machine further",
        )),
        ScenarioEnd::FailSafe => Some(Warning::inconclusive(
            Id::FailSafe,
            format!("{load}: no ordinary thread had a CPU for as long as --fail-safe allows"),
            "measure at a longer interval or a lower priority, or leave a CPU out: --cpus",
        )),
        ScenarioEnd::Failed(what) => {
            Some(Warning::inconclusive(Id::ProbeFailed, format!("{load}: {what}"), SEE_LOG))
        }
    }
}

/// Loads that a warning names.
const MOST_NAMED: usize = 20;

/// Scenarios that were planned and never began.
pub fn of_plan(header: &Header, scenarios: &[Scenario]) -> Option<Warning> {
    let planned = header.plan.scenarios();
    let missing = planned.get(scenarios.len()..).filter(|missing| !missing.is_empty())?;
    let mut names: Vec<_> = missing.iter().map(|next| next.name(&next.load)).collect();
    names.dedup();
    let more = if names.len() > MOST_NAMED { ", ..." } else { "" };
    names.truncate(MOST_NAMED);
    let names = names.join(", ") + more;
    Some(Warning::inconclusive(
        Id::EndedEarly,
        format!("{} of {} scenarios were not measured: {names}", missing.len(), planned.len()),
        UNFINISHED,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::of_scenario;
    use crate::verdict::tests::{header, scenario};
    use crate::{Effect, Fact, Grid, Sample, TickPhases};

    fn ids(scenario: &Scenario) -> Vec<(Id, Effect)> {
        let warnings = of_scenario(&header(), scenario);
        warnings.iter().map(|warning| (warning.id, warning.effect)).collect()
    }

    #[test]
    fn a_thread_without_a_report_is_unknown_and_not_well() {
        let mut scenario = scenario(&[5_000]);
        scenario.evidence.threads.clear();
        assert_eq!(ids(&scenario), [(Id::ThreadLost, Effect::Inconclusive)]);
    }

    #[test]
    fn a_thread_that_did_not_come_back_is_named_with_the_least_that_it_is_late() {
        let mut scenario = scenario(&[5_000]);
        let latency = Nanos::from_millis(2_300);
        scenario.series[0].censored = Some(Sample { latency, due: Nanos(0), activation: 7 });
        assert_eq!(ids(&scenario), [(Id::ThreadLost, Effect::Inconclusive)]);
        assert!(of_scenario(&header(), &scenario)[0].evidence.contains("activation 7"));
    }

    #[test]
    fn activations_that_nobody_counted_are_named() {
        let mut scenario = scenario(&[5_000; 10]);
        scenario.series[0].timer_mut().unwrap().expected = 12;
        assert_eq!(ids(&scenario), [(Id::Unaccounted, Effect::Inconclusive)]);
        scenario.series[0].timer_mut().unwrap().expected = 9;
        assert_eq!(ids(&scenario), [(Id::Unaccounted, Effect::Inconclusive)]);
    }

    #[test]
    fn a_thread_that_spins_is_no_probe() {
        let mut scenario = scenario(&[5_000; 1000]);
        let thread = &mut scenario.evidence.threads[0];
        (thread.sleeps, thread.voluntary_switches) = (1000, 500);
        assert_eq!(ids(&scenario), []);
        scenario.evidence.threads[0].voluntary_switches = 499;
        assert_eq!(ids(&scenario), [(Id::DidNotSleep, Effect::Inconclusive)]);
        let mut deadline = header();
        deadline.plan.timer_mut().unwrap().wake = crate::Wake::Deadline;
        assert_eq!(of_sleep(&deadline, &scenario, &scenario.evidence.threads[0]), None);
        let thread = &mut scenario.evidence.threads[0];
        (thread.voluntary_switches, thread.early_wakes) = (1000, 101);
        assert_eq!(ids(&scenario), [(Id::DidNotSleep, Effect::Inconclusive)]);
    }

    #[test]
    fn a_long_run_that_kept_to_a_few_phases_of_the_tick_is_noted() {
        let tick = Nanos::from_millis(4);
        let phases = |interval| TickPhases::of(&Grid::fixed(213_000, interval), 20_000, tick).unwrap();
        let mut scenario = scenario(&[5_000]);
        scenario.length = Nanos::from_secs(20);
        scenario.series[0].timer_mut().unwrap().tick_phases = Fact::Value(phases(1_000_000));
        assert_eq!(ids(&scenario), [(Id::FewPhases, Effect::Note)]);
        let evidence = &of_phases(&scenario)[0].evidence;
        assert_eq!(evidence, "the thread of CPU 0: 4 points of the 4ms tick (213 us past multiples of 1ms)");
        scenario.length = Nanos::from_secs(10);
        assert_eq!(ids(&scenario), []);
        scenario.length = Nanos::from_secs(20);
        scenario.series[0].timer_mut().unwrap().tick_phases = Fact::Value(phases(999_983));
        assert_eq!(ids(&scenario), []);
    }

    #[test]
    fn scenarios_that_never_began_are_named() {
        let mut header = header();
        header.plan.loads = vec!["idle".into(), "cpu".into(), "io".into()];
        let warning = of_plan(&header, &[scenario(&[5_000])]).unwrap();
        assert!(warning.evidence.contains("2 of 3 scenarios") && warning.evidence.contains("cpu, io"));
    }
}
