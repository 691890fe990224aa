//! Findings in other programs' forms, read back by strict readers of those forms.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

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

/// An XML element, as far as JUnit needs one.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    children: Vec<Element>,
    text: String,
}

/// Reads well-formed XML of elements, attributes and texts; panics at anything else.
struct Xml<'a> {
    rest: &'a str,
}

impl<'a> Xml<'a> {
    fn document(text: &'a str) -> Element {
        let rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
        assert!(
            rest.chars()
                .all(|c| c == '\n' || c == '\t' || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}')))
        );
        let mut xml = Xml { rest };
        let root = xml.element();
        assert_eq!(xml.rest.trim(), "");
        root
    }

    fn expect(&mut self, text: &str) {
        self.rest =
            self.rest.strip_prefix(text).unwrap_or_else(|| panic!("no `{text}` before `{:.60}`", self.rest));
    }

    fn until(&mut self, end: &[char]) -> &'a str {
        let at = self.rest.find(end).unwrap();
        let (head, rest) = self.rest.split_at(at);
        self.rest = rest;
        head
    }

    fn element(&mut self) -> Element {
        self.expect("<");
        let mut element = Element { name: self.until(&[' ', '>', '/']).to_owned(), ..Element::default() };
        while self.rest.starts_with(' ') {
            self.expect(" ");
            let name = self.until(&['=']).to_owned();
            self.expect("=\"");
            let value = plain(self.until(&['"']));
            self.expect("\"");
            assert!(element.attributes.insert(name, value).is_none());
        }
        if self.rest.starts_with("/>") {
            self.expect("/>");
            return element;
        }
        self.expect(">");
        while !self.rest.starts_with("</") {
            if self.rest.starts_with('<') {
                element.children.push(self.element());
            } else {
                element.text.push_str(&plain(self.until(&['<'])));
            }
        }
        self.expect(&format!("</{}>", element.name));
        element
    }
}

fn plain(text: &str) -> String {
    assert!(!text.contains('<'));
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (entity, rest) = part.split_once(';').unwrap();
        let entities = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\'')];
        plain.push(entities.iter().find(|(name, _)| *name == entity).unwrap().1);
        plain.push_str(rest);
    }
    plain
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

/// A test point.
#[derive(Debug, PartialEq, Eq)]
struct Point {
    ok: bool,
    description: String,
    directive: String,
    diagnostics: Vec<(String, Value)>,
}

/// Reads TAP 13 with the escapes of TAP 14; panics at what is none.
fn points(text: &str) -> Vec<Point> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("TAP version 13"));
    let planned: usize = lines.next().unwrap().strip_prefix("1..").unwrap().parse().unwrap();
    let mut points: Vec<Point> = Vec::new();
    let mut within = false;
    for line in lines {
        match line {
            "  ---" => within = true,
            "  ..." => within = false,
            line if within => {
                let (key, value) = line.trim_start().split_once(": ").unwrap();
                points
                    .last_mut()
                    .unwrap()
                    .diagnostics
                    .push((key.to_owned(), serde_json::from_str(value).unwrap()));
            }
            line => points.push(point(line, points.len() + 1)),
        }
    }
    assert!(!within && points.len() == planned);
    points
}

fn point(line: &str, number: usize) -> Point {
    let (ok, rest) = line
        .strip_prefix("not ok ")
        .map_or_else(|| (true, line.strip_prefix("ok ").unwrap()), |rest| (false, rest));
    let rest = rest.strip_prefix(&format!("{number} - ")).unwrap();
    let unescaped = |text: &str| text.replace("\\#", "#").replace("\\\\", "\\");
    let directive = rest
        .char_indices()
        .find(|&(at, c)| c == '#' && rest[..at].chars().rev().take_while(|&c| c == '\\').count() % 2 == 0);
    let (description, directive) = directive.map_or((rest, ""), |(at, _)| (&rest[..at], &rest[at + 1..]));
    Point {
        ok,
        description: unescaped(description.trim()),
        directive: directive.trim().to_owned(),
        diagnostics: Vec::new(),
    }
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
