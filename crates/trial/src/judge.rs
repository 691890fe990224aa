//! What two arms say of each other.

use serde::Serialize;
use statistics::{Comparison, Value, compare};

use crate::{Design, Error, Figures, Measure};

/// What a change does to the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The tail is shorter, beyond the spread within the arms.
    Helps,
    /// The tail is longer, beyond the spread within the arms.
    Harms,
    /// The interval lies within the smallest effect of none.
    NoneVisible,
    /// The blocks allow an effect that would matter, and none.
    Undecided,
}

impl Effect {
    fn of(compared: &Comparison, ratio: f64) -> Self {
        let (low, high) = compared.interval;
        match () {
            () if low > ratio.recip() && high < ratio => Self::NoneVisible,
            () if high < 1.0 => Self::Helps,
            () if low > 1.0 => Self::Harms,
            () => Self::Undecided,
        }
    }

    /// Whether the arms differ.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Helps | Self::Harms)
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Helps => "helps",
            Self::Harms => "harms",
            Self::NoneVisible => "no effect visible",
            Self::Undecided => "undecided",
        })
    }
}

/// One measure of two arms.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judged {
    /// `p99.9`, `exceedances of 7us`, `block maxima`.
    #[serde(serialize_with = "text")]
    pub measure: Measure,
    /// The median of the first arm's blocks: nanoseconds or instructions, or a count of exceedances.
    pub before: f64,
    /// The same of the second arm.
    pub after: f64,
    /// How many times the first arm's figure is in the second arm's.
    pub ratio: f64,
    /// The interval of ratios that the blocks allow.
    pub interval: [f64; 2],
    /// How sure that is: at least 0.95.
    pub confidence: f64,
    /// The smallest effect that these blocks would surely have shown: 0.1 is 10 %.
    pub smallest_visible: f64,
    /// What it means.
    pub effect: Effect,
}

fn text<S: serde::Serializer>(measure: &Measure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(measure)
}

/// Sets the blocks of the arm `after` against those of `before`, by `measure`.
///
/// # Errors
/// Too few blocks, or blocks with too few samples.
pub fn judge(
    design: &Design,
    measure: Measure,
    before: &[&Figures],
    after: &[&Figures],
) -> Result<Judged, Error> {
    let (first, second) = (values(measure, before)?, values(measure, after)?);
    let compared =
        compare(&first, &second).map_err(|error| Error::new(error.to_string(), "more --blocks"))?;
    Ok(Judged {
        measure,
        before: measure.plain(median(&first)),
        after: measure.plain(median(&second)),
        ratio: compared.ratio,
        interval: compared.interval.into(),
        confidence: compared.confidence,
        smallest_visible: compared.smallest - 1.0,
        effect: Effect::of(&compared, design.ratio()),
    })
}

fn values(measure: Measure, blocks: &[&Figures]) -> Result<Vec<Value>, Error> {
    let value = |block: &&Figures| {
        measure.of(block).ok_or_else(|| {
            Error::new(format!("a block has too few samples for {measure}"), "measure longer: --duration")
        })
    };
    blocks.iter().map(value).collect()
}

fn median(values: &[Value]) -> f64 {
    let mut figures: Vec<f64> = values.iter().map(|value| value.figure()).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(interval: (f64, f64)) -> Effect {
        let verdict = statistics::Verdict::NoDifference;
        Effect::of(&Comparison { ratio: 1.0, interval, confidence: 0.96, verdict, smallest: 1.1 }, 1.2)
    }

    #[test]
    fn an_effect_that_does_not_matter_is_none_and_a_wide_interval_is_undecided() {
        assert_eq!(effect((0.3, 0.9)), Effect::Helps);
        assert_eq!(effect((1.1, 9.0)), Effect::Harms);
        assert_eq!(effect((0.9, 0.95)), Effect::NoneVisible, "shorter, but not by what matters");
        assert_eq!(effect((0.9, 1.1)), Effect::NoneVisible);
        assert_eq!(effect((0.5, 1.1)), Effect::Undecided);
        assert_eq!(effect((0.9, 1.3)), Effect::Undecided);
    }
}
