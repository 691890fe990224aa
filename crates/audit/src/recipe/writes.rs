//! Values for the kernel's files, whoever writes them: a redirection, tee, sysctl, tmpfiles, udev.

use machine::grammar::files::{self, FileFault};
use machine::grammar::settings;
use machine::parameters;

use super::nearest::nearest_of;
use super::statements::{Statement, Write};
use super::{Remark, RemarkId, Target};
use crate::Severity;

/// What is wrong with it.
pub fn remark(write: &Write, target: Target) -> Option<Remark> {
    let of = |id, message: String| Remark::new(write.line, id, Severity::Error, write.shown.clone(), message);
    let is_absent = no_such_directory(write).or_else(|| no_such_file(write, target));
    if let Some(remark) = is_absent.or_else(|| other_cgroups(write)) {
        return Some(remark);
    }
    Some(match files::judge(&write.path, &write.value, target.version)? {
        FileFault::Gone(fault) => of(RemarkId::Gone, format!("the file {}", fault.message))
            .perhaps_instead(fault.instead.as_deref()),
        FileFault::Value(fault) => {
            let is_affinity = write.path.contains("affinity") || write.path.ends_with("cpumask");
            let id = if is_affinity { RemarkId::MaskNotNumber } else { RemarkId::Malformed };
            of(id, format!("the file {}", fault.message)).perhaps_instead(fault.instead.as_deref())
        }
    })
}

/// Settings of sysctl that distributions' patches and modules add, beside those of the table.
const FOREIGN: [&str; 14] = [
    "/proc/sys/kernel/apparmor",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/unprivileged_userns_apparmor_policy",
    "/proc/sys/kernel/yama/",
    "/proc/sys/kernel/keys/",
    "/proc/sys/kernel/seccomp/",
    "/proc/sys/kernel/random/",
    "/proc/sys/kernel/pty/",
    "/proc/sys/kernel/firmware_config/",
    "/proc/sys/kernel/usermodehelper/",
    "/proc/sys/kernel/evl",
    "/proc/sys/kernel/xen",
    "/proc/sys/kernel/acct",
    "/proc/sys/kernel/modules_disabled",
];

/// Whether it is known of a file what may be written there. A pattern is taken for one that is.
pub fn is_known(path: &str, target: Target) -> bool {
    path.contains(['*', '$', '<', '{'])
        || files::file(path).is_some()
        || settings::is_there(path, target.version) == Some(true)
        || FOREIGN.iter().any(|known| path.starts_with(known))
        // Their sizes are judged by their directory's name.
        || path.starts_with("/sys/kernel/mm/hugepages/hugepages-")
}

/// A path in a directory that is wholly known, that nearly has the name of a file there.
fn no_such_file(write: &Write, target: Target) -> Option<Remark> {
    let path = write.path.as_str();
    let is_there = settings::is_there(path, target.version);
    let is_known = files::file(path).is_some() || is_there == Some(true);
    if is_known || path.contains(['*', '$', '<', '{']) || FOREIGN.iter().any(|known| path.starts_with(known))
    {
        return None;
    }
    let (directory, name) = path.rsplit_once('/')?;
    let of = |message: String| {
        Remark::new(write.line, RemarkId::Misspelt, Severity::Error, write.shown.clone(), message)
    };
    if path == "/proc/irq/default_smp_affinity_list" {
        return Some(
            of("there is no such file: the default is a mask".to_owned())
                .instead("/proc/irq/default_smp_affinity"),
        );
    }
    let siblings = files::siblings(path).into_iter().chain(settings::siblings(path));
    if let Some(meant) = nearest_of(name, siblings.filter(|sibling| *sibling != name)) {
        return Some(
            of(format!("the kernel has no {name} there: {meant} is meant"))
                .instead(format!("{directory}/{meant}")),
        );
    }
    let is_setting = matches!(directory, "/proc/sys/kernel" | "/proc/sys/vm");
    let is_word = is_setting && !parameters::versions_with(name).is_empty();
    if is_word {
        return Some(of(format!(
            "{name} is a parameter of the kernel command line, not a setting of sysctl"
        )));
    }
    (is_there == Some(false)).then(|| of(format!("the kernel has no {name} in {directory}")))
}

/// A directory that the kernel does not have.
fn no_such_directory(write: &Write) -> Option<Remark> {
    let of = |message: &str, instead: String| {
        let remark =
            Remark::new(write.line, RemarkId::Unknown, Severity::Error, write.shown.clone(), message);
        Some(remark.instead(instead))
    };
    if let Some(rest) = write.path.strip_prefix("/sys/devices/system/cpu/cpuidle/state") {
        let instead = format!("/sys/devices/system/cpu/cpu*/cpuidle/state{rest}");
        return of("idle states are a CPU's own: there is no such directory for all", instead);
    }
    if let Some(rest) = write.path.strip_prefix("/sys/kernel/mm/transparent_hugepages/") {
        let instead = format!("/sys/kernel/mm/transparent_hugepage/{rest}");
        return of("there is no such directory: its name has no s at its end", instead);
    }
    let (_, size) = write.path.split_once("/hugepages/hugepages-")?;
    let (size, rest) = size.split_once('/')?;
    if size.ends_with("kB") || size.contains(['$', '*']) {
        return None;
    }
    let digits = size.trim_end_matches(|c: char| c.is_alphabetic());
    let factor = match &size[digits.len()..] {
        "G" | "GB" => 1 << 20,
        "M" | "MB" => 1 << 10,
        _ => 1,
    };
    let kilobytes = digits.parse::<u64>().ok()?.checked_mul(factor)?;
    of("directories of huge pages are named by kilobytes", format!("hugepages-{kilobytes}kB/{rest}"))
}

