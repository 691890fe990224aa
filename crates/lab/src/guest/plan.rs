//! The plan of process 1: a file in the guest's root.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the plan stands; a process 1 that finds none is not in a guest of the lab.
pub(crate) const PATH: &str = "/lab.json";
/// The blocks of the disk's image that hold anything.
pub(crate) const BLOCKS: &str = "/disk.blocks";
/// What the guest's console says before the command starts.
pub(crate) const BEGINS: &str = "worstcase lab: the command begins";

/// What a guest does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Modules, in the order in which they are loaded.
    pub modules: Vec<Module>,
    /// Drivers that are given devices. Left out where there are none: each byte of the plan moves what a guest measures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// The disk that the command's directory lies on.
    pub disk: Option<Disk>,
    /// What records say of the guest. The command finds it in [`record::Lab::VARIABLE`], with what the kernel made of its parameters.
    pub lab: record::Lab,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The program that becomes process 1, where the guest has a system of its own.
    pub init: Option<PathBuf>,
    /// The port that results leave by.
    pub port: PathBuf,
    /// The clock source that the kernel must have chosen.
    pub clock_source: Option<String>,
    /// Rows and columns of the terminal, if a person sits at the console.
    pub terminal: Option<(u16, u16)>,
}

/// A module in the guest's root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Module {
    /// Without `.ko` and what compresses it.
    pub name: String,
    /// Its parameters.
    pub parameters: String,
}

impl Module {
    /// Where it stands.
    pub fn path(name: &str) -> PathBuf {
        Path::new("/modules").join(format!("{name}.ko"))
    }
}

/// A PCI driver and the devices that it is to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    /// Its name.
    pub driver: String,
    /// Vendor and device, as its `new_id` takes them.
    pub id: String,
}

/// A disk with an ext4 file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Disk {
    /// A RAM block device that [`BLOCKS`] are written to first.
    Memory(PathBuf),
    /// A device with the file system on it.
    Ready(PathBuf),
}
