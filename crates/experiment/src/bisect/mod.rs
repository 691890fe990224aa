//! Bisection: which single change between a good and a bad set-up moved the tail.
//!
//! An [`Arm`] is the good set-up with some of the changes made, measured by several guests with different seeds. An arm is
//! compared with the good one by `statistics::compare`; [`crate::Effect`] says what that means beyond the asked ratio.
//! [`halving`] finds which changes it takes, [`judge`] confirms the answer both ways by fresh guests. A control arm, with a
//! parameter that nobody reads, shows what a difference by mere chance looks like.
//!
//! What it cannot see: changes that cancel each other, and changes that each move the tail by less than the ratio.

mod halving;
mod judge;
pub(crate) mod step;

use statistics::Tail;

use crate::bench::ended;
use crate::{Arm, Bench, Changes, Error};

pub use judge::{Answer, Doubt, Outcome};
pub use step::Step;

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Bisection {
    /// For each change its kernel parameters, those of the good and of the bad set-up; none where it is of another sort.
    pub changes: Vec<Vec<String>>,
    /// Whether a change can only be made after those before it.
    pub is_ordered: bool,
    /// By which factor a culprit moves the tail at least.
    pub ratio: f64,
    /// How many guests each arm has in the search.
    pub seeds: u32,
    /// The figure that stands for the tail.
    pub tail: Tail,
}

/// Finds the culprits; none where the bench is stopped.
///
/// # Errors
/// Where the good, the bad or the control arm cannot be measured.
pub fn bisect(bisection: &Bisection, bench: &mut dyn Bench) -> Result<Option<Answer>, Error> {
    ended(judge::Judge::of(bisection, bench).answer())
}

/// The name that an arm's records lie under: `good`, `control`, `with-1-3,5`, changes counted from one.
pub fn name(arm: &Arm) -> String {
    match arm {
        Arm::Control => "control".to_owned(),
        Arm::With(changes) if changes.is_empty() => "good".to_owned(),
        Arm::With(changes) => format!("with-{}", ranges(changes)),
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
        assert_eq!(name(&Arm::off()), "good");
        assert_eq!(name(&Arm::Control), "control");
        assert_eq!(name(&Arm::With([0, 1, 2, 4, 6, 7].into())), "with-1-3,5,7-8");
    }
}
