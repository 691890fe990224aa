//! Ladders: the same measurement on several kernels or kernel command lines, each in several guests with different seeds.
//!
//! [`mod@file`] is what a person writes, [`LadderPlan`] makes guests of it. Nothing here judges figures: that is done from
//! the records, by `report`.

pub mod file;

mod plan;

#[cfg(test)]
mod tests;

pub use file::{Building, Home, LadderFile, Rung};
pub use plan::LadderPlan;
