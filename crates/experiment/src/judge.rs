//! What two arms say of each other.

use serde::Serialize;
use statistics::{Comparison, POWER, Paired, Power, Value, confidence_of, rounds_needed};

use crate::{Design, Error, Measure};

/// What a change does to the tail. A smallest effect that matters is given as the ratio of two tails, above one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The tail is shorter, beyond chance.
    Helps,
    /// The tail is longer, beyond chance.
    Harms,
    /// Surely none that matters.
    NoneVisible,
    /// The blocks allow an effect that would matter, and none.
    Undecided,
}

impl Effect {
    /// Of an interval of ratios. An effect counts whatever its size; none is one that lies within `ratio` either way.
    fn of([low, high]: [f64; 2], ratio: f64) -> Self {
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

    /// Of a comparison of which only an effect of `ratio` or more counts, and none is one that surely does not harm so much.
    pub(crate) fn by_ratio(compared: &Comparison, ratio: f64) -> Self {
        let (low, high) = compared.interval;
        match () {
            () if low > 1.0 && compared.ratio >= ratio => Self::Harms,
            () if high < 1.0 && compared.ratio <= ratio.recip() => Self::Helps,
            () if high < ratio => Self::NoneVisible,
            () => Self::Undecided,
        }
    }
}

/// One measure of two arms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// `p99.9`, `exceedances of 7us`, `block maxima`.
    #[serde(serialize_with = "text")]
    pub measure: Measure,
    /// The median of the first arm's blocks: nanoseconds or instructions, or a count of exceedances.
    pub before: f64,
    /// The same of the second arm.
    pub after: f64,
    /// How many times the first arm's figure is in the second arm's, within a round.
    pub ratio: f64,
    /// The interval of ratios that the rounds allow.
    pub interval: [f64; 2],
    /// How sure that is: at least 0.95, more where several settings share the error.
    pub confidence: f64,
    /// How probable a difference at least as clear is where there is none: exact, two-sided, before Holm.
    pub probability: f64,
    /// The ratio above one, or its reciprocal, that as many fresh rounds would find with a probability of 80 %.
    pub detectable: f64,
    /// How many rounds would find the smallest effect that matters with a probability of 80 %; none for more than
    /// `MOST_ROUNDS`.
    pub rounds_for_smallest_effect: Option<u32>,
    /// What it means; none for a measure that does not decide.
    pub effect: Option<Effect>,
}

impl Judged {
    /// Whether the second arm's tail is surely not longer by what matters.
    pub(crate) fn suffices(&self, design: &Design) -> bool {
        self.interval[1] < design.ratio()
    }
}

fn text<S: serde::Serializer>(measure: &Measure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(measure)
}

/// More rounds than this are never asked for.
pub(crate) const MOST_ROUNDS: u32 = 1_000;

/// Two arms by one measure, not yet judged.
pub(crate) struct Pair {
    measure: Measure,
    rounds: Vec<(Value, Value)>,
    paired: Paired,
}

impl Pair {
    /// Of rounds with the figures of both arms.
    pub fn of(measure: Measure, rounds: Vec<(Value, Value)>) -> Result<Self, Error> {
        let paired = Paired::of(&rounds).ok_or_else(too_few)?;
        Ok(Self { measure, rounds, paired })
    }

    /// How probable a difference at least as clear is where there is none.
    pub fn probability(&self) -> f64 {
        self.paired.probability()
    }

    /// What the rounds can tell apart.
    pub fn power(&self, confidence: f64) -> Result<Power, Error> {
        self.paired.power(confidence).ok_or_else(too_few)
    }

    /// Judges at that confidence; `decides` if a verdict is made of it.
    pub fn judged(&self, design: &Design, confidence: f64, decides: bool) -> Result<Judged, Error> {
        let interval = self.paired.interval(confidence).ok_or_else(too_few)?;
        let power = self.power(confidence)?;
        let (first, second): (Vec<Value>, Vec<Value>) = self.rounds.iter().copied().unzip();
        let rounds = self.rounds.len() as u32;
        Ok(Judged {
            measure: self.measure,
            before: self.measure.plain(median(&first)),
            after: self.measure.plain(median(&second)),
            ratio: self.paired.ratio(),
            interval: [interval.low, interval.high],
            confidence: interval.confidence,
            probability: self.probability(),
            detectable: power.detectable(POWER),
            rounds_for_smallest_effect: rounds_for(power, rounds, design.ratio(), POWER, confidence),
            effect: decides.then(|| Effect::of([interval.low, interval.high], design.ratio())),
        })
    }
}

fn too_few() -> Error {
    Error::new("the rounds are too few to compare", "more --blocks")
}

/// How many rounds find an effect of `ratio` with the probability `share`, or exclude it where there is none, if they
/// scatter as `rounds` rounds did. None for more than `MOST_ROUNDS`.
pub(crate) fn rounds_for(power: Power, rounds: u32, ratio: f64, share: f64, confidence: f64) -> Option<u32> {
    /// From so many rounds on the exact confidence is nearly the one that is asked for.
    const MANY: u32 = 20;
    let comparisons = (statistics::ERROR / (1.0 - confidence)).round() as usize;
    let is_enough = |wanted: u32| {
        let exact = if wanted < MANY { confidence_of(wanted, confidence) } else { Some(confidence) };
        let times = f64::from(wanted) / f64::from(rounds);
        exact.is_some_and(|exact| power.chance(ratio, times, exact) >= share)
    };
    let fewest = rounds_needed(comparisons);
    if let Some(few) = (fewest..MANY.max(fewest)).find(|&few| is_enough(few)) {
        return Some(few);
    }
    // The more rounds the better: halve what is left.
    let (mut low, mut high) = (MANY.max(fewest) - 1, MOST_ROUNDS + 1);
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    (high <= MOST_ROUNDS).then_some(high)
}

pub(crate) fn median(values: &[Value]) -> f64 {
    let mut figures: Vec<f64> = values.iter().map(|value| value.figure()).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_that_does_not_matter_is_none_and_a_wide_interval_is_undecided() {
        let effect = |low, high| Effect::of([low, high], 1.2);
        assert_eq!(effect(0.3, 0.9), Effect::Helps);
        assert_eq!(effect(1.1, 9.0), Effect::Harms);
        assert_eq!(effect(0.9, 0.95), Effect::NoneVisible, "shorter, but not by what matters");
        assert_eq!(effect(0.9, 1.1), Effect::NoneVisible);
        assert_eq!(effect(0.5, 1.1), Effect::Undecided);
        assert_eq!(effect(0.9, 1.3), Effect::Undecided);
    }

    #[test]
    fn a_rise_is_one_beyond_the_ratio_and_beyond_the_spread() {
        let effect = |first: [u64; 5], second: [u64; 5]| {
            let compared = statistics::compare(&first.map(Value::exact), &second.map(Value::exact));
            Effect::by_ratio(&compared.unwrap(), 2.0)
        };
        let calm = [100, 101, 102, 103, 104];
        assert_eq!(effect(calm, [300, 310, 320, 330, 340]), Effect::Harms);
        assert_eq!(effect([300, 310, 320, 330, 340], calm), Effect::Helps);
        assert_eq!(effect(calm, [150, 151, 152, 153, 154]), Effect::NoneVisible);
        assert_eq!(effect(calm, [30, 90, 110, 800, 900]), Effect::Undecided);
        // Surely more, but whether that much more is open.
        assert_eq!(effect(calm, [120, 160, 180, 400, 900]), Effect::Undecided);
    }
}
