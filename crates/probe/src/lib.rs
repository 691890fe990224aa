//! Instruments. The timer probe: how late does a thread wake up that sleeps until a point in time?
//!
//! It runs in a process of its own ([`process`]), so that it alone is locked in memory and can be put into a
//! partition; its threads write to a [`board`] of shared words, which the parent reads through [`client`].
//! The measuring loop is [`engine::run`]; what wakes it is a [`source::Source`].

pub mod board;
pub mod client;
pub mod engine;
pub mod maxima;
pub mod plan;
pub mod process;
pub mod source;

pub use client::{Probe, ProbeError};
pub use plan::{ProbePlan, ThreadPlan};
