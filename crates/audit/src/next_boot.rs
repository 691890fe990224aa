//! What the boot loader's files make of a rule: requested, configured and effective side by side.

use std::collections::BTreeSet;

use record::Fact;
use survey::{Survey, Value};

use crate::division::Division;
use crate::evidence::evidence;
use crate::finding::{Evidence, Outcome};
use crate::rule::{Absent, Rule};
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
    let change = differing.first().and_then(|requested| {
        let (place, is_asked) = (requested.from.join(", "), requested.value != Fact::Absent);
        match (outcome, holds(rule, want, survey, division)?, is_asked) {
            (Outcome::Failed, true, true) => {
                Some(format!("takes effect at the next boot: {place} asks for it"))
            }
            (Outcome::Failed, true, false) => {
                Some(format!("mended at the next boot: {place} has it no more"))
            }
            (Outcome::Passed, false, true) => {
                Some(format!("fails after the next boot: {place} asks for another"))
            }
            (Outcome::Passed, false, false) => {
                Some(format!("gone after the next boot: {place} does not ask for it"))
            }
            _ => None,
        }
    });
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

/// Whether the rule would hold after the next boot, as far as the loader's words tell: another value than the cure's may
/// do as well.
fn holds(rule: &Rule, want: &Want, survey: &Survey, division: &Division) -> Option<bool> {
    let next = |word: &str| survey.read(&format!("requested:{word}")).value;
    if let Some(word) = rule.fact.strip_prefix("boot:") {
        return match next(word) {
            Fact::Value(value) => want.holds(&value, division).ok(),
            Fact::Absent => Some(want.holds_for_absent().unwrap_or(rule.absent == Absent::Pass)),
            _ => None,
        };
    }
    let is_asked = |word: &String| {
        let filled = division.fill(word);
        let (name, value) = parted(&filled);
        match next(name) {
            Fact::Value(requested) => satisfies(&requested.to_string(), value).then_some(true),
            Fact::Absent => Some(false),
            _ => None,
        }
    };
    let asked: Option<Vec<bool>> = rule.cure.boot.iter().map(is_asked).collect();
    asked.filter(|asked| !asked.is_empty()).map(|asked| !asked.contains(&false))
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
