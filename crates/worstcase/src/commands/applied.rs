//! What `worstcase tune` holds on this machine, for those who measure and judge it.

use std::collections::{BTreeMap, BTreeSet};

use record::Tuned;
use tune::journal::{Begin, History};
use tune::{State, Target, boot_id};

/// Where the journal is unless said otherwise.
pub const STATE: &str = "/var/lib/worstcase/tune";

/// Values of a rule that a record has.
const MOST_VALUES: usize = 4;

/// The journal of this boot.
fn of_this_boot(history: Option<History>) -> Option<History> {
    history.filter(|history| !history.is_of_another_boot(&boot_id()))
}

/// The same of the usual place; none where it cannot be read, too.
fn current() -> Option<History> {
    of_this_boot(State::of_machine(STATE).history().ok().flatten())
}

/// What holds, by rule; none where the journal cannot be read or is elsewhere.
pub fn tuned() -> Option<Vec<Tuned>> {
    let state = State::of_machine(STATE);
    state.check_others().ok()?;
    let history = of_this_boot(state.history().ok()?);
    Some(history.map_or_else(Vec::new, |history| by_rule(&history)))
}

/// Whether anything is.
pub fn is_applied() -> bool {
    current().is_some()
}

/// The options by which rules were chosen that `tune apply` made pass, where it was given some: what is applied is judged by them.
pub fn asked() -> Option<Begin> {
    let begin = current()?.begin?;
    (!begin.profile.is_empty() || begin.isolate.is_some()).then_some(begin)
}

/// Numbers of the interrupts that the kernel would not move when what holds here was applied.
pub fn unmoved() -> BTreeSet<u32> {
    current().map_or_else(BTreeSet::new, |history| unmoved_in(&history))
}

fn unmoved_in(history: &History) -> BTreeSet<u32> {
    let refused = history.latest().into_iter().filter(|taken| taken.ours().is_none());
    refused
        .filter_map(|taken| match &taken.target {
            Target::Interrupt { number, .. } => Some(*number),
            _ => None,
        })
        .collect()
}

fn by_rule(history: &History) -> Vec<Tuned> {
    let mut rules: BTreeMap<String, Tuned> = BTreeMap::new();
    for taken in history.latest().into_iter().filter(|taken| taken.ours().is_some()) {
        let rule = taken.rules.join(", ");
        let none = Tuned { rule: rule.clone(), settings: 0, values: Vec::new() };
        let tuned = rules.entry(rule).or_insert(none);
        tuned.settings += 1;
        let value = taken.ours().unwrap_or_default().to_owned();
        if tuned.values.len() < MOST_VALUES && !tuned.values.contains(&value) {
            tuned.values.push(value);
        }
    }
    rules.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tune::journal::{Outcome, Taken};

    fn taken(rule: &str, file: &str, new: &str, outcome: Option<Outcome>) -> Taken {
        let target = Target::File(file.to_owned());
        Taken { rules: vec![rule.to_owned()], target, old: "before".into(), new: new.to_owned(), outcome }
    }

    #[test]
    fn settings_are_counted_by_rule_and_refused_ones_left_out() {
        let steps = vec![
            taken("rn-slab", "/sys/a", "0", Some(Outcome::Exact)),
            taken("rn-slab", "/sys/b", "0", None),
            taken("rn-thp", "/sys/c", "never", Some(Outcome::Clamped("madvise".into()))),
            taken("rn-irq", "/proc/irq/1", "1", Some(Outcome::Refused(5))),
        ];
        let tuned = by_rule(&History { steps, ..History::default() });
        let shown: Vec<_> =
            tuned.iter().map(|one| (one.rule.as_str(), one.settings, one.values.join(" "))).collect();
        assert_eq!(shown, [("rn-slab", 2, "0".to_owned()), ("rn-thp", 1, "madvise".to_owned())]);
    }

    #[test]
    fn an_interrupt_that_was_refused_is_known_by_its_number() {
        let of = |number, outcome| {
            let target = Target::Interrupt { number, identity: "virtio0-input.0".into() };
            Taken { target, ..taken("rn-irq-affinity", "", "0", outcome) }
        };
        let steps = vec![
            of(24, Some(Outcome::Refused(5))),
            of(25, Some(Outcome::Exact)),
            taken("rn-irq-affinity", "/proc/irq/26", "0", Some(Outcome::Refused(5))),
        ];
        assert_eq!(unmoved_in(&History { steps, ..History::default() }), [24].into());
    }
}
