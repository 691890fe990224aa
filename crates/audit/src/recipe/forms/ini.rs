//! Files with sections: systemd's units and settings, tuned's profiles.

use super::super::reading::Reading;
use super::super::script::{commands, program};
use super::super::statements::{Statement, Write, command_words};
use super::super::{Remark, RemarkId, Target};
use super::super::{keys, services};
use super::lines;
use crate::Severity;

/// Sections of systemd's files that have keys here, or none that touch latency.
const SYSTEMD: [&str; 14] = [
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
            reading.add(exec(line, value));
        }
    }
    reading
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
            section => reading.remarks.extend(keys::remark(line, "tuned", section, key, value)),
        }
    }
    reading
}
