//! What rules that fail ask for: their cures with this machine's CPUs in them.

use std::collections::BTreeMap;

use audit::{Action, Audit, Division, Finding, Outcome, Rule, Rules};
use tune::plan::Threads;
use tune::{Change, Request};

/// One request for each rule that fails, the worst first. `named` are those that somebody asks for by name.
pub fn requests(audit: &Audit, rules: &Rules, named: &[String]) -> Vec<Request> {
    let of = |finding: &Finding| {
        let request = request(finding, rules.get(&finding.rule)?, &audit.division);
        Some(Request { named: named.contains(&request.rule), ..request })
    };
    audit.with(Outcome::Failed).filter_map(of).collect()
}

/// Rules that somebody asks for by name and that do not fail: nothing is to be done, and why.
pub fn idle<'a>(audit: &'a Audit, named: &'a [String]) -> impl Iterator<Item = Request> + use<'a> {
    let in_vain = |finding: &&Finding| finding.outcome != Outcome::Failed && named.contains(&finding.rule);
    audit.findings.iter().filter(in_vain).map(|finding| {
        let head = match finding.outcome {
            Outcome::Passed | Outcome::Failed => "it is as wanted already",
            Outcome::Unreadable | Outcome::Unsupported => "its state could not be determined",
            Outcome::NotApplicable => "the rule does not apply to this machine",
        };
        let otherwise = finding.reason.as_ref().map_or(head.to_owned(), |reason| format!("{head}: {reason}"));
        Request { rule: finding.rule.clone(), title: finding.title.clone(), otherwise, ..Request::default() }
    })
}

/// In the place of a rule's id: what a file of choice asks for by itself.
pub const OWN: &str = "own setting";

/// What somebody wants in files, whatever rules say. These come first: of two values for one file the first one counts.
pub fn own(settings: &BTreeMap<String, String>) -> impl Iterator<Item = Request> {
    settings.iter().map(|(path, value)| Request {
        rule: OWN.to_owned(),
        title: format!("{path} says {value}"),
        why: "the file of choice says so".to_owned(),
        named: true,
        changes: vec![Change::Named { path: path.clone(), value: value.clone() }],
        ..Request::default()
    })
}

fn reserved(rule: &Rule) -> Option<String> {
    rule.reserved_cost().filter(|_| has_cure(rule))
}

/// Whether there is something to do on the running system.
pub fn has_cure(rule: &Rule) -> bool {
    !rule.cure.runtime.is_empty() || !rule.cure.actions.is_empty()
}

fn request(finding: &Finding, rule: &Rule, division: &Division) -> Request {
    let files = rule.cure.runtime.iter().flat_map(|write| files(&write.path, &write.value, division));
    let actions = rule.cure.actions.iter().filter_map(|action| change(action, division));
    Request {
        rule: rule.id.clone(),
        title: if finding.problem.is_empty() { rule.title.clone() } else { finding.problem.clone() },
        why: rule.why.clone(),
        costs: rule.costs.iter().map(|(kind, what)| format!("{kind}: {what}")).collect(),
        reserved: reserved(rule),
        named: false,
        changes: files.chain(actions).collect(),
        otherwise: finding.cure.first().map_or_else(
            || "nothing on the running system changes it".to_owned(),
            |cure| match cure.domain.verb() {
                "" => format!("by hand: {}", cure.text),
                verb => format!("{verb}{}", cure.text),
            },
        ),
    }
}

/// The files of a cure, one for each CPU set apart where the path asks for that. Nothing where it speaks of CPUs set
/// apart and there are none.
fn files(path: &str, value: &str, division: &Division) -> Vec<Change> {
    const EACH: &str = "{isolated}";
    if division.isolated.is_empty() && (Division::is_needed_by(path) || Division::is_needed_by(value)) {
        return Vec::new();
    }
    let paths: Vec<String> = match path.contains(EACH) {
        true => division.isolated.iter().map(|cpu| path.replace(EACH, &cpu.to_string())).collect(),
        false => vec![division.fill(path)],
    };
    let value = division.fill(value);
    paths.into_iter().map(|path| Change::Files { path, value: value.clone() }).collect()
}

/// What an action comes to. Nothing where it speaks of CPUs set apart and there are none.
fn change(action: &Action, division: &Division) -> Option<Change> {
    match action {
        Action::Threads(threads) => moved(threads, division),
        Action::Partition(cpus) => {
            let cpus: units::CpuList = division.fill(cpus).parse().ok()?;
            (!cpus.is_empty()).then_some(Change::Partition(cpus))
        }
        Action::Stop(program) => Some(Change::Stop(program.clone())),
        Action::SwapOff => Some(Change::SwapOff),
    }
}

fn moved(threads: &audit::Threads, division: &Division) -> Option<Change> {
    let needs_cpus = threads.cpus.as_deref().is_some_and(Division::is_needed_by);
    if needs_cpus && division.isolated.is_empty() {
        return None;
    }
    let cpus = threads.cpus.as_ref().map(|cpus| division.fill(cpus).parse()).transpose().ok()?;
    Some(Change::Threads(Threads {
        named: threads.named.clone(),
        except: threads.except.clone(),
        cpus,
        priority: threads.priority,
    }))
}
