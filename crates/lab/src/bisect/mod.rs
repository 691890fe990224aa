//! Bisections of kernels: what differs between a good and a bad set-up, and the guests that measure what lies between.
//! What is searched and how it is judged: [`experiment::bisect`].
//!
//! The changes are kernel parameters, symbols of a kernel's configuration, or steps in an ordered list of kernels.

pub mod subject;

mod plan;

#[cfg(test)]
mod tests;

pub use plan::BisectPlan;
pub use subject::{Change, Slot, Subject};
