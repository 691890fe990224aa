//! What is exact whatever the cells are.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Count, sum, minimum and maximum of latencies, exact in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// How many latencies.
    pub count: u64,
    /// Their sum in nanoseconds; stays at 2^64 - 1 where it would not fit.
    pub sum: u64,
    /// The least, in nanoseconds; 0 where nothing was counted.
    pub min: u64,
    /// The greatest, in nanoseconds; 0 where nothing was counted.
    pub max: u64,
}

impl Summary {
    /// Counts `nanos` `times` over.
    pub fn add(&mut self, nanos: u64, times: u64) {
        self.merge(&Self { count: times, sum: nanos.saturating_mul(times), min: nanos, max: nanos });
    }

    /// Takes in what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.count = self.count.saturating_add(other.count);
    }

    /// The mean, rounded down; none where nothing was counted.
    pub fn average(&self) -> Option<Nanos> {
        self.sum.checked_div(self.count).map(Nanos)
    }

    /// The minimum; none where nothing was counted.
    pub fn minimum(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.min))
    }

    /// The maximum; none where nothing was counted.
    pub fn maximum(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.max))
    }
}
