//! CPUs out of load balancing, and out of every other program's reach: an isolated partition of cgroup v2, or an
//! exclusive cpuset where v1 has the controller.

mod programs;
mod slice;
mod unified;
mod v1;

use std::fmt;

use control::{Kernel, SliceProperty};
use machine::V1;
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuId, CpuList, KernelVersion};

use super::{Expansion, Kind, Phase, Target, kernel_version};

pub(super) use programs::Moved;
pub use programs::Programs;
pub(super) use slice::Owned;
pub use slice::Slice;
pub(super) use unified::STATE;
use unified::has_cpuset;

/// The group that is made.
pub const NAME: &str = "worstcase";

const WHAT: &str = "a partition of control groups";

/// What else happens.
const EFFECT: &str = "programs bound to these CPUs alone are moved off, and before Linux 6.2 forget to what they were bound, as threads of the kernel always do; undo binds them again";

/// A group of its own for `cpus`, below the top one.
pub(super) fn expand(root: &SysRoot, cpus: &CpuList) -> Expansion {
    let mut expansion = Expansion::default();
    match (unified::top(root), V1::find(root)) {
        (Ok(Some(top)), _) if slice::keeps(root, &top) => slice::add(root, &mut expansion, &top, cpus),
        (Ok(Some(top)), _) => unified::add(root, &mut expansion, &top, cpus),
        (Ok(None), Some(files)) => v1::add(root, &mut expansion, &files, cpus),
        (Ok(None), None) => expansion.refuse(WHAT, nowhere(root)),
        (Err(why), _) => expansion.refuse(WHAT, why),
    }
    expansion
}

/// Why no mounted hierarchy has the controller. From 6.12 on a kernel may be built without that of v1.
fn nowhere(root: &SysRoot) -> &'static str {
    const WITHOUT_V1: KernelVersion = KernelVersion::new(6, 12);
    match kernel_version(root).is_some_and(|version| version >= WITHOUT_V1) {
        true => {
            "no mounted control groups have the cpuset controller: mount -t cgroup2 none /sys/fs/cgroup; this kernel may \
             have no cpusets of v1 to mount (CONFIG_CPUSETS_V1, which Debian's 6.12 leaves out)"
        }
        false => "no mounted control groups have the cpuset controller: mount -t cgroup2 none /sys/fs/cgroup",
    }
}

/// Why the group at `group` cannot be made, if it cannot.
fn in_the_way(root: &SysRoot, group: &str) -> Option<String> {
    matches!(root.exists(group), Fact::Value(()))
        .then(|| format!("{group} is there already: not by this journal"))
}

/// The memory nodes that `cpus` are on; all where they are unknown.
fn nodes_of(root: &SysRoot, cpus: &CpuList, all: &CpuList) -> CpuList {
    const NODES: &str = "/sys/devices/system/node";
    let is_near = |CpuId(node): &CpuId| {
        let own = root.cpu_list(&format!("{NODES}/node{node}/cpulist"));
        own.value().is_some_and(|own| !own.intersection(cpus).is_empty())
    };
    let near: CpuList = all.iter().filter(is_near).collect();
    if near.is_empty() { all.clone() } else { near }
}

/// Whether a file of a control group is about its CPUs; the old file system of v1 leaves the names' first half out.
pub(super) fn is_file(path: &str) -> bool {
    const BARE: [&str; 4] = ["cpus", "mems", "cpu_exclusive", "sched_load_balance"];
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("cpuset.") || BARE.contains(&name)
}

/// Whether a setting makes a partition, so that undoing it has the kernel forget bindings.
pub(crate) fn is_of_partition(target: &Target) -> bool {
    matches!(target, Target::CpusetBelow(_) | Target::Group(_) | Target::Programs(_) | Target::Slice(_))
}

/// The partitions that settings have made, of which `held` are those with the value that was asked for: the group of each, and
/// its CPUs.
pub(crate) fn partitions_in(held: &[(&Target, &str)]) -> Vec<(String, CpuList)> {
    let value = |group: &str, path: &str| {
        let is_its = |target: &Target| match target {
            Target::File(file) => file == path,
            Target::Slice(Slice { group: its, property: SliceProperty::AllowedCpus }) => its == group,
            _ => false,
        };
        held.iter().find(|(target, _)| is_its(target)).map(|(_, value)| *value)
    };
    let partition = |(target, _): &(&Target, &str)| {
        let Target::File(path) = target else { return None };
        let (group, name) = path.rsplit_once('/')?;
        let prefix = name.strip_suffix("cpu_exclusive").or_else(|| (name == STATE).then_some("cpuset."))?;
        let cpus = value(group, &format!("{group}/{prefix}cpus"))?.parse().ok()?;
        Some((group.to_owned(), cpus))
    };
    held.iter().filter_map(partition).collect()
}

/// The CPUs that the kernel lets a group have.
pub(crate) fn effective_cpus(root: &SysRoot, group: &str) -> Fact<CpuList> {
    const NAMES: [&str; 3] = ["cpuset.cpus.effective", "cpuset.effective_cpus", "effective_cpus"];
    let lists = NAMES.map(|name| root.cpu_list(&format!("{group}/{name}")));
    lists.into_iter().find(|list| *list != Fact::Absent).unwrap_or_default()
}

/// Whether groups right below that one have the cpuset controller.
pub(super) struct CpusetBelow<'a>(pub &'a str);

impl CpusetBelow<'_> {
    fn file(&self) -> String {
        format!("{}/cgroup.subtree_control", self.0)
    }
}

impl fmt::Display for CpusetBelow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpuset controller below {}", self.0)
    }
}

impl Kind for CpusetBelow<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        root.read(&self.file()).map(|text| if has_cpuset(&text) { "on" } else { "off" }.to_owned())
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        kernel.write_file(&self.file(), if value == "on" { "+cpuset" } else { "-cpuset" })
    }

    fn phase(&self) -> Phase {
        Phase::Groups
    }
}

/// Moves all processes of a group into the first of `others` that takes them.
fn move_out(kernel: &mut dyn Kernel, group: &str, others: &[&str]) {
    let inside = kernel.root().read(&format!("{group}/cgroup.procs"));
    for process in inside.value().iter().flat_map(|text| text.split_whitespace()) {
        // A process that ends meanwhile is out of the group too.
        let _ =
            others.iter().any(|other| kernel.write_file(&format!("{other}/cgroup.procs"), process).is_ok());
    }
}

/// A control group, by its directory.
pub(super) struct Group<'a>(pub &'a str);

impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "control group {}", self.0)
    }
}

impl Kind for Group<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        match root.exists(self.0) {
            Fact::Absent => Fact::Value("none".to_owned()),
            there => there.map(|()| "there".to_owned()),
        }
    }

    /// What is in a group that is removed goes to where it came from, else to the group above.
    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        if value == "there" {
            return kernel.make_directory(self.0);
        }
        let above = self.0.rsplit_once('/').map_or("", |(above, _)| above);
        let inner = kernel.root().directories(self.0).value().cloned().unwrap_or_default();
        for (name, origin) in inner.iter().filter_map(|name| Some((name, machine::origin_of(name)?))) {
            let inner = format!("{}/{name}", self.0);
            move_out(kernel, &inner, &[&format!("{above}/{origin}"), above]);
            kernel.remove_directory(&inner)?;
        }
        move_out(kernel, self.0, &[above]);
        kernel.remove_directory(self.0)
    }

    fn phase(&self) -> Phase {
        Phase::Groups
    }
}
