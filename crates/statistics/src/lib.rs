//! Tails, intervals and comparisons of latency distributions: pure functions of histograms and numbers.
//!
//! A single greatest latency is one draw from a chaotic system: an inert word on a kernel's command line was seen to
//! move it fivefold. So a set-up (an **arm**) is measured in several **runs** with different seeds, [`tail`] draws one
//! figure from each run, and [`compare`] sets the figures of two arms against the spread within the arms. Where runs of both
//! arms take turns in rounds, [`Paired`] compares them within the rounds, so that no drift between rounds counts. Arms that were
//! measured one after the other are compared by [`compare_apart`].
//!
//! ```
//! use statistics::{Value, Verdict, compare};
//! let plain = [48_674, 57_210, 62_052, 202_911, 233_289].map(Value::exact);
//! let real_time = [6_136, 6_153, 6_140, 6_149, 6_151].map(Value::exact);
//! let compared = compare(&plain, &real_time).unwrap();
//! assert_eq!(compared.verdict, Verdict::Lower);
//! assert!(compared.ratio < 0.2 && compared.interval.1 < 0.2);
//! ```

//!
//! What one run says, from its distribution and its block maxima ([`Sequence`]): how many independent samples it is worth
//! ([`extremal_index`]), how much of it counts ([`share_that_counts`]), whether it was alike from beginning to end ([`Stationarity`]), where a quantile lies
//! ([`interval_of`]), and, where asked for, what is estimated of latencies that were not seen ([`extreme`]).

pub mod extreme;
pub mod tail;

mod apart;
mod comparison;
mod dependence;
mod interval;
mod median;
mod numeric;
mod paired;
mod power;
mod ranks;
mod sequence;
mod stationarity;
mod value;

pub use apart::{LEAST_APART, compare_apart};
pub use comparison::{Comparison, LEAST_RUNS, TooFew, Verdict, compare, compare_among, runs_needed};
pub use dependence::{
    LEAST_SAMPLES, activations_needed, correlation_times, extremal_index, share_that_counts,
};
pub use interval::{QuantileInterval, interval_of, quantile_interval, samples_to_bound};
pub use median::{Median, median};
pub use paired::{ERROR, Interval, Paired, confidence_of, holm, rounds_needed};
pub use power::{POWER, Power};
pub use sequence::Sequence;
pub use stationarity::Stationarity;
pub use tail::Tail;
pub use value::Value;
