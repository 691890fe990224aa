//! systemd's keys: which sections have them, also as properties of systemctl and systemd-run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::nearest::nearest_of;
use super::script::{program, unwrapped};
use super::{Remark, RemarkId, keys};
use crate::Severity;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/systemd.txt.gz"))));

static GROUPS: LazyLock<BTreeMap<&'static str, BTreeSet<&'static str>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &'static str| {
        let mut words = line.split(' ');
        Some((words.next()?, words.collect()))
    };
    lines.filter_map(entry).collect()
});

/// The groups of keys that a section has.
fn groups_of(section: &str) -> Vec<&str> {
    match section {
        "Service" | "Socket" | "Mount" | "Swap" => vec![section, "exec", "control"],
        "Slice" | "Scope" => vec![section, "control"],
        section => vec![section],
    }
}

/// The keys of a section; nothing for one that is not in the table.
fn keys_of(section: &str) -> Option<Vec<&'static str>> {
    GROUPS.get(section)?;
    let groups = groups_of(section).into_iter().filter_map(|group| GROUPS.get(group));
    Some(groups.flatten().copied().collect())
}

/// Sections that have a key.
fn sections_with(key: &str) -> Vec<&'static str> {
    let sections = GROUPS.keys().copied().filter(|section| !matches!(*section, "exec" | "control"));
    sections.filter(|section| keys_of(section).is_some_and(|keys| keys.contains(&key))).collect()
}

/// What is wrong with a key in a section, or with its value.
pub fn key(line: usize, section: &str, name: &str, value: &str) -> Option<Remark> {
    let Some(known) = keys_of(section) else { return keys::remark(line, "systemd", section, name, value) };
    let error = |id, message: String| {
        Some(Remark::new(line, id, Severity::Error, format!("{name}={value}"), message))
    };
    if known.contains(&name) {
        return keys::value_remark(line, "systemd", name, value);
    }
    if name.starts_with("X-") || name.is_empty() {
        return None;
    }
    let elsewhere = sections_with(name);
    if !elsewhere.is_empty() {
        let shown = elsewhere.join("], [");
        return error(RemarkId::Malformed, format!("belongs to [{shown}]: in [{section}] it is passed over"));
    }
    match nearest_of(name, known.into_iter()) {
        Some(meant) => error(RemarkId::Misspelt, format!("there is no such key: {meant} is meant"))
            .map(|remark| remark.instead(format!("{meant}={value}"))),
        None => error(RemarkId::Unknown, format!("systemd has no key {name}: it passes over the line")),
    }
}

/// Services that recipes for latency stop, start or mask.
const SERVICES: [&str; 25] = [
    "irqbalance",
    "tuned",
    "thermald",
    "cpufrequtils",
    "ondemand",
    "cpupower",
    "power-profiles-daemon",
    "auto-cpufreq",
    "stalld",
    "rtkit-daemon",
    "rtirq",
    "rngd",
    "chronyd",
    "chrony",
    "systemd-timesyncd",
    "unattended-upgrades",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "fstrim.timer",
    "bluetooth",
    "cups",
    "avahi-daemon",
    "ModemManager",
    "packagekit",
    "multipathd",
];

/// A service whose name is nearly one of these.
pub fn misspelt_service(line: usize, words: &[String]) -> Option<Remark> {
    const VERBS: [&str; 9] =
        ["stop", "start", "restart", "enable", "disable", "mask", "unmask", "is-active", "status"];
    let words = unwrapped(words);
    let operands: Vec<&str> =
        words.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let names: Vec<&str> = match (program(words), operands.as_slice()) {
        ("systemctl", [verb, names @ ..]) if VERBS.contains(verb) => names.to_vec(),
        ("service", [name, verb]) if VERBS.contains(verb) => vec![name],
        _ => return None,
    };
    names.into_iter().find_map(|name| {
        let bare = name.trim_end_matches([',', ';', '.']).trim_end_matches(".service");
        let meant =
            nearest_of(bare, SERVICES.into_iter()).filter(|meant| !meant.eq_ignore_ascii_case(bare))?;
        let message = format!("there is no such service: {meant} is meant");
        Some(Remark::new(line, RemarkId::Misspelt, Severity::Error, name.to_owned(), message).instead(meant))
    })
}

/// Properties of `systemctl set-property UNIT NAME=VALUE` and `systemd-run -p NAME=VALUE`.
pub fn remarks(line: usize, words: &[String]) -> Vec<Remark> {
    let words = unwrapped(words);
    let of = |text: &str, lasting: bool| {
        let (name, value) = text.split_once('=')?;
        property(line, name, value, lasting, words.iter().any(|word| word == "--scope"))
    };
    match program(words) {
        "systemctl" => {
            let Some(at) = words.iter().position(|word| word == "set-property") else { return Vec::new() };
            words[at + 1..]
                .iter()
                .filter(|word| !word.starts_with('-'))
                .filter_map(|word| of(word, true))
                .collect()
        }
        "systemd-run" => {
            let apart = words.windows(2).filter(|pair| matches!(pair[0].as_str(), "-p" | "--property"));
            let joined = words.iter().filter_map(|word| {
                word.strip_prefix("--property=")
                    .or_else(|| word.strip_prefix("-p").filter(|rest| rest.contains('=')))
            });
            apart.map(|pair| pair[1].as_str()).chain(joined).filter_map(|text| of(text, false)).collect()
        }
        _ => Vec::new(),
    }
}

