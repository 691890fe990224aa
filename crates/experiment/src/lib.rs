//! Experiments with settings and kernels: does a change help, which changes suffice, which one is guilty, what did each step
//! gain?
//!
//! All of them measure [`Block`]s: stretches of equal length under the same load, each in one [`Arm`], which is what it is
//! compared with and some of the changes made to it. A [`Bench`] measures blocks: this machine, guests, or a script. Round
//! `n` of an experiment has one seed for all arms. Two arms are compared by their tails, and [`Effect`] is what the
//! comparison says of a change.
//!
//! - [`trial`] tries each setting by itself and shares one error among all of them (`statistics::holm`); [`search`] begins
//!   with all of them, leaves out what the tail does not need, and confirms what is left in fresh blocks. [`rounds`] puts one
//!   block of every arm into each round, in random order: drift (heat, caches, neighbours) falls on all arms alike. Arms are
//!   compared with control, within rounds, by `statistics::Paired`. Whatever is not on in an arm other than off is rewritten
//!   to what it says already, so that two such arms differ by values and not by the act of writing. Control against off is
//!   what writing by itself does. It is said where it is seen, and it is no part of a verdict.
//! - [`mod@bisect`] finds the change that moved the tail. Its guests boot by themselves, so that there is no drift: arms are
//!   compared by `statistics::compare_among`.
//! - [`ladder`] orders rungs and says which are compared.
//!
//! Whatever was asked, [`Compared`] is what two arms came to.
//!
//! ```
//! use experiment::{Arm, Design, Kind, rounds};
//! use units::Seed;
//!
//! let design = Design {
//!     settings: vec!["rn-thp".into()],
//!     blocks: 6,
//!     most_blocks: None,
//!     seed: Seed(1),
//!     smallest_effect: 0.2,
//!     measure: Kind::Quantile,
//!     threshold: None,
//! };
//! design.check(1)?;
//! // Each round has one block of either arm, in random order and with the same seed.
//! let blocks = rounds(&design, 1, 0, design.blocks, &[Arm::Control, Arm::only(0)]);
//! assert!(blocks.chunks(2).all(|pair| pair[0].seed == pair[1].seed && pair[0].arm != pair[1].arm));
//! # Ok::<(), experiment::Error>(())
//! ```

pub mod bisect;
pub mod ladder;

mod arm;
mod bench;
mod block;
mod compared;
mod design;
mod figures;
mod judge;
mod search;
mod single;
pub mod stolen;

pub use arm::{Arm, Changes};
pub use bench::{Attempt, Bench, Parameters, parameter};
pub use block::{Block, FIRST_SEED, rounds};
pub use compared::{Compared, Difference, of_ladder};
pub use design::{Design, Kind, Measure};
pub use failure::Error;
pub use figures::Figures;
pub use judge::{Effect, Judged};
pub use search::{Doubt, Found, Kept, Need, Outcome, Planned, Step, search};
pub use single::{Answer, Tried, trial};
