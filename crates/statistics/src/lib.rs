//! Tails, intervals and comparisons of latency distributions: pure functions of histograms and numbers.
//!
//! A single greatest latency is one draw from a chaotic system: an inert word on a kernel's command line was seen to
//! move it fivefold. So a set-up (an **arm**) is measured in several **runs** with different seeds, [`tail`] draws one
//! figure from each run, and [`compare`] sets the figures of two arms against the spread within the arms.
//!
//! ```
//! use statistics::{Value, Verdict, compare};
//! let plain = [48_674, 57_210, 62_052, 202_911, 233_289].map(Value::exact);
//! let real_time = [6_136, 6_153, 6_140, 6_149, 6_151].map(Value::exact);
//! let compared = compare(&plain, &real_time).unwrap();
//! assert_eq!(compared.verdict, Verdict::Lower);
//! assert!(compared.ratio < 0.2 && compared.interval.1 < 0.2);
//! ```

pub mod tail;

mod comparison;
mod ranks;
mod value;

pub use comparison::{Comparison, LEAST_RUNS, TooFew, Verdict, compare};
pub use tail::Tail;
pub use value::Value;
