//! What follows from the arms' tails: the search for the culprits, and the judgement of what it finds by fresh guests.
//!
//! A search asks many questions of the same guests, so that what it ends at can be what their chance favoured. It is
//! therefore judged by guests that the search has not seen. An inert change is called guilty where fresh guests with it
//! are higher than without it; that has a probability of at most 2.5 % for all changes named together (one side of an exact
//! test, shared among them), however the search went.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use record::{KernelParameter, ParameterAnswer};
use serde::Serialize;
use statistics::{Value, compare_among, runs_needed};

use super::halving::{least, turn};
use super::{Bisection, Step, name};
use crate::bench::{Halt, Parameters, parameter};
use crate::judge::median;
use crate::{Arm, Bench, Block, Changes, Effect, Error, FIRST_SEED, Figures, Measure};

/// The guests' tails, or why there are none.
type Tails = Result<Vec<Value>, String>;

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// In a word.
    pub outcome: Outcome,
    /// Groups of changes, each of which moved the tail by itself. The changes of a group only do so together; of an
    /// ordered list a group is the steps among which the guilty one is.
    pub culprits: Vec<Changes>,
    /// The median of the good guests' tails.
    pub good: f64,
    /// All that was asked.
    pub steps: Vec<Step>,
    /// Changes of which the kernel took nothing: it does not read their parameters, or refused them.
    pub without_effect: Changes,
    /// Parameters of the good and the bad set-up that the kernel did not read, refused, or of which it is not known.
    pub parameters: Vec<KernelParameter>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The culprits did it, by fresh guests: good with each of them is bad, bad without all of them is good.
    Guilty,
    /// All changes together do not move the tail by the ratio.
    NoneGuilty,
    /// No answer.
    Inconclusive(Doubt),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// A word without a meaning moved the tail as much as a culprit is to.
    Control,
    /// The spread from guest to guest hides whether the bad set-up is bad.
    Spread,
    /// The bad set-up is the better one.
    Reversed,
    /// The kernel read none of the changes, or none of those that were found: what differs is chance.
    NotRead,
    /// Fresh guests do not confirm what was found: good with it is not seen to be bad, bad without it is not seen to be
    /// good, or the steps of a list that it lies between do not differ by the ratio.
    Unconfirmed,
}

/// Which guests are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sample {
    /// Those of the search.
    Searched,
    /// So many that the search has not seen.
    Fresh(u32),
}

impl Sample {
    /// Its phase, and its rounds: fresh guests have the seeds after those of the search.
    fn rounds(self, searched: u32) -> (u32, RangeInclusive<u32>) {
        match self {
            Self::Searched => (1, 1..=searched),
            Self::Fresh(count) => (2, searched + 1..=searched + count),
        }
    }
}

/// One bisection.
pub(super) struct Judge<'a> {
    asked: &'a Bisection,
    bench: &'a mut dyn Bench,
    tails: BTreeMap<(Sample, Arm), Tails>,
    steps: Vec<Step>,
}

impl<'a> Judge<'a> {
    pub fn of(asked: &'a Bisection, bench: &'a mut dyn Bench) -> Self {
        Self { asked, bench, tails: BTreeMap::new(), steps: Vec::new() }
    }

    /// Finds the answer.
    pub fn answer(mut self) -> Result<Answer, Halt> {
        let (outcome, culprits) = self.outcome()?;
        let good = self.tails.get(&(Sample::Searched, Arm::off())).and_then(|tails| tails.as_ref().ok());
        let good = good.map_or(0.0, |tails| median(tails));
        let parameters = doubtful(&self.bench.parameters(), &self.bad());
        let without_effect = self.without_effect();
        Ok(Answer { outcome, culprits, good, steps: self.steps, without_effect, parameters })
    }

    /// All changes made.
    fn bad(&self) -> Arm {
        Arm::all(self.asked.changes.len())
    }

    /// The changes that cannot do anything: the kernel of those who were measured read none of their parameters, or refused
    /// them.
    fn without_effect(&self) -> Changes {
        let parameters = self.bench.parameters();
        let is_without = |word: &String| {
            parameter(&parameters, word).is_some_and(|found| found.answer.is_without_effect())
        };
        let changes = self.asked.changes.iter().enumerate();
        changes
            .filter(|(_, words)| !words.is_empty() && words.iter().all(is_without))
            .map(|(place, _)| place)
            .collect()
    }

