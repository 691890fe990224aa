//! What `check` says: the machine, what failed with its cure, what could not be read, and what it comes to.

mod explain;

use std::collections::BTreeMap;

use audit::{Audit, Domain, Finding, Outcome, Remedy, Severity};
use record::Fact;
use record::verdict::Verdict;

use crate::foot::verdict_tone;
use crate::style::{Style, Tone};
use crate::text::{clip, count_of, harmless, wrap};

pub use explain::explain;

/// Columns of the word in front of a finding.
pub(crate) const MARK: usize = 9;

/// The whole answer. `all` shows what passed and what was not asked too.
pub fn findings(audit: &Audit, all: bool, style: &Style) -> String {
    let mut lines = head(audit, style);
    lines.push(String::new());
    let (notes, bad): (Vec<&Finding>, Vec<&Finding>) =
        audit.with(Outcome::Failed).partition(|finding| finding.severity == Severity::Note && !all);
    lines.extend(bad.iter().flat_map(|finding| failure(finding, style)));
    lines.extend(noted(&notes, style));
    lines.extend(unreadable(audit, all, style));
    if all {
        lines.extend(rest(audit, style));
    }
    if lines.last().is_some_and(|line| !line.is_empty()) {
        lines.push(String::new());
    }
    lines.extend(foot(audit, style));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The machine and the profiles.
fn head(audit: &Audit, style: &Style) -> Vec<String> {
    let subject = &audit.subject;
    let known = |fact: &Fact<String>| fact.value().cloned();
    let guest = known(&subject.guest).filter(|name| name != "none").map(|name| format!("guest of {name}"));
    let parts = [
        guest,
        known(&subject.kernel).map(|kernel| format!("Linux {kernel}")),
        known(&subject.architecture),
        known(&subject.preemption).map(|mode| preemption(&mode)),
        known(&subject.online).map(|cpus| format!("CPUs {cpus}")),
        (!audit.division.isolated.is_empty()).then(|| format!("for real time {}", audit.division.isolated)),
    ];
    let machine: Vec<String> = parts.into_iter().flatten().collect();
    let mut lines =
        if machine.is_empty() { Vec::new() } else { wrap("machine: ", &machine.join(", "), 9, style.width) };
    lines.extend(wrap("profile: ", &audit.reasons.join(", "), 9, style.width));
    lines
}

fn preemption(mode: &str) -> String {
    if mode == "rt" { "PREEMPT_RT".to_owned() } else { format!("not PREEMPT_RT (preemption {mode})") }
}

/// What is wrong in a line, and the cure below it.
fn failure(finding: &Finding, style: &Style) -> Vec<String> {
    let mut lines = vec![marked(finding.severity, &format!("{}: {}", finding.title, seen(finding)), style)];
    let cure = finding.cure.first();
    let is_done = |cure: &Remedy| cure.domain == Domain::Boot && finding.next_boot.is_some();
    let cure = cure.filter(|cure| !is_done(cure)).map(|cure| format!("{}{}", cure.domain.verb(), cure.text));
    let cure = cure.into_iter().chain(finding.next_boot.clone()).collect::<Vec<_>>().join("; ");
    let head = format!("{}{}: ", " ".repeat(MARK), finding.rule);
    lines.extend(wrap(&head, &cure, MARK + 2, style.width));
    lines
}

/// One line, behind how bad it is.
pub(crate) fn marked(of: Severity, text: &str, style: &Style) -> String {
    let text = clip(&harmless(text), style.width.saturating_sub(MARK));
    style.paint(severity_tone(of), &format!("{:<MARK$}", of.name())) + &style.paint(Tone::Strong, &text)
}

/// What was read, short: of a list what it has in common, or its first offender.
pub(super) fn seen(finding: &Finding) -> String {
    let Some(first) = finding.offenders.first() else {
        return finding.evidence.first().map_or_else(String::new, |evidence| evidence.value.to_string());
    };
    let more = match finding.offenders.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if first.name.starts_with('/') && finding.offenders.iter().all(|offender| offender.value == first.value) {
        let files = count_of(finding.offenders.len() as u64, "file");
        return format!("{} ({files})", first.value);
    }
    format!("{} ({}){more}", first.value, first.name)
}

/// Notes must not bury what matters: their names, in a paragraph.
fn noted(notes: &[&Finding], style: &Style) -> Vec<String> {
    if notes.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = notes.iter().map(|finding| finding.rule.as_str()).collect();
    let mark = format!("{:<MARK$}", Severity::Note.name());
    wrap(&mark, &format!("{}: {} (--all shows them)", notes.len(), names.join(", ")), MARK, style.width)
}

/// Names of rules that one reason may have.
const MOST_NAMES: usize = 8;

/// What could not be read, by reason.
fn unreadable(audit: &Audit, all: bool, style: &Style) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for finding in audit.with(Outcome::Unreadable) {
        by_reason.entry(unread(finding)).or_default().push(&finding.rule);
    }
    let mark = format!("{:<MARK$}", "unread");
    let line = |(reason, rules): (String, Vec<&str>)| {
        let shown = if all { rules.len() } else { rules.len().min(MOST_NAMES) };
        let more = match rules.len() - shown {
            0 => String::new(),
            more => format!(" and {more} more: --all names them"),
        };
        wrap(&mark, &format!("{reason} ({}{more})", rules[..shown].join(", ")), MARK, style.width)
    };
    by_reason.into_iter().flat_map(line).collect()
}

