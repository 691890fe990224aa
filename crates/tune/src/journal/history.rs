//! What the lines of a journal come to.

use std::collections::BTreeSet;

use super::line::{Begin, Line, Outcome, Read};
use crate::plan::Relied;
use crate::setting::Target;

/// One write, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The rules that ask for it.
    pub rules: Vec<String>,
    /// The setting.
    pub target: Target,
    /// What it said before.
    pub old: String,
    /// What it was to say.
    pub new: String,
    /// What came of it; none where the program ended before it could tell.
    pub outcome: Option<Outcome>,
}

impl Taken {
    /// What it said after we wrote; none where nothing was written.
    pub fn ours(&self) -> Option<&str> {
        match &self.outcome {
            None | Some(Outcome::Exact) => Some(&self.new),
            Some(Outcome::Equal(now) | Outcome::Clamped(now)) => Some(now),
            Some(Outcome::Ignored | Outcome::Refused(_)) => None,
        }
    }

    /// Whether the kernel did not take it though it should: that it keeps interrupts and threads where they are is a fact.
    pub fn is_failure(&self) -> bool {
        let kind = self.target.kind();
        match &self.outcome {
            None | Some(Outcome::Exact | Outcome::Equal(_)) => false,
            Some(Outcome::Clamped(_)) => kind.is_all_or_nothing(),
            Some(Outcome::Ignored | Outcome::Refused(_)) => !kind.may_be_refused(),
        }
    }

    /// Whether the value that was asked for was there afterwards.
    pub fn held(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::holds)
    }

    /// The setting and the value that was asked for, where it was there afterwards.
    pub(crate) fn as_held(&self) -> Option<(&Target, &str)> {
        self.held().then_some((&self.target, self.new.as_str()))
    }
}

/// What a journal tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// How it began; none where that line is lost.
    pub begin: Option<Begin>,
    /// What was written, in the order of writing.
    pub steps: Vec<Taken>,
    /// What was as wanted already, and is relied on.
    pub relied: Vec<Relied>,
    /// Whether everything that was planned was done: no command was killed at it.
    pub applied: bool,
    /// Whether it is kept beyond the time that was given.
    pub kept: bool,
    /// Whether the last line was cut off.
    pub torn: bool,
    /// Bytes before it.
    pub whole: u64,
    /// Lines that cannot be read.
    pub damaged: Vec<usize>,
}

impl History {
    pub(crate) fn of(read: Read) -> Self {
        let mut history =
            Self { torn: read.torn, whole: read.whole, damaged: read.damaged, ..Self::default() };
        let mut numbers = Vec::new();
        for line in read.lines {
            match line {
                Line::Begin(begin) => history.begin = Some(begin),
                Line::Relied { rules, target, value } => {
                    history.relied.push(Relied { rules, target, value });
                }
                Line::Intend { step, rules, target, old, new } => {
                    numbers.push(step);
                    history.applied = false;
                    history.steps.push(Taken { rules, target, old, new, outcome: None });
                }
                Line::Done { step, outcome } => {
                    let place = numbers.iter().rposition(|number| *number == step);
                    if let Some(taken) = place.and_then(|place| history.steps.get_mut(place)) {
                        taken.outcome = Some(outcome);
                    }
                }
                Line::Applied => history.applied = true,
                Line::Withdrawn { from } => {
                    let stays = numbers.iter().take_while(|number| **number < from).count();
                    numbers.truncate(stays);
                    history.steps.truncate(stays);
                    history.applied = true;
                }
                Line::Kept => history.kept = true,
            }
        }
        history
    }

    /// The last entry of each thing that was written, in the order of writing.
    pub fn latest(&self) -> Vec<&Taken> {
        // From the end, so that no entry is compared with all after it: a journal can hold thousands.
        let mut seen = BTreeSet::new();
        let mut latest: Vec<_> = self.steps.iter().rev().filter(|taken| seen.insert(&taken.target)).collect();
        latest.reverse();
        latest
    }

    /// Whether the machine has booted since, so that nothing of it holds; false where the journal does not say.
    pub fn is_of_another_boot(&self, boot_id: &str) -> bool {
        self.begin.as_ref().is_some_and(|begin| begin.boot_id != boot_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_entries_are_the_last_of_each_setting_in_the_order_of_writing() {
        let written = |(file, new): &(&str, &str)| Taken {
            rules: Vec::new(),
            target: Target::File((*file).to_owned()),
            old: "before".into(),
            new: (*new).to_owned(),
            outcome: None,
        };
        let writes = [("c", "1"), ("a", "2"), ("b", "3"), ("a", "4"), ("c", "5"), ("a", "6")];
        let history = History { steps: writes.iter().map(written).collect(), ..History::default() };
        let latest: Vec<_> = history.latest().into_iter().cloned().collect();
        assert_eq!(latest, [("b", "3"), ("c", "5"), ("a", "6")].iter().map(written).collect::<Vec<_>>());
    }
}
