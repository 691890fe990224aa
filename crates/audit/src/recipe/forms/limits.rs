//! limits.conf(5): `domain type item value` a line.

use super::super::nearest::nearest_of;
use super::super::reading::{Reading, lines};
use super::super::{Remark, RemarkId, Target};
use crate::Severity;

const TYPES: [&str; 3] = ["-", "soft", "hard"];

const ITEMS: [&str; 19] = [
    "core",
    "data",
    "fsize",
    "memlock",
    "nofile",
    "rss",
    "stack",
    "cpu",
    "nproc",
    "as",
    "maxlogins",
    "maxsyslogins",
    "nonewprivs",
    "priority",
    "locks",
    "sigpending",
    "msgqueue",
    "nice",
    "rtprio",
];

/// Names that distributions give groups, and nobody a user.
const GROUPS: [&str; 3] = ["realtime", "audio", "rtusers"];

pub fn read(text: &str, _: Target) -> Option<Reading> {
    let rows: Vec<(usize, Vec<&str>)> = lines(text)
        .map(|(number, line)| (number, line.split('#').next().unwrap_or(line).split_whitespace().collect()))
        .collect();
    let is_row = |columns: &[&str]| {
        let has_columns = (3..=4).contains(&columns.len());
        let typed = columns.get(1).is_some_and(|kind| TYPES.contains(kind));
        let named = columns
            .iter()
            .skip(1)
            .any(|item| ITEMS.contains(item) || nearest_of(item, ITEMS.into_iter()).is_some());
        let domain = GROUPS.contains(&columns[0]) || columns[0].starts_with(['@', '%']) || columns[0] == "*";
        has_columns && (typed || domain && named) || columns.len() > 4 && typed && domain && named
    };
    if rows.is_empty() || !rows.iter().all(|(_, columns)| is_row(columns)) {
        return None;
    }
    let mut reading = Reading { settings: rows.len(), ..Reading::default() };
    let raised = |domain: &str| {
        rows.iter()
            .any(|(_, columns)| matches!(columns[..], [other, "hard" | "-", "rtprio", _] if other == domain))
    };
    let lone = rows
        .iter()
        .find(|(_, columns)| matches!(columns[..], [domain, "soft", "rtprio", _] if !raised(domain)));
    reading.remarks.extend(lone.map(|(line, columns)| {
        let message = "is cut to the hard limit, which is 0 unless a line with hard or - raises it";
        Remark::new(*line, RemarkId::NoEffect, Severity::Error, columns.join(" "), message)
            .instead(columns.join(" ").replacen("soft", "-", 1))
    }));
    for (line, columns) in rows {
        reading.remarks.extend(fault(&columns).map(|message| {
            Remark::new(line, RemarkId::Malformed, Severity::Error, columns.join(" "), message)
        }));
    }
    Some(reading)
}

fn fault(columns: &[&str]) -> Option<String> {
    let [_, kind, item, value] = columns else {
        return Some("a line has four columns: domain, type (-, soft or hard), item, value".to_owned());
    };
    if !TYPES.contains(kind) {
        return Some(format!("the type is -, soft or hard, not `{kind}`"));
    }
    if !ITEMS.contains(item) {
        let meant = nearest_of(item, ITEMS.into_iter())
            .map_or_else(String::new, |meant| format!(": {meant} is meant"));
        return Some(format!("there is no item `{item}`{meant}"));
    }
    if GROUPS.contains(&columns[0]) {
        return Some(format!("`{0}` without @ is a user's name: @{0} is the group", columns[0]));
    }
    let endless = matches!(*value, "unlimited" | "infinity" | "-1");
    let signed = value.strip_prefix(['-', '+']).unwrap_or(value);
    let is_number = !signed.is_empty() && signed.bytes().all(|byte| byte.is_ascii_digit());
    let is_nice = matches!(*item, "priority" | "nice");
    if is_nice && value.parse::<i64>().is_ok_and(|value| !(-20..=19).contains(&value)) {
        return Some(format!("{item} is a nice value, -20 to 19: rtprio allows real-time priorities"));
    }
    if *item == "rtprio" && value.parse::<i64>().is_ok_and(|value| !(-1..=99).contains(&value)) {
        return Some("real-time priorities are 0 to 99".to_owned());
    }
    (!endless && !is_number).then(|| format!("takes a number (KiB for memlock) or unlimited, not `{value}`"))
}
