//! Other tools' formats, written from our figures, so that what people already have can read them.
//!
//! Pure functions from figures to text: no clock, no file. Each format says what it cannot say: none of them knows
//! missed activations apart from [`latmus`]' overruns, and rows of 1 us end at 10 ms, where our cells are no longer
//! exact to the microsecond; what lies beyond is counted as the format counts overflows.

use histogram::Histogram;

use crate::{Lab, LabTime};

pub mod cyclictest;
pub mod latmus;
pub mod osadl;

/// A comment for the head of a file that was measured in a guest of the lab: none of these formats has a word for what
/// its figures are.
pub fn guest_note(lab: &Lab) -> String {
    let counts = match lab.time {
        LabTime::Instructions => "a microsecond stands for 1000 instructions",
        LabTime::Wall => "the time is the emulator's host's, latencies mean nothing",
    };
    format!("# guest of the lab ({}): {counts}\n", lab.emulator)
}

/// The most rows of 1 us that can be written: [`Histogram`] is exact to the microsecond below 10 ms.
pub const MOST_ROWS: u64 = 10_000;

/// How many rows to write: as many as asked for, else up to the greatest latency; at most [`MOST_ROWS`].
fn row_count<'a>(histograms: impl IntoIterator<Item = &'a Histogram>, asked: Option<u64>) -> u64 {
    let greatest = histograms.into_iter().map(|histogram| histogram.summary().max / 1_000).max();
    asked.unwrap_or_else(|| greatest.unwrap_or(0).saturating_add(1)).clamp(1, MOST_ROWS)
}

/// Counts of the rows `0..rows`, and of all that lies beyond them.
fn split(histogram: &Histogram, rows: u64) -> (Vec<u64>, u64) {
    let (mut counts, mut beyond) = (vec![0; rows as usize], 0);
    for (micros, count) in histogram.microsecond_rows() {
        match usize::try_from(micros).ok().and_then(|row| counts.get_mut(row)) {
            Some(place) => *place = count.saturating_add(*place),
            None => beyond = count.saturating_add(beyond),
        }
    }
    (counts, beyond)
}

/// A comment for the record of a run that was cut off: its histogram may lack what its summary counts.
fn missing_from_rows<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Option<String> {
    let missing = |histogram: &Histogram| histogram.summary().count.saturating_sub(histogram.cell_count());
    let missing = sum(histograms.into_iter().map(missing));
    (missing > 0).then(|| {
        format!("# cut off: {missing} samples are in minimum, average and maximum, not in the rows\n")
    })
}

/// Stays at 2^64 - 1 where it would not fit: a record may come from anywhere.
fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