/// Groups of keys that a scope has.
const SCOPE: &[&str] = &["control", "Unit", "Scope"];

/// A property; of a unit that runs already only those of its control group can be set.
fn property(line: usize, name: &str, value: &str, lasting: bool, scope: bool) -> Option<Remark> {
    let error = |id, message: String| {
        Some(Remark::new(line, id, Severity::Error, format!("{name}={value}"), message))
    };
    if name.contains(['$', '<', '{']) {
        return None;
    }
    let groups: &[&str] = if lasting {
        &["control", "Unit"]
    } else if scope {
        SCOPE
    } else {
        &["control", "Unit", "exec", "Service", "Scope", "Slice"]
    };
    let known: Vec<&str> = groups.iter().filter_map(|group| GROUPS.get(group)).flatten().copied().collect();
    if known.contains(&name) {
        return keys::value_remark(line, "systemd", name, value);
    }
    let is_program = GROUPS["exec"].contains(name) || GROUPS["Service"].contains(name);
    if groups == SCOPE && is_program {
        return error(
            RemarkId::NoEffect,
            "is no property of a scope, which runs in the caller's own process".to_owned(),
        );
    }
    if lasting && GROUPS["exec"].contains(name) {
        return error(
            RemarkId::NoEffect,
            "cannot be set of a unit that is loaded: systemctl edit, or a drop-in".to_owned(),
        );
    }
    match nearest_of(name, known.into_iter()) {
        Some(meant) => error(RemarkId::Misspelt, format!("there is no such property: {meant} is meant"))
            .map(|remark| remark.instead(format!("{meant}={value}"))),
        None => error(RemarkId::Unknown, format!("systemd has no property {name}")),
    }
}

/// A key with one value that stands twice in a section: systemd takes the later (systemd.syntax(7)).
fn replaced(entries: &[(usize, &str, &str, &str)]) -> Vec<Remark> {
    const SINGLE: [&str; 7] = [
        "CPUSchedulingPolicy",
        "CPUSchedulingPriority",
        "Nice",
        "LimitRTPRIO",
        "LimitMEMLOCK",
        "CPUQuota",
        "IOSchedulingClass",
    ];
    let of = |(at, (line, section, key, value)): (usize, &(usize, &str, &str, &str))| {
        let is_same = |other: &&(usize, &str, &str, &str)| {
            other.1 == *section && other.2 == *key && other.3 != *value && !other.3.is_empty()
        };
        let before = entries[..at].iter().find(is_same).filter(|_| SINGLE.contains(key))?;
        let message = format!("replaces line {}: systemd takes the later of the two", before.0);
        Some(Remark::new(*line, RemarkId::Duplicate, Severity::Error, format!("{key}={value}"), message))
    };
    entries.iter().enumerate().filter_map(of).collect()
}

/// What does not go together in the sections of one unit: `entries` are its line, section, key and value.
pub fn together(entries: &[(usize, &str, &str, &str)]) -> Vec<Remark> {
    let find = |name: &str| entries.iter().rev().find(|(_, _, key, value)| *key == name && !value.is_empty());
    let is_whole = find("ExecStart").is_some();
    let mut remarks = Vec::new();
    let policy = find("CPUSchedulingPolicy").map(|(.., value)| *value);
    if let Some((line, _, key, value)) = find("CPUSchedulingPriority").filter(|(.., value)| *value != "0") {
        let is_real_time = matches!(policy, Some("fifo" | "rr"));
        if !is_real_time
            && (is_whole || policy.is_some())
            && !policy.is_some_and(|policy| policy.contains(['$', '%']))
        {
            let message =
                "needs CPUSchedulingPolicy=fifo or rr: other policies have no priority, and the start fails";
            remarks.push(Remark::new(
                *line,
                RemarkId::Contradiction,
                Severity::Error,
                format!("{key}={value}"),
                message,
            ));
        }
    }
    remarks.extend(replaced(entries));
    let starts: Vec<_> = entries
        .iter()
        .filter(|(_, section, key, value)| *section == "Service" && *key == "ExecStart" && !value.is_empty())
        .collect();
    let is_reset = entries.iter().any(|(.., key, value)| *key == "ExecStart" && value.is_empty());
    let is_oneshot = find("Type").is_some_and(|(.., kind)| *kind == "oneshot");
    if let [_, .., (line, _, key, value)] = starts.as_slice() {
        if !is_oneshot && !is_reset {
            let message = "only Type=oneshot may have more than one ExecStart=: systemd refuses the unit";
            remarks.push(Remark::new(
                *line,
                RemarkId::Malformed,
                Severity::Error,
                format!("{key}={value}"),
                message,
            ));
        }
    }
    remarks.extend(without_permission(entries));
    remarks.extend(forbidden(entries));
    if let Some((line, _, key, value)) = find("WatchdogSec").filter(|_| {
        find("Type").is_none_or(|(.., kind)| !kind.starts_with("notify"))
            && find("NotifyAccess").is_none()
            && is_whole
    }) {
        let message = "the service must report to systemd, which Type=notify or NotifyAccess= lets it";
        remarks.push(Remark::new(
            *line,
            RemarkId::Assumption,
            Severity::Note,
            format!("{key}={value}"),
            message,
        ));
    }
    remarks
}

