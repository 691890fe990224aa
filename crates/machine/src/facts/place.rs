//! Container, namespaces and CPU quotas around this program.

use std::fmt::Display;

use record::{CpuQuota, Fact, Place};
use sysroot::SysRoot;

use crate::mounts::mounts;
use crate::quotas;

/// The user namespace that the kernel itself made, include/linux/proc_ns.h.
pub const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// The PID namespace that the kernel itself made, whose ids its trace has: `PROC_PID_INIT_INO` of include/linux/proc_ns.h.
pub const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

pub(super) fn place(root: &SysRoot) -> Place {
    Place {
        container: container_of(root).0,
        user_namespace: in_first_user_namespace(root, "self").map(|is_first| !is_first),
        cpu_quotas: cpu_quotas(root),
    }
}

/// Whether a process is in the user namespace that the kernel itself made. In another one its capabilities say nothing about
/// scheduling and locked memory: user_namespaces(7).
pub fn in_first_user_namespace(root: &SysRoot, pid: impl Display) -> Fact<bool> {
    root.link(&format!("/proc/{pid}/ns/user")).map(|link| link == FIRST_USER_NAMESPACE)
}

/// The limits on the CPU time of this program's control group and of those above it.
pub fn cpu_quotas(root: &SysRoot) -> Fact<Vec<CpuQuota>> {
    quotas::limits(root)
}

/// The namespaces that the kernel itself made, by the fixed numbers of include/linux/proc_ns.h.
const FIRST_NAMESPACES: [(&str, &str); 4] = [
    ("/proc/self/ns/pid", FIRST_PID_NAMESPACE),
    ("/proc/self/ns/uts", "uts:[4026531838]"),
    ("/proc/self/ns/ipc", "ipc:[4026531839]"),
    ("/proc/self/ns/cgroup", "cgroup:[4026531835]"),
];

/// Files that a container's maker leaves, each with its name.
const MARKS: [(&str, &str); 2] = [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];

/// Parts of control groups and of the root's layers, each with whom they belong to.
const TRACES: [(&str, &str); 7] = [
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("containers/storage", "podman"),
    ("/docker", "docker"),
    ("/lxc", "lxc"),
    ("containerd", "containerd"),
    ("machine.slice/machine-", "systemd-nspawn"),
];

/// Who made the container that this runs in; `none` where no mark is found, or where this runs in the namespaces of
/// the machine itself: a virtual machine's disk made from a container's image has the marks, too.
/// Beside it, where it was read.
pub fn container_of(root: &SysRoot) -> (Fact<String>, Vec<&'static str>) {
    let made_by = |maker: &str, places: &[&'static str]| (Fact::Value(maker.to_owned()), places.to_vec());
    let is_first = |(path, first): &(&str, &str)| root.link(path).value().is_some_and(|link| link == first);
    if FIRST_NAMESPACES.iter().all(is_first) {
        return made_by("none", &FIRST_NAMESPACES.map(|(path, _)| path));
    }
    for (path, maker) in MARKS {
        if let Fact::Value(()) = root.exists(path) {
            return made_by(maker, &[path]);
        }
    }
    if let Fact::Value(name) = root.read("/run/systemd/container") {
        return made_by(&name, &["/run/systemd/container"]);
    }
    let group = root.read("/proc/self/cgroup");
    let layers = mounts(root).into_iter().rev().find(|mount| mount.point == std::path::Path::new("/"));
    let layers = layers.filter(|mount| mount.file_system == "overlay").map(|mount| mount.options.join(","));
    let traces = [group.value().cloned(), layers];
    let maker = TRACES.iter().find(|(part, _)| traces.iter().flatten().any(|trace| trace.contains(part)));
    let places = [
        "/run/.containerenv",
        "/.dockerenv",
        "/run/systemd/container",
        "/proc/self/cgroup",
        "/proc/self/mountinfo",
    ];
    match (maker, &group) {
        (Some((_, maker)), _) => made_by(maker, &places[3..]),
        (None, Fact::Unsupported) => (Fact::Unsupported, places.to_vec()),
        (None, _) => made_by("none", &places),
    }
}
