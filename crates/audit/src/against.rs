//! Two kernel configurations or two machines, and what their differences mean for latency.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use machine::kernel_config::{KernelConfig, Setting};
use serde::Serialize;
use units::InOrder;

use crate::finding::{Audit, Finding, Outcome};
use crate::rule::{Rule, Severity};

/// What a difference is for latency, from the first to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A rule passes on the first and fails on the second.
    Worse,
    /// A rule fails on the first and passes on the second.
    Better,
    /// No rule says, or rules contradict each other.
    Other,
}

impl Change {
    /// All, in the order in which differences are shown.
    pub const ALL: [Self; 3] = [Self::Worse, Self::Better, Self::Other];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Other => "other",
        }
    }

    const fn between(ours: Outcome, theirs: Outcome) -> Self {
        match (ours, theirs) {
            (Outcome::Passed, Outcome::Failed) => Self::Worse,
            (Outcome::Failed, Outcome::Passed) => Self::Better,
            _ => Self::Other,
        }
    }

    /// What several rules come to that speak of one thing: other where they contradict each other.
    fn of_all(changes: impl IntoIterator<Item = Self>) -> Self {
        let mut decided = changes.into_iter().filter(|change| *change != Self::Other);
        let Some(first) = decided.next() else { return Self::Other };
        if decided.all(|change| change == first) { first } else { Self::Other }
    }
}

/// A symbol that two configurations set differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SymbolDifference {
    /// Whether the second is better for latency.
    pub change: Change,
    /// The symbol, without `CONFIG_`.
    pub symbol: String,
    /// What the first says: a value, `n`, or nothing at all.
    pub ours: Option<String>,
    /// What the second says.
    pub theirs: Option<String>,
    /// The rules that speak of it, the worst first.
    pub meaning: Vec<Meaning>,
}

/// A rule that speaks of a symbol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The rule's id: `bt-isolcpus`.
    pub rule: String,
    /// The rule's title.
    pub title: String,
    /// What is so where it fails.
    pub problem: String,
    /// How bad it is when it fails.
    pub severity: Severity,
}

/// A rule on which two machines differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleDifference {
    /// Whether the second is better for latency.
    pub change: Change,
    /// The rule's id: `bt-isolcpus`.
    pub rule: String,
    /// The rule's title.
    pub title: String,
    /// What is so where it fails.
    pub problem: String,
    /// How bad it is when it fails.
    pub severity: Severity,
    /// What it says of the first, and what was read there.
    pub ours: (Outcome, String),
    /// What it says of the second.
    pub theirs: (Outcome, String),
}

/// The symbols that differ: those that rules speak of first, the worst of them first; the others by name. A symbol that
/// one says is not set and the other does not name is no difference. `judged` is what the rules say of the two.
pub fn configs(
    ours: &KernelConfig,
    theirs: &KernelConfig,
    rules: &[Rule],
    judged: &[RuleDifference],
) -> Vec<SymbolDifference> {
    let meanings = meanings(rules);
    let changes: BTreeMap<&str, Change> =
        judged.iter().map(|difference| (difference.rule.as_str(), difference.change)).collect();
    let change = |symbol: &str| {
        let of_rules = meanings.get(symbol).into_iter().flatten();
        Change::of_all(of_rules.filter_map(|meaning| changes.get(meaning.rule.as_str()).copied()))
    };
    let symbols: BTreeSet<&str> =
        ours.settings().chain(theirs.settings()).map(|(symbol, _)| symbol).collect();
    let different =
        symbols.into_iter().filter(|symbol| is_set(ours.get(symbol)) != is_set(theirs.get(symbol)));
    let mut differences: Vec<SymbolDifference> = different
        .map(|symbol| SymbolDifference {
            change: change(symbol),
            symbol: symbol.to_owned(),
            ours: ours.get(symbol).map(Setting::to_string),
            theirs: theirs.get(symbol).map(Setting::to_string),
            meaning: meanings.get(symbol).cloned().unwrap_or_default(),
        })
        .collect();
    let worst = |difference: &SymbolDifference| difference.meaning.first().map(|meaning| meaning.severity);
    let spoken_of = |difference: &SymbolDifference| difference.meaning.is_empty();
    differences.order_by_key(|difference| {
        (spoken_of(difference), difference.change, Reverse(worst(difference)), difference.symbol.clone())
    });
    differences
}

/// A setting that does something; `n` and no line at all do nothing.
fn is_set(setting: Option<&Setting>) -> Option<&Setting> {
    setting.filter(|setting| **setting != Setting::No)
}

/// The rules by the symbols that they judge, show or set.
fn meanings(rules: &[Rule]) -> BTreeMap<String, Vec<Meaning>> {
    let mut meanings: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
    for rule in rules {
        let facts = std::iter::once(&rule.fact).chain(&rule.also).flat_map(|fact| symbols_of(fact));
        let cures = rule.cure.config.iter().filter_map(|line| symbol_of_line(line));
        let symbols: BTreeSet<String> = facts.chain(cures).collect();
        for symbol in symbols {
            let Rule { id, title, problem, severity, .. } = rule.clone();
            let meaning = Meaning { rule: id, title, problem, severity };
            meanings.entry(symbol).or_default().push(meaning);
        }
    }
    for meanings in meanings.values_mut() {
        meanings.order_by_key(|meaning| Reverse(meaning.severity));
    }
    meanings
}

