//! Facts about a Linux machine, read through a [`SysRoot`](sysroot::SysRoot). Nothing here judges: what a fact means
//! for a figure is said in `record::validity`, and what rules ask for by name is in the crate `survey`.
//!
//! [`machine`] reads what stands still, once a run. [`Snapshot`] reads what counts, before and after a scenario.
//! [`KernelLog`] keeps the kernel's complaints in between, [`Heat`] watches over the temperature. [`tasks`] finds threads
//! that can stand in a probe's way.
//!
//! Reading is all that is done, and every file is read through the root. Each parser is a
//! pure function of text.
//!
//! ```
//! use sysroot::{SysRoot, Tree};
//!
//! // A machine of two files; `SysRoot::live()` is this one.
//! let files = [("/proc/cmdline", "quiet isolcpus=2-3"), ("/sys/devices/system/cpu/online", "0-3")];
//! let tree = Tree::whole(files.map(|(path, text)| (path.to_owned(), text.into())));
//! let facts = machine::machine(&SysRoot::of(tree));
//! assert_eq!(facts.cpus.online.to_string(), "0-3");
//! ```

pub mod activity;
pub mod boot_loader;
pub mod cgroups;
pub mod command_line;
pub mod configuration;
mod counters;
mod counts;
mod cpu_times;
mod cpusets;
mod disturbances;
mod energy;
pub mod ethtool;
pub mod facts;
mod frequencies;
pub mod grammar;
pub mod handlers;
mod heat;
pub mod interrupts;
pub mod kernel_config;
pub mod kernel_log;
pub mod latency_request;
pub mod mounts;
mod origins;
pub mod packed;
pub mod parameters;
mod placement;
mod quotas;
mod real_time;
pub mod swaps;
pub mod taken;
pub mod tasks;
pub mod unseen;
pub mod users;
pub mod waits;

pub use command_line::CommandLine;
pub use counters::{Snapshot, busy_between, evidence_between};
pub use cpu_times::CpuTimes;
pub use cpusets::{
    V1, is_of_v2, is_slice, partition_around, partition_at, partition_of, partitions, processes_in,
};
pub use disturbances::Disturbances;
pub use facts::{has_idle_states, machine, throttling_now};
pub use heat::{Heat, temperature};
pub use kernel_config::KernelConfig;
pub use kernel_log::KernelLog;
pub use mounts::directory_of;
pub use origins::{origin_name, origin_of};
pub use placement::{misplaced, present, processes_below};
pub use real_time::{RealTime, held_back, locked_memory};
pub use tasks::{Task, descendants, outside_other};
