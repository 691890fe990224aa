//! What the boot loader's files make of a rule: requested, configured and effective side by side.

use std::collections::BTreeSet;

use machine::survey::{Survey, Value};
use record::Fact;

use crate::division::Division;
use crate::finding::{Evidence, Outcome};
use crate::judge::evidence;
use crate::rule::Rule;
use crate::want::Want;

/// What a rule's words are in the loader's files and on the command line, where these differ.
pub(crate) struct NextBoot {
    /// `requested:WORD` and `boot:WORD` for each word that differs.
    pub evidence: Vec<Evidence>,
    /// What the next boot changes for the rule, if it does.
    pub change: Option<String>,
}

/// Compares the words that `rule` judges, shows or sets.
pub(crate) fn compare(
    rule: &Rule,
    want: &Want,
    outcome: Outcome,
    survey: &Survey,
    division: &Division,
) -> NextBoot {
    let differing: Vec<Evidence> =
        words(rule).into_iter().filter_map(|word| difference(word, survey)).flatten().collect();
    let place = differing.first().map(|requested| requested.from.join(", "));
    let change = place.and_then(|place| change(rule, want, outcome, survey, division, &place));
    NextBoot { evidence: differing, change }
}

/// The names of its words.
fn words(rule: &Rule) -> BTreeSet<&str> {
    let facts = std::iter::once(&rule.fact).chain(&rule.also);
    let judged = facts.filter_map(|fact| fact.strip_prefix("boot:"));
    judged.chain(rule.cure.boot.iter().map(|word| parted(word).0)).collect()
}

/// `isolcpus=2-3` as its name and value.
fn parted(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

/// What is requested and what is configured, if both are known and differ.
fn difference(word: &str, survey: &Survey) -> Option<[Evidence; 2]> {
    let (requested, configured) = (format!("requested:{word}"), format!("boot:{word}"));
    let (wanted, given) = (survey.read(&requested), survey.read(&configured));
    let is_known = |fact: &Fact<Value>| matches!(fact, Fact::Value(_) | Fact::Absent);
    let differ = is_known(&wanted.value) && is_known(&given.value) && wanted.value != given.value;
    differ.then(|| [evidence(&requested, wanted), evidence(&configured, given)])
}

/// In words, where the next boot turns the outcome.
fn change(
    rule: &Rule,
    want: &Want,
    outcome: Outcome,
    survey: &Survey,
    division: &Division,
    place: &str,
) -> Option<String> {
    let next = |fact: &str| survey.read(&format!("requested:{fact}")).value;
    let holds = match rule.fact.strip_prefix("boot:") {
        Some(word) => match next(word) {
            Fact::Value(value) => want.holds(&value, division).ok()?,
            Fact::Absent => want.holds_for_absent().unwrap_or(rule.absent == crate::rule::Absent::Pass),
            _ => return None,
        },
        None if rule.cure.boot.is_empty() => return None,
        None => rule.cure.boot.iter().all(|word| {
            let filled = division.fill(word);
            let (name, value) = parted(&filled);
            matches!(next(name), Fact::Value(requested) if satisfies(&requested.to_string(), value))
        }),
    };
    match (outcome, holds) {
        (Outcome::Failed, true) => Some(format!("takes effect at the next boot: {place} asks for it")),
        (Outcome::Passed, false) => Some(format!("gone after the next boot: {place} does not ask for it")),
        _ => None,
    }
}

/// Whether a value of a word is what a cure sets, or a list of more CPUs. Flags stand in front of a list.
fn satisfies(requested: &str, wanted: &str) -> bool {
    let cpus = |text: &str| {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        text.get(start..)?.parse::<units::CpuList>().ok()
    };
    let covers = || Some(cpus(wanted)?.difference(&cpus(requested)?).is_empty());
    requested == wanted || covers().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::satisfies;

    #[test]
    fn a_longer_list_does_what_a_cure_asks() {
        assert!(satisfies("full", "full") && satisfies("", ""));
        assert!(satisfies("domain,2-5", "managed_irq,domain,2-3"));
        assert!(!satisfies("domain,2", "domain,2-3") && !satisfies("lazy", "full") && !satisfies("", "2"));
    }
}
