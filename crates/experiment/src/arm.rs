//! Which settings are on.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

/// A state of the settings that blocks are measured in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// These are on, by their places in [`crate::Design::settings`]; the others say what they said. Where any is on, the
    /// others are rewritten to that, as in [`Self::Control`].
    With(BTreeSet<usize>),
    /// All are rewritten to what they say already.
    Control,
}

impl Arm {
    /// All settings as they were.
    pub fn off() -> Self {
        Self::With(BTreeSet::new())
    }

    /// One setting is on.
    pub fn only(setting: usize) -> Self {
        Self::With(BTreeSet::from([setting]))
    }

    /// All of so many settings are on.
    pub fn all(count: usize) -> Self {
        Self::With((0..count).collect())
    }

    /// Whether that setting is on.
    pub fn has(&self, setting: usize) -> bool {
        matches!(self, Self::With(settings) if settings.contains(&setting))
    }
}

/// The name that records lie under: `off`, `control`, `on-1,3`, settings counted from one.
impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.pad("control"),
            Self::With(settings) if settings.is_empty() => f.pad("off"),
            Self::With(settings) => {
                let numbers: Vec<String> = settings.iter().map(|setting| (setting + 1).to_string()).collect();
                f.pad(&format!("on-{}", numbers.join(",")))
            }
        }
    }
}

impl Serialize for Arm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_named_after_what_is_on() {
        assert_eq!(Arm::off().to_string(), "off");
        assert_eq!(Arm::Control.to_string(), "control");
        assert_eq!(Arm::With([0, 2].into()).to_string(), "on-1,3");
        assert!(Arm::all(2).has(1) && !Arm::only(0).has(1) && !Arm::Control.has(0));
    }
}
