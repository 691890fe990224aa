//! Changes the machine, proves that it changed, and undoes it from a journal.
//!
//! [`mod@plan`] says what would be written where, and what cannot be changed and why not. [`mod@apply`] does it: what is to be
//! changed stands in the [`journal`] before it is changed, each write is read back, and a refusal takes back what was
//! done. [`mod@undo`] works from the journal alone, never overwrites what somebody else changed since, and ends with a
//! proof. [`mod@status`] says what still holds. A [`holder`] undoes when a time has run out, or keeps a device open. [`persist`] changes what holds from the next boot on.
//!
//! The machine is read through a `sysroot::SysRoot` and written through a `control::Kernel`, so that all of this can be tried on
//! a machine that is made up, with a kernel that refuses, a disk that is full and a process that is killed.
//!
//! ```
//! use sysroot::{SysRoot, Tree};
//!
//! // Nothing asked for is nothing to write.
//! let root = SysRoot::of(Tree::whole([]));
//! let plan = tune::plan(&root, &[], &"1".parse().unwrap());
//! assert!(plan.steps.is_empty() && plan.refusals.is_empty());
//! ```

pub mod apply;
pub mod conflict;
mod error;
#[cfg(test)]
mod fault_tests;
pub mod holder;
pub mod journal;
pub mod persist;
pub mod plan;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod setting;
pub mod status;
pub mod undo;
mod write;

pub use error::{Error, Result};
pub use holder::live;
pub use journal::{Journal, State, boot_id};
pub use plan::{Change, Plan, Refusal, Request, Step, plan};
pub use setting::{Form, PARTITION, Target, Thread, file_of_sysctl, is_of_kernel, is_setting};