    fn outcome(&mut self) -> Result<(Outcome, Vec<Changes>), Halt> {
        let all: Changes = (0..self.asked.changes.len()).collect();
        let bad = self.bad();
        for arm in [Arm::off(), Arm::Control, bad.clone()] {
            if let Err(reason) = self.measured(Sample::Searched, &arm)? {
                let message = format!("{} cannot be measured: {reason}", name(&arm));
                return Err(Error::new(message, "").into());
            }
        }
        let none = |doubt| Ok((Outcome::Inconclusive(doubt), Vec::new()));
        if self.without_effect() == all {
            return none(Doubt::NotRead);
        }
        match (self.with_good(&Arm::Control)?, self.with_good(&bad)?) {
            (Some(Effect::Harms | Effect::Helps), _) => none(Doubt::Control),
            (_, Some(Effect::Harms)) if self.asked.is_ordered => self.turning_point(all.len()),
            (_, Some(Effect::Harms)) => self.culprits(all),
            (_, Some(Effect::Helps)) => none(Doubt::Reversed),
            (_, Some(Effect::Undecided) | None) => none(Doubt::Spread),
            (_, Some(Effect::NoneVisible)) => Ok((Outcome::NoneGuilty, Vec::new())),
        }
    }

    /// Group after group of changes that are bad by themselves, until what is left is not.
    fn culprits(&mut self, all: Changes) -> Result<(Outcome, Vec<Changes>), Halt> {
        let (mut left, mut culprits) = (all, Vec::new());
        loop {
            let found = least::<Halt>(&left, &mut |made| {
                Ok(self.with_good(&Arm::With(made.clone()))? == Some(Effect::Harms))
            })?;
            left = left.difference(&found).copied().collect();
            let alone = self.with_good(&Arm::With(found.clone()))?;
            culprits.push(found);
            let goes_on = alone == Some(Effect::Harms) && !left.is_empty();
            if !goes_on || self.with_good(&Arm::With(left.clone()))? != Some(Effect::Harms) {
                // Any other text on its command line sends a guest along another path: that is all such a change did.
                let without_effect = self.without_effect();
                let outcome = match culprits.iter().any(|group| group.is_subset(&without_effect)) {
                    true => Outcome::Inconclusive(Doubt::NotRead),
                    false => self.confirmed(&culprits, &left)?,
                };
                return Ok((outcome, culprits));
            }
        }
    }

    /// Judges by fresh guests: each culprit makes good bad, each of its changes adds to that, and without all of them bad is
    /// good.
    fn confirmed(&mut self, culprits: &[Changes], left: &Changes) -> Result<Outcome, Halt> {
        let among: usize = culprits.iter().map(Changes::len).sum();
        let fresh = Sample::Fresh(self.asked.seeds.max(runs_needed(among) as u32));
        if let Some(doubt) = self.control_moves(fresh)? {
            return Ok(doubt);
        }
        let mut holds = true;
        for culprit in culprits {
            let arm = Arm::With(culprit.clone());
            holds &= self.ask(&arm, &Arm::off(), fresh, among)? == Some(Effect::Harms);
            // Of a single change good is what is left without it.
            for &change in culprit.iter().filter(|_| culprit.len() > 1) {
                let others = culprit.iter().copied().filter(|&other| other != change).collect();
                holds &= self.is_higher(&arm, &Arm::With(others), fresh, among)?;
            }
        }
        if !left.is_empty() {
            let rest = self.ask(&Arm::With(left.clone()), &Arm::off(), fresh, 1)?;
            holds &= matches!(rest, Some(Effect::NoneVisible | Effect::Helps));
        }
        Ok(if holds { Outcome::Guilty } else { Outcome::Inconclusive(Doubt::Unconfirmed) })
    }

    /// The step of a list that made it bad: in fresh guests the kernel after it is bad against the one before.
    fn turning_point(&mut self, last: usize) -> Result<(Outcome, Vec<Changes>), Halt> {
        let (low, high) = turn::<Halt>(last, &mut |place| {
            Ok(match self.with_good(&Arm::all(place))? {
                Some(Effect::Harms) => Some(true),
                Some(Effect::NoneVisible | Effect::Helps) => Some(false),
                Some(Effect::Undecided) | None => None,
            })
        })?;
        let fresh = Sample::Fresh(self.asked.seeds);
        let outcome = match self.control_moves(fresh)? {
            Some(doubt) => doubt,
            None if self.ask(&Arm::all(high), &Arm::all(low), fresh, 1)? == Some(Effect::Harms) => {
                Outcome::Guilty
            }
            None => Outcome::Inconclusive(Doubt::Unconfirmed),
        };
        Ok((outcome, vec![(low..high).collect()]))
    }

