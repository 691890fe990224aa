//! From all on to a set that suffices.

use std::collections::BTreeSet;

use serde::Serialize;
use statistics::{confidence_of, rounds_needed};

use crate::bench::{Halt, ended};
use crate::compared::{lacking, without};
use crate::judge::rounds_for;
use crate::single::{CONFIDENCE, Measured};
use crate::{Arm, Bench, Changes, Design, Effect, Error, Judged, rounds};

/// The version of the form of [`Found`] in JSON. Fields may be added without raising it.
const SCHEMA_VERSION: u32 = 3;
/// The probability with which a step is to leave out a setting that does nothing.
const CHANCE: f64 = 0.9;

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The form's version.
    pub schema_version: u32,
    /// In a word.
    pub outcome: Outcome,
    /// Control against all off: what writing by itself does.
    pub control: Judged,
    /// All settings on against control.
    pub all: Judged,
    /// What the later phases take; none where there are none.
    pub planned: Option<Planned>,
    /// What was left out, one after the other.
    pub steps: Vec<Step>,
    /// What is left, each with its price.
    pub kept: Vec<Kept>,
    /// What is left against control, in fresh blocks.
    pub against_control: Option<Judged>,
    /// What is left against all on, in fresh blocks.
    pub against_all: Option<Judged>,
}

/// What the later phases take, by the spread of the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// Blocks an arm with which a step leaves out a setting that does nothing with a probability of 90 %; none where that
    /// is out of reach.
    pub enough: Option<u32>,
    /// Blocks an arm that will be measured.
    pub rounds: u32,
    /// The probability that these leave out a setting that does nothing.
    pub chance: f64,
    /// The most blocks that are still to be measured.
    pub blocks: u32,
    /// Whether it is gone on with.
    pub goes_on: bool,
}

/// A setting that was left out of what was left then.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The setting.
    pub setting: String,
    /// Without it against all on.
    pub without: Judged,
    /// Whether the tail does not need it.
    pub dropped: bool,
}

/// A setting of the set that is left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// The setting.
    pub setting: String,
    /// What dropping it costs: the tail without it against that of the whole set, in fresh blocks.
    pub price: Judged,
    /// What that shows.
    pub need: Need,
}

/// Whether a setting that is left is needed, by fresh blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Without it the tail is longer.
    Shown,
    /// The blocks do not show whether it is.
    NotShown,
    /// Without it alone the tail is surely not longer by what matters.
    Spare,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// What is left does what all do together, in fresh blocks too.
    Sufficient,
    /// All together do not help.
    NothingHelps,
    /// No answer.
    Inconclusive(Doubt),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// The spread hides whether all together help.
    Spread,
    /// Telling which are needed would take more blocks than a search takes by itself.
    TooManyBlocks,
    /// In fresh blocks what is left does not do what all do.
    Unconfirmed,
}

/// Begins with all on, leaves out one setting after the other, and goes on without those that the tail does not need: it is
/// then surely not longer by the smallest effect than with all. What is left is measured anew. None where the bench is
/// stopped.
///
/// # Errors
/// A design that makes no sense, blocks that could not be measured.
pub fn search(design: &Design, bench: &mut dyn Bench) -> Result<Option<Found>, Error> {
    ended(found(design, bench))
}

fn found(design: &Design, bench: &mut dyn Bench) -> Result<Found, Halt> {
    design.check(1)?;
    let all = Arm::all(design.settings.len());
    let first = rounds(design, 1, 0, design.blocks, &[Arm::off(), Arm::Control, all.clone()]);
    let measured = Measured::by(bench, first)?;
    let control = measured.compared(design, &Arm::off(), &Arm::Control, CONFIDENCE)?;
    let together = measured.compared(design, &Arm::Control, &all, CONFIDENCE)?;
    let outcome = match together.effect {
        Some(Effect::Undecided) | None => Outcome::Inconclusive(Doubt::Spread),
        Some(Effect::NoneVisible | Effect::Harms) => Outcome::NothingHelps,
        Some(Effect::Helps) => Outcome::Sufficient,
    };
    let mut found = Found {
        schema_version: SCHEMA_VERSION,
        outcome,
        control,
        all: together,
        planned: None,
        steps: Vec::new(),
        kept: Vec::new(),
        against_control: None,
        against_all: None,
    };
    if outcome != Outcome::Sufficient {
        return Ok(found);
    }
    let planned = *found.planned.insert(plan(design, &measured)?);
    bench.planned(&planned);
    if !planned.goes_on {
        found.outcome = Outcome::Inconclusive(Doubt::TooManyBlocks);
        return Ok(found);
    }
    let mut later = Later { design, bench, rounds: planned.rounds, phase: 2 };
    let left = later.drop_what_is_not_needed(&mut found.steps)?;
    later.confirm(&mut found, &left)?;
    Ok(found)
}

