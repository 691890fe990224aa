//! The record of `worstcase cost`: what operations of the kernel take in one set-up of a machine.
//!
//! Figures of a throughput measurement are means of short samples, not latencies of activations, so they have a record of
//! their own: a file in a directory, written whole after each round. A run that is cut off leaves the rounds before.

use std::path::Path;

use serde::{Deserialize, Serialize};
use units::{CpuId, Nanos, Seed, Total};

use crate::document::Kind;
use crate::store_error::StoreError;
use crate::time::UtcTime;
use crate::{Evidence, Machine, Tool};

/// The file in a run's directory.
pub const FILE: &str = "cost.json";

/// The version of the form of [`FILE`] that this program writes.
pub const COST_VERSION: u32 = 1;

/// The operation that never sleeps and asks nothing of the kernel. It is always measured: what it does not have of its CPU,
/// others had.
pub const CONTROL: &str = "cpu-integer";

/// What [`FILE`] holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// [`COST_VERSION`] of the program that wrote it.
    pub cost_version: u32,
    /// The program.
    pub tool: Tool,
    /// Its command line.
    pub command_line: Vec<String>,
    /// The user's own words.
    pub note: Option<String>,
    /// When it began.
    pub started: UtcTime,
    /// The machine.
    pub machine: Machine,
    /// How it is measured.
    pub plan: CostPlan,
    /// Which of two set-ups this is, whose rounds were measured in turn; none where it was measured by itself.
    #[serde(default)]
    pub turn: Option<Turn>,
    /// Rounds that were measured to their end.
    pub rounds: u32,
    /// From how many runs of an experiment the rounds come, each with a seed of its own; 0 where one program measured all.
    #[serde(default)]
    pub runs: u32,
    /// Why it ended before the last round; none where it did not, or was killed.
    pub interrupted: Option<String>,
    /// The counters of the measured CPUs over all rounds; none where it was cut off.
    pub evidence: Option<Evidence>,
    /// What was measured, in the order of the catalogue.
    pub operations: Vec<Operation>,
}

/// How operations are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostPlan {
    /// Where the measuring thread runs, and the partner that shares its CPU.
    pub cpu: CpuId,
    /// Where the partner runs that has a CPU of its own; none where there is no second CPU.
    pub second: Option<CpuId>,
    /// How often each operation is measured.
    pub rounds: u32,
    /// Into how many runs the rounds are divided, in the order of time: what a comparison with a record that was made apart
    /// takes for one figure. 0 where that was not decided: the rounds are one run.
    #[serde(default)]
    pub runs: u32,
    /// How long a sample is, at least.
    pub sample: Nanos,
    /// From which each round's order is drawn.
    pub seed: Seed,
}

/// One of two set-ups that differ by settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// The settings, as `worstcase tune trial` takes them.
    pub settings: Vec<String>,
    /// Whether they were written for its rounds; otherwise the machine's own values were written again.
    pub on: bool,
}

impl CostPlan {
    /// The most rounds that are measured.
    pub const MOST_ROUNDS: u32 = 1000;
    /// A sample that is shorter is all warm-up.
    pub const SHORTEST: Nanos = Nanos::from_millis(1);
    /// A sample that is longer is a run of its own.
    pub const LONGEST: Nanos = Nanos::from_secs(60);

    /// The run that a round belongs to, from 1.
    pub fn run_of(&self, round: u32) -> u32 {
        let before =
            u64::from(round.saturating_sub(1)) * u64::from(self.runs) / u64::from(self.rounds.max(1));
        1 + u32::try_from(before).unwrap_or(u32::MAX).min(self.runs.saturating_sub(1))
    }

    /// Why nothing was measured so; a record may be somebody else's, and says for how long another one is measured.
    pub fn refusal(&self) -> Option<String> {
        let is_possible = (1..=Self::MOST_ROUNDS).contains(&self.rounds)
            && (Self::SHORTEST..=Self::LONGEST).contains(&self.sample)
            && self.runs <= self.rounds;
        let said =
            || format!("{} rounds of {} in {} runs are not measured", self.rounds, self.sample, self.runs);
        (!is_possible).then(said)
    }
}

/// On which CPUs an operation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// All of it on one.
    OneCpu,
    /// The partner on another.
    TwoCpus,
    /// All of it on the one that partners have elsewhere.
    SecondCpu,
}

