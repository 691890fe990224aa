//! Files as the kernel writes them: numbers, choices, lists and masks of CPUs, names that fit a pattern.

use record::Fact;
use rustix::io::Errno;
use sysroot::{SysRoot, parsed};
use units::CpuList;

use crate::value::Value;

/// A driver that has no answer says so by these: the thing is not supported rather than hidden.
pub(crate) fn supported<T>(fact: Fact<T>) -> Fact<T> {
    let without = [Errno::NODEV, Errno::INVAL, Errno::NXIO, Errno::OPNOTSUPP].map(Errno::raw_os_error);
    match fact {
        Fact::Unreadable(errno) if without.contains(&errno) => Fact::Unsupported,
        fact => fact,
    }
}

/// A file's text with one blank for each run of them, or its number.
pub(crate) fn file(root: &SysRoot, path: &str) -> Fact<Value> {
    supported(root.read(path)).map(number_or_text)
}

/// A number only where it would be printed as the text is: `007` and `1e3` stay texts.
pub(crate) fn number_or_text(text: String) -> Value {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Value::Number(number),
        _ => {
            Value::Text(text.split(['\t', ' ']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
        }
    }
}

/// The word in brackets or parentheses.
pub(crate) fn choice(root: &SysRoot, path: &str) -> Fact<String> {
    supported(root.read(path)).and_then(|text| parsed(chosen(&text).ok_or(())))
}

/// The word in brackets or parentheses of a text such as `always [madvise] never`.
pub fn chosen(text: &str) -> Option<String> {
    let between =
        |open, close| text.split_once(open)?.1.split_once(close).map(|(word, _)| word.trim().to_owned());
    between('[', ']').or_else(|| between('(', ')')).filter(|word: &String| !word.is_empty())
}

/// A set of CPUs as the kernel prints it in that file.
pub(crate) fn cpus(root: &SysRoot, path: &str) -> Fact<CpuList> {
    if is_mask(path) {
        supported(root.read(path)).and_then(|text| parsed(CpuList::from_mask(&text).ok_or(())))
    } else {
        supported(root.cpu_list(path))
    }
}

/// Files in which the kernel prints a mask; elsewhere it prints lists.
const MASKS: [&str; 19] = [
    "smp_affinity",
    "default_smp_affinity",
    "affinity_hint",
    "effective_affinity",
    "rps_cpus",
    "xps_cpus",
    "rps_default_mask",
    "tracing_cpumask",
    "thread_siblings",
    "core_siblings",
    "core_cpus",
    "cluster_cpus",
    "die_cpus",
    "package_cpus",
    "book_siblings",
    "drawer_siblings",
    "shared_cpu_map",
    "cpumap",
    "prof_cpu_mask",
];

/// Whether the kernel prints CPUs as a mask in the file of that name, and takes them so.
pub fn is_mask(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    MASKS.contains(&name) || (path.contains("/workqueue/") && name.starts_with("cpumask"))
}

/// No pattern gives more files: a machine with more has other worries.
const MOST_FILES: usize = 100_000;

/// The paths that fit, in the order of their names: `*` stands for any part of one name.
///
/// # Errors
/// The errno of a directory that cannot be listed.
pub fn matching(root: &SysRoot, patterns: &[String]) -> Result<Vec<String>, i32> {
    let mut found = Vec::new();
    for pattern in patterns {
        let mut paths = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut longer = Vec::new();
            for path in &paths {
                longer.extend(one_deeper(root, path, part)?);
            }
            longer.truncate(MOST_FILES);
            paths = longer;
        }
        found.extend(paths);
    }
    Ok(found)
}

fn one_deeper(root: &SysRoot, directory: &str, part: &str) -> Result<Vec<String>, i32> {
    let Some((start, end)) = part.split_once('*') else { return Ok(vec![format!("{directory}/{part}")]) };
    let fits = |name: &&String| {
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    match root.list(directory) {
        Fact::Value(names) => {
            let mut names: Vec<&String> = names.iter().filter(fits).collect();
            names.sort_by_cached_key(|name| by_number(name));
            Ok(names.into_iter().map(|name| format!("{directory}/{name}")).collect())
        }
        Fact::Absent | Fact::Unsupported => Ok(Vec::new()),
        Fact::Unreadable(errno) => Err(errno),
    }
}

/// So that `cpu10` comes after `cpu2`.
fn by_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}
