//! Files with sections: systemd's units and settings, tuned's profiles.

use super::super::reading::{Reading, lines};
use super::super::script::{commands, program};
use super::super::statements::{Statement, Write, command_words};
use super::super::{Remark, RemarkId, Target};
use super::super::{keys, services};
use crate::Severity;

/// Sections of systemd's files that have keys here, or none that touch latency.
const SYSTEMD: [&str; 15] = [
    "Unit",
    "Service",
    "Install",
    "Slice",
    "Scope",
    "Socket",
    "Mount",
    "Swap",
    "Timer",
    "Path",
    "Manager",
    "Automount",
    "Target",
    "Login",
    "Container",
];

/// Plugins of tuned, whose names sections have.
const TUNED: [&str; 22] = [
    "main",
    "variables",
    "sysctl",
    "sysfs",
    "bootloader",
    "cpu",
    "vm",
    "scheduler",
    "script",
    "disk",
    "net",
    "audio",
    "video",
    "usb",
    "modules",
    "mounts",
    "selinux",
    "service",
    "systemd",
    "eeepc_she",
    "irqbalance",
    "rtentsk",
];

pub fn read(text: &str, _: Target) -> Option<Reading> {
    let sections: Vec<&str> = lines(text).filter_map(|(_, line)| section(line)).collect();
    let (_, first) = lines(text).find(|(_, line)| !line.starts_with(';'))?;
    section(first)?;
    if sections.iter().any(|section| SYSTEMD.contains(section)) {
        return Some(systemd(text));
    }
    sections.iter().any(|section| TUNED.contains(section)).then(|| tuned(text))
}

fn section(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))).then_some(name)
}

/// Each `key = value` with its section.
fn entries(text: &str) -> Vec<(usize, &str, &str, &str)> {
    let mut current = "";
    let mut entries = Vec::new();
    for (number, line) in lines(text).filter(|(_, line)| !line.starts_with(';')) {
        match (section(line), line.split_once('=')) {
            (Some(name), _) => current = name,
            (None, Some((key, value))) => entries.push((number, current, key.trim(), value.trim())),
            (None, None) => {}
        }
    }
    entries
}

fn systemd(text: &str) -> Reading {
    let mut reading = Reading::default();
    let entries = entries(text);
    reading.remarks.extend(services::together(&entries));
    for (line, section, key, value) in entries {
        reading.settings += 1;
        reading.remarks.extend(services::key(line, section, key, value));
        if keys::key("systemd", section, key).is_some_and(|key| key.value == keys::Value::Command) {
            reading.remarks.extend(expanded(line, value));
            reading.add(exec(line, value));
        }
    }
    reading
}

/// A variable of the script that a shell in the unit gets: systemd puts its own value, or nothing, in the place of `${NAME}`
/// before the shell sees it (systemd.service(5), "Command lines").
fn expanded(line: usize, value: &str) -> Option<Remark> {
    let is_script = ["sh -c ", "bash -c ", "sh -ec ", "bash -ec "].iter().any(|shell| value.contains(shell));
    let is_set = |name: &str| {
        [format!("for {name} in"), format!("read {name}"), format!("read -r {name}"), format!("{name}=")]
            .iter()
            .any(|sign| value.contains(sign.as_str()))
    };
    let mut names = value.match_indices("${").filter(|(at, _)| !value[..*at].ends_with('$'));
    let name = names.find_map(|(at, sign)| {
        let name = value[at + sign.len()..].split_once('}')?.0;
        (is_script && is_set(name)).then_some(name)
    })?;
    let message = "systemd replaces this before the shell runs, with a variable of its own or with nothing";
    Some(
        Remark::new(line, RemarkId::NoEffect, Severity::Error, format!("${{{name}}}"), message)
            .instead(format!("$${{{name}}}")),
    )
}

/// systemd starts the program itself: only what a shell in it gets is a shell's.
fn exec(line: usize, value: &str) -> Reading {
    let mut reading = Reading::default();
    let value = value.trim_start_matches(['-', '+', '@', '!', ':']);
    for simple in commands(value) {
        let redirects = !simple.targets.is_empty() || simple.reads.is_some();
        if redirects {
            reading.remarks.push(
                Remark::new(
                    line,
                    RemarkId::NoEffect,
                    Severity::Error,
                    value.chars().take(60).collect::<String>(),
                    "systemd runs no shell: > and | are arguments of the program",
                )
                .instead(format!("/bin/sh -c '{value}'")),
            );
            break;
        }
        if matches!(program(simple.command()), "sh" | "bash" | "chrt" | "taskset" | "sysctl") {
            reading.add(Reading::of_command(&simple).moved(line - 1));
        }
    }
    reading
}

fn tuned(text: &str) -> Reading {
    let mut reading = Reading::default();
    for (line, section, key, value) in entries(text) {
        reading.settings += 1;
        match section {
            "sysctl" if !key.contains('.') => {
                reading.remarks.extend(keys::remark(line, "tuned", section, key, value));
            }
            "sysctl" => reading.statements.push(Statement::Sysctl {
                line,
                name: key.to_owned(),
                value: value.to_owned(),
            }),
            "bootloader" if key.starts_with("cmdline") => {
                reading
                    .statements
                    .extend(command_words(line, value.trim_start_matches('+').trim_matches('"')));
            }
            "sysfs" if key.starts_with('/') => reading.statements.push(Statement::Write(Write {
                line,
                path: key.to_owned(),
                value: value.to_owned(),
                shown: format!("{key}={value}"),
            })),
            "scheduler" if key.starts_with("group.") => reading.remarks.extend(group(line, key, value)),
            section => reading.remarks.extend(keys::remark(line, "tuned", section, key, value)),
        }
    }
    reading
}

/// `group.NAME=RULE_PRIORITY:POLICY:PRIORITY:AFFINITY:PATTERN` (tuned's plugin_scheduler.py).
fn group(line: usize, key: &str, value: &str) -> Option<Remark> {
    let parts: Vec<&str> = value.splitn(5, ':').map(str::trim).collect();
    let message = match parts.as_slice() {
        [rule, ..] if rule.parse::<i64>().is_err() => "begins with the rule's priority, a number".to_owned(),
        [_, policy, ..] if !matches!(*policy, "f" | "b" | "r" | "o" | "*") => {
            format!("has one letter for the policy, f, b, r, o or *, not `{policy}`")
        }
        [_, _, priority, ..] if *priority != "*" && priority.parse::<i8>().is_err() => {
            format!("has a number or * for the priority, not `{priority}`")
        }
        [_, _, _, _, _] => return None,
        _ => "has five parts: rule priority, policy, priority, affinity, pattern".to_owned(),
    };
    Some(Remark::new(line, RemarkId::Malformed, Severity::Error, format!("{key}={value}"), message))
}
