//! Bisection: which single change between a good and a bad set-up moved the tail.
//!
//! The changes are kernel parameters, symbols of a kernel's configuration, or steps in an ordered list of kernels. An [`Arm`] is
//! the good set-up with some of the changes made, measured by several guests with different seeds. An arm is compared
//! with the good one by `statistics::compare`; [`Reading`] says what that means beyond the asked ratio. [`search`] finds
//! which changes it takes, [`judge`] puts the questions and confirms the answer both ways by fresh guests, [`course`] boots
//! what they ask for and keeps every guest's record. A control arm, with a parameter that nobody reads, shows what a
//! difference by mere chance looks like.
//!
//! What it cannot see: changes that cancel each other, and changes that each move the tail by less than the ratio.

pub mod course;
pub mod question;
pub mod subject;

mod arm;
mod judge;
mod reading;
mod search;

pub use arm::Arm;
pub use course::{Course, Means, Told};
pub use judge::{Answer, Doubt, Outcome};
pub use question::Question;
pub use reading::{Reading, Step};
pub use subject::{Change, Needed, Slot, Subject};