/// What the later phases take, by the spread within the rounds of the first.
fn plan(design: &Design, measured: &Measured) -> Result<Planned, Error> {
    let measure = measured.measures(design)?[0];
    let all = Arm::all(design.settings.len());
    let power = |before: &Arm, after: &Arm| measured.pair(measure, before, after)?.power(CONFIDENCE);
    let power = power(&Arm::off(), &Arm::Control)?.pooled(power(&Arm::Control, &all)?);
    let enough = rounds_for(power, design.blocks, design.ratio(), CHANCE, CONFIDENCE);
    let (rounds, goes_on) = match (design.most_blocks, enough) {
        (None, _) => (design.blocks, true),
        (Some(most), Some(enough)) if enough <= most => (enough.max(design.blocks), true),
        (Some(most), _) => (most, false),
    };
    let times = f64::from(rounds) / f64::from(design.blocks);
    let confidence = confidence_of(rounds, CONFIDENCE).unwrap_or(1.0);
    let settings = design.settings.len() as u32;
    let steps = if settings == 1 { 0 } else { 2 * settings * rounds };
    let confirming = (3 + settings) * rounds.max(rounds_needed(settings as usize));
    Ok(Planned {
        enough,
        rounds,
        chance: power.chance(design.ratio(), times, confidence),
        blocks: steps + confirming,
        goes_on,
    })
}

/// The phases after the first.
struct Later<'a> {
    design: &'a Design,
    bench: &'a mut dyn Bench,
    rounds: u32,
    phase: u32,
}

impl Later<'_> {
    /// What is left.
    fn drop_what_is_not_needed(&mut self, steps: &mut Vec<Step>) -> Result<Changes, Halt> {
        let design = self.design;
        let all = Arm::all(design.settings.len());
        let mut left: Changes = (0..design.settings.len()).collect();
        for setting in 0..design.settings.len() {
            // Without the last one all are off, which is known to be worse.
            if left.len() == 1 {
                break;
            }
            let without = without(&left, setting);
            let arm = Arm::With(without.clone());
            let blocks = rounds(design, self.phase, 0, self.rounds, &[all.clone(), arm.clone()]);
            let measured = Measured::by(self.bench, blocks)?;
            let judged = measured.compared(design, &all, &arm, CONFIDENCE)?;
            let dropped = judged.suffices(design);
            if dropped {
                left = without;
            }
            steps.push(Step { setting: design.settings[setting].clone(), without: judged, dropped });
            self.phase += 1;
        }
        Ok(left)
    }

    /// Measures what is left, it without each of its settings, all on and control once more, with seeds of their own: what
    /// was chosen because it looked well is not to be judged by the same blocks.
    fn confirm(&mut self, found: &mut Found, left: &Changes) -> Result<(), Halt> {
        let design = self.design;
        let (set, all) = (Arm::With(left.clone()), Arm::all(design.settings.len()));
        let each: Vec<Arm> = left.iter().map(|&setting| lacking(left, setting)).collect();
        let arms: BTreeSet<Arm> =
            [Arm::Control, set.clone(), all.clone()].into_iter().chain(each.clone()).collect();
        let count = self.rounds.max(rounds_needed(left.len()));
        let arms: Vec<Arm> = arms.into_iter().collect();
        let blocks = rounds(design, self.phase, self.rounds.max(design.blocks), count, &arms);
        let measured = Measured::by(self.bench, blocks)?;
        let against_control = measured.compared(design, &Arm::Control, &set, CONFIDENCE)?;
        let against_all = measured.compared(design, &all, &set, CONFIDENCE)?;
        let measure = measured.measures(design)?[0];
        let confidences = measured.confidences(measure, each.iter().map(|arm| (&set, arm)))?;
        for ((&setting, arm), confidence) in left.iter().zip(&each).zip(confidences) {
            let price = measured.compared(design, &set, arm, confidence)?;
            let need = need(design, &price);
            found.kept.push(Kept { setting: design.settings[setting].clone(), price, need });
        }
        if against_control.effect != Some(Effect::Helps) || !against_all.suffices(design) {
            found.outcome = Outcome::Inconclusive(Doubt::Unconfirmed);
        }
        (found.against_control, found.against_all) = (Some(against_control), Some(against_all));
        Ok(())
    }
}

fn need(design: &Design, price: &Judged) -> Need {
    match price.effect {
        _ if price.suffices(design) => Need::Spare,
        Some(Effect::Harms) => Need::Shown,
        _ => Need::NotShown,
    }
}
