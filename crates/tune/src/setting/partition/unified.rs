//! An isolated partition of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition").

use machine::mounts::mounts;
use record::Fact;
use sysroot::SysRoot;
use units::CpuList;

use super::{EFFECT, Expansion, NAME, Target, WHAT, in_the_way, nodes_of};
use crate::setting::{Step, freed};

/// The file that says whether a group is a partition, and why not.
pub(in crate::setting) const STATE: &str = "cpuset.cpus.partition";

/// Where cgroup v2 is mounted with the controller, if it is.
///
/// # Errors
/// Why nobody can make a partition there.
pub(super) fn top(root: &SysRoot) -> Result<Option<String>, &'static str> {
    let Some(mount) = mounts(root).into_iter().find(|mount| mount.file_system == "cgroup2") else {
        return Ok(None);
    };
    let top = mount.point.to_string_lossy().trim_end_matches('/').to_owned();
    let controllers = root.read(&format!("{top}/cgroup.controllers"));
    if !controllers.value().is_some_and(|text| has_cpuset(text)) {
        return Ok(None);
    }
    // The kernel's own top group has no type.
    match root.exists(&format!("{top}/cgroup.type")) {
        Fact::Value(()) => Err("this is a container: its host makes partitions"),
        _ => Ok(Some(top)),
    }
}

/// Whether a list of controllers has that of CPUs.
pub(super) fn has_cpuset(controllers: &str) -> bool {
    controllers.split_whitespace().any(|name| name == "cpuset")
}

pub(super) fn add(root: &SysRoot, expansion: &mut Expansion, top: &str, cpus: &CpuList) {
    let group = format!("{top}/{NAME}");
    if let Some(why) = in_the_way(root, &group) {
        return expansion.refuse(WHAT, why);
    }
    freed::expand(root, expansion, cpus);
    let first = expansion.steps.len();
    expansion.change(root, Target::CpusetBelow(top.to_owned()), "on");
    let file = |name: &str| Target::File(format!("{group}/{name}"));
    let mut steps = vec![
        (Target::Group(group.clone()), "none", "there".to_owned()),
        (file("cpuset.cpus"), "", cpus.to_string()),
    ];
    let nodes = root.cpu_list("/sys/devices/system/node/online").value().cloned().unwrap_or_default();
    if nodes.len() > 1 {
        steps.push((file("cpuset.mems"), "", nodes_of(root, cpus, &nodes).to_string()));
    }
    steps.push((file(STATE), "member", "isolated".to_owned()));
    for (target, old, new) in steps {
        expansion.steps.push(Step::new(target, old.to_owned(), new));
    }
    if let Some(first) = expansion.steps.get_mut(first) {
        first.effects.push(EFFECT.to_owned());
        first.effects.push(format!("a program gets in by: echo PID > {group}/cgroup.procs"));
    }
}
