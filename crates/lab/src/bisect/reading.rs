//! What a comparison means beyond a ratio.

use serde::Serialize;
use statistics::{Comparison, Verdict};

use super::Arm;

/// Whether a tail moved beyond the ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// Up by the ratio or more, and beyond the spread within the arms.
    Rose,
    /// Down by the ratio or more, and beyond the spread within the arms.
    Fell,
    /// Surely not up by the ratio.
    Stayed,
    /// The spread within the arms hides whether it rose.
    Unclear,
    /// The arm could not be measured.
    Failed,
}

impl Reading {
    /// Of a comparison, for a ratio above one.
    pub fn of(compared: &Comparison, ratio: f64) -> Self {
        match compared.verdict {
            Verdict::Higher if compared.ratio >= ratio => Self::Rose,
            Verdict::Lower if compared.ratio <= ratio.recip() => Self::Fell,
            _ if compared.interval.1 < ratio => Self::Stayed,
            _ => Self::Unclear,
        }
    }
}

/// One question that was asked, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What was measured.
    pub arm: Arm,
    /// What it was compared with.
    pub against: Arm,
    /// Whether by guests that the search had not seen.
    pub fresh: bool,
    /// The median of the guests' tails; none where it could not be measured.
    pub tail: Option<f64>,
    /// How many times the other arm's tail that is, with its interval.
    pub ratio: Option<(f64, [f64; 2])>,
    /// What that means.
    pub reading: Reading,
    /// Why it could not be measured.
    pub failure: Option<String>,
}

impl Step {
    /// Whether it answers that question.
    pub(super) fn is_of(&self, arm: &Arm, against: &Arm, fresh: bool) -> bool {
        self.arm == *arm && self.against == *against && self.fresh == fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::{Value, compare};

    fn reading(first: [u64; 5], second: [u64; 5]) -> Reading {
        Reading::of(&compare(&first.map(Value::exact), &second.map(Value::exact)).unwrap(), 2.0)
    }

    #[test]
    fn a_rise_is_one_beyond_the_ratio_and_beyond_the_spread() {
        let calm = [100, 101, 102, 103, 104];
        assert_eq!(reading(calm, [300, 310, 320, 330, 340]), Reading::Rose);
        assert_eq!(reading([300, 310, 320, 330, 340], calm), Reading::Fell);
        assert_eq!(reading(calm, [150, 151, 152, 153, 154]), Reading::Stayed);
        assert_eq!(reading(calm, [30, 90, 110, 800, 900]), Reading::Unclear);
        // Surely more, but whether that much more is open.
        assert_eq!(reading(calm, [120, 160, 180, 400, 900]), Reading::Unclear);
    }
}
