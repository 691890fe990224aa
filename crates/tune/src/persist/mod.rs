//! What holds from the next boot on: ordinary files, changed as one transaction that can be taken back.

pub mod boot;
mod disk;
pub mod files;
#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod scripted_disk;
pub mod startup;

pub use disk::{Attributes, Contents, Disk, Found, Live};
pub use files::{Edit, Files, PutBack, Recorded};
pub use startup::{Init, StartupFile};

/// Where backups and journals are, below the root of the system that is changed. Each transaction has a directory in it.
pub const STATE: &str = "/var/lib/worstcase/persist";
