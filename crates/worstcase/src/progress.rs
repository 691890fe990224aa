//! What the user sees while `bench` goes on, and what other displays take from it.

use record::{Header, RunPlan, Scenario, ScenarioHead, Unit};
use runner::{Live, Observer, Outcome, Run};
use units::Nanos;

use crate::output::{self, Stream};
use failure::Result;

/// How much is about to be measured, and how long it takes in all: `5 scenarios of 10 s each (and 1 s to warm up) on CPUs 0-1:
/// about 55 s`.
pub fn amount(plan: &RunPlan) -> String {
    let scenarios = plan.scenarios();
    let length = |setup| plan.scenario_length(setup).unwrap_or_default();
    let total = scenarios.iter().fold(Nanos::ZERO, |sum, next| sum + length(&next.setup) + plan.warm_up);
    let each = match (plan.duration, plan.samples) {
        (Some(duration), _) => duration.rounded(),
        (None, samples) => format!("{} activations", samples.unwrap_or_default()),
    };
    let scenarios = match scenarios.len() {
        1 => format!("1 scenario of {each}"),
        several => format!("{several} scenarios of {each} each"),
    };
    let (warm_up, cpus, total) = (plan.warm_up.rounded(), plan.cpus.named(), total.rounded());
    format!("{scenarios} (and {warm_up} to warm up) on {cpus}: about {total}")
}

/// `bench`: a line on standard error that is drawn over on a terminal, and one a scenario elsewhere.
pub struct Progress {
    can_redraw: bool,
    /// What latencies count.
    unit: Unit,
    number: usize,
    of: usize,
    warm_up: Nanos,
    /// Whether nothing is loaded in the whole run, which its table calls so too.
    is_unloaded: bool,
    /// Length of a scenario with its warm-up, where it is known.
    scenario_length: Option<Nanos>,
}

/// Measures, and shows how far it is.
pub fn measure(run: Run) -> Result<Outcome> {
    let mut progress = Progress::of(run.header());
    run.measure(&mut progress)
}

impl Progress {
    /// Of a run that begins so.
    pub fn of(Header { plan, machine, .. }: &Header) -> Self {
        Self {
            can_redraw: output::can_redraw(Stream::Error),
            unit: machine.unit(),
            number: 0,
            of: 0,
            warm_up: plan.warm_up,
            is_unloaded: plan.is_unloaded(),
            scenario_length: longest_scenario(plan).map(|length| length + plan.warm_up),
        }
    }

    /// A scenario in a few words: `hdd, every 1ms, C-states restricted`.
    fn describe(&self, head: &ScenarioHead) -> String {
        let cstates = match head.planned.cstates {
            record::CStates::AsIs => "",
            record::CStates::Restrict => ", C-states restricted",
        };
        let load = if self.is_unloaded { record::NO_LOAD } else { &head.planned.load };
        format!("{load}, {}{cstates}", head.planned.setup)
    }

    fn left(&self, elapsed: Nanos) -> String {
        self.scenario_length.map_or(String::new(), |length| {
            let left = length.saturating_mul((self.of - self.number + 1) as u64) - elapsed;
            format!("  {} left", left.rounded())
        })
    }
}

impl Observer for Progress {
    fn begins(&mut self, head: &ScenarioHead, number: usize, of: usize) -> Result<bool> {
        (self.number, self.of) = (number, of);
        if self.can_redraw {
            output::progress(&format!(
                "[{number}/{of}] {}  warming up{}",
                self.describe(head),
                self.left(Nanos::ZERO)
            ));
        }
        Ok(true)
    }

    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        if self.can_redraw {
            let worst = live.threads.iter().filter_map(|thread| thread.summary.maximum()).max();
            let missed: Option<u64> = live.threads.iter().map(|thread| thread.missed).sum();
            let missed = missed.map_or(String::new(), |missed| format!("  missed {missed}"));
            let worst = worst.map_or("-".into(), |worst| self.unit.with_name(worst));
            output::progress(&format!(
                "[{}/{}] {}  {}  max {worst}{missed}{}",
                self.number,
                self.of,
                self.describe(live.head),
                live.elapsed.rounded(),
                self.left(self.warm_up + live.elapsed)
            ));
        }
        Ok(true)
    }

    fn snapshot(&mut self, live: &Live<'_>) -> Result<bool> {
        if self.can_redraw {
            output::end_progress();
        }
        let rows = rows(live);
        output::styled(
            report::live::table(&rows, self.unit, &output::style(output::Stream::Error)).trim_end(),
        );
        Ok(true)
    }

    fn ended(&mut self, scenario: &Scenario) -> Result<bool> {
        let worst = scenario.series.iter().filter_map(|series| series.observed.summary().maximum()).max();
        let bound = worst.is_some_and(|worst| scenario.series.iter().any(|series| series.is_bound(worst)));
        let missed: Option<u64> = scenario
            .series
            .iter()
            .map(|series| series.account().map(|(_, missed)| missed.summary().count))
            .sum();
        if self.can_redraw {
            output::end_progress();
        }
        output::news(&format!(
            "[{}/{}] {:24} {:>9}  max {:>10} {}{}",
            self.number,
            self.of,
            self.describe(&scenario.head),
            scenario.length.rounded(),
            worst.map_or("-".into(), |worst| format!(
                "{}{}",
                if bound { ">" } else { "" },
                self.unit.figure(worst)
            )),
            self.unit.name(),
            missed.map_or(String::new(), |missed| format!("  missed {missed}")),
        ));
        Ok(true)
    }
}

/// How long the longest scenario takes after its warm-up; none where the user ends it.
pub fn longest_scenario(plan: &RunPlan) -> Option<Nanos> {
    plan.scenarios().into_iter().filter_map(|next| plan.scenario_length(&next.setup)).max()
}

/// Live rows for the report's tables.
pub fn rows<'a>(live: &'a Live<'_>) -> Vec<report::live::LiveRow<'a>> {
    live.threads
        .iter()
        .enumerate()
        .map(|(index, thread)| report::live::LiveRow {
            cpu: thread.cpu,
            now: thread.now,
            summary: thread.summary,
            p999: live.p999(index),
            missed: thread.missed,
            values: live.words.count,
            recent: thread.recent,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_scenario_has_no_each_and_several_have_their_time_in_all() {
        let mut plan = RunPlan { loads: vec!["idle".into()], repeat: 1, ..RunPlan::default() };
        plan.cpus = "0-1".parse().unwrap();
        plan.cstates = vec![record::CStates::AsIs];
        plan.instrument = record::InstrumentPlan::Timer(record::instrument::timer::TimerPlan {
            intervals: vec![Nanos::from_millis(1)],
            ..Default::default()
        });
        (plan.duration, plan.warm_up) = (Some(Nanos::from_secs(5)), Nanos::from_secs(1));
        assert_eq!(amount(&plan), "1 scenario of 5 s (and 1 s to warm up) on CPUs 0-1: about 6 s");
        plan.loads.push("cpu".into());
        assert_eq!(amount(&plan), "2 scenarios of 5 s each (and 1 s to warm up) on CPUs 0-1: about 12 s");
    }
}
