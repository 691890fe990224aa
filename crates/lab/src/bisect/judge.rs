//! What follows from the arms' tails: the search for the culprits, and the judgement of what it finds by fresh guests.
//!
//! A search asks many questions of the same guests, so that what it ends at can be what their chance favoured. It is
//! therefore judged by guests that the search has not seen. An inert change is called guilty where fresh guests with it
//! are higher than without it; that has a probability of at most 2.5 % for all changes named together (one side of an exact
//! test, shared among them), however the search went.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use record::KernelParameter;
use serde::Serialize;
use statistics::{Value, compare_among, runs_needed};

use super::arm::Changes;
use super::search::{least, turn};
use super::{Arm, Reading, Step};

/// Seeds of guests.
pub(super) type Seeds = RangeInclusive<u32>;
/// The guests' tails, or why there are none.
pub(super) type Tails = Result<Vec<Value>, String>;

/// What measures arms.
pub(super) trait Oracle {
    /// Why it ends before the answer.
    type Halt;

    /// The tails of the guests of `arm` with these seeds.
    fn tails(&mut self, arm: &Arm, seeds: Seeds) -> Result<Tails, Self::Halt>;
    /// The changes that cannot do anything: the kernel of those who were measured did not read them, or refused them.
    fn without_effect(&self) -> Changes {
        Changes::new()
    }
    /// Parameters that the kernel did not read, refused, or of which it is not known.
    fn parameters(&self) -> Vec<KernelParameter> {
        Vec::new()
    }
    /// A question is answered.
    fn answered(&mut self, step: &Step);
    /// It cannot go on.
    fn failed(&self, message: String) -> Self::Halt;
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// How many changes there are.
    pub count: usize,
    /// The bad set-up.
    pub bad: Arm,
    /// Whether they are steps of a list.
    pub is_ordered: bool,
    /// By which factor a culprit moves the tail at least.
    pub ratio: f64,
    /// How many guests each arm has in the search.
    pub seeds: u32,
}

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
    fn seeds(self, searched: u32) -> Seeds {
        match self {
            Self::Searched => 1..=searched,
            Self::Fresh(count) => searched + 1..=searched + count,
        }
    }
}

/// One search.
pub(super) struct Judge<'a, O: Oracle> {
    asked: Asked,
    oracle: &'a mut O,
    tails: BTreeMap<(Sample, Arm), Tails>,
    steps: Vec<Step>,
}

impl<'a, O: Oracle> Judge<'a, O> {
    pub fn of(asked: Asked, oracle: &'a mut O) -> Self {
        Self { asked, oracle, tails: BTreeMap::new(), steps: Vec::new() }
    }

    /// Finds the answer.
    pub fn answer(mut self) -> Result<Answer, O::Halt> {
        let (outcome, culprits) = self.outcome()?;
        let good = self.tails.get(&(Sample::Searched, Arm::good())).and_then(|tails| tails.as_ref().ok());
        let good = good.map_or(0.0, |tails| median(tails));
        let (without_effect, parameters) = (self.oracle.without_effect(), self.oracle.parameters());
        Ok(Answer { outcome, culprits, good, steps: self.steps, without_effect, parameters })
    }

    fn outcome(&mut self) -> Result<(Outcome, Vec<Changes>), O::Halt> {
        let all: Changes = (0..self.asked.count).collect();
        let bad = self.asked.bad.clone();
        for arm in [Arm::good(), Arm::Control, bad.clone()] {
            if let Err(reason) = self.measured(Sample::Searched, &arm)? {
                return Err(self.oracle.failed(format!("{arm} cannot be measured: {reason}")));
            }
        }
        let none = |doubt| Ok((Outcome::Inconclusive(doubt), Vec::new()));
        if self.oracle.without_effect() == all {
            return none(Doubt::NotRead);
        }
        match (self.with_good(&Arm::Control)?, self.with_good(&bad)?) {
            (Reading::Rose | Reading::Fell, _) => none(Doubt::Control),
            (_, Reading::Rose) if self.asked.is_ordered => self.turning_point(all.len()),
            (_, Reading::Rose) => self.culprits(all),
            (_, Reading::Fell) => none(Doubt::Reversed),
            (_, Reading::Unclear | Reading::Failed) => none(Doubt::Spread),
            (_, Reading::Stayed) => Ok((Outcome::NoneGuilty, Vec::new())),
        }
    }

