//! `worstcase why`: what stands behind an id, whichever command named it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use ::explain::cures;
use ::report::why::{Part, entry, family};
use audit::{Profile, Request, Rule, Rules, isolation};
use clap::Args;
use record::WarningId;
use serde::{Deserialize, Serialize};
use survey::Survey;
use units::CpuList;

use crate::commands::check::subject::{root_at, survey_of};
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Say what an id means, why it matters, what it costs and what helps
///
/// One place for what bench warns of, check and tune judge and change, explain blames and partition verify counts. A rule is
/// judged on this machine too.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase why rn-thp    a rule that check failed\n  \
    worstcase why steal     what bench warned of\n  \
    worstcase why           all ids")]
pub struct Why {
    /// A rule, a warning, a cause or a disturbance, as any command prints it [default: list them all]
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// What you run, for rules: isolated, poll or general; stock, rt or evl; guest or host; several with commas [default: what the machine is]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    profile: Vec<Profile>,

    /// CPUs that are, or are to be, isolated, for rules [default: those that the kernel isolates]
    #[arg(long, value_name = "CPUS")]
    isolate: Option<CpuList>,

    /// Judge the machine whose /proc and /sys are in a directory, or in a file that worstcase snapshot wrote
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,
}

impl Why {
    pub fn run(self) -> Result<ExitCode> {
        let survey = || survey_of(&root_at(self.root.as_deref())?, self.isolate.as_ref());
        match &self.id {
            Some(id) => answer(id, &self.profile, survey)?,
            None => output::final_data(&all()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints what stands behind `id`; a rule is judged on the machine of `survey`.
pub fn answer(id: &str, profiles: &[Profile], survey: impl FnOnce() -> Result<Survey>) -> Result<()> {
    let rules = built_in()?;
    let text = match rules.get(id) {
        Some(rule) => of_rule(rule, &rules, profiles, &survey()?),
        None => {
            // A rival is warned of by bench and blamed by explain: both are meant.
            let measured = [of_warning(id, &rules)?, of_cause(id, &rules)];
            let meanings: Vec<String> = measured.into_iter().flatten().chain(of_disturbance(id)).collect();
            if meanings.is_empty() {
                return Err(unknown(id, &rules));
            }
            meanings.join("\n")
        }
    };
    output::final_data(&text)
}

fn built_in() -> Result<Rules> {
    Rules::built_in().map_err(|error| Error::new(error, ""))
}

fn of_rule(rule: &Rule, rules: &Rules, profiles: &[Profile], survey: &Survey) -> String {
    let request = Request { profiles: profiles.to_vec(), rules: vec![rule.id.clone()] };
    let audit = audit::audit(survey, rules.all(), &request);
    let style = output::style(Stream::Output);
    let of = |finding| ::report::findings::explain(rule, finding, &style);
    audit.findings.first().map(of).unwrap_or_default()
}

/// What stands behind a warning of a measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Doubt {
    /// Why it matters.
    why: String,
    /// What to do.
    cure: String,
    /// Rules that judge the same thing.
    #[serde(default)]
    rules: Vec<String>,
}

/// The warnings' texts by their ids.
fn doubts() -> Result<BTreeMap<String, Doubt>> {
    let json = machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/doubts.gz")));
    record::json::read(json.as_bytes()).map_err(|error| Error::new(error, ""))
}

fn of_warning(id: &str, rules: &Rules) -> Result<Option<String>> {
    let Some(warning) = WarningId::ALL.iter().find(|warning| warning.as_str() == id) else { return Ok(None) };
    let mut parts = vec![("named by", "bench, measure, report, explain".to_owned())];
    if let Some(doubt) = doubts()?.remove(id) {
        parts.extend([("why", doubt.why), ("cure", doubt.cure), ("rules", named(&doubt.rules, rules))]);
    }
    if warning.is_incomplete() {
        parts.push(("verdict", "inconclusive, whatever was measured".to_owned()));
    }
    parts.push(("source", "docs/evidence.md: who reads what, and when".to_owned()));
    Ok(Some(shown(id, warning.title(), &parts)))
}

fn of_cause(id: &str, rules: &Rules) -> Option<String> {
    let class = cures::CLASSES.into_iter().find(|class| name(class) == id).or_else(|| cause_in_words(id))?;
    let sort = cures::of(class);
    let ids: Vec<String> = sort.rules.iter().map(|&rule| rule.to_owned()).collect();
    let parts = [
        ("named by", "explain and bench --explain, as a cause of late wake-ups".to_owned()),
        ("cure", sort.advice.to_owned()),
        ("rules", named(&ids, rules)),
        ("source", "docs/explain.md".to_owned()),
    ];
    Some(shown(id, sort.words, &parts))
}

/// The cause whose words these are, as `explain` prints them, or that alone has them in its words.
fn cause_in_words(words: &str) -> Option<record::Class> {
    const SHORTEST: usize = 6;
    let bare = |words: &str| words.to_lowercase().replace("the ", "");
    let wanted = bare(words);
    let mut having =
        cures::CLASSES.into_iter().filter(|class| bare(cures::of(*class).words).contains(&wanted));
    let first = having.next().filter(|_| wanted.len() >= SHORTEST)?;
    having.next().is_none().then_some(first)
}

/// One meaning for each sort of disturbance that has the name, or the name behind its sort: `softirq RCU`.
fn of_disturbance(id: &str) -> Vec<String> {
    let meaning = |(kind, origin): (_, &isolation::Origin)| {
        let parts = [
            ("named by", format!("partition verify, as {}", name(&kind).replace('-', " "))),
            ("cure", origin.remedy.clone()),
            ("source", "docs/partition.md".to_owned()),
        ];
        shown(id, &origin.source, &parts)
    };
    let known = isolation::known_as(id);
    let is_sort = |word: &str| isolation::origins().any(|(kind, ..)| name(&kind) == word);
    let bare = id.split_once(' ').filter(|(sort, _)| known.is_empty() && is_sort(sort)).map(|(_, bare)| bare);
    known.into_iter().chain(bare.into_iter().flat_map(isolation::known_as)).map(meaning).collect()
}

fn shown(id: &str, words: &str, parts: &[Part]) -> String {
    let parts: Vec<Part> = parts.iter().filter(|(_, text)| !text.is_empty()).cloned().collect();
    entry(id, words, &parts, &output::style(Stream::Output))
}

/// Rules with what is so where they fail.
fn named(ids: &[String], rules: &Rules) -> String {
    let one = |id: &String| match rules.get(id) {
        Some(rule) => format!("{id} ({})", rule.problem),
        None => id.clone(),
    };
    ids.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The name of a variant in JSON: `interrupts-off`.
fn name(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// A family of ids: its heading, its ids with their words.
type Family = (String, Vec<(String, String)>);

fn families(rules: &Rules) -> Vec<Family> {
    let warnings = WarningId::ALL.iter().map(|id| (id.as_str().to_owned(), id.title().to_owned()));
    let causes = cures::CLASSES.iter().map(|class| (name(class), cures::of(*class).words.to_owned()));
    let of_layer = |layer: &audit::Layer| {
        let own = rules.all().iter().filter(|rule| rule.layer == layer.name);
        let entries = own.map(|rule| (rule.id.clone(), rule.title.clone())).collect();
        (format!("Rules, {} (check, tune, partition)", layer.name), entries)
    };
    let disturbances = isolation::origins().filter(|(_, names, _)| !is_general(names));
    let disturbances = disturbances.map(|(_, names, origin)| (names.join(" "), origin.source.clone()));
    let measured = [
        ("Warnings (bench, measure, report)".to_owned(), warnings.collect()),
        ("Causes of late wake-ups (explain)".to_owned(), causes.collect()),
    ];
    let counted = ("What disturbs a CPU (partition verify)".to_owned(), disturbances.collect());
    measured.into_iter().chain(rules.layers().iter().map(of_layer)).chain([counted]).collect()
}

/// What stands for everything else of its kind has no name.
fn is_general(names: &[String]) -> bool {
    names.iter().all(|name| name == "*")
}

fn all() -> Result<String> {
    let style = output::style(Stream::Output);
    let families = families(&built_in()?);
    let texts: Vec<String> = families.iter().map(|(head, entries)| family(head, entries, &style)).collect();
    Ok(texts.join("\n"))
}

fn unknown(id: &str, rules: &Rules) -> Error {
    let families = families(rules);
    let ids = families.iter().flat_map(|(_, entries)| entries.iter().map(|(id, _)| id.as_str()));
    let hint = failure::did_you_mean(id, ids, "worstcase why lists every id");
    Error::new(format!("there is no rule, warning, cause or disturbance `{id}`"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_explain_and_partition_verify_print_is_known() {
        let rules = built_in().unwrap();
        for words in ["the hypervisor or the firmware had the CPU", "hypervisor or firmware", "hypervisor"] {
            assert!(of_cause(words, &rules).is_some_and(|text| text.starts_with(words)), "{words}");
        }
        assert_eq!(of_cause("the ", &rules), None);
        for name in ["softirq RCU", "interrupt LOC"] {
            assert!(!of_disturbance(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn every_warning_has_a_reason_and_a_cure() {
        let doubts = doubts().unwrap();
        let rules = built_in().unwrap();
        let place = "crates/worstcase/src/commands/why/doubts.toml";
        for id in WarningId::ALL {
            let doubt = doubts.get(id.as_str()).unwrap_or_else(|| panic!("{id} lacks a table in {place}"));
            assert!(!doubt.why.is_empty() && !doubt.cure.is_empty(), "{id}: a text is empty in {place}");
            assert!(doubt.rules.iter().all(|rule| rules.get(rule).is_some()), "{id}: {:?}", doubt.rules);
        }
        let is_gone = |id: &&String| !WarningId::ALL.iter().any(|own| own.as_str() == *id);
        let gone: Vec<_> = doubts.keys().filter(is_gone).collect();
        assert!(gone.is_empty(), "there are no such warnings: take {gone:?} out of {place}");
    }

    #[test]
    fn every_id_has_an_answer_and_stands_once_in_its_family() {
        let rules = built_in().unwrap();
        for (family, entries) in families(&rules) {
            let mut seen = std::collections::BTreeSet::new();
            // As the line has it, and each name of it.
            let shown = entries.iter().map(|(id, _)| id.as_str()).filter(|id| id.contains(' '));
            assert!(shown.clone().all(|id| !of_disturbance(id).is_empty()), "{family}");
            for name in entries.iter().flat_map(|(id, _)| id.split(' ')) {
                let is_answered = rules.get(name).is_some()
                    || of_warning(name, &rules).unwrap().is_some()
                    || of_cause(name, &rules).is_some()
                    || !of_disturbance(name).is_empty();
                assert!(is_answered, "{name}");
                assert!(
                    family.starts_with("What disturbs") || seen.insert(name.to_owned()),
                    "{family} has {name} twice"
                );
            }
        }
    }

    #[test]
    fn a_name_of_two_disturbances_has_two_answers() {
        assert_eq!(of_disturbance("SCHED").len(), 2, "softirq and tick");
        assert_eq!(of_disturbance("LOC arch_timer").len(), 1);
        assert!(of_disturbance("LOC BLOCK").is_empty() && of_disturbance(" ").is_empty());
    }

    /// What a word stands for in a command that is meant as a pattern.
    fn example(word: &str) -> &str {
        match word {
            "CPUS" | "PID" => "1",
            "..." => "--kernel=debian-6.1-amd64",
            word => word,
        }
    }

    /// The command that a text begins to name: the most words of it that are one.
    fn command_in(text: &str) -> Option<Vec<&str>> {
        let words: Vec<&str> =
            text.split_whitespace().map(|word| word.trim_end_matches([':', ';'])).collect();
        let is_one = |words: &[&str]| {
            let words = std::iter::once("worstcase").chain(words.iter().map(|word| example(word)));
            crate::commands::all().try_get_matches_from(words).is_ok()
        };
        (1..=words.len()).rev().map(|count| words[..count].to_vec()).find(|words| is_one(words))
    }

    #[test]
    fn every_command_in_a_cure_is_one() {
        let doubts = doubts().unwrap();
        let cures: Vec<&str> = (isolation::origins().map(|(_, _, origin)| origin.remedy.as_str()))
            .chain(doubts.values().map(|doubt| doubt.cure.as_str()))
            .chain(cures::CLASSES.iter().map(|class| cures::of(*class).advice))
            .collect();
        let named = cures.iter().flat_map(|cure| cure.split("worstcase ").skip(1));
        let is_named = |text: &&str| text.split_whitespace().next().is_some_and(crate::commands::is_command);
        let named: Vec<&str> = named.filter(is_named).collect();
        assert!(named.len() > 10, "{named:?}");
        for text in named {
            let text = text.split([',', ')']).next().unwrap();
            assert!(command_in(text).is_some(), "worstcase {text}");
        }
    }
}
