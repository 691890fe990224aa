//! The record of a run: what was planned, on which machine, what came out, and how far it can be trusted.
//!
//! [`model`] holds the types that `record.json` is made of. [`journal`] is the same, written while it happens: a file
//! that is appended to every second, from which a run that was cut off can still be read. [`validity`] turns
//! evidence into warnings, [`verdict`] turns warnings and latencies into pass, fail, inconclusive or error; [`claims`]
//! says what the figures mean for latencies that were not seen.
//! [`Unit`] says what a latency counts. [`samples`] is the file of every single sample.
//!
//! Nothing here knows how a figure was measured or how it is drawn.
//!
//! ```
//! use record::Fact;
//!
//! // What could not be read is no zero: each fact of a record is a value, or says why there is none.
//! let steal: Fact<u64> = serde_json::from_str(r#"{"unreadable": 13}"#).unwrap();
//! assert_eq!(steal.value(), None);
//! ```

pub mod claims;
pub mod cost;
mod document;
pub mod journal;
pub mod json;
#[cfg(test)]
#[path = "../../../xtask/src/mend/in_tests.rs"]
mod mend;
pub mod migrate;
pub mod model;
pub mod monitor;
pub mod samples;
pub mod store;
mod store_error;
pub mod time;
mod unit;
pub mod validity;
pub mod verdict;
pub mod wake_path;
pub mod ways;

pub use model::*;
pub use unit::Unit;
