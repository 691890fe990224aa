//! Findings in other programs' forms, read back by strict readers of those forms.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::forms::{Element, Xml, counted, harness_passes, points};
use crate::support::{audit_of_everything, rules};
use audit::export::{junit, sarif, tap};
use audit::{Audit, Outcome, Severity};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

/// What SARIF 2.1.0 (OASIS, with errata 01) allows of what we use, by its own names; the sections are its.
mod standard {
    use super::*;

    /// 3.13
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Log {
        #[serde(rename = "$schema")]
        pub schema: String,
        pub version: String,
        pub runs: Vec<Run>,
    }

    /// 3.14
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Run {
        pub tool: Tool,
        pub results: Vec<Finding>,
        pub column_kind: String,
        #[allow(dead_code)]
        pub properties: Value,
    }

    /// 3.18
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Tool {
        pub driver: Driver,
    }

    /// 3.19
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Driver {
        pub name: String,
        #[allow(dead_code)]
        pub version: String,
        pub rules: Vec<Rule>,
    }

    /// 3.49
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Rule {
        pub id: String,
        pub short_description: Message,
        pub full_description: Message,
        #[allow(dead_code)]
        pub help: Message,
        pub default_configuration: Configuration,
        #[allow(dead_code)]
        pub properties: Value,
    }

    /// 3.50
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Configuration {
        pub level: Level,
    }

    /// 3.11, 3.12
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Message {
        pub text: String,
    }

    /// 3.27
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Finding {
        pub rule_id: String,
        pub rule_index: usize,
        pub kind: Kind,
        pub level: Level,
        pub message: Message,
        pub locations: Vec<Location>,
        pub partial_fingerprints: BTreeMap<String, String>,
    }

    /// 3.27.9
    #[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
    #[serde(rename_all = "camelCase")]
    pub enum Kind {
        NotApplicable,
        Pass,
        Fail,
        Review,
        Open,
        Informational,
    }

    /// 3.27.10
    #[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
    #[serde(rename_all = "camelCase")]
    pub enum Level {
        Warning,
        Error,
        Note,
        None,
    }

    /// 3.28
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct Location {
        pub physical_location: Option<PhysicalLocation>,
        #[serde(default)]
        pub logical_locations: Vec<LogicalLocation>,
    }

    /// 3.29
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub struct PhysicalLocation {
        pub artifact_location: ArtifactLocation,
    }

    /// 3.4
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ArtifactLocation {
        pub uri: String,
    }

    /// 3.33
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct LogicalLocation {
        pub name: String,
    }
}

fn check_sarif(audit: &Audit) {
    let log: standard::Log = serde_json::from_str(&sarif(audit)).unwrap();
    assert_eq!((log.version.as_str(), log.runs.len()), ("2.1.0", 1));
    assert!(log.schema.starts_with("https://") && log.schema.ends_with("/sarif-schema-2.1.0.json"));
    let run = &log.runs[0];
    assert_eq!((run.tool.driver.name.as_str(), run.column_kind.as_str()), ("worstcase", "unicodeCodePoints"));
    assert_eq!(run.results.len(), audit.findings.len());
    let mut ids: Vec<&str> = run.tool.driver.rules.iter().map(|rule| rule.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), run.results.len(), "a rule is described once");
    for (result, finding) in run.results.iter().zip(&audit.findings) {
        let rule = &run.tool.driver.rules[result.rule_index];
        assert_eq!(rule.id, result.rule_id);
        assert!(rule.default_configuration.level != standard::Level::None, "{}", rule.id);
        assert!(
            [&rule.short_description, &rule.full_description, &result.message]
                .iter()
                .all(|words| !words.text.is_empty()),
            "{}: a text is empty",
            rule.id
        );
        let fails = result.kind == standard::Kind::Fail;
        assert_eq!(fails, finding.outcome == Outcome::Failed, "{}", rule.id);
        assert_eq!(fails, result.level != standard::Level::None, "{}: 3.27.10", rule.id);
        assert!(!result.partial_fingerprints.is_empty(), "{}", rule.id);
        for location in &result.locations {
            let uri = location.physical_location.as_ref().map(|place| place.artifact_location.uri.as_str());
            assert!(
                uri.is_none_or(|uri| uri.starts_with("file:///") && uri.is_ascii() && !uri.contains(' ')),
                "{uri:?}"
            );
            let is_named = location.logical_locations.iter().any(|place| !place.name.is_empty());
            assert!(uri.is_some() || is_named, "{}: a place without a name", rule.id);
        }
    }
}

