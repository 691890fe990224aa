//! System calls and every `unsafe` of the program: one small file a family, a safe face over each.
//!
//! Each function names the system call that it makes and its man page. Errors carry the call and the kernel's errno.
//!
//! ```
//! use sys::clock::Clock;
//!
//! let now = Clock::Monotonic.now();
//! Clock::Monotonic.sleep_until(now + 1_000_000).unwrap();
//! assert!(Clock::Monotonic.now() >= now + 1_000_000);
//! ```
#![allow(unsafe_code)]

pub mod allocation;
pub mod birth;
pub mod blocked;
pub mod clock;
pub mod cpu;
pub mod descriptor;
pub mod device;
pub mod error;
pub mod ethtool;
pub mod evl;
pub mod futex;
pub mod gpio;
pub mod hpet;
#[cfg(feature = "injection")]
pub mod injection;
pub mod io_uring;
mod ioctl;
#[cfg(target_arch = "x86_64")]
pub mod kvm;
pub mod machine;
pub mod mapping;
pub mod memory;
pub mod message_queue;
pub mod mutex;
pub mod namespace;
pub mod net;
pub mod perf;
pub mod privilege;
pub mod process;
pub mod schedule;
pub mod shared;
pub mod signal;
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod stand_ins;
pub mod standard;
pub mod timer;
pub mod uio;
pub mod usage;
pub mod vfio;

pub use error::{Errno, Error, Result};