    fn control_moves(&mut self, fresh: Sample) -> Result<Option<Outcome>, Halt> {
        let moves = matches!(
            self.ask(&Arm::Control, &Arm::off(), fresh, 1)?,
            Some(Effect::Harms | Effect::Helps) | None
        );
        Ok(moves.then_some(Outcome::Inconclusive(Doubt::Control)))
    }

    fn with_good(&mut self, arm: &Arm) -> Result<Option<Effect>, Halt> {
        self.ask(arm, &Arm::off(), Sample::Searched, 1)
    }

    /// Whether `arm` is higher than `against`, by any ratio.
    fn is_higher(&mut self, arm: &Arm, against: &Arm, sample: Sample, among: usize) -> Result<bool, Halt> {
        self.ask(arm, against, sample, among)?;
        let step = self.steps.iter().find(|step| step.is_of(arm, against, sample != Sample::Searched));
        Ok(step.and_then(|step| step.ratio).is_some_and(|(_, [low, _])| low > 1.0))
    }

    /// Compares two arms as one of `among` comparisons, and measures what is not measured yet.
    fn ask(
        &mut self,
        arm: &Arm,
        against: &Arm,
        sample: Sample,
        among: usize,
    ) -> Result<Option<Effect>, Halt> {
        let is_fresh = sample != Sample::Searched;
        let before = self.steps.iter().find(|step| step.is_of(arm, against, is_fresh));
        if let Some(before) = before {
            return Ok(before.reading);
        }
        let (first, second) = (self.measured(sample, against)?, self.measured(sample, arm)?);
        let step = Step {
            arm: arm.clone(),
            against: against.clone(),
            fresh: is_fresh,
            tail: None,
            before: None,
            ratio: None,
            confidence: None,
            reading: None,
            failure: None,
        };
        let step = match (first, second) {
            (Ok(first), Ok(second)) => match compare_among(&first, &second, among) {
                Ok(compared) => Step {
                    tail: Some(median(&second)),
                    before: Some(median(&first)),
                    confidence: Some(compared.confidence),
                    ratio: Some((compared.ratio, [compared.interval.0, compared.interval.1])),
                    reading: Some(Effect::by_ratio(&compared, self.asked.ratio)),
                    ..step
                },
                Err(error) => return Err(Error::new(error.to_string(), "").into()),
            },
            (Err(reason), _) | (_, Err(reason)) => Step { failure: Some(reason), ..step },
        };
        self.bench.compared(&step);
        let reading = step.reading;
        self.steps.push(step);
        Ok(reading)
    }

    fn measured(&mut self, sample: Sample, arm: &Arm) -> Result<Tails, Halt> {
        let place = (sample, arm.clone());
        if let Some(tails) = self.tails.get(&place) {
            return Ok(tails.clone());
        }
        let (phase, rounds) = sample.rounds(self.asked.seeds);
        let blocks: Vec<Block> =
            rounds.map(|round| Block::of(arm.clone(), phase, round, FIRST_SEED)).collect();
        let tails = match self.bench.attempt(&blocks)?.ok_or(Halt::Stopped)? {
            Ok(figures) => Ok(figures.iter().map(|block| self.tail(block)).collect::<Result<_, _>>()?),
            Err(reason) => Err(reason),
        };
        self.tails.insert(place, tails.clone());
        Ok(tails)
    }

    fn tail(&self, block: &Figures) -> Result<Value, Error> {
        Measure::Tail(self.asked.tail).of(block).ok_or_else(|| {
            let message = format!("a record has too few samples for {}", self.asked.tail);
            Error::new(message, "measure longer (--duration), or compare another tail (--tail)")
        })
    }
}

/// Parameters of the good and the bad set-up that the kernel did not simply read, each once.
fn doubtful(parameters: &Parameters, bad: &Arm) -> Vec<KernelParameter> {
    let mut all: Vec<KernelParameter> = Vec::new();
    for parameter in [&Arm::off(), bad].into_iter().filter_map(|arm| parameters.get(arm)).flatten() {
        if parameter.answer != ParameterAnswer::Read && !all.contains(parameter) {
            all.push(parameter.clone());
        }
    }
    all
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
