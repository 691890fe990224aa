//! udev(7): a line of comparisons and assignments with commas between them.

use super::super::nearest::nearest_of;
use super::super::reading::{Reading, lines};
use super::super::statements::{Statement, Write};
use super::super::{Remark, RemarkId, Target};
use crate::Severity;

/// Keys that are compared.
const COMPARED: [&str; 15] = [
    "ACTION",
    "DEVPATH",
    "KERNEL",
    "KERNELS",
    "NAME",
    "SYMLINK",
    "SUBSYSTEM",
    "SUBSYSTEMS",
    "DRIVER",
    "DRIVERS",
    "ATTRS",
    "TAGS",
    "TEST",
    "RESULT",
    "CONST",
];

/// Keys that are only assigned.
const ASSIGNED: [&str; 9] =
    ["OWNER", "GROUP", "MODE", "RUN", "LABEL", "GOTO", "OPTIONS", "SECLABEL", "IMPORT"];

/// Keys that may be either.
const BOTH: [&str; 5] = ["ATTR", "ENV", "TAG", "SYSCTL", "PROGRAM"];

struct Part<'a> {
    key: &'a str,
    attribute: &'a str,
    operator: &'a str,
    value: &'a str,
    quoted: bool,
}

pub fn read(text: &str, target: Target) -> Option<Reading> {
    whole(text, target).or_else(|| unclosed(text))
}

/// A line that begins as a rule and has an odd number of quotes.
fn unclosed(text: &str) -> Option<Reading> {
    let is_rule = |line: &str| {
        let begin = line.split(['=', '!']).next().unwrap_or_default();
        let key = begin.split('{').next().unwrap_or_default().trim();
        COMPARED.contains(&key) || ASSIGNED.contains(&key) || BOTH.contains(&key)
    };
    let mut reading = Reading { settings: lines(text).count(), ..Reading::default() };
    if reading.settings == 0 || !lines(text).all(|(_, line)| is_rule(line)) {
        return None;
    }
    for (line, rule) in lines(text).filter(|(_, rule)| rule.matches('"').count() % 2 == 1) {
        let message = "a quote is never closed: udev passes over the rule";
        let shown: String = rule.chars().take(60).collect();
        reading.remarks.push(Remark::new(line, RemarkId::Malformed, Severity::Error, shown, message));
    }
    (!reading.remarks.is_empty()).then_some(reading)
}

fn whole(text: &str, _: Target) -> Option<Reading> {
    let rules: Vec<(usize, Vec<Part>)> =
        lines(text).map(|(number, line)| Some((number, parts(line)?))).collect::<Option<_>>()?;
    let known = |part: &Part| {
        COMPARED.contains(&part.key) || ASSIGNED.contains(&part.key) || BOTH.contains(&part.key)
    };
    let is_rule = |parts: &Vec<Part>| parts.len() > 1 && parts.iter().any(known);
    if rules.is_empty() || !rules.iter().any(|(_, parts)| is_rule(parts)) {
        return None;
    }
    let mut reading = Reading { settings: rules.len(), ..Reading::default() };
    for (line, parts) in rules {
        for part in &parts {
            reading.remarks.extend(fault(part).map(|message| {
                let shown = format!("{}{}{}", part.key, part.operator, part.value);
                Remark::new(line, RemarkId::Malformed, Severity::Error, shown, message)
            }));
        }
        let sets = parts.iter().any(|part| !matches!(part.operator, "==" | "!="));
        if !sets && !parts.iter().any(|part| fault(part).is_some()) {
            let message = "compares everything and sets nothing: a value is set with one =";
            reading.remarks.push(Remark::new(
                line,
                RemarkId::NoEffect,
                Severity::Error,
                parts.last().map_or_else(String::new, |part| format!("{}=={}", part.key, part.value)),
                message,
            ));
        }
        reading.statements.extend(parts.iter().filter_map(|part| write(line, part)));
    }
    Some(reading)
}

/// The parts of a rule; nothing where the line is none.
fn parts(line: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_')?;
        let (key, after) = rest.split_at(end);
        let (attribute, after) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((attribute, after)) => (attribute, after),
            None => ("", after),
        };
        let after = after.trim_start();
        let operator =
            ["==", "!=", "+=", "-=", ":=", "="].into_iter().find(|operator| after.starts_with(operator))?;
        let after = after[operator.len()..].trim_start();
        let quoted = after.starts_with('"');
        let (value, after) = if quoted {
            after[1..].split_once('"')?
        } else {
            after.split_at(after.find([',', ' ']).unwrap_or(after.len()))
        };
        if key.is_empty() {
            return None;
        }
        parts.push(Part { key, attribute, operator, value, quoted });
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    Some(parts)
}

fn fault(part: &Part) -> Option<String> {
    let compares = matches!(part.operator, "==" | "!=");
    let all = || COMPARED.into_iter().chain(ASSIGNED).chain(BOTH);
    if !all().any(|key| key == part.key) {
        return nearest_of(part.key, all())
            .map(|meant| format!("there is no key {}: {meant} is meant", part.key));
    }
    let redirects = [" > ", " >> ", " | "].into_iter().any(|sign| part.value.contains(sign));
    if part.key == "RUN" && !compares && redirects && !part.value.contains("sh -c") {
        return Some("runs a program, not a shell: > and | are arguments of the program".to_owned());
    }
    if !part.quoted {
        return Some("values stand in double quotes".to_owned());
    }
    let only_compared = COMPARED.contains(&part.key) && !matches!(part.key, "NAME" | "SYMLINK");
    if only_compared && !compares {
        return Some(format!("{} is compared, with == or !=", part.key));
    }
    let is_octal =
        |text: &str| (3..=5).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    if part.key == "MODE" && !compares && !is_octal(part.value) && !part.value.contains(['$', '%']) {
        return Some(format!("the mode is octal, as 0660, not `{}`", part.value));
    }
    (ASSIGNED.contains(&part.key) && compares).then(|| format!("{} is assigned, with =", part.key))
}

/// A value for an attribute whose file is known whatever the device.
fn write(line: usize, part: &Part) -> Option<Statement> {
    let path = match part.attribute {
        _ if part.key != "ATTR" || part.operator != "=" => return None,
        "queue/scheduler" => "/sys/block/*/queue/scheduler",
        "power/control" => "/sys/bus/pci/devices/*/power/control",
        "link_power_management_policy" => "/sys/class/scsi_host/*/link_power_management_policy",
        _ => return None,
    };
    let shown = format!("ATTR{{{}}}=\"{}\"", part.attribute, part.value);
    Some(Statement::Write(Write { line, path: path.to_owned(), value: part.value.to_owned(), shown }))
}
