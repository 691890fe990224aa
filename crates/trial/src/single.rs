//! Each setting by itself, against all off.

use serde::Serialize;
use units::Nanos;

use crate::{Arm, Bench, Block, Design, Effect, Error, Figures, Judged, Measure, judge, rounds};

/// The version of the form of [`Answer`] in JSON. Fields may be added without raising it.
const SCHEMA_VERSION: u32 = 1;

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    /// The form's version.
    pub schema_version: u32,
    /// From which latency on activations count as exceedances.
    pub threshold: Nanos,
    /// The control arm against all off: by the measure that decides, and the others.
    pub control: Vec<Judged>,
    /// One for each setting, in the design's order.
    pub settings: Vec<Tried>,
}

/// One setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tried {
    /// As it was asked for.
    pub setting: String,
    /// What the measure that decides says; none where the control arm differs, so that nothing is concluded.
    pub verdict: Option<Effect>,
    /// On against off: by the measure that decides, and the others.
    pub measures: Vec<Judged>,
}

/// Measures all off, the control arm and each setting alone, and judges. None where the bench was told to stop.
///
/// # Errors
/// A design that makes no sense, blocks that could not be measured.
pub fn trial(design: &Design, bench: &mut dyn Bench) -> Result<Option<Answer>, Error> {
    design.check()?;
    let settings = 0..design.settings.len();
    let arms: Vec<Arm> =
        [Arm::off(), Arm::Control].into_iter().chain(settings.clone().map(Arm::only)).collect();
    let Some(measured) = Measured::by(bench, rounds(design, 1, 0, &arms))? else { return Ok(None) };
    let measures = measured.measures(design)?;
    let control = measured.all(design, &measures, &Arm::off(), &Arm::Control)?;
    let differs = control.first().is_some_and(|judged| judged.effect.is_difference());
    let tried = |(place, setting): (usize, &String)| {
        let measures = measured.all(design, &measures, &Arm::off(), &Arm::only(place))?;
        let verdict = measures.first().map(|judged| judged.effect).filter(|_| !differs);
        Ok(Tried { setting: setting.clone(), verdict, measures })
    };
    let settings = design.settings.iter().enumerate().map(tried).collect::<Result<_, Error>>()?;
    let threshold = measures.iter().find_map(|measure| match measure {
        Measure::Tail(statistics::Tail::Exceedances(threshold)) => Some(*threshold),
        _ => None,
    });
    Ok(Some(Answer {
        schema_version: SCHEMA_VERSION,
        threshold: threshold.unwrap_or_default(),
        control,
        settings,
    }))
}

/// The blocks of a phase with their figures.
pub(crate) struct Measured {
    blocks: Vec<(Block, Figures)>,
}

impl Measured {
    /// Has them measured; none where the bench was told to stop.
    pub fn by(bench: &mut dyn Bench, blocks: Vec<Block>) -> Result<Option<Self>, Error> {
        let Some(figures) = bench.measure(&blocks)? else { return Ok(None) };
        let counts = figures.iter().map(|figures| figures.latencies.summary().count);
        if let (Some(least), Some(most)) = (counts.clone().min(), counts.max()) {
            // A CPU can be due once more or less within a block, by its phase.
            if figures.len() != blocks.len() || most - least > 1 + most / 100 {
                let message = format!("the blocks had {least} to {most} activations: not equally exposed");
                return Err(Error::new(message, "measure CPUs that stay online, for whole periods"));
            }
        }
        Ok(Some(Self { blocks: blocks.into_iter().zip(figures).collect() }))
    }

    /// The measures of the design for these blocks.
    pub fn measures(&self, design: &Design) -> Result<Vec<Measure>, Error> {
        design.measures(&self.blocks.iter().map(|(_, figures)| figures).collect::<Vec<_>>())
    }

    /// `after` against `before` by each of `measures`.
    pub fn all(
        &self,
        design: &Design,
        measures: &[Measure],
        before: &Arm,
        after: &Arm,
    ) -> Result<Vec<Judged>, Error> {
        measures.iter().map(|measure| judge(design, *measure, &self.of(before), &self.of(after))).collect()
    }

    /// `after` against `before` by the measure that decides.
    pub fn compared(&self, design: &Design, before: &Arm, after: &Arm) -> Result<Judged, Error> {
        let measures = self.measures(design)?;
        judge(design, measures[0], &self.of(before), &self.of(after))
    }

    fn of(&self, arm: &Arm) -> Vec<&Figures> {
        self.blocks.iter().filter(|(block, _)| block.arm == *arm).map(|(_, figures)| figures).collect()
    }
}
