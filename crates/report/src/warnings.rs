//! Warnings as a reader wants them: each doubt once, weightiest first, with the loads that it was met under.

use record::verdict::Verdict;
use record::{Effect, Record, Warning, WarningId};
use units::InOrder;

/// One kind of doubt, over the whole run.
pub(crate) struct Doubt {
    pub id: WarningId,
    /// The heaviest effect that any of its warnings has.
    pub effect: Effect,
    /// What was read, each thing once.
    pub findings: Vec<Finding>,
    /// What to do about it, each thing once.
    pub cures: Vec<String>,
}

/// One thing that was read.
pub(crate) struct Finding {
    pub evidence: String,
    /// The loads that it was met under; empty where it is about the run as a whole.
    pub loads: Vec<String>,
}

impl Finding {
    /// `idle, cpu`, or nothing where it is about the run or was met under all of `all` loads.
    pub fn place(&self, all: usize) -> Option<String> {
        (!self.loads.is_empty() && self.loads.len() < all).then(|| self.loads.join(", "))
    }
}

/// The doubts of a record: those that make it inconclusive first, then in the order of the catalogue.
pub(crate) fn doubts(record: &Record) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for warning in &record.warnings {
        take(&mut doubts, warning, None);
    }
    for scenario in &record.scenarios {
        for warning in &scenario.warnings {
            take(&mut doubts, warning, Some(&scenario.head.planned.load));
        }
    }
    // Without a requirement a doubt about the environment changes no verdict.
    if record.header.plan.limit.is_none() && record.judgement.verdict != Verdict::Fail {
        let of_environment = doubts.iter_mut().filter(|doubt| !doubt.id.is_incomplete());
        of_environment.for_each(|doubt| doubt.effect = Effect::Note);
    }
    doubts.order_by_key(|doubt| (std::cmp::Reverse(doubt.effect), doubt.id));
    // Where a few are shown, they are not the least ones.
    doubts.iter_mut().for_each(|doubt| {
        doubt.findings.order_by_key(|finding| std::cmp::Reverse(share(&finding.evidence)));
    });
    doubts
}

/// The first share in a text, in thousandths of a percent; 0 where it has none.
fn share(evidence: &str) -> u64 {
    let before = evidence.split(" %").next().filter(|before| before.len() < evidence.len());
    let number = before.and_then(|before| before.rsplit(' ').next()?.parse::<f64>().ok());
    number.map_or(0, |percent| (percent * 1000.0) as u64)
}

/// How many different loads were measured.
pub(crate) fn load_count(record: &Record) -> usize {
    let mut loads: Vec<_> = record.scenarios.iter().map(|scenario| &scenario.head.planned.load).collect();
    loads.sort_unstable();
    loads.dedup();
    loads.len()
}

/// What an effect is called.
pub(crate) fn effect_word(effect: Effect) -> &'static str {
    match effect {
        Effect::Note => "note",
        Effect::Inconclusive => "makes a pass inconclusive",
    }
}

fn take(doubts: &mut Vec<Doubt>, warning: &Warning, load: Option<&String>) {
    let place = doubts.iter().position(|doubt| doubt.id == warning.id).unwrap_or_else(|| {
        doubts.push(Doubt {
            id: warning.id,
            effect: warning.effect,
            findings: Vec::new(),
            cures: Vec::new(),
        });
        doubts.len() - 1
    });
    let doubt = &mut doubts[place];
    doubt.effect = doubt.effect.max(warning.effect);
    if !warning.cure.is_empty() && !doubt.cures.contains(&warning.cure) {
        doubt.cures.push(warning.cure.clone());
    }
    doubt.add(&warning.evidence, load);
}

impl Doubt {
    fn add(&mut self, evidence: &str, load: Option<&String>) {
        let known = self.findings.iter().position(|finding| finding.evidence == evidence);
        let place = known.unwrap_or_else(|| {
            self.findings.push(Finding { evidence: evidence.to_owned(), loads: Vec::new() });
            self.findings.len() - 1
        });
        let loads = &mut self.findings[place].loads;
        if let Some(load) = load.filter(|load| !loads.contains(load)) {
            loads.push(load.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_the_number_before_its_sign() {
        assert_eq!(share("CPU 1: 412 ms stolen, 4.1 % of the time"), 4_100);
        assert_eq!(share("CPU 1: 12 times"), 0);
        assert_eq!(share("99"), 0);
    }
}
