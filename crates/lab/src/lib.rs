//! Guests in QEMU: the same questions put to kernels that need no board.
//!
//! [`kernels`] keeps kernels in a cache, [`boot`] runs one command in one guest and brings its results back, [`guest`]
//! is the other end of that: what process 1 does inside. [`ladder`] and [`bisect`] run many guests and compare them.

pub mod bisect;
mod blocks;
pub mod boot;
mod error;
pub mod frames;
pub mod guest;
mod hash;
mod initramfs;
pub mod kept;
pub mod kernels;
pub mod ladder;
pub mod made_of;
pub mod parameters;
mod qemu;
#[cfg(test)]
mod scripted;
pub mod several;

pub use error::Error;
pub use initramfs::programs::find as find_program;
pub use made_of::MadeOf;
