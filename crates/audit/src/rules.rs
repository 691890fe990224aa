//! The rule base: every rule of `rules/*.toml`, built into the binary.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::rule::{Grade, Rule};
use crate::{Action, Cure, Division};

/// The files of the rule base, each with its layer.
const FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rules.json.gz"));

/// The papers that rules name, and what each is about (docs/sources.md).
pub const PAPERS: [(&str, &str); 5] = [
    ("Enea", "optimizing a P2041 board for latency"),
    ("EVL", "Xenomai 4: how to benchmark"),
    ("Enea 2013", "Korea Linux Forum: four ways to better performance"),
    ("Flatscher", "real-time optimizations"),
    ("Chevallier", "Smile: measuring the impacts of PREEMPT_RT"),
];

/// Rules that were read.
#[derive(Clone, Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    layers: Vec<Layer>,
}

/// A file of rules, or a directory of such files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The name of the file or directory: `kernel-config`.
    pub name: String,
    /// What its rules are about, in a sentence or two; may be empty.
    pub about: String,
}

/// What a file of rules holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    about: String,
    #[serde(default, rename = "rule")]
    rules: Vec<Rule>,
}

/// A file that does not parse.
#[derive(Debug, thiserror::Error)]
#[error("{files}: {message}")]
pub struct RulesError {
    files: String,
    message: String,
}

impl Rules {
    /// The rules built into the binary.
    ///
    /// # Errors
    /// [`RulesError`] where they are no rules; a test makes sure that they are.
    pub fn built_in() -> Result<Self, RulesError> {
        let json = machine::packed::text(FILES);
        let failed = |error: serde_json::Error| RulesError {
            files: "the rules of this program".to_owned(),
            message: error.to_string(),
        };
        let files: Vec<(String, File)> = record::json::read(json.as_bytes()).map_err(failed)?;
        Ok(Self::of(files))
    }

    /// The rules of `files` as people write them, each a layer's name and its text: for those who write rules.
    ///
    /// # Errors
    /// [`RulesError`] with the line that does not parse.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, RulesError> {
        let parse = |(layer, text): &(&str, &str)| {
            let failed = |error: toml::de::Error| RulesError {
                files: format!("rules/{layer}.toml"),
                message: error.to_string(),
            };
            Ok(((*layer).to_owned(), toml::from_str(text).map_err(failed)?))
        };
        files.iter().map(parse).collect::<Result<_, _>>().map(Self::of)
    }

    fn of(files: Vec<(String, File)>) -> Self {
        let (mut rules, mut layers) = (Vec::new(), Vec::new());
        for (layer, file) in files {
            rules.extend(file.rules.into_iter().map(|rule| Rule { layer: layer.clone(), ..rule }));
            add(&mut layers, &layer, &file.about);
        }
        Self { rules, layers }
    }

    /// All, in the order of the files.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// The layers, in the order of their files.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The symbols of the kernel's configuration that rules ask for, each once.
    pub fn symbols(&self) -> BTreeSet<&str> {
        let facts = self.all().iter().flat_map(|rule| {
            let conditions = rule.applies.iter().chain(&rule.unless).map(|condition| &condition.fact);
            [&rule.fact].into_iter().chain(&rule.also).chain(conditions)
        });
        let named =
            facts.filter_map(|fact| fact.strip_prefix("config:").or_else(|| fact.strip_prefix("config-on:")));
        named.flat_map(|symbols| symbols.split(',')).collect()
    }

    /// The rule of that name.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// What is wrong with the rules beyond their form, each with the rule's id: for those who write rules.
    pub fn faults(&self, is_fact: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let twice = self.rules.iter().filter(|rule| !seen.insert(&rule.id));
        let mut faults: Vec<String> =
            twice.map(|rule| format!("{}: a second rule of that id", rule.id)).collect();
        for rule in &self.rules {
            let found = rule_faults(rule)
                .into_iter()
                .chain(fact_faults(rule, &is_fact))
                .chain(self.conflict_faults(rule));
            faults.extend(found.map(|fault| format!("{} ({}.toml): {fault}", rule.id, rule.layer)));
        }
        faults
    }

    fn conflict_faults(&self, rule: &Rule) -> Vec<String> {
        let unknown = rule.conflicts.iter().filter(|id| self.get(id).is_none());
        unknown.map(|id| format!("conflicts with `{id}`, which is no rule")).collect()
    }
}