/// Where something could not be read and why. One configuration that is missing is one fault, whatever is asked of it.
fn unread(finding: &Finding) -> String {
    let reason = finding.reason.clone().unwrap_or_default();
    let place = finding.evidence.first().map(|evidence| (evidence.fact.as_str(), evidence.from.join(", ")));
    let asks_config = |fact: &str| fact.starts_with("config:") || fact.starts_with("config-on:");
    let condition = reason.strip_prefix("whether ").and_then(|rest| rest.split_once(" cannot be read: "));
    match (place, condition) {
        (Some((fact, _)), _) if asks_config(fact) => format!("the kernel's configuration: {reason}"),
        (_, Some((fact, why))) if asks_config(fact) => format!("the kernel's configuration: {why}"),
        (Some((_, from)), _) if !from.is_empty() => format!("{from}: {reason}"),
        _ => reason,
    }
}

/// What passed, what this machine cannot tell, what was not asked: a line each.
fn rest(audit: &Audit, style: &Style) -> Vec<String> {
    let outcomes = [Outcome::Passed, Outcome::Unsupported, Outcome::NotApplicable];
    let of = |outcome| audit.with(outcome).map(|finding| aside(finding, style));
    outcomes.into_iter().flat_map(of).collect()
}

fn aside(finding: &Finding, style: &Style) -> String {
    let mut detail = finding.reason.clone().unwrap_or_else(|| seen(finding));
    if let Some(next_boot) = &finding.next_boot {
        detail += &format!(", {next_boot}");
    }
    let text = harmless(&format!("{}: {detail} ({})", finding.title, finding.rule));
    let mark = format!("{:<MARK$}", outcome(finding.outcome));
    let tone = if finding.outcome == Outcome::Passed { Tone::Good } else { Tone::Faint };
    style.paint(tone, &mark) + &clip(&text, style.width.saturating_sub(MARK))
}

/// How many of what, what to do next, and the verdict.
fn foot(audit: &Audit, style: &Style) -> Vec<String> {
    let count = |outcome| audit.with(outcome).count();
    let failed =
        |severity| audit.with(Outcome::Failed).filter(|finding| finding.severity == severity).count();
    let by_severity: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter(|&severity| failed(severity) > 0)
        .map(|of| count_of(failed(of) as u64, of.name()))
        .collect();
    let detail =
        if by_severity.is_empty() { String::new() } else { format!(" ({})", by_severity.join(", ")) };
    let others = count(Outcome::NotApplicable) + count(Outcome::Unsupported);
    let summary = format!(
        "{}: {} failed{detail}, {} passed, {} could not be read, {others} not asked here",
        count_of(audit.findings.len() as u64, "rule"),
        count(Outcome::Failed),
        count(Outcome::Passed),
        count(Outcome::Unreadable),
    );
    let mut lines = wrap("", &summary, 2, style.width);
    if count(Outcome::Failed) > 0 {
        let next = "check --explain RULE tells why, at what price, and every cure; check --emit cmdline the kernel command line";
        lines.extend(wrap("", next, 2, style.width));
    }
    lines.extend(verdict(audit, &by_severity).map(|text| style.paint(verdict_tone(audit.verdict), &text)));
    lines
}

/// The verdict with its reason; none where nothing was required and nothing prevents an answer: the counts say it all.
fn verdict(audit: &Audit, failed: &[String]) -> Option<String> {
    let is_any = |outcome| audit.with(outcome).next().is_some();
    Some(match audit.verdict {
        Verdict::Fail => format!("verdict: fail, {}", failed.first().map_or("", String::as_str)),
        Verdict::Inconclusive if !is_any(Outcome::Unreadable) => {
            "verdict: inconclusive, none of these rules applies here".into()
        }
        Verdict::Inconclusive => "verdict: inconclusive, rules of severity error could not be read".into(),
        Verdict::Pass if failed.is_empty() => "verdict: pass".into(),
        Verdict::Pass => format!("verdict: pass, with {}", failed.join(" and ")),
        _ => return None,
    })
}

const fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Doubtful,
        Severity::Note => Tone::Plain,
    }
}

pub(crate) const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed => "fails",
        Outcome::Unreadable => "unread",
        Outcome::Passed => "passes",
        Outcome::Unsupported => "unknown",
        Outcome::NotApplicable => "aside",
    }
}
