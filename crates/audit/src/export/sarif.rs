//! Static Analysis Results Interchange Format 2.1.0 (OASIS standard; section numbers below are its).

use serde_json::{Value, json};

use super::sentences;
use crate::finding::{Audit, Evidence, Finding, Outcome};

/// Where the standard's schema is.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The findings: a result a rule.
pub fn sarif(audit: &Audit) -> String {
    let rules: Vec<Value> = audit.findings.iter().map(rule).collect();
    let results: Vec<Value> =
        audit.findings.iter().enumerate().map(|(index, finding)| result(index, finding)).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "worstcase", "version": audit.tool_version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": { "profiles": audit.profiles, "verdict": audit.verdict },
        }],
    });
    printable::json(&serde_json::to_string_pretty(&log).unwrap_or_default()) + "\n"
}

/// A reportingDescriptor (3.49).
fn rule(finding: &Finding) -> Value {
    let cures: Vec<String> =
        finding.cure.iter().map(|cure| format!("{}: {}", cure.domain.name(), cure.text)).collect();
    json!({
        "id": finding.rule,
        "shortDescription": { "text": finding.title },
        "fullDescription": { "text": finding.why },
        "help": { "text": cures.join("\n") },
        "defaultConfiguration": { "level": finding.severity.name() },
        "properties": { "layer": finding.layer, "grade": finding.grade },
    })
}

/// A result (3.27). Only what failed has a level (3.27.10).
fn result(index: usize, finding: &Finding) -> Value {
    let (kind, level) = match finding.outcome {
        Outcome::Failed => ("fail", finding.severity.name()),
        Outcome::Passed => ("pass", "none"),
        Outcome::Unreadable => ("open", "none"),
        Outcome::Unsupported | Outcome::NotApplicable => ("notApplicable", "none"),
    };
    let places: Vec<Value> = finding.evidence.iter().take(1).flat_map(places).collect();
    json!({
        "ruleId": finding.rule,
        "ruleIndex": index,
        "kind": kind,
        "level": level,
        "message": { "text": sentences(finding) },
        "locations": places,
        "partialFingerprints": { "rule/v1": finding.rule },
    })
}

/// Files as such, everything else by its name (3.28).
fn places(evidence: &Evidence) -> Vec<Value> {
    let place = |from: &String| match from.split_whitespace().find(|word| word.starts_with('/')) {
        Some(path) => json!({ "physicalLocation": { "artifactLocation": { "uri": uri(path) } } }),
        None => json!({ "logicalLocations": [{ "name": from }] }),
    };
    evidence.from.iter().map(place).collect()
}

/// RFC 3986: what a path may hold as it is, the rest by its bytes.
fn uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
