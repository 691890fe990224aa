//! Files of one setting a line: modprobe.d(5), tmpfiles.d(5), sysfs.conf.

use super::super::reading::{Reading, lines};
use super::super::statements::{Statement, Write, command_words};
use super::super::{Remark, RemarkId, Target};
use crate::Severity;

pub fn read(text: &str, _: Target) -> Option<Reading> {
    let rows: Vec<(usize, Vec<&str>)> =
        lines(text).map(|(number, line)| (number, line.split_whitespace().collect())).collect();
    if rows.is_empty() {
        return None;
    }
    let all = |is: fn(&[&str]) -> bool| rows.iter().all(|(_, words)| is(words));
    let one: fn(usize, &[&str]) -> Reading = match () {
        () if all(is_modprobe) => modprobe,
        () if all(is_tmpfiles) => tmpfiles,
        () if all(is_sysfs) => sysfs,
        () => return None,
    };
    let mut reading = Reading { settings: rows.len(), ..Reading::default() };
    rows.iter().for_each(|(line, words)| reading.add(one(*line, words)));
    Some(reading)
}

/// Names before the dot of kernel parameters that are never modules (`bool` in Kconfig, or no option at all).
const BUILT_IN: [&str; 13] = [
    "intel_idle",
    "intel_pstate",
    "cpuidle",
    "rcutree",
    "rcupdate",
    "srcutree",
    "printk",
    "workqueue",
    "kernel",
    "sched",
    "tick_sched",
    "pcie_aspm",
    "watchdog_core",
];

fn is_modprobe(words: &[&str]) -> bool {
    let options =
        matches!(words[0], "options" | "option") && words.len() > 2 && !words[1].contains(['=', '/']);
    options || matches!(words[0], "blacklist" | "softdep" | "alias" | "install" | "remove") && words.len() > 1
}

fn modprobe(line: usize, words: &[&str]) -> Reading {
    let mut reading = Reading::default();
    if words[0] == "option" {
        let message = "modprobe knows no such command: options is meant";
        reading.remarks.push(Remark::new(
            line,
            RemarkId::Misspelt,
            Severity::Error,
            words.join(" "),
            message,
        ));
    }
    if words[0] == "blacklist" && BUILT_IN.contains(&words[1].replace('-', "_").as_str()) {
        let message = "is part of the kernel, never a module: there is nothing to keep from loading";
        reading.remarks.push(Remark::new(
            line,
            RemarkId::NoEffect,
            Severity::Error,
            words.join(" "),
            message,
        ));
    }
    if words[0].starts_with("option") && BUILT_IN.contains(&words[1].replace('-', "_").as_str()) {
        let message = "is part of the kernel, never a module: modprobe does not hand it this";
        reading.remarks.push(
            Remark::new(line, RemarkId::NoEffect, Severity::Error, words.join(" "), message)
                .instead(format!("{}.{} on the kernel command line", words[1], words[2])),
        );
    }
    if words[0].starts_with("option") {
        let named: Vec<String> = words[2..].iter().map(|word| format!("{}.{word}", words[1])).collect();
        reading.statements.extend(command_words(line, &named.join(" ")));
    }
    reading
}

fn is_tmpfiles(words: &[&str]) -> bool {
    let kind = words[0].trim_end_matches(['+', '!', '-', '=', '~', '^']);
    let is_kind = kind.len() == 1 && kind.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_kind && words.get(1).is_some_and(|path| path.starts_with('/'))
}

fn tmpfiles(line: usize, words: &[&str]) -> Reading {
    let mut reading = Reading::default();
    if words[0].starts_with('w') && words.len() < 7 {
        let message =
            "writes nothing: the value is the seventh column, behind - for mode, user, group and age";
        reading.remarks.push(Remark::new(
            line,
            RemarkId::Malformed,
            Severity::Error,
            words.join(" "),
            message,
        ));
    }
    if words[0].starts_with(['w', 'f']) && words.len() > 6 {
        let (path, value) = (words[1].to_owned(), words[6..].join(" "));
        let shown = words.join(" ");
        reading.statements.push(Statement::Write(Write { line, path, value, shown }));
    }
    reading
}

fn is_sysfs(words: &[&str]) -> bool {
    let begins = ["kernel/", "devices/", "module/", "class/", "block/", "bus/", "fs/"];
    let is_sysctl = words[0].matches('/').count() < 2;
    begins.iter().any(|start| words[0].starts_with(start)) && !is_sysctl && words.len() > 2 && words[1] == "="
}

fn sysfs(line: usize, words: &[&str]) -> Reading {
    let (path, value, shown) = (format!("/sys/{}", words[0]), words[2..].join(" "), words.join(" "));
    Reading { statements: vec![Statement::Write(Write { line, path, value, shown })], ..Reading::default() }
}
