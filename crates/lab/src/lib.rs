//! Guests in QEMU: the same questions put to kernels that need no board.
//!
//! [`kernels`] keeps kernels in a cache, [`boot`] runs one command in one guest and brings its results back, [`guest`]
//! is the other end of that: what process 1 does inside. [`ladder`] and [`bisect`] run many guests and compare them.

pub mod bisect;
pub mod boot;
mod error;
pub mod guest;
pub mod kernels;
pub mod ladder;

pub use error::Error;
