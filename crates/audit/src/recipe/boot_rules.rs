//! Kernel parameters of a recipe, judged by the rules that `check --cmdline` asks: what a line states, never what it leaves out.

use std::sync::LazyLock;

use survey::{Given, Survey};
use units::{CpuList, KernelVersion};

use super::statements::Word;
use super::{Remark, RemarkId, Target};
use crate::finding::Outcome;
use crate::rule::{Rule, Severity};
use crate::rules::Rules;
use crate::{Request, audit};

/// The rules about single parameters; none where the built-in ones cannot be read, which a test finds.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let all = Rules::built_in().map(|rules| rules.all().to_vec()).unwrap_or_default();
    all.into_iter().filter(|rule| parameter(rule).is_some()).collect()
});

/// The parameter that a rule is about.
fn parameter(rule: &Rule) -> Option<&str> {
    rule.fact.strip_prefix("boot:")
}

/// What rules of more than a note say against the words of one line.
pub fn remarks(line: &[&Word], target: Target) -> Vec<Remark> {
    let stated = |rule: &&Rule| line.iter().any(|word| Some(word.name.as_str()) == parameter(rule));
    let rules: Vec<Rule> = RULES.iter().filter(stated).cloned().collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let findings = audit(&survey(line, target.version), &rules, &Request::default()).findings.into_iter();
    let failed = findings.filter(|of| of.outcome == Outcome::Failed && of.severity != Severity::Note);
    let remarks = failed.filter_map(|finding| {
        let rule = rules.iter().find(|rule| rule.id == finding.rule)?;
        let word = line.iter().rev().find(|word| Some(word.name.as_str()) == parameter(rule))?;
        let message = format!("{} ({})", finding.problem, finding.rule);
        Some(Remark::new(word.line, RemarkId::Dangerous, finding.severity, text(word), message))
    });
    remarks.collect()
}

fn survey(line: &[&Word], version: Option<KernelVersion>) -> Survey {
    let words: Vec<String> = line.iter().map(|word| text(word)).collect();
    let version = version.map(|version| version.to_string());
    Survey::of(Given { command_line: Some(words.join(" ")), version, ..Given::default() }, CpuList::new())
}

fn text(word: &Word) -> String {
    match &word.value {
        Some(value) => format!("{}={value}", word.name),
        None => word.name.clone(),
    }
}
