//! The rows that tables of figures can have; each instrument chooses from them.

/// The percentiles that every table shows.
pub(crate) const PERCENTILES: [(&str, f64); 3] = [("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// The least latency.
    Minimum,
    /// The mean.
    Average,
    /// A percentile, by its place in [`PERCENTILES`].
    Percentile(usize),
    /// The greatest latency.
    Maximum,
    /// Wake-ups.
    Samples,
    /// Activations without one.
    Missed,
    /// Share of activations late or missed.
    Late,
    /// Share of the watched time that gaps took.
    Lost,
    /// Time in which gaps were looked for.
    Watched,
    /// Gaps that nothing known made.
    Unexplained,
    /// The longest of a part of responses, by its place in `PartName::ALL`.
    Part(usize),
    /// A figure of GPIO lines, by its place in [`GPIO`].
    Gpio(usize),
    /// Frames that were never answered.
    FramesLost,
    /// Activations over the limit.
    OverLimit,
}

/// Figures of GPIO lines beside the answers themselves.
pub(crate) const GPIO: [&str; 3] = ["max wake", "max answer", "max by monitor"];

/// The rows that are latencies.
pub(crate) const LATENCIES: [Row; 6] =
    [Row::Minimum, Row::Average, Row::Percentile(0), Row::Percentile(1), Row::Percentile(2), Row::Maximum];

impl Row {
    /// Whether the row's cells are latencies.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Self::Minimum
                | Self::Average
                | Self::Percentile(_)
                | Self::Maximum
                | Self::Part(_)
                | Self::Gpio(_)
        )
    }
}
