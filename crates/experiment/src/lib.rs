//! Does a setting help? Experiments that answer with an interval, and the search for a set that suffices.
//!
//! Settings are tried in [`Block`]s: stretches of equal length under the same load, each in one [`Arm`]: settings off, some
//! of them on, or control. Whatever is not on in an arm other than off is rewritten to what it says already, so that two
//! such arms differ by values and not by the act of writing. [`rounds`] puts one block of every arm into each round, in
//! random order: drift (heat, caches, neighbours) falls on all arms alike. A [`Bench`] measures blocks; arms are compared
//! with control, within rounds, by `statistics::Paired`. [`trial`] tries each setting by itself and shares one error among
//! all of them (`statistics::holm`); [`search`] begins with all of them, leaves out what the tail does not need, and
//! confirms what is left in fresh blocks.
//!
//! Control against off is what writing by itself does. It is said where it is seen, and it is no part of a verdict.

mod arm;
mod bench;
mod block;
mod design;
mod figures;
mod judge;
mod search;
mod single;

pub use arm::Arm;
pub use bench::Bench;
pub use block::{Block, rounds};
pub use design::{Design, Kind, Measure};
pub use failure::Error;
pub use figures::Figures;
pub use judge::{Effect, Judged};
pub use search::{Doubt, Found, Kept, Need, Outcome, Planned, Step, search};
pub use single::{Answer, Tried, trial};
