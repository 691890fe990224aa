//! What a slice of systemd can have for itself (systemd.resource-control(5)).

use std::fmt;

use record::Fact;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

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
