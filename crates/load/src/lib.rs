//! Loads: what disturbs while a probe measures.
//!
//! [`Catalogue`] holds the loads that `loads/*.toml` describe. [`start`] hands one to a supervisor process, which owns
//! every worker: the parent lives or dies, and with it all that it started. [`RunningLoad`] watches it and returns the
//! evidence that it ran.
//!
//! Two processes of the same binary work together: the parent calls [`start`], and the child, which knows itself by
//! [`SUPERVISOR_ARGUMENT`], calls [`supervisor::main`]. Between them stand a pipe down (the orders, then requests for
//! samples; its end is the order to stop), a pipe up ([`message`]), and a board of shared words ([`board`]) on which
//! workers count their work.
//!
//! The processes below /proc are read as they are, not through a `sysroot::SysRoot`: they are this crate's own.
//!
//! ```
//! let catalogue = load::Catalogue::shipped().unwrap();
//! let vm = catalogue.get("vm").unwrap();
//! assert_eq!(vm.explain().stressors, ["vm, one worker per CPU: maps 4 KiB, touches a byte of every 4096, unmaps"]);
//! assert!(!vm.writes() && !vm.is_real_time());
//! ```

mod board;
mod catalogue;
mod error;
mod exposure;
mod message;
mod pipe;
mod plan;
mod program;
mod running;
mod stressor;
pub mod supervisor;
mod text;

pub use catalogue::{Catalogue, Explanation, Load, Stressor, Workers};
pub use error::Error;
pub use plan::{Containment, Limits, LoadPlan, User};
pub use program::{Missing, Program};
pub use running::{RunningLoad, Sample, start};
pub use stressor::Work;

/// The first argument that makes the binary a supervisor: it then calls [`supervisor::main`] and nothing else.
pub const SUPERVISOR_ARGUMENT: &str = "__supervise-load";
