//! Files of the kernel and what may be written to them; settings of sysctl are files below /proc/sys.

use std::sync::LazyLock;

use units::KernelVersion;

use super::kind::is_placeholder;
use super::{Fault, Kind};
use crate::packed;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/files.gz"))));

/// A file whose values are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path; `*` stands for any part of a name.
    pub path: &'static str,
    content: Content,
    since: Option<KernelVersion>,
    until: Option<KernelVersion>,
    moved: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Of(Kind),
    /// No kernel has the file.
    None,
    /// It cannot be written to.
    ReadOnly,
    /// A feature of the scheduler, perhaps with NO_ before it.
    Feature,
    /// `MAX [PERIOD]` of cgroup version 2.
    Quota,
    /// `+name -name`.
    Controllers,
    /// Microseconds, `n/a` for no latency at all, 0 for no restriction.
    ResumeLatency,
    /// A hexadecimal mask that may be empty.
    EmptyMask,
    /// Is taken, and does nothing.
    NoEffect,
}

/// Features of the fair scheduler of 5.10 to 6.12 (kernel/sched/features.h).
const FEATURES: [&str; 33] = [
    "PLACE_LAG",
    "PLACE_DEADLINE_INITIAL",
    "PLACE_REL_DEADLINE",
    "RUN_TO_PARITY",
    "PREEMPT_SHORT",
    "NEXT_BUDDY",
    "PICK_BUDDY",
    "LAST_BUDDY",
    "CACHE_HOT_BUDDY",
    "DELAY_DEQUEUE",
    "DELAY_ZERO",
    "WAKEUP_PREEMPTION",
    "HRTICK",
    "HRTICK_DL",
    "DOUBLE_TICK",
    "NONTASK_CAPACITY",
    "TTWU_QUEUE",
    "SIS_PROP",
    "SIS_UTIL",
    "WARN_DOUBLE_CLOCK",
    "RT_PUSH_IPI",
    "RT_RUNTIME_SHARE",
    "LB_MIN",
    "ATTACH_AGE_LOAD",
    "WA_IDLE",
    "WA_WEIGHT",
    "WA_BIAS",
    "UTIL_EST",
    "UTIL_EST_FASTUP",
    "LATENCY_WARN",
    "GENTLE_FAIR_SLEEPERS",
    "START_DEBIT",
    "ALT_PERIOD",
];

/// What is wrong with writing a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// The kernel of that version has no such file.
    Gone(Fault),
    /// It refuses the value.
    Value(Fault),
}

/// All files of the table.
pub fn files() -> impl Iterator<Item = &'static File> {
    FILES.iter()
}

/// The file at a path, itself perhaps with `*`, `[0-9]*` or `$variable` in its names.
pub fn file(path: &str) -> Option<&'static File> {
    let path = if let Some(rest) = path.strip_prefix("/sys/kernel/debug/tracing/") {
        format!("/sys/kernel/tracing/{rest}")
    } else {
        path.to_owned()
    };
    FILES.iter().find(|file| matches(file.path, &path))
}

/// The path of a setting of sysctl: `kernel.sched_rt_runtime_us`, also with `/`. Where the first separator is a dot, a slash
/// stands for a dot in a name.
pub fn path_of(setting: &str) -> String {
    let by_slash = setting.find(['.', '/']).is_some_and(|at| setting[at..].starts_with('/'));
    if by_slash {
        return format!("/proc/sys/{setting}");
    }
    let swapped = setting.chars().map(|c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    format!("/proc/sys/{}", swapped.collect::<String>())
}

/// What is wrong with writing `value` to the file at `path` under the kernel of that version; nothing for files that are not in
/// the table.
pub fn judge(path: &str, value: &str, version: Option<KernelVersion>) -> Option<FileFault> {
    let file = file(path)?;
    let fault =
        |message: String, instead: Option<&str>| Fault { message, instead: instead.map(str::to_owned) };
    let is_open = path.rsplit('/').next().is_some_and(|name| name.starts_with(['$', '<', '{', '*']));
    if is_open {
        return None;
    }
    if matches!(file.content, Content::None) {
        return Some(FileFault::Gone(fault("does not exist".to_owned(), file.moved)));
    }
    if let Some(until) = file.until.filter(|until| version.is_none_or(|version| version >= *until)) {
        let message = match file.moved {
            Some(_) => format!("moved with {until}"),
            None => format!("is gone since {until}"),
        };
        return Some(FileFault::Gone(fault(message, file.moved)));
    }
    if let Some(since) = file.since.filter(|since| version.is_some_and(|version| version < *since)) {
        return Some(FileFault::Gone(fault(format!("is there only since {since}"), None)));
    }
    let value = value.trim();
    if is_placeholder(value) {
        return None;
    }
    let wrong = |message: String| Some(FileFault::Value(fault(message, None)));
    match &file.content {
        Content::Of(kind) => kind.fault(Some(value), version).map(FileFault::Value),
        Content::None => None,
        Content::ReadOnly => wrong("cannot be written to while the kernel runs".to_owned()),
        Content::Feature => {
            let name = value.strip_prefix("NO_").unwrap_or(value);
            if FEATURES.contains(&name) { None } else { wrong(format!("has no feature {name}")) }
        }
        Content::Quota => {
            let fits = |text: &str| text == "max" || text.parse::<u64>().is_ok_and(|time| time >= 1000);
            let fine = value.split_whitespace().count() <= 2 && value.split_whitespace().all(fits);
            if fine { None } else { wrong(format!("takes microseconds or max, and a period, not `{value}`")) }
        }
        Content::EmptyMask => {
            let is_hexadecimal = value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',');
            if is_hexadecimal { None } else { wrong(format!("takes a hexadecimal mask, not `{value}`")) }
        }
        Content::NoEffect => wrong("is a relic: the kernel does nothing with it".to_owned()),
        Content::ResumeLatency if value == "0" => {
            wrong("takes 0 for no restriction at all: n/a is the strictest".to_owned())
        }
        Content::ResumeLatency => {
            let fits = value == "n/a" || value.parse::<u32>().is_ok();
            if fits { None } else { wrong(format!("takes microseconds or n/a, not `{value}`")) }
        }
        Content::Controllers => value.split_whitespace().find_map(controller_fault).and_then(wrong),
    }
}

