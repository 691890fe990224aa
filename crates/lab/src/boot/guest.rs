//! What a guest is asked to be and to do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use record::LabTime as Time;
use serde::{Deserialize, Serialize};
use units::Bytes;

use super::device::Device;
use crate::kernels::Kernel;

/// A guest that is to run one command.
#[derive(Clone, Debug)]
pub struct Guest {
    /// What boots.
    pub kernel: Kernel,
    /// The hypervisor whose first domain it is, if there is to be one.
    pub under: Option<Under>,
    /// Kernel parameters after the ones that the lab needs itself, one each, with their quotes: [`crate::parameters`].
    pub words: Vec<String>,
    /// CPUs; 1 in instruction time.
    pub processors: u32,
    /// How many of them share a core: 1, or 2 where there are to be SMT siblings.
    pub threads_per_core: u32,
    /// The emulated CPU, as QEMU's `-cpu` names it; none for the one that such guests usually have.
    pub cpu_model: Option<String>,
    /// Its memory.
    pub memory: Bytes,
    /// What its clock counts.
    pub time: Time,
    /// The size of an ext4 disk for loads, if there is to be one: a RAM block device in instruction time, virtio else.
    pub disk: Option<Bytes>,
    /// Devices beside those that the lab needs.
    pub devices: Vec<Device>,
    /// This program, for the guest's architecture; with its libraries if it is dynamic.
    pub binary: PathBuf,
    /// More programs that are put into the guest's `/bin`, with their libraries: files, or names in PATH.
    pub programs: Vec<PathBuf>,
    /// A directory with a whole system, as debootstrap(8) makes one: its files are the guest's, its `/sbin/init` becomes
    /// process 1, and the command is a service of its systemd.
    pub system: Option<PathBuf>,
    /// The command: the program's name in the guest's PATH, and its arguments. Its current directory is empty, and all
    /// that it leaves there comes back. The directory lies on the disk, if there is one.
    pub command: Vec<OsString>,
    /// When the guest is given up.
    pub time_limit: Duration,
}

/// The hypervisor under a guest's kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Under {
    /// What QEMU boots: it stands in the cache beside the kernels.
    pub hypervisor: Kernel,
    /// Its parameters after the lab's own, one each.
    pub words: Vec<String>,
}
