//! What `check` says: the machine, what failed with its cure, what could not be read, and what it comes to.

mod explain;
mod read;

use std::collections::BTreeMap;

use audit::{Audit, Domain, Finding, Outcome, Remedy, Severity};
use record::Fact;
use record::verdict::Verdict;
use units::CpuList;

use crate::foot::verdict_tone;
use crate::next;
use crate::style::{Style, Tone};
use crate::text::{clip, count_of, harmless, wrap};

pub use explain::explain;
use read::read;

/// Columns of the word in front of a finding.
pub(crate) const MARK: usize = 9;

/// Widest column of ids: longer ones push their line to the right.
const WIDEST_ID: usize = 24;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Notes in full.
    pub notes: bool,
    /// Everything: notes, what passed, what does not apply.
    pub all: bool,
    /// Whether root asks: what the kernel refuses is then refused by something else than permissions.
    pub as_root: bool,
}

/// The whole answer, with the commands to type next at its end.
pub fn findings(audit: &Audit, shown: Shown, next: &[(String, String)], style: &Style) -> String {
    let Shown { notes, all, .. } = shown;
    let mut lines = head(audit, style);
    lines.push(String::new());
    let is_folded = |finding: &&Finding| finding.severity == Severity::Note && !(notes || all);
    let (folded, bad): (Vec<&Finding>, Vec<&Finding>) = audit.with(Outcome::Failed).partition(is_folded);
    let column = bad.iter().map(|finding| finding.rule.chars().count()).max().unwrap_or(0).min(WIDEST_ID);
    lines.extend(bad.iter().flat_map(|finding| failure(finding, column, style)));
    lines.extend(fold(folded.len(), bad.is_empty()));
    lines.extend(unreadable(audit, all, style));
    if all {
        lines.extend(rest(audit, style));
    }
    if lines.last().is_some_and(|line| !line.is_empty()) {
        lines.push(String::new());
    }
    lines.extend(foot(audit, shown.as_root, style));
    lines.extend(next::steps(next, style));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The machine and the profiles.
fn head(audit: &Audit, style: &Style) -> Vec<String> {
    let subject = &audit.subject;
    let known = |fact: &Fact<String>| fact.value().cloned();
    let mut parts = record::whereabouts(&subject.container, &subject.guest, &subject.model);
    let facts = [
        known(&subject.kernel).map(|kernel| format!("Linux {kernel}")),
        known(&subject.architecture),
        known(&subject.preemption).map(|mode| preemption(&mode)),
        known(&subject.online).map(|cpus| cpus.parse().map_or(cpus, |cpus: CpuList| cpus.named())),
        (!audit.division.isolated.is_empty())
            .then(|| format!("real-time {}", audit.division.isolated.named())),
    ];
    parts.extend(facts.into_iter().flatten());
    let mut lines =
        if parts.is_empty() { Vec::new() } else { wrap("machine: ", &parts.join(", "), 9, style.width) };
    lines.extend(wrap("profile: ", &audit.reasons.join(", "), 9, style.width));
    lines
}

fn preemption(mode: &str) -> String {
    if mode == "rt" { "PREEMPT_RT".to_owned() } else { format!("not PREEMPT_RT (preemption {mode})") }
}

/// What is wrong, behind its severity and its id, and below it the first thing to do.
fn failure(finding: &Finding, column: usize, style: &Style) -> Vec<String> {
    let (severity, hang) = (finding.severity, MARK + column + 2);
    let head = format!("{:<MARK$}{:<column$}  ", severity.name(), finding.rule);
    let problem = match read(finding) {
        nothing if nothing.is_empty() => finding.problem.clone(),
        read => format!("{} ({read})", finding.problem),
    };
    let mut lines = wrap(&head, &problem, hang, style.width);
    if let Some(first) = lines.first_mut() {
        let rest = first.split_off(severity.name().len());
        *first = style.paint(severity_tone(severity), severity.name()) + &style.paint(Tone::Strong, &rest);
    }
    let cure = finding.cure.first();
    let is_done = |cure: &Remedy| cure.domain == Domain::Boot && finding.next_boot.is_some();
    let cure = cure.filter(|cure| !is_done(cure)).map(order);
    let cure = cure.into_iter().chain(finding.next_boot.clone()).collect::<Vec<_>>().join("; ");
    if !cure.is_empty() {
        lines.extend(wrap(&" ".repeat(hang), &cure, hang, style.width));
    }
    lines
}

/// What to do, as an order.
fn order(cure: &Remedy) -> String {
    match cure.domain {
        Domain::Config => options(&cure.text),
        domain => format!("{}{}", domain.verb(), cure.text),
    }
}

/// Options of a kernel that are shown of one cure.
const MOST_OPTIONS: usize = 4;

/// `build the kernel with CONFIG_A=y and CONFIG_B=y, without CONFIG_C`.
fn options(lines: &str) -> String {
    let (off, on): (Vec<&str>, Vec<&str>) = lines.split("; ").partition(|line| line.starts_with("# "));
    let off: Vec<&str> =
        off.iter().map(|line| line.trim_start_matches("# ").trim_end_matches(" is not set")).collect();
    let list = |word: &str, options: &[&str]| {
        let more = options.len().saturating_sub(MOST_OPTIONS);
        let shown = options[..options.len() - more].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!options.is_empty()).then(|| format!("{word} {shown}{more}"))
    };
    let parts: Vec<String> = list("with", &on).into_iter().chain(list("without", &off)).collect();
    format!("build the kernel {}", parts.join(", "))
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

/// Notes must not bury what matters: how many there are.
fn fold(notes: usize, alone: bool) -> Option<String> {
    let more = if alone { "" } else { " more" };
    (notes > 0).then(|| format!("{:<MARK$}{notes}{more}: --notes shows them", Severity::Note.name()))
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
    let of = |outcome| audit.with(outcome).flat_map(|finding| aside(finding, style));
    outcomes.into_iter().flat_map(of).collect()
}

fn aside(finding: &Finding, style: &Style) -> Vec<String> {
    let mut detail = finding.reason.clone().unwrap_or_else(|| seen(finding));
    if let Some(next_boot) = &finding.next_boot {
        detail += &format!(", {next_boot}");
    }
    let text = format!("{}: {detail} ({})", finding.title, finding.rule);
    let mark = format!("{:<MARK$}", outcome(finding.outcome));
    let tone = if finding.outcome == Outcome::Passed { Tone::Good } else { Tone::Faint };
    let mut lines = wrap(&mark, &text, MARK, style.width);
    if let Some(first) = lines.first_mut() {
        *first = style.paint(tone, &mark) + first.strip_prefix(mark.as_str()).unwrap_or(first);
    }
    lines
}

/// How many of what, and the verdict.
fn foot(audit: &Audit, as_root: bool, style: &Style) -> Vec<String> {
    let failed =
        |severity| audit.with(Outcome::Failed).filter(|finding| finding.severity == severity).count();
    let by_severity: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter(|&severity| failed(severity) > 0)
        .map(|of| count_of(failed(of) as u64, of.name()))
        .collect();
    let mut lines = wrap("", &summary(audit, &by_severity, as_root), 2, style.width);
    lines.extend(verdict(audit, &by_severity).map(|text| style.paint(verdict_tone(audit.verdict), &text)));
    lines
}

/// `15 of 85 rules that apply here fail: 5 warnings, 10 notes. 2 could not be read (refused: run as root).`
fn summary(audit: &Audit, by_severity: &[String], as_root: bool) -> String {
    let count = |outcome| audit.with(outcome).count();
    let (failed, unread) = (count(Outcome::Failed), count(Outcome::Unreadable));
    let apply = failed + unread + count(Outcome::Passed);
    let of = format!(
        "{failed} of {} that {} here",
        count_of(apply as u64, "rule"),
        if apply == 1 { "applies" } else { "apply" }
    );
    let mut text = match (apply, failed) {
        (0, _) => "No rule applies here.".to_owned(),
        (1, 0) => "1 rule applies here, and it passes.".to_owned(),
        (_, 0) if unread == 0 => format!("All {} that apply here pass.", count_of(apply as u64, "rule")),
        (_, 0) => format!("None of {} that apply here fails.", count_of(apply as u64, "rule")),
        _ => format!("{of} {}: {}.", if failed == 1 { "fails" } else { "fail" }, by_severity.join(", ")),
    };
    if unread > 0 {
        let is_refused = |finding: &Finding| {
            finding
                .reason
                .as_ref()
                .is_some_and(|reason| REFUSALS.iter().any(|refusal| reason.contains(refusal)))
        };
        let hint = match audit.with(Outcome::Unreadable).any(is_refused) {
            true => refusal(as_root),
            false => "",
        };
        text += &format!(" {unread} could not be read{hint}.");
    }
    text
}

/// What to do where the kernel refused something; to root a container or the kernel's lockdown does.
const fn refusal(as_root: bool) -> &'static str {
    match as_root {
        true => " (refused even to root: by the container, or the kernel's lockdown)",
        false => " (refused: run as root)",
    }
}

/// How the kernel says that somebody else may.
const REFUSALS: [&str; 2] = ["Permission denied", "Operation not permitted"];

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
        Outcome::NotApplicable => "n/a",
    }
}