/// An operation at one place, with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operation {
    /// Its name: `pipe-ping-pong`.
    pub name: String,
    /// As people read it: `pipe ping-pong RTT`.
    pub title: String,
    /// Of which family: `pipes`. Families weigh the same in the mean.
    pub family: String,
    /// What one is: `1 byte there and back`.
    pub unit: String,
    /// The bytes that one moves; 0 where it is not about bytes.
    pub bytes: u64,
    /// On which CPUs.
    pub place: Place,
    /// One a round, except for the rounds in `failures`.
    pub samples: Vec<Sample>,
    /// Rounds in which it was not measured.
    pub failures: Vec<Failure>,
}

/// How long so many of an operation took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// In which round, from 1.
    pub round: u32,
    /// How many.
    pub count: u64,
    /// How long they took together.
    pub time: Nanos,
    /// The CPU time of all threads and children that took part.
    pub cpu_time: Nanos,
    /// Their context switches, voluntary and involuntary.
    pub switches: u64,
}

/// Why a round has no sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// In which round, from 1; 0 where it cannot be measured in any.
    pub round: u32,
    /// What was tried and what the kernel answered.
    pub why: String,
}

impl Cost {
    /// Several runs in one set-up as one: each is a round. What one did not measure is missing in its round. None of none.
    pub fn of_runs(runs: &[Self]) -> Option<Self> {
        let count = u32::try_from(runs.len()).ok()?;
        let mut whole = runs.first()?.clone();
        whole.operations.iter_mut().for_each(|operation| {
            let (mut samples, mut failures) = (Vec::new(), Vec::new());
            for (run, round) in runs.iter().zip(1..) {
                let Some(own) = run.operations.iter().find(|one| one.is(operation)) else { continue };
                samples.extend(Sample::sum(&own.samples, round));
                failures.extend(own.failures.iter().map(|failure| Failure { round, ..failure.clone() }));
            }
            // A reason that holds for every round is one.
            if samples.is_empty() {
                failures.truncate(1);
                failures.iter_mut().for_each(|failure| failure.round = 0);
            }
            (operation.samples, operation.failures) = (samples, failures);
        });
        whole.plan.rounds = count;
        (whole.rounds, whole.runs) = (count, count);
        whole.interrupted = runs.iter().find_map(|run| run.interrupted.clone());
        Some(whole)
    }

    /// Of each CPU that figures come from, what share of it the control had, in per cent; none where it was not measured.
    pub fn shares_of_cpus(&self) -> Vec<(CpuId, Option<u64>)> {
        let first = (self.plan.cpu, self.share_of(Place::OneCpu));
        let uses_second = |one: &Operation| one.place != Place::OneCpu && !one.samples.is_empty();
        let second = self.plan.second.filter(|_| self.operations.iter().any(uses_second));
        std::iter::once(first).chain(second.map(|cpu| (cpu, self.share_of(Place::SecondCpu)))).collect()
    }

    fn share_of(&self, place: Place) -> Option<u64> {
        let is_control = |operation: &&Operation| operation.name == CONTROL && operation.place == place;
        let control = self.operations.iter().find(is_control)?;
        let sum = |of: fn(&Sample) -> u64| control.samples.iter().map(of).total();
        let time = sum(|sample| sample.time.0);
        (time > 0).then(|| sum(|sample| sample.cpu_time.0).saturating_mul(100) / time)
    }

    /// The mean power while operations were measured, in watts. None where nobody measured it, and of rounds that were measured in turn
    /// with another set-up's, or of several runs: what meters counted is not theirs alone.
    pub fn watts(&self) -> Option<f64> {
        let is_own = self.turn.is_none() && self.runs == 0;
        self.evidence.as_ref().filter(|_| is_own)?.counters.watts()
    }

    /// Whether a limit on the CPU time of the own control groups took effect; a set-up like any other.
    pub fn was_limited(&self) -> bool {
        let quotas = self.evidence.as_ref().and_then(|evidence| evidence.quotas.value());
        quotas.into_iter().flatten().any(|quota| quota.periods.value().is_some_and(|periods| *periods > 0))
    }
}

impl Operation {
    /// Whether it is the same as another record's.
    pub fn is(&self, other: &Self) -> bool {
        (&self.name, self.place) == (&other.name, other.place)
    }

    /// Its figures, one for each run of the plan that measured it: all samples of a run together.
    pub fn by_run(&self, plan: &CostPlan) -> Vec<(u32, Sample)> {
        let runs = self.samples.chunk_by(|one, next| plan.run_of(one.round) == plan.run_of(next.round));
        let sum = |samples: &[Sample]| {
            let run = plan.run_of(samples.first()?.round);
            Some((run, Sample::sum(samples, run)?))
        };
        runs.filter_map(sum).collect()
    }