/// Controllers of cgroup version 2, up to 6.14 (include/linux/cgroup_subsys.h).
const CONTROLLERS: [&str; 10] =
    ["cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc", "perf_event", "dmem"];

/// What is wrong with one word for a group's `cgroup.subtree_control`.
fn controller_fault(word: &str) -> Option<String> {
    let Some(name) = word.strip_prefix(['+', '-']) else {
        return Some(format!("takes +{word} or -{word}, not `{word}`"));
    };
    (!CONTROLLERS.contains(&name))
        .then(|| format!("has the controllers {}, not `{name}`", CONTROLLERS.join(", ")))
}

/// The names of the files in the directory of `path`, as far as they are known.
pub fn siblings(path: &str) -> Vec<&'static str> {
    let Some((directory, _)) = path.rsplit_once('/') else { return Vec::new() };
    let is_beside = |of: &str| matches(of, directory);
    let known = FILES.iter().filter_map(|file| file.path.rsplit_once('/'));
    known.filter(|(of, name)| *name != "*" && is_beside(of)).map(|(_, name)| name).collect()
}

static FILES: LazyLock<Vec<File>> =
    LazyLock::new(|| TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect());

fn entry(line: &'static str) -> Option<File> {
    let mut columns = line.split('|').map(str::trim);
    let (path, content, versions) = (columns.next()?, columns.next()?, columns.next()?);
    let content = match content {
        "gone" => Content::None,
        "ro" => Content::ReadOnly,
        "feature" => Content::Feature,
        "quota" => Content::Quota,
        "controllers" => Content::Controllers,
        "hex" => Content::EmptyMask,
        "resume" => Content::ResumeLatency,
        "noeffect" => Content::NoEffect,
        kind => Content::Of(Kind::parse(kind)?),
    };
    let (range, moved) = match versions.split_once('=') {
        Some((range, moved)) => (range.trim(), Some(moved.trim())),
        None => (versions, None),
    };
    let (since, until) = range.split_once('-').unwrap_or((range, ""));
    Some(File { path, content, since: since.parse().ok(), until: until.parse().ok(), moved })
}

/// Whether a pattern of the table stands for a path, which may have patterns and variables of its own; `*` at the end of a
/// pattern's name reaches over any number of directories where the pattern has fewer.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    if pattern.len() == path.len() {
        return pattern.iter().zip(&path).all(|(pattern, name)| name_matches(pattern, name));
    }
    let Some(star) = pattern.iter().position(|name| *name == "*").filter(|_| path.len() > pattern.len())
    else {
        return false;
    };
    let behind = pattern.len() - star - 1;
    let same = |a: &[&str], b: &[&str]| a.iter().zip(b).all(|(pattern, name)| name_matches(pattern, name));
    same(&pattern[..star], &path[..star]) && same(&pattern[star + 1..], &path[path.len() - behind..])
}

fn name_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
                || name.contains(['*', '$', '<', '{'])
                    && (name.starts_with(start) || name.starts_with(['$', '<', '*', '{']))
        }
    }
}