    /// Group after group of changes that are bad by themselves, until what is left is not.
    fn culprits(&mut self, all: Changes) -> Result<(Outcome, Vec<Changes>), O::Halt> {
        let (mut left, mut culprits) = (all, Vec::new());
        loop {
            let found = least::<O::Halt>(&left, &mut |made| {
                Ok(self.with_good(&Arm::With(made.clone()))? == Reading::Rose)
            })?;
            left = left.difference(&found).copied().collect();
            let alone = self.with_good(&Arm::With(found.clone()))?;
            culprits.push(found);
            let goes_on = alone == Reading::Rose && !left.is_empty();
            if !goes_on || self.with_good(&Arm::With(left.clone()))? != Reading::Rose {
                // Any other text on its command line sends a guest along another path: that is all such a change did.
                let without_effect = self.oracle.without_effect();
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
    fn confirmed(&mut self, culprits: &[Changes], left: &Changes) -> Result<Outcome, O::Halt> {
        let among: usize = culprits.iter().map(Changes::len).sum();
        let fresh = Sample::Fresh(self.asked.seeds.max(runs_needed(among) as u32));
        if let Some(doubt) = self.control_moves(fresh)? {
            return Ok(doubt);
        }
        let mut holds = true;
        for culprit in culprits {
            let arm = Arm::With(culprit.clone());
            holds &= self.ask(&arm, &Arm::good(), fresh, among)? == Reading::Rose;
            // Of a single change good is what is left without it.
            for &change in culprit.iter().filter(|_| culprit.len() > 1) {
                let others = culprit.iter().copied().filter(|&other| other != change).collect();
                holds &= self.is_higher(&arm, &Arm::With(others), fresh, among)?;
            }
        }
        if !left.is_empty() {
            let rest = self.ask(&Arm::With(left.clone()), &Arm::good(), fresh, 1)?;
            holds &= matches!(rest, Reading::Stayed | Reading::Fell);
        }
        Ok(if holds { Outcome::Guilty } else { Outcome::Inconclusive(Doubt::Unconfirmed) })
    }

    /// The step of a list that made it bad: in fresh guests the kernel after it is bad against the one before.
    fn turning_point(&mut self, last: usize) -> Result<(Outcome, Vec<Changes>), O::Halt> {
        let first = |count: usize| Arm::With((0..count).collect());
        let (low, high) = turn::<O::Halt>(last, &mut |place| {
            Ok(match self.with_good(&first(place))? {
                Reading::Rose => Some(true),
                Reading::Stayed | Reading::Fell => Some(false),
                Reading::Unclear | Reading::Failed => None,
            })
        })?;
        let fresh = Sample::Fresh(self.asked.seeds);
        let outcome = match self.control_moves(fresh)? {
            Some(doubt) => doubt,
            None if self.ask(&first(high), &first(low), fresh, 1)? == Reading::Rose => Outcome::Guilty,
            None => Outcome::Inconclusive(Doubt::Unconfirmed),
        };
        Ok((outcome, vec![(low..high).collect()]))
    }

    fn control_moves(&mut self, fresh: Sample) -> Result<Option<Outcome>, O::Halt> {
        let moves = matches!(
            self.ask(&Arm::Control, &Arm::good(), fresh, 1)?,
            Reading::Rose | Reading::Fell | Reading::Failed
        );
        Ok(moves.then_some(Outcome::Inconclusive(Doubt::Control)))
    }

    fn with_good(&mut self, arm: &Arm) -> Result<Reading, O::Halt> {
        self.ask(arm, &Arm::good(), Sample::Searched, 1)
    }

    /// Whether `arm` is higher than `against`, by any ratio.
    fn is_higher(&mut self, arm: &Arm, against: &Arm, sample: Sample, among: usize) -> Result<bool, O::Halt> {
        self.ask(arm, against, sample, among)?;
        let step = self.steps.iter().find(|step| step.is_of(arm, against, sample != Sample::Searched));
        Ok(step.and_then(|step| step.ratio).is_some_and(|(_, [low, _])| low > 1.0))
    }

    /// Compares two arms as one of `among` comparisons, and measures what is not measured yet.
    fn ask(&mut self, arm: &Arm, against: &Arm, sample: Sample, among: usize) -> Result<Reading, O::Halt> {
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
            ratio: None,
            reading: Reading::Failed,
            failure: None,
        };
        let step = match (first, second) {
            (Ok(first), Ok(second)) => match compare_among(&first, &second, among) {
                Ok(compared) => Step {
                    tail: Some(median(&second)),
                    ratio: Some((compared.ratio, [compared.interval.0, compared.interval.1])),
                    reading: Reading::of(&compared, self.asked.ratio),
                    ..step
                },
                Err(error) => return Err(self.oracle.failed(error.to_string())),
            },
            (Err(reason), _) | (_, Err(reason)) => Step { failure: Some(reason), ..step },
        };
        self.oracle.answered(&step);
        let reading = step.reading;
        self.steps.push(step);
        Ok(reading)
    }

    fn measured(&mut self, sample: Sample, arm: &Arm) -> Result<Tails, O::Halt> {
        let place = (sample, arm.clone());
        if let Some(tails) = self.tails.get(&place) {
            return Ok(tails.clone());
        }
        let tails = self.oracle.tails(arm, sample.seeds(self.asked.seeds))?;
        self.tails.insert(place, tails.clone());
        Ok(tails)
    }
}

fn median(tails: &[Value]) -> f64 {
    let mut figures: Vec<f64> = tails.iter().map(|tail| tail.figure()).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