/// A layer of several files is about what they are about, one after the other.
fn add(layers: &mut Vec<Layer>, name: &str, about: &str) {
    match layers.iter_mut().find(|layer| layer.name == name) {
        Some(layer) => layer.about = format!("{} {about}", layer.about).trim().to_owned(),
        None => layers.push(Layer { name: name.to_owned(), about: about.to_owned() }),
    }
}

/// Longest title: a finding is one line of 80 columns with a mark before it and the id behind.
const LONGEST_TITLE: usize = 62;

fn rule_faults(rule: &Rule) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |wrong: bool, what: &str| {
        if wrong {
            faults.push(what.to_owned());
        }
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    fault(
        rule.id.is_empty() || !rule.id.chars().all(plain),
        "an id is lower-case letters, digits and hyphens",
    );
    fault(rule.title.is_empty(), "it has no title");
    fault(rule.title.chars().count() > LONGEST_TITLE, "its title is longer than 62 characters");
    fault(rule.problem.is_empty(), "it has no problem");
    fault(rule.problem.chars().count() > LONGEST_TITLE, "its problem is longer than 62 characters");
    fault(rule.problem.ends_with('.'), "its problem ends with a full stop");
    fault(rule.problem == rule.title, "its problem is its title");
    fault(rule.why.is_empty() || rule.why.contains('\n'), "its `why` is not one line");
    fault(rule.wanted.is_empty(), "no profile wants anything");
    fault(rule.source.is_empty(), "it has no source");
    fault(rule.evidence == Grade::Measured && rule.figure.is_none(), "it is measured and has no figure");
    fault(rule.cure.is_empty(), "it has no cure; say why with `none = \"...\"`");
    let is_written = !(rule.cure.runtime.is_empty() && rule.cure.actions.is_empty());
    fault(
        is_written != rule.gain.is_some(),
        "`gain` goes with a cure on the running system, and with no other",
    );
    fault(rule.change.is_some() != rule.gain.is_some(), "`change` goes with `gain`");
    fault(
        !rule.papers.iter().all(|name| PAPERS.iter().any(|(known, _)| known == name)),
        "a paper is none of docs/sources.md",
    );
    let costs = ["power", "throughput", "memory", "security", "diagnosis", "safety", "comfort", "machine"];
    fault(!rule.costs.keys().all(|kind| costs.contains(&kind.as_str())), "an unknown kind of cost");
    faults.extend(cure_faults(&rule.cure));
    faults
}

fn cure_faults(cure: &Cure) -> Vec<String> {
    let boot = cure.boot.iter().filter(|word| word.split_whitespace().count() != 1);
    let boot = boot.map(|word| format!("`{word}` is not one word of a kernel command line"));
    let config = cure.config.iter().filter(|line| !is_config_line(line));
    let config = config.map(|line| format!("`{line}` is neither `CONFIG_X=...` nor `# CONFIG_X is not set`"));
    let paths = cure.runtime.iter().filter(|write| !write.path.starts_with('/'));
    let paths = paths.map(|write| format!("`{}` is not a whole path", write.path));
    let commands: Vec<String> = cure.actions.iter().map(Action::command).collect();
    let texts =
        cure.runtime.iter().flat_map(|write| [&write.path, &write.value]).chain(&cure.boot).chain(&commands);
    let unfilled = texts.filter(|text| Division::default().fill(text).contains('{'));
    let unfilled = unfilled.map(|text| format!("`{text}` holds a word in braces that nothing fills in"));
    boot.chain(config).chain(paths).chain(unfilled).collect()
}

fn is_config_line(line: &str) -> bool {
    let symbol = |text: &str| {
        text.strip_prefix("CONFIG_").is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    match line.strip_prefix("# ") {
        Some(unset) => unset.strip_suffix(" is not set").is_some_and(symbol),
        None => line.split_once('=').is_some_and(|(name, value)| symbol(name) && !value.is_empty()),
    }
}

fn fact_faults(rule: &Rule, is_fact: &impl Fn(&str) -> bool) -> Vec<String> {
    let named = [&rule.fact]
        .into_iter()
        .chain(&rule.also)
        .chain(rule.applies.iter().chain(&rule.unless).map(|condition| &condition.fact));
    named.filter(|name| !is_fact(name)).map(|name| format!("nobody reads the fact `{name}`")).collect()
}
