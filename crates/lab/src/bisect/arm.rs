//! The good set-up with some of the changes made.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

/// Changes by their places in [`super::Subject::changes`].
pub type Changes = BTreeSet<usize>;

/// A set-up that is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// The good one with these changes made; with none it is the good one itself.
    With(Changes),
    /// The good one with a word that nobody reads.
    Control,
}

impl Arm {
    /// The good one.
    pub fn good() -> Self {
        Self::With(Changes::new())
    }
}

/// The name that its records lie under: `good`, `control`, `with-1-3,5`, changes counted from one.
impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.pad("control"),
            Self::With(changes) if changes.is_empty() => f.pad("good"),
            Self::With(changes) => f.pad(&format!("with-{}", ranges(changes))),
        }
    }
}

impl Serialize for Arm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// `1-3,5`.
fn ranges(changes: &Changes) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &change in changes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == change => *last = change,
            _ => runs.push((change, change)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { (first + 1).to_string() } else { format!("{}-{}", first + 1, last + 1) }
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_named_after_its_changes() {
        assert_eq!(Arm::good().to_string(), "good");
        assert_eq!(Arm::Control.to_string(), "control");
        assert_eq!(Arm::With([0, 1, 2, 4, 6, 7].into()).to_string(), "with-1-3,5,7-8");
    }
}
