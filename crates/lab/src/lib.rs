//! Guests in QEMU: the same questions put to kernels that need no board.
//!
//! [`kernels`] keeps kernels in a cache, [`boot`] runs one command in one guest and brings its results back, [`guest`]
//! is the other end of that: what process 1 does inside. [`mod@bench`] boots the many guests of an experiment, [`state`] is
//! what stands in its file, [`replay`] finds its answer again from its records, [`ladder`] and [`mod@bisect`] are two of them.
//!
//! ```
//! use lab::ladder::LadderFile;
//!
//! let ladder = LadderFile::parse(
//!     r#"
//!     name = "preemption"
//!     title = "Debian's kernel, plain and PREEMPT_RT"
//!     loads = ["io"]
//!     duration = "2s"
//!     seeds = 5
//!
//!     [[rung]]
//!     name = "plain"
//!     title = "As Debian builds it"
//!     kernel = "debian-6.1-amd64"
//!
//!     [[rung]]
//!     name = "rt"
//!     title = "PREEMPT_RT"
//!     kernel = "debian-6.1-rt-amd64"
//!     "#,
//! );
//! assert_eq!(ladder.unwrap().rungs.len(), 2);
//! ```

pub mod bench;
pub mod bisect;
mod blocks;
pub mod boot;
mod error;
pub mod frames;
pub mod guest;
mod hash;
mod initramfs;
mod input;
pub mod kept;
pub mod kernels;
pub mod ladder;
pub mod limits;
pub mod made_of;
pub mod measure;
pub mod microscope;
pub mod parameters;
mod qemu;
pub mod replay;
#[cfg(test)]
mod scripted;
pub mod several;
pub mod state;
mod text;

pub use error::Error;
pub use initramfs::programs::find as find_program;
pub use made_of::{Difference, MadeOf};
