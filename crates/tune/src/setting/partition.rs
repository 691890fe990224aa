//! CPUs out of load balancing, and out of every other program's reach: an isolated partition of cgroup v2
//! (Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition").

use machine::SysRoot;
use machine::mounts::mounts;
use record::Fact;
use rustix::io::Errno;
use units::CpuList;

use super::{Expansion, Target, freed};
use crate::hand::Hand;
use crate::plan::Step;

/// The file that says whether a group is a partition, and why not.
pub(super) const STATE: &str = "cpuset.cpus.partition";

/// The group that is made.
pub const NAME: &str = "worstcase";

const WHAT: &str = "a partition of control groups";

/// What else happens.
const EFFECT: &str = "programs bound to these CPUs alone are moved off, and before Linux 6.2 forget to what they were bound, as threads of the kernel always do; undo binds them again";

/// A group of its own for `cpus`, below the top one.
pub(super) fn expand(root: &SysRoot, cpus: &CpuList) -> Expansion {
    let mut expansion = Expansion::default();
    match top(root) {
        Ok(top) => add(root, &mut expansion, &top, cpus),
        Err(why) => expansion.refuse(WHAT, why),
    }
    expansion
}

/// Where cgroup v2 is mounted, if partitions can be made there.
fn top(root: &SysRoot) -> Result<String, &'static str> {
    let mount = mounts(root).into_iter().find(|mount| mount.file_system == "cgroup2");
    let top = mount.ok_or("cgroup v2 is not mounted: with v1 by hand, or boot with cgroup_no_v1=cpuset")?;
    let top = top.point.to_string_lossy().trim_end_matches('/').to_owned();
    let controllers = root.read(&format!("{top}/cgroup.controllers"));
    if !controllers.value().is_some_and(|text| has_cpuset(text)) {
        return Err("cgroup v1 has the cpuset controller here: by hand, or boot with cgroup_no_v1=cpuset");
    }
    // The kernel's own top group has no type.
    match root.exists(&format!("{top}/cgroup.type")) {
        Fact::Value(()) => Err("this is a container: its host makes partitions"),
        _ => Ok(top),
    }
}

/// Whether a list of controllers has that of CPUs.
pub(super) fn has_cpuset(controllers: &str) -> bool {
    controllers.split_whitespace().any(|name| name == "cpuset")
}

fn add(root: &SysRoot, expansion: &mut Expansion, top: &str, cpus: &CpuList) {
    let group = format!("{top}/{NAME}");
    if let Fact::Value(()) = root.exists(&group) {
        return expansion.refuse(WHAT, format!("{group} is there already: not by this journal"));
    }
    freed::expand(root, expansion, cpus);
    let first = expansion.steps.len();
    expansion.change(root, Target::CpusetBelow(top.to_owned()), "on");
    let file = |name: &str| Target::File(format!("{group}/{name}"));
    let steps = [
        (Target::Group(group.clone()), "none", "there".to_owned()),
        (file("cpuset.cpus"), "", cpus.to_string()),
        (file(STATE), "member", "isolated".to_owned()),
    ];
    for (target, old, new) in steps {
        expansion.steps.push(Step::new(target, old.to_owned(), new));
    }
    if let Some(first) = expansion.steps.get_mut(first) {
        first.effects.push(EFFECT.to_owned());
        first.effects.push(format!("a program gets in by: echo PID > {group}/cgroup.procs"));
    }
}

/// Takes the group away. What is in it goes to the group above.
pub(super) fn remove(hand: &mut dyn Hand, group: &str) -> Result<(), Errno> {
    let inside = hand.root().read(&format!("{group}/cgroup.procs"));
    let above = group.rsplit_once('/').map_or("", |(above, _)| above);
    for process in inside.value().iter().flat_map(|text| text.split_whitespace()) {
        // A process that ends meanwhile is out of the group too.
        let _ = hand.write_file(&format!("{above}/cgroup.procs"), process);
    }
    hand.remove_group(group)
}
