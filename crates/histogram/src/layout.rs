//! Which cell a latency falls into, and what a cell spans.
//!
//! | latency | cell width |
//! | --- | --- |
//! | 0 to 100 us | 100 ns |
//! | 100 us to 10 ms | 1 us |
//! | 10 ms to 2^63 ns | 1/128 to 1/256 of the latency (HDR style) |

/// The first latency of the 1 us cells, in ns.
const FINE_END: u64 = 100_000;
/// The first latency of the logarithmic cells, in ns: exports with 1 us rows are exact below it.
pub const LINEAR_END: u64 = 10_000_000;
const FINE_WIDTH: u64 = 100;
const COARSE_WIDTH: u64 = 1_000;
const FINE_CELLS: u64 = FINE_END / FINE_WIDTH;
const LINEAR_CELLS: u64 = FINE_CELLS + (LINEAR_END - FINE_END) / COARSE_WIDTH;

/// Logarithmic cells keep this many leading bits of the value: the leading one and seven more.
const KEPT_BITS: u32 = 8;
const PER_OCTAVE: u64 = 1 << (KEPT_BITS - 1);
const FIRST_SHIFT: u32 = u64::BITS - LINEAR_END.leading_zeros() - KEPT_BITS;
const FIRST_KEPT: u64 = LINEAR_END >> FIRST_SHIFT;
/// Values stop at 2^63 - 1, so the last shift leaves `KEPT_BITS` of 63 bits.
const LAST_SHIFT: u32 = 63 - KEPT_BITS;

/// How many cells there are.
pub const CELLS: usize =
    (LINEAR_CELLS + (LAST_SHIFT - FIRST_SHIFT + 1) as u64 * PER_OCTAVE - (FIRST_KEPT - PER_OCTAVE)) as usize;

/// The cell that `nanos` falls into; anything beyond 2^63 - 1 counts as that.
#[inline]
pub fn index(nanos: u64) -> usize {
    let cell = if nanos < FINE_END {
        nanos / FINE_WIDTH
    } else if nanos < LINEAR_END {
        FINE_CELLS + (nanos - FINE_END) / COARSE_WIDTH
    } else {
        let nanos = nanos.min(i64::MAX as u64);
        let shift = u64::BITS - nanos.leading_zeros() - KEPT_BITS;
        let kept = nanos >> shift;
        LINEAR_CELLS + u64::from(shift - FIRST_SHIFT) * PER_OCTAVE + kept - FIRST_KEPT
    };
    cell as usize
}

/// The lowest latency of a cell, in ns.
pub fn lowest(cell: usize) -> u64 {
    let cell = cell as u64;
    if cell < FINE_CELLS {
        cell * FINE_WIDTH
    } else if cell < LINEAR_CELLS {
        FINE_END + (cell - FINE_CELLS) * COARSE_WIDTH
    } else {
        let place = cell - LINEAR_CELLS + FIRST_KEPT - PER_OCTAVE;
        let shift = FIRST_SHIFT + (place / PER_OCTAVE) as u32;
        ((PER_OCTAVE + place % PER_OCTAVE) << shift).max(LINEAR_END)
    }
}

/// The highest latency of a cell, in ns; it belongs to the cell.
pub fn highest(cell: usize) -> u64 {
    if cell + 1 >= CELLS { i64::MAX as u64 } else { lowest(cell + 1) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seams_between_the_ranges_leave_no_gap() {
        assert_eq!(index(0), 0);
        assert_eq!(index(FINE_END - 1) + 1, index(FINE_END));
        assert_eq!(index(LINEAR_END - 1) + 1, index(LINEAR_END));
        assert_eq!(index(i64::MAX as u64), CELLS - 1);
        assert_eq!(index(u64::MAX), CELLS - 1);
    }

    #[test]
    fn every_cell_holds_its_own_bounds_and_follows_the_one_before() {
        for cell in 0..CELLS {
            assert_eq!(index(lowest(cell)), cell);
            assert_eq!(index(highest(cell)), cell);
            assert!(cell == 0 || lowest(cell) == highest(cell - 1) + 1, "cell {cell}");
        }
    }

    #[test]
    fn cells_are_exact_to_ten_milliseconds_and_at_most_one_percent_wide_above() {
        for cell in 0..CELLS {
            let (low, width) = (lowest(cell), highest(cell) - lowest(cell) + 1);
            assert!(if low < LINEAR_END { width <= 1_000 } else { width * 100 <= low }, "{low} {width}");
        }
    }

    proptest! {
        #[test]
        fn a_value_lies_within_its_cell(nanos in 0..=i64::MAX as u64) {
            let cell = index(nanos);
            prop_assert!(lowest(cell) <= nanos && nanos <= highest(cell));
        }
    }
}
