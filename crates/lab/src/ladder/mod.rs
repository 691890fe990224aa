//! Ladders: the same measurement on several kernels or boot lines, each in several guests with different seeds.
//!
//! [`mod@file`] is what a person writes, [`plan`] makes guests of it, [`state`] is what stands in `ladder.json` while and
//! after they run, [`course`] runs them. Nothing here judges figures: that is done from the records, by `report`.

pub mod course;
pub mod file;
pub mod plan;
pub mod state;

pub(crate) mod text;

pub use course::{Course, Told};
pub use file::{Building, LadderFile, Published, Rung};
pub use state::{Cell, CellState, State};