#[test]
fn sarif_is_as_the_standard_says() {
    let audit = audit_of_everything(&rules());
    check_sarif(&audit);
    let log: standard::Log = serde_json::from_str(&sarif(&audit)).unwrap();
    let first = &log.runs[0].results[0];
    assert_eq!(
        (first.rule_id.as_str(), first.kind, first.level),
        ("rn-governor", standard::Kind::Fail, standard::Level::Error)
    );
    let uri = &first.locations[0].physical_location.as_ref().unwrap().artifact_location.uri;
    assert_eq!(uri, "file:///sys/devices/system/cpu/cpufreq/policy%2A/scaling_governor");
}

fn check_junit(audit: &Audit) {
    let root = Xml::document(&junit(audit));
    assert_eq!(root.name, "testsuites");
    let cases: Vec<&Element> = root.children.iter().flat_map(|suite| &suite.children).collect();
    assert_eq!(cases.len(), audit.findings.len());
    for counted in root.children.iter().chain([&root]) {
        let own: Vec<&Element> =
            if counted.name == "testsuite" { counted.children.iter().collect() } else { cases.clone() };
        let with = |child: &str| {
            own.iter().filter(|case| case.children.iter().any(|inner| inner.name == child)).count()
        };
        for (attribute, count) in [
            ("tests", own.len()),
            ("failures", with("failure")),
            ("errors", with("error")),
            ("skipped", with("skipped")),
        ] {
            assert_eq!(counted.attributes[attribute], count.to_string(), "{attribute}");
        }
    }
    for finding in &audit.findings {
        let case = cases.iter().find(|case| case.attributes["name"] == finding.rule).unwrap();
        assert_eq!(case.attributes["classname"], format!("worstcase.{}", finding.layer));
        let child = case.children.first().map(|child| child.name.as_str());
        let expected = match (finding.outcome, finding.severity) {
            (Outcome::Passed, _) => None,
            (Outcome::Failed, Severity::Error) => Some("failure"),
            (Outcome::Unreadable, Severity::Error) => Some("error"),
            _ => Some("skipped"),
        };
        assert_eq!(child, expected, "{}", finding.rule);
    }
}

#[test]
fn junit_is_well_formed_and_its_counts_are_right() {
    let audit = audit_of_everything(&rules());
    check_junit(&audit);
    let text = junit(&audit);
    let root = Xml::document(&text);
    let case = root
        .children
        .iter()
        .flat_map(|suite| &suite.children)
        .find(|case| case.attributes["name"] == "rn-thp");
    let failure = &case.unwrap().children[0];
    // A warning does not fail check, and does not fail a build.
    assert_eq!(failure.name, "skipped");
    assert!(failure.attributes["message"].starts_with("warning: "));
    assert!(failure.attributes["message"].contains("madvise (wanted = never). Cure: echo never >"));
}

fn check_tap(audit: &Audit) {
    let points = points(&tap(audit));
    assert_eq!(points.len(), audit.findings.len());
    let passes = points.iter().all(|point| point.ok || point.directive.starts_with("TODO"));
    let grave = |outcome| audit.with(outcome).any(|finding| finding.severity == Severity::Error);
    assert_eq!(
        passes,
        !grave(Outcome::Failed) && !grave(Outcome::Unreadable),
        "a harness says what the verdict says"
    );
    for (point, finding) in points.iter().zip(&audit.findings) {
        let skipped = point.directive.starts_with("SKIP");
        assert_eq!(point.ok && !skipped, finding.outcome == Outcome::Passed, "{point:?}");
        assert!(point.description.starts_with(&finding.rule), "{}: {point:?}", finding.rule);
    }
}

#[test]
fn tap_passes_where_the_verdict_does() {
    let audit = audit_of_everything(&rules());
    check_tap(&audit);
    let points = points(&tap(&audit));
    let of = |rule: &str| points.iter().find(|point| point.description.starts_with(rule)).unwrap();
    assert!(!of("rn-governor").ok && of("rn-governor").directive.is_empty());
    assert!(!of("rn-thp").ok && of("rn-thp").directive == "TODO warning");
    assert_eq!(of("rn-arm").directive, "SKIP only where architecture = aarch64; it is x86_64");
    assert!(!of("rn-stat").ok, "what could not be read is no pass");
}

proptest! {
    #[test]
    fn any_words_are_carried(words in proptest::collection::vec("[a-z#\\\\ \"<>&'\n\t\u{0}\u{7f}\u{fffe}]{0,12}|.{0,10}", 4)) {
        static AUDIT: LazyLock<Audit> = LazyLock::new(|| audit_of_everything(&rules()));
        let mut audit = AUDIT.clone();
        for finding in &mut audit.findings {
            finding.title.push_str(&words[0]);
            finding.problem.push_str(&words[0]);
            finding.why.clone_from(&words[1]);
            finding.why.push('x');
            finding.reason = Some(words[2].clone());
            for evidence in &mut finding.evidence {
                evidence.from = vec![format!("x{}", words[3]), format!("/{}", words[3])];
            }
        }
        check_sarif(&audit);
        check_junit(&audit);
        check_tap(&audit);
    }
}

