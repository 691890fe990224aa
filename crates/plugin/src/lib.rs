//! The plugin of QEMU by which a guest's instructions are followed: its file, and the form of what it writes.
//!
//! Its source is in `qemu/`. QEMU loads it from a file in memory, so that there is nothing to install.
//!
//! ```
//! // Empty on a host for which no plugin is built.
//! assert!(plugin::LIBRARY.is_empty() || plugin::LIBRARY.starts_with(b"\x7fELF"));
//! ```

pub mod clock;
pub mod layout;
pub mod sections;

/// The shared library, for the architecture of this program; empty where no QEMU is expected to load it.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));

/// The emulators that load it, by their major version: those with version 1 of the plugin interface (QEMU 9.0 takes version
/// 2 and later) that have registers where this plugin looks for them. Tried with 7.2.
pub const EMULATORS: std::ops::RangeInclusive<u32> = 7..=8;
