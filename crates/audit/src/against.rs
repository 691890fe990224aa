//! Two kernel configurations or two machines, and what their differences mean for latency.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use machine::kernel_config::{KernelConfig, Setting};
use serde::Serialize;

use crate::finding::{Audit, Finding, Outcome};
use crate::rule::{Rule, Severity};

/// A symbol that two configurations set differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SymbolDifference {
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
#[serde(rename_all = "kebab-case")]
pub struct Meaning {
    /// The rule's id: `bt-isolcpus`.
    pub rule: String,
    /// The rule's title.
    pub title: String,
    /// How bad it is when it fails.
    pub severity: Severity,
}

/// A rule on which two machines differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RuleDifference {
    /// The rule's id: `bt-isolcpus`.
    pub rule: String,
    /// The rule's title.
    pub title: String,
    /// How bad it is when it fails.
    pub severity: Severity,
    /// What it says of the first, and what was read there.
    pub ours: (Outcome, String),
    /// What it says of the second.
    pub theirs: (Outcome, String),
}

/// The symbols that differ: those that rules speak of first, the worst of them first; the others by name. A symbol that
/// one says is not set and the other does not name is no difference.
pub fn configs(ours: &KernelConfig, theirs: &KernelConfig, rules: &[Rule]) -> Vec<SymbolDifference> {
    let meanings = meanings(rules);
    let symbols: BTreeSet<&str> =
        ours.settings().chain(theirs.settings()).map(|(symbol, _)| symbol).collect();
    let different =
        symbols.into_iter().filter(|symbol| is_set(ours.get(symbol)) != is_set(theirs.get(symbol)));
    let mut differences: Vec<SymbolDifference> = different
        .map(|symbol| SymbolDifference {
            symbol: symbol.to_owned(),
            ours: ours.get(symbol).map(Setting::to_string),
            theirs: theirs.get(symbol).map(Setting::to_string),
            meaning: meanings.get(symbol).cloned().unwrap_or_default(),
        })
        .collect();
    let worst = |difference: &SymbolDifference| difference.meaning.first().map(|meaning| meaning.severity);
    differences.sort_by(|a, b| worst(b).cmp(&worst(a)).then_with(|| a.symbol.cmp(&b.symbol)));
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
            let meaning =
                Meaning { rule: rule.id.clone(), title: rule.title.clone(), severity: rule.severity };
            meanings.entry(symbol).or_default().push(meaning);
        }
    }
    for meanings in meanings.values_mut() {
        meanings.sort_by_key(|meaning| Reverse(meaning.severity));
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
    differences.sort_by_key(|difference| {
        let same_outcome = difference.ours.0 == difference.theirs.0;
        (same_outcome, Reverse(difference.severity), difference.rule.clone())
    });
    differences
}

fn difference(ours: &Finding, theirs: &Finding) -> Option<RuleDifference> {
    let (left, right) = (side(ours), side(theirs));
    (left != right).then(|| RuleDifference {
        rule: ours.rule.clone(),
        title: ours.title.clone(),
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
why = \"Because.\"
fact = \"config:HZ\"
wanted.any = \"= 1000\"
severity = \"note\"
evidence = \"folklore\"
cure.config = [\"CONFIG_HZ_1000=y\"]
source = [\"S0\"]

[[rule]]
id = \"kc-preempt-rt\"
title = \"PREEMPT_RT\"
why = \"Because.\"
fact = \"config:PREEMPT_RT\"
wanted.any = \"= y\"
severity = \"error\"
evidence = \"mechanism\"
cure.config = [\"CONFIG_PREEMPT_RT=y\"]
source = [\"S0\"]
";

    #[test]
    fn what_rules_speak_of_comes_first_and_the_worst_of_that() {
        let rules = Rules::parse(&[("kernel-config", RULES)]).unwrap();
        let ours = KernelConfig::parse(
            "CONFIG_A=y\nCONFIG_HZ=250\n# CONFIG_PREEMPT_RT is not set\n# CONFIG_Z is not set\n",
        );
        let theirs = KernelConfig::parse("CONFIG_A=m\nCONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\n");
        let differences = configs(&ours, &theirs, rules.all());
        let names: Vec<&str> = differences.iter().map(|difference| difference.symbol.as_str()).collect();
        assert_eq!(names, ["PREEMPT_RT", "HZ", "A"]);
        assert_eq!(differences[0].ours.as_deref(), Some("n"));
        assert_eq!(differences[0].meaning[0].rule, "kc-preempt-rt");
        assert_eq!(
            (differences[2].ours.as_deref(), differences[2].theirs.as_deref()),
            (Some("y"), Some("m"))
        );
        assert!(configs(&ours, &ours, rules.all()).is_empty());
    }
}
