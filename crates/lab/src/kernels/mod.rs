//! Kernels in a cache: fetched from Debian, added by hand or built.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a guest's machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// 64-bit x86, QEMU's `q35` or `pc`.
    Amd64,
    /// 64-bit ARM, QEMU's `virt`.
    Arm64,
}

/// A kernel that a guest can boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name in the cache: `debian-6.1-rt-amd64`.
    pub name: String,
    /// What it runs on.
    pub architecture: Architecture,
    /// `uname -r`, as far as it is known before it boots.
    pub release: String,
    /// The image that QEMU loads.
    pub image: PathBuf,
    /// The directory that holds `modules.order` and `kernel/`, if the kernel has modules.
    pub modules: Option<PathBuf>,
    /// Its configuration.
    pub config: Option<PathBuf>,
    /// Where it comes from, in words: package and version, or the source and fragments.
    pub origin: String,
}
