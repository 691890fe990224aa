//! From all on to the smallest set that suffices.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::single::Measured;
use crate::{Arm, Bench, Design, Effect, Error, Judged, rounds};

/// The version of the form of [`Found`] in JSON. Fields may be added without raising it.
const SCHEMA_VERSION: u32 = 1;

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Found {
    /// The form's version.
    pub schema_version: u32,
    /// In a word.
    pub outcome: Outcome,
    /// The control arm against all off.
    pub control: Judged,
    /// All settings on against all off.
    pub all: Judged,
    /// What was left out, one after the other.
    pub steps: Vec<Step>,
    /// What is left, each with its price.
    pub kept: Vec<Kept>,
    /// What is left against all off, in fresh blocks.
    pub against_off: Option<Judged>,
    /// What is left against all on, in fresh blocks.
    pub against_all: Option<Judged>,
}

/// A setting that was left out of what was left then.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// The setting.
    pub setting: String,
    /// Without it against all on.
    pub without: Judged,
    /// Whether the tail does not need it.
    pub dropped: bool,
}

/// A setting of the smallest set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kept {
    /// The setting.
    pub setting: String,
    /// What dropping it costs: the tail without it against that of the whole set, in fresh blocks.
    pub price: Judged,
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
    /// The control arm differs.
    Control,
    /// The spread hides whether all together help.
    Spread,
    /// In fresh blocks what is left does not do what all do.
    Unconfirmed,
}

/// Begins with all on, leaves out one setting after the other, and goes on without those that the tail does not need: it is
/// then surely not longer by the smallest effect than with all. What is left is measured anew. None where the bench was told
/// to stop.
///
/// # Errors
/// A design that makes no sense, blocks that could not be measured.
pub fn search(design: &Design, bench: &mut dyn Bench) -> Result<Option<Found>, Error> {
    design.check()?;
    let all = Arm::all(design.settings.len());
    let first = rounds(design, 1, 0, &[Arm::off(), Arm::Control, all.clone()]);
    let Some(measured) = Measured::by(bench, first)? else { return Ok(None) };
    let control = measured.compared(design, &Arm::off(), &Arm::Control)?;
    let together = measured.compared(design, &Arm::off(), &all)?;
    let outcome = match (control.effect.is_difference(), together.effect) {
        (true, _) => Outcome::Inconclusive(Doubt::Control),
        (_, Effect::Undecided) => Outcome::Inconclusive(Doubt::Spread),
        (_, Effect::NoneVisible | Effect::Harms) => Outcome::NothingHelps,
        (_, Effect::Helps) => Outcome::Sufficient,
    };
    let mut found = Found {
        schema_version: SCHEMA_VERSION,
        outcome,
        control,
        all: together,
        steps: Vec::new(),
        kept: Vec::new(),
        against_off: None,
        against_all: None,
    };
    if outcome != Outcome::Sufficient {
        return Ok(Some(found));
    }
    let Some((left, phase)) = drop_what_is_not_needed(design, bench, &mut found.steps)? else {
        return Ok(None);
    };
    Ok(confirm(design, bench, &mut found, &left, phase)?.then_some(found))
}

type Settings = BTreeSet<usize>;

/// What is left, and the number of the next phase.
fn drop_what_is_not_needed(
    design: &Design,
    bench: &mut dyn Bench,
    steps: &mut Vec<Step>,
) -> Result<Option<(Settings, u32)>, Error> {
    let all = Arm::all(design.settings.len());
    let mut left: Settings = (0..design.settings.len()).collect();
    let mut phase = 2;
    for setting in 0..design.settings.len() {
        // Without the last one all are off, which is known to be worse.
        if left.len() == 1 {
            break;
        }
        let without = without(&left, setting);
        let arm = Arm::With(without.clone());
        let blocks = rounds(design, phase, 0, &[all.clone(), arm.clone()]);
        let Some(measured) = Measured::by(bench, blocks)? else { return Ok(None) };
        let judged = measured.compared(design, &all, &arm)?;
        let dropped = suffices(design, &judged);
        if dropped {
            left = without;
        }
        steps.push(Step { setting: design.settings[setting].clone(), without: judged, dropped });
        phase += 1;
    }
    Ok(Some((left, phase)))
}

/// Measures what is left, it without each of its settings, all on and all off once more, with seeds of their own: what was
/// chosen because it looked well is not to be judged by the same blocks. False where the bench was told to stop.
fn confirm(
    design: &Design,
    bench: &mut dyn Bench,
    found: &mut Found,
    left: &Settings,
    phase: u32,
) -> Result<bool, Error> {
    let (set, all) = (Arm::With(left.clone()), Arm::all(design.settings.len()));
    let each = left.iter().map(|&setting| Arm::With(without(left, setting)));
    let arms: BTreeSet<Arm> = [Arm::off(), set.clone(), all.clone()].into_iter().chain(each).collect();
    let blocks = rounds(design, phase, design.blocks, &arms.into_iter().collect::<Vec<_>>());
    let Some(measured) = Measured::by(bench, blocks)? else { return Ok(false) };
    let against_off = measured.compared(design, &Arm::off(), &set)?;
    let against_all = measured.compared(design, &all, &set)?;
    for &setting in left {
        let price = measured.compared(design, &set, &Arm::With(without(left, setting)))?;
        found.kept.push(Kept { setting: design.settings[setting].clone(), price });
    }
    if against_off.effect != Effect::Helps || !suffices(design, &against_all) {
        found.outcome = Outcome::Inconclusive(Doubt::Unconfirmed);
    }
    (found.against_off, found.against_all) = (Some(against_off), Some(against_all));
    Ok(true)
}

fn without(settings: &Settings, setting: usize) -> Settings {
    settings.iter().copied().filter(|&other| other != setting).collect()
}

/// Whether the tail is surely not longer by what matters.
fn suffices(design: &Design, judged: &Judged) -> bool {
    judged.interval[1] < design.ratio()
}
