//! Each setting by itself, against control.

use serde::Serialize;
use statistics::{ERROR, holm};
use units::Nanos;

use crate::bench::{Halt, ended, parameter};
use crate::judge::Pair;
use crate::{Arm, Bench, Block, Design, Effect, Error, Figures, Judged, Measure, rounds};

/// The version of the form of [`Answer`] in JSON. Fields may be added without raising it.
const SCHEMA_VERSION: u32 = 3;

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The form's version.
    pub schema_version: u32,
    /// From which latency on activations count as exceedances.
    pub threshold: Nanos,
    /// Control against all off: what writing by itself does. By the measure that decides, and the others.
    pub control: Vec<Judged>,
    /// One for each setting, in the design's order.
    pub settings: Vec<Tried>,
}

/// One setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// As it was asked for.
    pub setting: String,
    /// What the measure that decides says.
    pub verdict: Effect,
    /// Why the blocks with the setting say nothing of it: the kernel that measured them did not read it, or refused it.
    pub not_read: Option<String>,
    /// On against control: by the measure that decides, at the confidence of its step of Holm's, and the others.
    pub measures: Vec<Judged>,
}

/// The confidence of a comparison that stands alone.
pub(crate) const CONFIDENCE: f64 = 1.0 - ERROR;

/// Measures all off, the control arm and each setting alone, and judges. None where the bench is stopped.
///
/// # Errors
/// A design that makes no sense, blocks that could not be measured.
pub fn trial(design: &Design, bench: &mut dyn Bench) -> Result<Option<Answer>, Error> {
    ended(answer(design, bench))
}

fn answer(design: &Design, bench: &mut dyn Bench) -> Result<Answer, Halt> {
    design.check(design.settings.len())?;
    let settings: Vec<Arm> = (0..design.settings.len()).map(Arm::only).collect();
    let arms: Vec<Arm> = [Arm::off(), Arm::Control].into_iter().chain(settings.clone()).collect();
    let measured = Measured::by(bench, rounds(design, 1, 0, design.blocks, &arms))?;
    let parameters = bench.parameters();
    let measures = measured.measures(design)?;
    let control = measured.all(design, &measures, &Arm::off(), &Arm::Control, CONFIDENCE)?;
    let decisive = measured.confidences(measures[0], settings.iter().map(|arm| (&Arm::Control, arm)))?;
    let tried = |((setting, arm), confidence): ((&String, &Arm), f64)| {
        let measures = measured.all(design, &measures, &Arm::Control, arm, confidence)?;
        let effect = measures.first().and_then(|judged| judged.effect);
        let not_read = parameter(&parameters, setting).filter(|found| found.answer.is_without_effect());
        let not_read = not_read.map(|found| format!("{}: {}", found.answer, found.evidence));
        let verdict = effect.filter(|_| not_read.is_none()).unwrap_or(Effect::Undecided);
        Ok(Tried { setting: setting.clone(), verdict, not_read, measures })
    };
    let settings = design.settings.iter().zip(&settings).zip(decisive);
    let settings = settings.map(tried).collect::<Result<_, Error>>()?;
    let threshold = measures.iter().find_map(|measure| match measure {
        Measure::Tail(statistics::Tail::Exceedances(threshold)) => Some(*threshold),
        _ => None,
    });
    let threshold = threshold.unwrap_or_default();
    Ok(Answer { schema_version: SCHEMA_VERSION, threshold, control, settings })
}

/// The blocks of a phase with their figures.
pub(crate) struct Measured {
    blocks: Vec<(Block, Figures)>,
}

impl Measured {
    /// Has them measured.
    pub fn by(bench: &mut dyn Bench, blocks: Vec<Block>) -> Result<Self, Halt> {
        let figures = bench.measure(&blocks)?.ok_or(Halt::Stopped)?;
        let due = |figures: &Figures| figures.latencies.summary().count.saturating_add(figures.set_apart);
        let counts = figures.iter().map(due);
        if let (Some(least), Some(most)) = (counts.clone().min(), counts.max()) {
            // A CPU can be due once more or less within a block, by its phase.
            if figures.len() != blocks.len() || most - least > 1 + most / 100 {
                let message = format!("the blocks had {least} to {most} activations: not equally exposed");
                let hint = "measure CPUs that stay online, for whole periods";
                return Err(Error::new(message, hint).into());
            }
        }
        Ok(Self { blocks: blocks.into_iter().zip(figures).collect() })
    }

    /// The measures of the design for these blocks.
    pub fn measures(&self, design: &Design) -> Result<Vec<Measure>, Error> {
        design.measures(&self.blocks.iter().map(|(_, figures)| figures).collect::<Vec<_>>())
    }

    /// `after` against `before` by each of `measures`: by the first at `confidence`, which makes the verdict.
    fn all(
        &self,
        design: &Design,
        measures: &[Measure],
        before: &Arm,
        after: &Arm,
        confidence: f64,
    ) -> Result<Vec<Judged>, Error> {
        let judged = |(place, measure): (usize, &Measure)| {
            let decides = place == 0;
            let confidence = if decides { confidence } else { CONFIDENCE };
            self.pair(*measure, before, after)?.judged(design, confidence, decides)
        };
        measures.iter().enumerate().map(judged).collect()
    }

    /// At which confidence each of several comparisons is judged, so that they share one error.
    pub fn confidences<'a>(
        &self,
        measure: Measure,
        arms: impl Iterator<Item = (&'a Arm, &'a Arm)>,
    ) -> Result<Vec<f64>, Error> {
        let probability = |(before, after)| Ok(self.pair(measure, before, after)?.probability());
        Ok(holm(&arms.map(probability).collect::<Result<Vec<_>, Error>>()?))
    }

    /// `after` against `before` by the measure that decides.
    pub fn compared(
        &self,
        design: &Design,
        before: &Arm,
        after: &Arm,
        confidence: f64,
    ) -> Result<Judged, Error> {
        self.pair(self.measures(design)?[0], before, after)?.judged(design, confidence, true)
    }

    /// The figures of two arms, round by round.
    pub fn pair(&self, measure: Measure, before: &Arm, after: &Arm) -> Result<Pair, Error> {
        let (before, after) = (self.of(measure, before)?, self.of(measure, after)?);
        let other = |round| after.iter().find(|(other, _)| *other == round).map(|(_, value)| *value);
        let rounds = before.iter().filter_map(|(round, value)| Some((*value, other(*round)?)));
        Pair::of(measure, rounds.collect())
    }

    fn of(&self, measure: Measure, arm: &Arm) -> Result<Vec<(u32, statistics::Value)>, Error> {
        let blocks = self.blocks.iter().filter(|(block, _)| block.arm == *arm);
        let value = |(block, figures): &(Block, Figures)| {
            let value = measure.of(figures).ok_or_else(|| {
                let message = format!("a block has too few samples for {measure}");
                Error::new(message, "measure longer: --duration")
            })?;
            Ok((block.round, value))
        };
        blocks.map(value).collect()
    }
}
