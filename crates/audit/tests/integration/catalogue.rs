//! The catalogue of rules as a document, a page a layer: generated from the rules, committed, and true.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use audit::{Asker, Condition, Cure, Grade, Layer, Rule, Rules};

use crate::mend;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules")
}

#[test]
fn the_catalogue_is_what_the_rules_say() {
    let pages = pages(&Rules::built_in().unwrap());
    for (name, text) in &pages {
        mend::check_generated(&directory().join(name), text);
    }
    let committed = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name());
    let stray: Vec<_> = committed.filter(|name| !pages.contains_key(&*name.to_string_lossy())).collect();
    assert!(stray.is_empty(), "docs/rules has pages of layers that are no more: git rm {stray:?}");
}

/// File names and texts.
fn pages(rules: &Rules) -> BTreeMap<String, String> {
    let layers =
        rules.layers().iter().map(|layer| (format!("{}.md", layer.name), page(layer, &of(rules, layer))));
    layers.chain([("README.md".to_owned(), index(rules))]).collect()
}

fn of<'a>(rules: &'a Rules, layer: &Layer) -> Vec<&'a Rule> {
    rules.all().iter().filter(|rule| rule.layer == layer.name).collect()
}

const GENERATED: &str = "Generated from `rules/`; changes belong there.";
const SOURCES: &str = "Enea, EVL, Flatscher and Chevallier are [papers and talks](../sources.md).";

fn index(rules: &Rules) -> String {
    let mut text = format!("# Rules\n\n{GENERATED} There are {} rules. {SOURCES}\n", rules.all().len());
    for layer in rules.layers() {
        let own = of(rules, layer);
        write!(text, "\n## [{}]({}.md)\n\n{}| rule | what should be | severity | evidence |\n| --- | --- | --- | --- |\n", words(&layer.name), layer.name, about(layer)).unwrap();
        for rule in own {
            let row = format!(
                "| [{0}]({1}.md#{0}) | {2} | {3} | {4} |",
                rule.id,
                layer.name,
                cell(&rule.title),
                rule.severity.name(),
                grade(rule.evidence)
            );
            writeln!(text, "{row}").unwrap();
        }
    }
    text
}

fn about(layer: &Layer) -> String {
    if layer.about.is_empty() { String::new() } else { format!("{}\n\n", layer.about.trim()) }
}

fn page(layer: &Layer, rules: &[&Rule]) -> String {
    let head = format!("# {}\n\n{GENERATED}\n\n{}", words(&layer.name), about(layer));
    head + &rules.iter().map(|rule| section(rule)).collect::<Vec<_>>().join("\n")
}

fn words(name: &str) -> String {
    let words = name.replace('-', " ");
    words[..1].to_uppercase() + &words[1..]
}

fn section(rule: &Rule) -> String {
    let mut text = format!("## {}\n**{}.** {}\n\n", rule.id, rule.title, rule.why);
    let mut item = |head: &str, body: String| {
        if !body.is_empty() {
            writeln!(text, "- {head}: {body}").unwrap();
        }
    };
    let also = rule.also.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let beside = if also.is_empty() { String::new() } else { format!(" beside {also}") };
    item("where it fails", rule.problem.clone());
    item("judged", format!("`{}`{beside}", rule.fact));
    item("wanted", wanted(rule));
    let conditions = |conditions: &[Condition], between: &str| {
        conditions.iter().map(|condition| format!("`{condition}`")).collect::<Vec<_>>().join(between)
    };
    item("only where", conditions(&rule.applies, " and "));
    item("not where", conditions(&rule.unless, " or "));
    item("severity", severities(rule));
    item(
        "evidence",
        rule.figure.as_ref().map_or_else(
            || grade(rule.evidence).to_owned(),
            |figure| format!("{}: {figure}", grade(rule.evidence)),
        ),
    );
    item("likely gain", rule.gain.map_or_else(String::new, |gain| gain.name().to_owned()));
    for (kind, words) in &rule.costs {
        item(&format!("costs {kind}"), words.clone());
    }
    item("conflicts with", rule.conflicts.join(", "));
    item("contradicted", rule.contradiction.clone().unwrap_or_default());
    for (domain, cure) in cures(&rule.cure) {
        item(domain, cure);
    }
    item("papers", rule.papers.join(", "));
    item("source", rule.source.join("; "));
    text
}

fn wanted(rule: &Rule) -> String {
    let want = |(asker, want): (&Asker, &audit::Want)| match asker {
        Asker::Profile(profile) => format!("{profile} `{want}`"),
        Asker::Any => format!("any `{want}`"),
    };
    rule.wanted.iter().map(want).collect::<Vec<_>>().join(", ")
}

fn severities(rule: &Rule) -> String {
    let others = rule.severity_for.iter().map(|(profile, own)| format!("; {} for {profile}", own.name()));
    rule.severity.name().to_owned() + &others.collect::<String>()
}

fn cures(cure: &Cure) -> Vec<(&'static str, String)> {
    let code = |lines: &[String]| lines.iter().map(|line| format!("`{line}`")).collect::<Vec<_>>().join(", ");
    let writes: Vec<String> =
        cure.runtime.iter().map(|write| format!("`{}` to `{}`", write.value, write.path)).collect();
    let actions: Vec<String> = cure.actions.iter().map(audit::Action::command).collect();
    let words = |words: &Option<String>| words.clone().unwrap_or_default();
    vec![
        ("cure, now: write", writes.join(", ")),
        ("cure, now", actions.join("; ")),
        ("cure, now", words(&cure.command)),
        ("cure, kernel command line", code(&cure.boot)),
        ("cure, kernel config", code(&cure.config)),
        ("cure, firmware", words(&cure.firmware)),
        ("cure, application", words(&cure.application)),
        ("no cure here", words(&cure.none)),
    ]
}

fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Folklore => "folklore",
        Grade::Mechanism => "mechanism",
        Grade::Measured => "measured",
    }
}

/// Within a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