/// What a terminal or a viewer of logs would obey, in a name that another user chose.
#[test]
fn no_form_carries_what_a_viewer_would_obey() {
    let mut audit = audit_of_everything(&rules());
    let hostile = "eth0\u{9b}2J\u{202e}gnp\u{2066}.\u{200f}\u{85}";
    for finding in &mut audit.findings {
        finding.problem.push_str(hostile);
        finding.reason = Some(hostile.to_owned());
        finding.evidence.iter_mut().for_each(|evidence| evidence.from = vec![hostile.to_owned()]);
    }
    for text in [junit(&audit), tap(&audit), sarif(&audit)] {
        assert!(text.contains("eth0"));
        let obeyed = text.chars().find(|c| !c.is_ascii() && (c.is_control() || hostile.contains(*c)));
        assert_eq!(obeyed, None);
    }
    let value: Value = serde_json::from_str(&sarif(&audit)).unwrap();
    assert!(value.to_string().contains('\u{202e}'), "the value is the same");
    check_tap(&audit);
    check_junit(&audit);
}

/// Every outcome with every severity.
fn any_outcome() -> impl Strategy<Value = (Outcome, Severity)> {
    use Outcome::{Failed, NotApplicable, Passed, Unreadable, Unsupported};
    let outcomes = [Passed, Failed, Unreadable, Unsupported, NotApplicable];
    let severities = [Severity::Error, Severity::Warning, Severity::Note];
    (proptest::sample::select(outcomes.to_vec()), proptest::sample::select(severities.to_vec()))
}

/// An audit with these outcomes, whose verdict is what the product makes of them.
fn made_up(outcomes: &[(Outcome, Severity)], words: &str, is_required: bool) -> Audit {
    static AUDIT: LazyLock<Audit> = LazyLock::new(|| audit_of_everything(&rules()));
    let mut audit = AUDIT.clone();
    let pattern = audit.findings[0].clone();
    let finding = |(index, (outcome, severity)): (usize, &(Outcome, Severity))| audit::Finding {
        rule: format!("made-up-{index}{words}"),
        layer: format!("{words}{}", index % 2),
        title: words.to_owned(),
        problem: words.to_owned(),
        reason: Some(words.to_owned()),
        outcome: *outcome,
        severity: *severity,
        ..pattern.clone()
    };
    audit.findings = outcomes.iter().enumerate().map(finding).collect();
    audit.verdict = audit::verdict(&audit.findings, is_required);
    audit
}

/// A build fails in JUnit exactly where the exit code is the one for failed, and passes in either form exactly where it is 0.
fn agrees_with_the_exit_code(audit: &Audit) {
    let code = audit.verdict.exit_code();
    let [tests, failures, errors, skipped] = counted(&junit(audit));
    assert_eq!(failures > 0, code == 1, "{failures} failures, exit code {code}");
    assert_eq!(failures + errors == 0, code == 0, "{errors} errors, exit code {code}");
    assert_eq!(harness_passes(&tap(audit)), code == 0, "{}", tap(audit));
    let passed = audit.with(Outcome::Passed).count();
    assert_eq!(tests - failures - errors - skipped, passed, "what is unknown passes nowhere");
    let points = points(&tap(audit));
    let ok = points.iter().filter(|point| point.ok && point.directive.is_empty()).count();
    assert_eq!((points.len(), ok), (tests, passed), "both forms have the same cases");
}

proptest! {
    #[test]
    fn forms_agree_with_the_exit_code(
        outcomes in proptest::collection::vec(any_outcome(), 0..7),
        words in "[a-z#<>&'\"\\\\ ]{0,9}|\\PC{0,9}|.{0,9}",
        is_required in any::<bool>(),
    ) {
        agrees_with_the_exit_code(&made_up(&outcomes, &words, is_required));
    }
}

#[test]
fn one_outcome_of_each_kind_and_none_at_all_agree_with_the_exit_code() {
    agrees_with_the_exit_code(&made_up(&[], "", false));
    assert!(tap(&made_up(&[], "", true)).contains("not ok 1 - verdict: no rule could be judged"));
    for outcome in
        [Outcome::Passed, Outcome::Failed, Outcome::Unreadable, Outcome::Unsupported, Outcome::NotApplicable]
    {
        for severity in [Severity::Error, Severity::Warning, Severity::Note] {
            agrees_with_the_exit_code(&made_up(&[(outcome, severity)], "x", true));
        }
    }
}
