//! One comparison of a bisection.

use serde::{Serialize, Serializer};

use super::name;
use crate::{Arm, Effect};

/// Two arms that were compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What was measured.
    #[serde(serialize_with = "named")]
    pub arm: Arm,
    /// What it was compared with.
    #[serde(serialize_with = "named")]
    pub against: Arm,
    /// Whether by guests that the search had not seen.
    pub fresh: bool,
    /// The median of the guests' tails; none where it could not be measured.
    pub tail: Option<f64>,
    /// The same of the arm that it was compared with.
    pub before: Option<f64>,
    /// How many times the other arm's tail that is, with its interval.
    pub ratio: Option<(f64, [f64; 2])>,
    /// How sure the interval is: 0.95 or more.
    pub confidence: Option<f64>,
    /// What that means for an effect of the bisection's ratio; none where an arm could not be measured.
    #[serde(serialize_with = "reading")]
    pub reading: Option<Effect>,
    /// Why it could not be measured.
    pub failure: Option<String>,
}

impl Step {
    /// Whether it compares these.
    pub(super) fn is_of(&self, arm: &Arm, against: &Arm, fresh: bool) -> bool {
        self.arm == *arm && self.against == *against && self.fresh == fresh
    }
}

fn named<S: Serializer>(arm: &Arm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&name(arm))
}

fn reading<S: Serializer>(reading: &Option<Effect>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match reading {
        Some(Effect::Harms) => "rose",
        Some(Effect::Helps) => "fell",
        Some(Effect::NoneVisible) => "stayed",
        Some(Effect::Undecided) => "unclear",
        None => "failed",
    })
}