/// Commands that the unit's own protection refuses.
fn forbidden(entries: &[(usize, &str, &str, &str)]) -> Vec<Remark> {
    let is_on = |name: &str| {
        entries.iter().any(|(_, _, key, value)| *key == name && matches!(*value, "yes" | "true" | "on" | "1"))
    };
    let starts =
        entries.iter().filter(|(_, _, key, value)| key.starts_with("ExecStart") && !value.starts_with('+'));
    let fault = |value: &str| {
        let real_time = value.contains("chrt ")
            && [" -f", " -r", "--fifo", "--rr"].into_iter().any(|option| value.contains(option));
        let asks_itself =
            entries.iter().any(|(_, _, key, _)| matches!(*key, "LimitRTPRIO" | "CPUSchedulingPriority"));
        let writes = ["> /proc/sys", ">/proc/sys", "> /sys/", ">/sys/", "sysctl -w"]
            .into_iter()
            .any(|sign| value.contains(sign));
        match () {
            () if is_on("RestrictRealtime") && (real_time || asks_itself) => {
                Some("RestrictRealtime= refuses real-time policies to the service")
            }
            () if is_on("ProtectKernelTunables") && writes => {
                Some("ProtectKernelTunables= makes /proc/sys and /sys read-only for the service")
            }
            () => None,
        }
    };
    starts
        .filter_map(|(line, _, key, value)| {
            let shown = format!("{key}={value}");
            Some(Remark::new(*line, RemarkId::Contradiction, Severity::Error, shown, fault(value)?))
        })
        .collect()
}

/// A user without the right to real-time priorities whose program asks for one itself.
fn without_permission(entries: &[(usize, &str, &str, &str)]) -> Option<Remark> {
    let find = |name: &str| entries.iter().find(|(_, _, key, value)| *key == name && !value.is_empty());
    let (.., user) = find("User")?;
    let (line, _, key, value) = find("ExecStart")?;
    let command = value.trim_start_matches(['-', '@', ':', '!']);
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let asks = program(&words) == "chrt"
        && words.iter().any(|word| matches!(word.as_str(), "-f" | "-r" | "--fifo" | "--rr"));
    let is_allowed = find("LimitRTPRIO").is_some()
        || find("AmbientCapabilities").is_some_and(|(.., value)| value.contains("CAP_SYS_NICE"))
        || find("PAMName").is_some();
    let is_root = matches!(*user, "root" | "0") || user.contains(['$', '%']) || command.starts_with('+');
    (asks && !is_allowed && !is_root).then(|| {
        let message = format!("{user} may not ask for real-time priorities: chrt fails without LimitRTPRIO= or CAP_SYS_NICE");
        Remark::new(*line, RemarkId::Contradiction, Severity::Error, format!("{key}={value}"), message)
            .instead("CPUSchedulingPolicy= and CPUSchedulingPriority=, which systemd sets before it changes the user")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(section: &str, name: &str, value: &str) -> Option<String> {
        key(1, section, name, value).map(|remark| remark.message)
    }

    #[test]
    fn keys_are_judged_by_their_section() {
        for (section, name, value) in [
            ("Service", "CPUAffinity", "2 3"),
            ("Service", "ExecStart", "/bin/x"),
            ("Slice", "AllowedCPUs", "0-1"),
            ("Unit", "After", "network.target"),
            ("Install", "WantedBy", "multi-user.target"),
            ("Service", "X-Vendor", "1"),
            ("Container", "Image", "x"),
            ("Timer", "OnBootSec", "5min"),
        ] {
            assert_eq!(of(section, name, value), None, "{name}");
        }
        for (section, name, value) in [
            ("Unit", "CPUAffinity", "2"),
            ("Service", "CPUAfinity", "2"),
            ("Service", "RealtimePriority", "50"),
            ("Slice", "CPUAffinity", "2"),
            ("Service", "WantedBy", "multi-user.target"),
            ("Service", "AllowedCPUs", "all"),
        ] {
            assert!(of(section, name, value).is_some(), "{name}");
        }
    }

    #[test]
    fn properties_of_commands_are_the_same_keys() {
        let of = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            remarks(1, &words).len()
        };
        assert_eq!(of("systemctl set-property user.slice AllowedCPUs=0-1"), 0);
        assert_eq!(of("systemctl set-property plc.service CPUSchedulingPriority=50"), 1);
        assert_eq!(of("systemd-run --scope -p AllowedCPU=2 ./plc"), 1);
        assert_eq!(of("systemd-run --property=CPUSchedulingPolicy=fifo ./plc"), 0);
    }
}
