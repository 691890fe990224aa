//! Rows of one microsecond, and what does not fit into them.

use histogram::Histogram;

/// The most rows of 1 us that can be written: [`Histogram`] is exact to the microsecond below 10 ms.
pub const MOST_ROWS: u64 = 10_000;

/// How many rows to write: as many as asked for, else up to the greatest latency; at most [`MOST_ROWS`].
pub fn row_count<'a>(histograms: impl IntoIterator<Item = &'a Histogram>, asked: Option<u64>) -> u64 {
    let greatest = histograms.into_iter().map(|histogram| histogram.summary().max / 1_000).max();
    asked.unwrap_or_else(|| greatest.unwrap_or(0).saturating_add(1)).clamp(1, MOST_ROWS)
}

/// Counts of the rows `0..rows`, and of all that lies beyond them.
pub fn split(histogram: &Histogram, rows: u64) -> (Vec<u64>, u64) {
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
pub fn missing_from_rows<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Option<String> {
    let missing = |histogram: &Histogram| histogram.summary().count.saturating_sub(histogram.cell_count());
    let missing = sum(histograms.into_iter().map(missing));
    (missing > 0).then(|| {
        format!("# cut off: {missing} samples are in minimum, average and maximum, not in the rows\n")
    })
}

/// Stays at 2^64 - 1 where it would not fit: a record may come from anywhere.
pub fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