    /// Its title and place: `pipe ping-pong RTT, two CPUs`.
    pub fn words(&self) -> String {
        match self.place {
            Place::OneCpu => self.title.clone(),
            Place::TwoCpus => format!("{}, two CPUs", self.title),
            Place::SecondCpu => format!("{}, second CPU", self.title),
        }
    }
}

impl Sample {
    /// All of one run together, as the sample of a round; none of none.
    fn sum(samples: &[Self], round: u32) -> Option<Self> {
        let add = |sum: Self, one: &Self| Self {
            round,
            count: sum.count + one.count,
            time: sum.time + one.time,
            cpu_time: sum.cpu_time + one.cpu_time,
            switches: sum.switches + one.switches,
        };
        let (first, rest) = samples.split_first()?;
        Some(rest.iter().fold(Self { round, ..*first }, add))
    }

    /// The time of one, in picoseconds: the shortest operations take less than a nanosecond.
    pub fn picoseconds(&self) -> u64 {
        self.each(self.time)
    }

    /// The CPU time of one, in picoseconds.
    pub fn cpu_picoseconds(&self) -> u64 {
        self.each(self.cpu_time)
    }

    fn each(&self, time: Nanos) -> u64 {
        let all = u128::from(time.0) * 1_000;
        u64::try_from(all / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }
}

/// Reads what `worstcase cost` left in a directory, or its [`FILE`]. None where there is none.
pub fn load(path: &Path) -> Option<Result<Cost, StoreError>> {
    const COSTS: Kind = Kind {
        file: FILE,
        name: "record of costs",
        hint: "give a directory that `worstcase cost` left",
        version: COST_VERSION,
        longest: 1 << 28,
    };
    let loaded = COSTS.load(path, |versioned: Versioned| versioned.cost_version)?;
    Some(loaded.and_then(|cost: Cost| match cost.plan.refusal() {
        Some(why) => Err(COSTS.refused(path, why)),
        None => Ok(cost),
    }))
}

/// What every version has.
#[derive(Deserialize)]
struct Versioned {
    cost_version: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_has_no_end_is_refused() {
        let plan =
            |rounds, sample| CostPlan { cpu: CpuId(0), second: None, rounds, runs: 7, sample, seed: Seed(1) };
        assert_eq!(plan(9, Nanos::from_millis(100)).refusal(), None);
        for (rounds, sample) in [
            (0, Nanos::from_millis(100)),
            (6, Nanos::from_millis(100)),
            (u32::MAX, Nanos::from_millis(100)),
            (9, Nanos(u64::MAX)),
            (9, Nanos(0)),
        ] {
            assert!(plan(rounds, sample).refusal().is_some(), "{rounds} {sample}");
        }
    }

    /// What is said of a record that is written as `change` makes it.
    fn loaded(change: fn(&mut serde_json::Value)) -> Result<Cost, String> {
        let directory = tempfile::tempdir().unwrap();
        let mut value = serde_json::to_value(run(&[(1, 10)])).unwrap();
        value["plan"]["sample"] = 1_000_000.into();
        change(&mut value);
        std::fs::write(directory.path().join(FILE), value.to_string()).unwrap();
        load(directory.path()).unwrap().map_err(|error| format!("{error} {}", error.hint))
    }

    #[test]
    fn a_record_from_before_runs_and_second_cpus_is_read_and_a_place_of_a_later_program_is_refused_as_such() {
        let old = loaded(|value| {
            value.as_object_mut().unwrap().remove("runs");
            value.as_object_mut().unwrap().remove("turn");
            value["plan"].as_object_mut().unwrap().remove("runs");
            value["plan"]["second"] = 1.into();
            value["operations"][0]["name"] = "pipe-ping-pong".into();
            value["operations"][0]["place"] = "two-cpus".into();
        });
        let old = old.unwrap();
        assert_eq!((old.plan.runs, old.shares_of_cpus()), (0, vec![(CpuId(0), None), (CpuId(1), None)]));
        let read = loaded(|value| value["operations"][0]["place"] = "second-cpu".into());
        assert_eq!(read.unwrap().operations[0].place, Place::SecondCpu);
        for later in [
            loaded(|value| value["operations"][0]["place"] = "third-cpu".into()),
            loaded(|value| value["cost_version"] = (COST_VERSION + 1).into()),
        ] {
            let said = later.unwrap_err();
            assert!(said.contains("the worstcase that wrote it, or a newer one"), "{said}");
        }
    }

