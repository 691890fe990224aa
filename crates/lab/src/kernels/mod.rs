//! Kernels in a cache: fetched from Debian, added by hand or built.
//!
//! [`Cache`] holds them, one directory each. What is put there appears whole or not at all, whatever ends this program.

mod add;
mod build;
mod cache;
mod debian;
mod image;
mod loose;
mod merge;
mod named;
mod program;
mod source;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use record::Digest;
use serde::{Deserialize, Serialize};

pub use add::{Addition, add};
pub use build::{Build, Built, build};
pub use cache::{Cache, Entry};
pub use debian::{Flavour, Wanted, fetch, fetch_xen};
pub use merge::{Asked, Base};
pub(crate) use merge::{lines_of, symbol_of};
pub use named::{Needed, hypervisor, named};
pub use source::Source;

use crate::{Error, hash};

/// How the names of hypervisors in the cache begin: `xen-4.17-amd64`.
pub(crate) const XEN: &str = "xen-";

/// Where a long task tells how far it is: a line, without a line break.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// What a guest's machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// 64-bit x86, QEMU's `q35` or `pc`.
    Amd64,
    /// 64-bit ARM, QEMU's `virt`.
    Arm64,
}

impl Architecture {
    /// What this program runs on, if guests can be that.
    pub fn own() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// Debian's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Architecture {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Amd64, Self::Arm64]
            .into_iter()
            .find(|architecture| architecture.name() == name)
            .ok_or_else(|| Error::new(format!("no guest can be {name}")).hint("there are amd64 and arm64"))
    }
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
    /// The image's hash when it came into the cache; none for what is not of a cache, or came there before hashes were kept.
    #[serde(default)]
    pub sha256: Option<Digest>,
    /// Where it is kept unpacked from its first boot on; none for what is not of a cache.
    #[serde(skip)]
    pub unpacked: Option<PathBuf>,
    /// The directory that holds `modules.order` and `kernel/`, if the kernel has modules.
    pub modules: Option<PathBuf>,
    /// Its configuration.
    pub config: Option<PathBuf>,
    /// Where it comes from, in words: package and version, or the source and fragments.
    pub origin: String,
    /// Whether it is a hypervisor, under which a kernel boots: then `release` is its package's version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hypervisor: bool,
}

impl Kernel {
    /// Refuses an image that is not the one that came into the cache.
    ///
    /// # Errors
    /// Where its hash is another one.
    pub(crate) fn verify(&self, image: &Digest) -> Result<(), Error> {
        match &self.sha256 {
            Some(kept) if kept != image => Err(Error::new(format!(
                "{} was altered since it came into the cache: its SHA-256 is {}, not {}",
                self.image.display(),
                image.short(),
                kept.short()
            ))
            .hint(format!(
                "fetch, add or build {} again, which replaces it: worstcase lab kernels",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// Whether the image is there as it came into the cache.
    pub(crate) fn is_intact(&self) -> bool {
        hash::of_file(&self.image).and_then(|image| self.verify(&image)).is_ok()
    }
}
