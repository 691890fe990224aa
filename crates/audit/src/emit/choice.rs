//! Which cures go together: each key once, the worse finding first, and none beside a rule that it conflicts with.

use std::collections::BTreeMap;

use machine::{CommandLine, grammar};

use crate::division::Division;
use crate::finding::{Domain, Finding};
use crate::remedy::BETWEEN;
use crate::rule::Rule;

/// What a finding's cure consists of.
type Parts = fn(&Finding, &Rule) -> Vec<String>;

/// Cures that are offered one after the other, the worst finding's first.
pub(super) struct Choice<'a> {
    /// The rules that somebody asks for by name.
    named: &'a [String],
    parts: Parts,
    key: fn(&str) -> String,
    /// What is wrong with all parts together.
    fault: fn(&str) -> Option<String>,
    /// What a key was set to, and by whom.
    taken: BTreeMap<String, (String, &'a str)>,
    rules: Vec<&'a Rule>,
    chosen: Chosen<'a>,
}

/// A finding with what cures it.
pub(super) struct Cured<'a> {
    /// What fails.
    pub finding: &'a Finding,
    /// Its rule, which knows the price.
    pub rule: &'a Rule,
    /// What no rule before it has set.
    pub parts: Vec<String>,
}

/// What was taken.
#[derive(Default)]
pub(super) struct Chosen<'a> {
    /// What is cured, and how.
    pub cures: Vec<Cured<'a>>,
    /// Each finding that a cure of this kind would help and that got none, and why.
    pub left_out: Vec<(&'a Finding, String)>,
    /// Findings that need a cure of another kind.
    pub others: Vec<&'a Finding>,
}

impl<'a> Choice<'a> {
    /// Of lines of a kernel configuration.
    pub fn of_config(named: &'a [String]) -> Self {
        Self::new(named, settings, |line| symbol(line).to_owned(), |_| None)
    }

    /// Of words of a kernel command line.
    pub fn of_boot(named: &'a [String]) -> Self {
        let key = |word: &str| word.split('=').next().unwrap_or_default().replace('-', "_");
        Self::new(named, |_, rule| rule.cure.boot.clone(), key, fault_of_line)
    }

    fn new(
        named: &'a [String],
        parts: Parts,
        key: fn(&str) -> String,
        fault: fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            named,
            parts,
            key,
            fault,
            taken: BTreeMap::new(),
            rules: Vec::new(),
            chosen: Chosen::default(),
        }
    }

    /// Takes the cure of `finding`, or notes why not.
    pub fn offer(&mut self, finding: &'a Finding, rule: &'a Rule, division: &Division) {
        let parts = (self.parts)(finding, rule);
        if parts.is_empty() {
            return self.chosen.others.push(finding);
        }
        match self.obstacle(rule, &parts, division) {
            Some(why) => self.chosen.left_out.push((finding, why)),
            None => self.take(finding, rule, &parts, division),
        }
    }

    fn take(&mut self, finding: &'a Finding, rule: &'a Rule, parts: &[String], division: &Division) {
        let filled: Vec<String> = parts.iter().map(|part| division.fill(part)).collect();
        let new = |part: &String| !self.taken.contains_key(&(self.key)(part));
        let parts: Vec<String> = filled.into_iter().filter(new).collect();
        for part in &parts {
            self.taken.insert((self.key)(part), (part.clone(), &rule.id));
        }
        self.rules.push(rule);
        self.chosen.cures.push(Cured { finding, rule, parts });
    }

    fn obstacle(&self, rule: &Rule, parts: &[String], division: &Division) -> Option<String> {
        if let Some(cost) = rule.reserved_cost().filter(|_| !self.named.contains(&rule.id)) {
            return Some(format!("{cost}: only where its rule is named"));
        }
        let excludes =
            |other: &&&Rule| other.conflicts.contains(&rule.id) || rule.conflicts.contains(&other.id);
        if let Some(other) = self.rules.iter().find(excludes) {
            return Some(format!("it conflicts with {}", other.id));
        }
        if division.isolated.is_empty() && parts.iter().any(|part| Division::is_needed_by(part)) {
            return Some("it needs isolated CPUs: --isolate 2-3".to_owned());
        }
        let contradicted = parts.iter().find_map(|part| {
            let part = division.fill(part);
            let (taken, by) = self.taken.get(&(self.key)(&part))?;
            (*taken != part).then(|| format!("{by} asks for {taken}, not {part}"))
        });
        let contradicted = contradicted.map(|why| why.replace("# CONFIG_", "CONFIG_"));
        contradicted.or_else(|| {
            let taken = self.taken.values().map(|(taken, _)| taken.clone());
            let all: Vec<String> = taken.chain(parts.iter().map(|part| division.fill(part))).collect();
            (self.fault)(&all.join(" "))
        })
    }

    /// All that was taken.
    pub fn made(self) -> Chosen<'a> {
        self.chosen
    }
}

/// The lines of its cure that kconfig lets be set.
fn settings(finding: &Finding, _: &Rule) -> Vec<String> {
    let settings = finding.cure.iter().filter(|remedy| remedy.domain == Domain::Config);
    settings.flat_map(|remedy| remedy.text.split(BETWEEN)).map(str::to_owned).collect()
}

/// A word that does nothing, or something else, beside the others of a kernel command line.
fn fault_of_line(words: &str) -> Option<String> {
    let line = CommandLine::parse(words);
    let misfit = grammar::together(&line, None).into_iter().next()?;
    let word = line.words.get(misfit.place)?;
    Some(format!("beside what is taken {} {}", word.name, misfit.fault.message))
}

/// `HZ` of `CONFIG_HZ=1000` and of `# CONFIG_HZ is not set`.
fn symbol(line: &str) -> &str {
    let line = line.trim_start_matches("# ").trim_start_matches("CONFIG_");
    line.split(['=', ' ']).next().unwrap_or_default()
}

impl Chosen<'_> {
    /// All parts, in their order.
    pub fn parts(&self) -> Vec<&str> {
        self.cures.iter().flat_map(|cured| cured.parts.iter().map(String::as_str)).collect()
    }
}
