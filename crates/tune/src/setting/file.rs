//! Files of the kernel by a path with `*`.

use machine::SysRoot;
use machine::survey::matching;
use units::{CpuId, CpuList};

use super::{Expansion, Target};
use crate::error::in_words;

/// `value` into each file that fits `pattern`, of files of single CPUs those of `real_time`.
pub(super) fn expand(root: &SysRoot, pattern: &str, value: &str, real_time: &CpuList) -> Expansion {
    let mut expansion = Expansion::default();
    let paths = match matching(root, &[pattern.to_owned()]) {
        Ok(paths) => paths,
        Err(errno) => {
            expansion.refuse(pattern, super::hazard::unreadable(pattern, errno));
            return expansion;
        }
    };
    let there = |path: &&String| !matches!(root.read(path), record::Fact::Absent | record::Fact::Unsupported);
    let wanted: Vec<&String> =
        paths.iter().filter(there).filter(|path| concerns(root, path, real_time)).collect();
    if wanted.is_empty() {
        expansion.refuse(pattern, format!("not there ({})", in_words(2)));
    }
    for path in wanted {
        expansion.change(root, Target::File(path.clone()), value);
    }
    expansion
}

/// Whether a file of single CPUs is one of `real_time`; other files concern all.
pub(super) fn concerns(root: &SysRoot, path: &str, real_time: &CpuList) -> bool {
    let Some(rest) = path.strip_prefix("/sys/devices/system/cpu/") else { return true };
    let Some((first, rest)) = rest.split_once('/') else { return true };
    if let Some(cpu) = first.strip_prefix("cpu").and_then(|number| number.parse().ok()) {
        return real_time.contains(CpuId(cpu));
    }
    match (first, rest.split_once('/')) {
        ("cpufreq", Some((policy, _))) if policy.starts_with("policy") => {
            let related = root.read(&format!("/sys/devices/system/cpu/cpufreq/{policy}/related_cpus"));
            let cpus = related.value().map(|text| text.split_whitespace().filter_map(|cpu| cpu.parse().ok()));
            cpus.is_none_or(|mut cpus| cpus.any(|cpu| real_time.contains(CpuId(cpu))))
        }
        _ => true,
    }
}