    fn run(samples: &[(u64, u64)]) -> Cost {
        let sample = |(round, (count, time)): (u32, &(u64, u64))| Sample {
            round,
            count: *count,
            time: Nanos(*time),
            cpu_time: Nanos(*time),
            switches: 0,
        };
        let failure = Failure { round: 0, why: "connect: Network is unreachable".into() };
        Cost {
            cost_version: COST_VERSION,
            tool: Tool { version: String::new(), build: String::new() },
            command_line: Vec::new(),
            note: None,
            started: UtcTime(0),
            machine: Machine::default(),
            plan: CostPlan {
                cpu: CpuId(0),
                second: None,
                rounds: samples.len() as u32,
                runs: 0,
                sample: Nanos(1),
                seed: Seed(1),
            },
            turn: None,
            rounds: samples.len() as u32,
            runs: 0,
            interrupted: None,
            evidence: None,
            operations: vec![Operation {
                name: CONTROL.into(),
                title: String::new(),
                family: String::new(),
                unit: String::new(),
                bytes: 0,
                place: Place::OneCpu,
                samples: (1..).zip(samples).map(sample).collect(),
                failures: if samples.is_empty() { vec![failure] } else { Vec::new() },
            }],
        }
    }

    #[test]
    fn rounds_are_divided_into_runs_as_equal_as_can_be_in_the_order_of_time() {
        let runs = |rounds, runs| {
            let plan = CostPlan { runs, ..run(&vec![(1, 1); rounds as usize]).plan };
            (1..=rounds).map(|round| plan.run_of(round)).collect::<Vec<_>>()
        };
        assert_eq!(runs(6, 3), [1, 1, 2, 2, 3, 3]);
        assert_eq!(runs(7, 7), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(runs(5, 2), [1, 1, 1, 2, 2]);
        assert_eq!(runs(3, 0), [1, 1, 1]);
    }

    #[test]
    fn a_run_has_one_figure_whatever_rounds_it_lacks() {
        let mut cost = run(&[(1, 10), (3, 50), (2, 8), (1, 7)]);
        cost.plan.runs = 2;
        cost.operations[0].samples.remove(1);
        let by_run = cost.operations[0].by_run(&cost.plan);
        let figures: Vec<_> = by_run.iter().map(|(run, one)| (*run, one.count, one.time.0)).collect();
        assert_eq!(figures, [(1, 1, 10), (2, 3, 15)]);
    }

    /// A partner's CPU that others use delays whoever waits for it.
    #[test]
    fn the_share_of_each_used_cpu_is_known_or_unknown() {
        let mut cost = run(&[(1, 10)]);
        cost.plan.second = Some(CpuId(1));
        assert_eq!(cost.shares_of_cpus(), [(CpuId(0), Some(100))], "the second one is not used");
        let at = |place, name: &str| Operation { place, name: name.into(), ..cost.operations[0].clone() };
        let (pair, mut control) = (at(Place::TwoCpus, "pair"), at(Place::SecondCpu, CONTROL));
        control.samples[0].cpu_time = Nanos(5);
        cost.operations.push(pair);
        assert_eq!(cost.shares_of_cpus(), [(CpuId(0), Some(100)), (CpuId(1), None)]);
        cost.operations.push(control);
        assert_eq!(cost.shares_of_cpus(), [(CpuId(0), Some(100)), (CpuId(1), Some(50))]);
    }

    #[test]
    fn several_runs_are_one_with_a_round_each() {
        let whole = Cost::of_runs(&[run(&[(1, 10), (3, 50)]), run(&[(2, 8)])]).unwrap();
        assert_eq!((whole.rounds, whole.plan.rounds, whole.runs), (2, 2, 2));
        let samples = &whole.operations[0].samples;
        let figures: Vec<_> = samples.iter().map(|one| (one.round, one.count, one.time.0)).collect();
        assert_eq!(figures, [(1, 4, 60), (2, 2, 8)]);
        assert_eq!(Cost::of_runs(&[]), None);
    }

    #[test]
    fn a_run_that_did_not_measure_leaves_its_reason_and_no_sample() {
        let some = Cost::of_runs(&[run(&[(1, 10)]), run(&[])]).unwrap();
        let operation = &some.operations[0];
        assert_eq!((operation.samples.len(), operation.failures[0].round), (1, 2));
        let none = Cost::of_runs(&[run(&[]), run(&[])]).unwrap();
        let operation = &none.operations[0];
        assert_eq!(
            (operation.samples.len(), operation.failures.len(), operation.failures[0].round),
            (0, 1, 0)
        );
    }
}
