//! Does a setting help? Experiments that answer with an interval, and the search for the smallest set that suffices.
//!
//! Settings are tried in [`Block`]s: stretches of equal length under the same load, each in one [`Arm`] (settings off, some
//! of them on, or rewritten to what they say already). [`schedule`] puts one block of every arm into each round, in an
//! order drawn by lot, so that drift (heat, caches, the neighbours) falls on all arms alike and all have equal exposure.
//! A [`Bench`] measures blocks; [`judge`] compares arms by `statistics::compare`. [`trial`] tries each setting by itself;
//! [`search`] begins with all of them, drops what the tail does not need, and confirms what is left with fresh blocks.
//!
//! The control arm shows what chance alone, and the act of writing, look like. Where it differs, nothing is concluded.

mod arm;
mod bench;
mod design;
mod figures;
mod judge;
mod schedule;
mod search;
mod single;

pub use arm::Arm;
pub use bench::{Bench, Error};
pub use design::{Design, Kind, Measure};
pub use figures::Figures;
pub use judge::{Effect, Judged, judge};
pub use schedule::{Block, rounds};
pub use search::{Doubt, Found, Kept, Outcome, Step, search};
pub use single::{Answer, Tried, trial};
