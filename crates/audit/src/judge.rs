//! Facts judged by rules.

use std::cmp::Reverse;

use record::Fact;
use survey::{Reading, Survey, Value};
use units::{InOrder, errno_in_words};

use crate::condition::Condition;
use crate::division::Division;
use crate::evidence::{evidence, shown};
use crate::finding::{Evidence, Finding, Offender, Outcome, Remedy};
use crate::next_boot;
use crate::profile::{Asker, Profiles};
use crate::remedy::remedies;
use crate::rule::{Absent, Rule, Severity};
use crate::want::{Mismatch, Want};

/// Where debugfs is mounted, in a command.
const DEBUGFS: &str = "> /sys/kernel/debug/";

/// What rules are judged against.
pub(crate) struct Judge<'a> {
    pub survey: &'a Survey,
    pub profiles: &'a Profiles,
    pub division: &'a Division,
}

/// What came out, and why where it is not plain.
struct Judgement {
    outcome: Outcome,
    reason: Option<String>,
    offenders: Vec<Offender>,
}

impl Judge<'_> {
    /// What `rule` says.
    pub fn judge(&self, rule: &Rule) -> Finding {
        let Some((asker, want)) = self.want(rule) else {
            let reason = format!("nothing is wanted for {}", self.profiles);
            return self.finding(rule, None, Judgement::new(Outcome::NotApplicable, reason), Vec::new());
        };
        if let Some(judgement) = self.obstacle(rule, want) {
            return self.finding(rule, Some((asker, want)), judgement, Vec::new());
        }
        let reading = self.survey.read(&rule.fact);
        let judgement = self.judged(rule, want, &reading);
        let beside = rule.also.iter().map(|name| evidence(name, self.survey.read(name)));
        let next = next_boot::compare(rule, want, judgement.outcome, self.survey, self.division);
        let mut evidence: Vec<Evidence> =
            std::iter::once(evidence(&rule.fact, reading)).chain(beside).collect();
        let is_new = |other: &Evidence| evidence.iter().all(|known| known.fact != other.fact);
        let compared: Vec<Evidence> = next.evidence.into_iter().filter(is_new).collect();
        evidence.extend(compared);
        let finding = self.finding(rule, Some((asker, want)), judgement, evidence);
        Finding { next_boot: next.change, ..finding }
    }

    /// The want that counts for the profiles.
    fn want<'r>(&self, rule: &'r Rule) -> Option<(Asker, &'r Want)> {
        let found =
            self.profiles.chain().into_iter().find_map(|asker| Some((asker, rule.wanted.get(&asker)?)));
        found.filter(|(_, want)| **want != Want::Anything)
    }

    /// What keeps the rule from being asked.
    fn obstacle(&self, rule: &Rule, want: &Want) -> Option<Judgement> {
        let unmet = rule.applies.iter().find_map(|condition| self.unmet(condition));
        let obstacle = unmet.or_else(|| rule.unless.iter().find_map(|condition| self.met(condition)));
        let speaks_of_cpus = want.needs_division() || Division::is_needed_by(&rule.fact);
        obstacle.or_else(|| {
            (speaks_of_cpus && self.division.isolated.is_empty()).then(|| {
                let reason = "no CPU is isolated: --isolate 2-3 names those that should be";
                Judgement::new(Outcome::NotApplicable, reason)
            })
        })
    }

    /// Why the rule is not asked, if a condition of it does not hold.
    fn unmet(&self, condition: &Condition) -> Option<Judgement> {
        let Condition { fact, want } = condition;
        let reading = self.survey.read(fact);
        let aside = |state: &str| {
            Judgement::new(Outcome::NotApplicable, format!("only where {fact} {want}; it is {state}"))
        };
        match &reading.value {
            Fact::Value(value) => match want.holds(value, self.division) {
                Ok(true) => None,
                Ok(false) => Some(aside(&shown(value))),
                Err(mismatch) => Some(Judgement::mismatch(fact, &mismatch)),
            },
            Fact::Absent => (want.holds_for_absent() != Some(true)).then(|| aside("absent")),
            Fact::Unreadable(errno) => {
                let reason = format!("whether {fact} {want} cannot be read: {}", errno_in_words(*errno));
                Some(Judgement::new(Outcome::Unreadable, reason))
            }
            Fact::Unsupported => Some(aside("unknown")),
        }
    }

    /// Why the rule is not asked, if a condition that speaks against it is known to hold.
    fn met(&self, condition: &Condition) -> Option<Judgement> {
        let Condition { fact, want } = condition;
        let holds = match &self.survey.read(fact).value {
            Fact::Value(value) => want.holds(value, self.division) == Ok(true),
            Fact::Absent => want.holds_for_absent() == Some(true),
            Fact::Unreadable(_) | Fact::Unsupported => false,
        };
        holds.then(|| Judgement::new(Outcome::NotApplicable, format!("not where {fact} {want}")))
    }

    fn judged(&self, rule: &Rule, want: &Want, reading: &Reading) -> Judgement {
        match &reading.value {
            Fact::Value(value) => match want.holds(value, self.division) {
                Ok(true) => Judgement::plain(Outcome::Passed),
                Ok(false) => {
                    Judgement { offenders: self.offenders(want, value), ..Judgement::plain(Outcome::Failed) }
                }
                Err(mismatch) => Judgement::mismatch(&rule.fact, &mismatch),
            },
            Fact::Absent => absent(rule, want),
            Fact::Unreadable(errno) => Judgement::new(Outcome::Unreadable, errno_in_words(*errno)),
            Fact::Unsupported => Judgement::plain(Outcome::Unsupported),
        }
    }

    /// The items of a list that failed.
    fn offenders(&self, want: &Want, value: &Value) -> Vec<Offender> {
        let items = want.failing(value, self.division).into_iter();
        items.map(|item| Offender { name: item.name.clone(), value: item.value.clone() }).collect()
    }

    fn finding(
        &self,
        rule: &Rule,
        asked: Option<(Asker, &Want)>,
        judgement: Judgement,
        evidence: Vec<Evidence>,
    ) -> Finding {
        Finding {
            rule: rule.id.clone(),
            layer: rule.layer.clone(),
            title: rule.title.clone(),
            problem: rule.problem.clone(),
            severity: self.severity(rule),
            grade: rule.evidence,
            outcome: judgement.outcome,
            reason: judgement.reason,
            offenders: judgement.offenders,
            wanted: asked.map(|(_, want)| self.division.fill(&want.to_string())).unwrap_or_default(),
            evidence,
            why: rule.why.clone(),
            next_boot: None,
            cure: self.cure(rule),
        }
    }

    /// Whether a kernel parameter is on the kernel command line already: its cure is done.
    fn is_given(&self, word: &str) -> bool {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match self.survey.read(&format!("boot:{name}")).value {
            Fact::Value(given) => given.to_string() == value,
            _ => false,
        }
    }

    /// The rule's cure, without what is done already. Lockdown forbids what is in debugfs (kernel/security/lockdown), so that ways through it come
    /// last there.
    fn cure(&self, rule: &Rule) -> Vec<Remedy> {
        let config = self.survey.kernel_config();
        let mut cure = rule.cure.clone();
        cure.boot.retain(|word| !self.is_given(&self.division.fill(word)));
        let mut cure = remedies(&cure, self.division, config.value());
        if matches!(self.survey.read("lockdown").value, Fact::Value(Value::Text(level)) if level != "none") {
            cure.order_by_key(|remedy| remedy.text.contains(DEBUGFS));
        }
        cure
    }

    /// How bad it is for the first of the profiles that says so.
    fn severity(&self, rule: &Rule) -> Severity {
        let own = |asker: Asker| match asker {
            Asker::Profile(profile) => rule.severity_for.get(&profile).copied(),
            Asker::Any => None,
        };
        self.profiles.chain().into_iter().find_map(own).unwrap_or(rule.severity)
    }
}

impl Judgement {
    fn plain(outcome: Outcome) -> Self {
        Self { outcome, reason: None, offenders: Vec::new() }
    }

    fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::plain(outcome) }
    }

    /// The kernel says something that the rule does not understand: nothing is known.
    fn mismatch(fact: &str, mismatch: &Mismatch) -> Self {
        Self::new(Outcome::Unreadable, format!("{fact}: {mismatch}"))
    }
}

fn absent(rule: &Rule, want: &Want) -> Judgement {
    let outcome = match (want.holds_for_absent(), rule.absent) {
        (Some(true), _) | (None, Absent::Pass) => Outcome::Passed,
        (Some(false), _) | (None, Absent::Fail) => Outcome::Failed,
        (None, Absent::NotApplicable) => Outcome::NotApplicable,
    };
    match outcome {
        Outcome::NotApplicable => Judgement::new(outcome, "absent here"),
        outcome => Judgement::plain(outcome),
    }
}

/// Failed before unreadable before the rest; worst first; what was measured before what was only repeated; then by
/// layer and rule, in the order of the files.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.order_by_key(|finding| (finding.outcome, Reverse(finding.severity), Reverse(finding.grade)));
}
