//! A latency histogram that nobody has to size.
//!
//! [`layout`] says which cell a value falls into: 100 ns cells below 100 us, 1 us cells to 10 ms, and at most
//! 0.8 % wide from there to 2^63 ns. [`record_missed`] enters the activations that a stall swallowed, in time
//! proportional to cells. Both write through [`Counts`], so that the measuring thread can count into shared
//! memory while [`Histogram`] is what everybody else reads: the counts with the exact count, sum, minimum and
//! maximum beside them.
//!
//! ```
//! use histogram::Histogram;
//! use units::Nanos;
//!
//! let mut latencies = Histogram::default();
//! (1..=1000).for_each(|us| latencies.record(Nanos::from_micros(us)));
//! assert_eq!(latencies.summary().max, Nanos::from_micros(1000).0);
//! assert!(latencies.quantile(0.99) >= Some(Nanos::from_micros(990)));
//! ```

pub mod layout;

mod histogram;
mod missed;
mod summary;

pub use histogram::{Histogram, Row};
pub use missed::{Counts, record_missed};
pub use summary::Summary;