/// Hierarchies of cgroup v1 as distributions mount them below /sys/fs/cgroup.
const HIERARCHIES: [&str; 14] = [
    "cpuset",
    "cpu",
    "cpuacct",
    "cpu,cpuacct",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "systemd",
    "hugetlb",
    "perf_event",
    "rdma",
    "misc",
];

/// Files that the other version of cgroups does not have, and what it has in their place (cgroup-v1/, cgroup-v2.rst).
const OF_V1: [(&str, &str); 12] = [
    ("tasks", "cgroup.procs, or cgroup.threads in a threaded cgroup"),
    ("cpuset.cpu_exclusive", "cpuset.cpus.partition"),
    ("cpuset.mem_exclusive", "cpuset.mems"),
    ("cpuset.sched_load_balance", "cpuset.cpus.partition"),
    ("cpuset.sched_relax_domain_level", "cpuset.cpus.partition"),
    ("cpuset.memory_migrate", "cpuset.mems"),
    ("cpu.shares", "cpu.weight"),
    ("cpu.cfs_quota_us", "cpu.max"),
    ("cpu.cfs_period_us", "cpu.max"),
    ("cpu.rt_runtime_us", "nothing: v2 has no such control of real-time threads"),
    ("cpu.rt_period_us", "nothing: v2 has no such control of real-time threads"),
    ("memory.limit_in_bytes", "memory.max"),
];
const OF_V2: [(&str, &str); 7] = [
    ("cgroup.subtree_control", "nothing: v1 has a hierarchy for each controller"),
    ("cgroup.threads", "tasks"),
    ("cpuset.cpus.partition", "cpuset.cpu_exclusive and cpuset.sched_load_balance"),
    ("cpu.weight", "cpu.shares"),
    ("cpu.max", "cpu.cfs_quota_us and cpu.cfs_period_us"),
    ("memory.max", "memory.limit_in_bytes"),
    ("memory.high", "memory.soft_limit_in_bytes"),
];

/// A file of one version of cgroups in a hierarchy of the other.
fn other_cgroups(write: &Write) -> Option<Remark> {
    let (top, rest) = write.path.strip_prefix("/sys/fs/cgroup/")?.split_once('/')?;
    let name = rest.rsplit('/').next()?;
    let is_v1 = HIERARCHIES.contains(&top);
    let (files, here, other) = if is_v1 { (OF_V2.as_slice(), 1, 2) } else { (OF_V1.as_slice(), 2, 1) };
    // Elsewhere v1's controllers may be mounted under any name, with `unified` beside them.
    let (_, instead) =
        files.iter().find(|(file, _)| *file == name && top != "unified" && !top.contains('$'))?;
    let message =
        format!("{name} is a file of cgroup v{other}: v{here}, whose directory this is, has {instead}");
    Some(Remark::new(write.line, RemarkId::Unknown, Severity::Error, write.shown.clone(), message))
}

/// What is wrong with several writes in their order.
pub fn together(statements: &[Statement]) -> Vec<Remark> {
    let written: Vec<(usize, String, String, String)> = statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Sysctl { line, name, value } => {
                Some((*line, files::path_of(name), value.clone(), format!("{name}={value}")))
            }
            Statement::Write(write) => {
                Some((write.line, write.path.clone(), write.value.clone(), write.shown.clone()))
            }
            _ => None,
        })
        .collect();
    runtime_above_period(&written).into_iter().chain(limits_of_dirty_pages(&written)).collect()
}

type Written = (usize, String, String, String);

/// A runtime of real-time threads above its period, after each write; a second and 95 % of it at first (kernel/sched/rt.c).
fn runtime_above_period(written: &[Written]) -> Option<Remark> {
    let (mut runtime, mut period) = (950_000_i64, 1_000_000_i64);
    for (line, path, value, shown) in written {
        let Ok(value) = value.parse() else { continue };
        match path.as_str() {
            "/proc/sys/kernel/sched_rt_runtime_us" => runtime = value,
            "/proc/sys/kernel/sched_rt_period_us" => period = value,
            _ => continue,
        }
        if runtime > period {
            let message = format!(
                "the runtime, {runtime} us, is above the period, {period} us, when this is written: the kernel refuses it"
            );
            return Some(Remark::new(*line, RemarkId::Malformed, Severity::Error, shown.clone(), message));
        }
    }
    None
}

/// A limit in bytes sets the one in percent to 0, and the other way round (mm/page-writeback.c).
fn limits_of_dirty_pages(written: &[Written]) -> Vec<Remark> {
    let find =
        |name: &str| written.iter().rev().find(|(_, path, value, _)| path.ends_with(name) && value != "0");
    let pairs = [
        ("/vm/dirty_ratio", "/vm/dirty_bytes"),
        ("/vm/dirty_background_ratio", "/vm/dirty_background_bytes"),
    ];
    let both = pairs.into_iter().filter_map(|(a, b)| Some((find(a)?, find(b)?)));
    both.map(|(a, b)| {
        let (first, last) = if a.0 < b.0 { (a, b) } else { (b, a) };
        let message = format!("sets {} to 0: only the later of the two counts", first.3);
        Remark::new(last.0, RemarkId::Contradiction, Severity::Error, last.3.clone(), message)
    })
    .collect()
}