/// `config:A`, `config-on:A,B`.
fn symbols_of(fact: &str) -> Vec<String> {
    let Some((kind, names)) = fact.split_once(':') else { return Vec::new() };
    if !kind.starts_with("config") {
        return Vec::new();
    }
    names.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn symbol_of_line(line: &str) -> Option<String> {
    let rest = line.trim_start_matches("# ").strip_prefix("CONFIG_")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

/// The rules whose outcome differs, the worst first; then those that came to the same from other values.
pub fn audits(ours: &Audit, theirs: &Audit) -> Vec<RuleDifference> {
    let by_rule: BTreeMap<&str, &Finding> =
        theirs.findings.iter().map(|finding| (finding.rule.as_str(), finding)).collect();
    let pairs =
        ours.findings.iter().filter_map(|finding| Some((finding, *by_rule.get(finding.rule.as_str())?)));
    let mut differences: Vec<RuleDifference> =
        pairs.filter_map(|(ours, theirs)| difference(ours, theirs)).collect();
    differences.order_by_key(|difference| {
        let same_outcome = difference.ours.0 == difference.theirs.0;
        (same_outcome, difference.change, Reverse(difference.severity), difference.rule.clone())
    });
    differences
}

fn difference(ours: &Finding, theirs: &Finding) -> Option<RuleDifference> {
    let (left, right) = (side(ours), side(theirs));
    (left != right).then(|| RuleDifference {
        change: Change::between(left.0, right.0),
        rule: ours.rule.clone(),
        title: ours.title.clone(),
        problem: ours.problem.clone(),
        severity: ours.severity.max(theirs.severity),
        ours: left,
        theirs: right,
    })
}

fn side(finding: &Finding) -> (Outcome, String) {
    let value = match (finding.evidence.first(), &finding.reason) {
        (Some(evidence), _) => evidence.value.to_string(),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    (finding.outcome, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    const RULES: &str = "
[[rule]]
id = \"kc-hz\"
title = \"Ticks\"
problem = \"ticks are rare\"
why = \"Because.\"
fact = \"config:HZ\"
wanted.any = \"= 1000\"
severity = \"note\"
evidence = \"folklore\"
cure.config = [\"CONFIG_HZ_1000=y\"]
source = [\"Enea\"]

[[rule]]
id = \"kc-preempt-rt\"
title = \"PREEMPT_RT\"
problem = \"no PREEMPT_RT\"
why = \"Because.\"
fact = \"config:PREEMPT_RT\"
wanted.any = \"= y\"
severity = \"error\"
evidence = \"mechanism\"
cure.config = [\"CONFIG_PREEMPT_RT=y\"]
source = [\"Enea\"]
";

    #[test]
    fn a_difference_is_better_worse_or_other() {
        use Change::{Better, Other, Worse};
        assert_eq!(Change::between(Outcome::Failed, Outcome::Passed), Better);
        assert_eq!(Change::between(Outcome::Passed, Outcome::Failed), Worse);
        for unknown in [Outcome::Unreadable, Outcome::Unsupported, Outcome::NotApplicable, Outcome::Failed] {
            assert_eq!(Change::between(Outcome::Failed, unknown), Other);
            assert_eq!(Change::between(unknown, Outcome::Failed), Other);
        }
        assert_eq!(Change::of_all([Better, Other, Better]), Better);
        assert_eq!(Change::of_all([Better, Worse]), Other, "rules contradict each other");
        assert_eq!(Change::of_all([]), Other);
    }

    #[test]
    fn what_rules_speak_of_comes_first_and_the_worst_of_that() {
        let rules = Rules::parse(&[("kernel-config", RULES)]).unwrap();
        let ours = KernelConfig::parse(
            "CONFIG_A=y\nCONFIG_HZ=250\n# CONFIG_PREEMPT_RT is not set\n# CONFIG_Z is not set\n",
        );
        let theirs = KernelConfig::parse("CONFIG_A=m\nCONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\n");
        let differences = configs(&ours, &theirs, rules.all(), &[]);
        let names: Vec<&str> = differences.iter().map(|difference| difference.symbol.as_str()).collect();
        assert_eq!(names, ["PREEMPT_RT", "HZ", "A"]);
        assert_eq!(differences[0].ours.as_deref(), Some("n"));
        assert_eq!(differences[0].meaning[0].rule, "kc-preempt-rt");
        assert_eq!(
            (differences[2].ours.as_deref(), differences[2].theirs.as_deref()),
            (Some("y"), Some("m"))
        );
        assert!(configs(&ours, &ours, rules.all(), &[]).is_empty());
    }
}
