//! Which changes are made.

use std::collections::BTreeSet;
use std::fmt;

/// Changes by their places in the experiment's list of them.
pub type Changes = BTreeSet<usize>;

/// A set-up that blocks are measured in: what it is compared with, and some of the changes that are looked into made to it.
/// A trial's changes are settings, a bisection's are what makes the good set-up bad, a ladder's are the steps to the next
/// rung.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// These are made. Where any is, settings that are not on are rewritten to what they say already, as in
    /// [`Self::Control`].
    With(Changes),
    /// None is made, and something is done all the same that ought to have no effect: settings are rewritten to what they
    /// say already, guests have a parameter that nobody reads.
    Control,
}

impl Arm {
    /// No change is made.
    pub fn off() -> Self {
        Self::all(0)
    }

    /// One change is made.
    pub fn only(change: usize) -> Self {
        Self::With(BTreeSet::from([change]))
    }

    /// The first `count` changes are made.
    pub fn all(count: usize) -> Self {
        Self::With((0..count).collect())
    }

    /// Whether that change is made.
    pub fn has(&self, change: usize) -> bool {
        matches!(self, Self::With(changes) if changes.contains(&change))
    }

    /// How many changes are made.
    pub fn count(&self) -> usize {
        match self {
            Self::With(changes) => changes.len(),
            Self::Control => 0,
        }
    }
}

/// The name that a trial's records lie under: `off`, `control`, `on-1,3`, settings counted from one.
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
