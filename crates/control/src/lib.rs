//! The one writer of the kernel's files: plain files, control groups, instances of the trace, limits on exit latencies,
//! swap, threads, services and slices of systemd.
//!
//! [`Kernel`] is the trait through which a machine is changed, [`Live`] the running one. What is changed for a while is
//! held by a guard, [`Directory`] or [`LatencyRequest`], which the kernel or its `Drop` releases, or is remembered in
//! [`Changes`]. There is no policy
//! here and no journal: what should be written, and what is put back after a crash, is decided above (`tune`).
//!
//! ```
//! use control::{Kernel, Live};
//!
//! assert!(Live::default().write_file("/proc/sys/no/such/file", "1").is_err());
//! ```

mod changes;
mod directory;
mod kernel;
mod latency;
mod live;
mod marker;
mod place;
mod programs;
mod slice;
mod slice_property;

pub use changes::Changes;
pub use directory::Directory;
pub use kernel::Kernel;
pub use latency::{Error, KeepLatency, LatencyRequest};
pub use live::Live;
pub use marker::{Mark, Marker};
pub use place::is_setting;
pub use slice_property::SliceProperty;
