//! Slices of systemd with resources of their own (systemd.resource-control(5)).

use std::fmt;
use std::fs;

use record::Fact;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

use crate::kernel::{Kernel, Live, systemctl};
use crate::place;

/// Where systemd keeps properties that were set until the next boot.
const CONTROL: &str = "/run/systemd/system.control";

/// What a slice can have for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceProperty {
    /// The CPUs of everything in it.
    AllowedCpus,
    /// The memory nodes of everything in it.
    AllowedMemoryNodes,
}

impl SliceProperty {
    /// The file in which the kernel has it.
    pub fn file(self) -> &'static str {
        match self {
            Self::AllowedCpus => "cpuset.cpus",
            Self::AllowedMemoryNodes => "cpuset.mems",
        }
    }

    /// What the groups around the slice at `group` give it where it has nothing of its own.
    pub fn around(self, root: &SysRoot, group: &str) -> Fact<String> {
        let (parent, _) = group.rsplit_once('/').unwrap_or_default();
        root.read(&format!("{parent}/{}.effective", self.file()))
    }
}

/// As systemd calls it.
impl fmt::Display for SliceProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllowedCpus => "AllowedCPUs",
            Self::AllowedMemoryNodes => "AllowedMemoryNodes",
        })
    }
}

/// Sets a property of the slice at `group` until the next boot and starts it; an empty value takes it back, and ends
/// the slice where nothing is in it. `EXDEV` for what is no name of a slice.
pub(crate) fn set(kernel: &mut Live, group: &str, property: SliceProperty, value: &str) -> Result<(), Errno> {
    let root = &kernel.root();
    let unit = group.rsplit('/').next().unwrap_or_default();
    if !place::is_slice(unit) {
        return Err(Errno::XDEV);
    }
    let is_free = value.is_empty() && !is_populated(root, group);
    if is_free && root.exists(group) == Fact::Absent {
        forget(unit, property);
        return Ok(());
    }
    if value.is_empty() {
        // systemd leaves the kernel's value where another unit keeps the controller, and where none does Linux 6.12 leaves
        // threads on the CPUs that they had. The kernel refuses nothing at all (ENOSPC) while a process is in the group.
        let all = property.around(root, group).value().cloned().unwrap_or_default();
        let _ = kernel.write_file(&format!("{group}/{}", property.file()), &all);
    }
    systemctl(&["set-property", "--runtime", unit, &format!("{property}={value}")])?;
    if !value.is_empty() {
        return systemctl(&["start", unit]);
    }
    if is_free {
        systemctl(&["stop", unit])?;
        forget(unit, property);
    }
    Ok(())
}

/// Whether a process is in the group, or in one below it; unknown counts as one.
fn is_populated(root: &SysRoot, group: &str) -> bool {
    match root.read(&format!("{group}/cgroup.events")) {
        Fact::Value(text) => !text.lines().any(|line| line == "populated 0"),
        Fact::Absent => false,
        _ => true,
    }
}

/// What `set-property` has left of an empty property. Where it stays, it says nothing.
fn forget(unit: &str, property: SliceProperty) {
    let directory = format!("{CONTROL}/{unit}.d");
    let _ = fs::remove_file(format!("{directory}/50-{property}.conf"));
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    #[test]
    fn only_a_group_that_says_so_is_empty() {
        let populated = |text: Option<&str>| {
            let file = text.map(|text| ("/group/cgroup.events".to_owned(), text.as_bytes().to_vec()));
            is_populated(&SysRoot::of(Tree::whole(file)), "/group")
        };
        assert!(!populated(Some("populated 0\nfrozen 0\n")));
        assert!(populated(Some("populated 1\nfrozen 0\n")) && populated(Some("frozen 0\n")));
        assert!(!populated(None));
    }
}
