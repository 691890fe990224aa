//! The form that the OSADL QA farm's plot scripts read.
//!
//! Rows are `<us> <count of the first CPU> TAB <count of the second CPU> ...`, always 0 to 399 us as after
//! `cyclictest -h400`, so that the files of many runs stack. The script for one latency plot (osadl.org, "Create a
//! latency plot from cyclictest histogram data") drops comments and takes its maximum from `# Max Latencies:`. The
//! script for the long-term picture ("Create a pseudo 3D long-term latency graphic") reads numbers only:
//! [`rows`] is for it.

use record::Series;

use crate::cyclictest::Table;

/// Rows in the farm's files.
pub const ROWS: u64 = 400;

/// Rows, then comments with total, minimum, average, maximum and overflows.
pub fn plot(series: &[Series]) -> String {
    let table = Table::new(series, Some(ROWS));
    let mut text = table.preamble();
    table.write_rows(&mut text);
    table.write_totals(&mut text);
    text
}

/// Rows alone, one file a run. Latencies of 400 us and above are not in it.
pub fn rows(series: &[Series]) -> String {
    let mut text = String::new();
    Table::new(series, Some(ROWS)).write_rows(&mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    fn series(latencies: &[u64]) -> Series {
        let mut series = Series::default();
        latencies.iter().for_each(|&micros| series.observed.record(Nanos::from_micros(micros)));
        series
    }

    #[test]
    fn every_file_has_the_same_rows_and_columns() {
        for series in [vec![series(&[])], vec![series(&[3, 399, 400, 20_000]), series(&[7])]] {
            let text = rows(&series);
            assert_eq!(text.lines().count() as u64, ROWS);
            assert!(text.lines().all(|line| line.split([' ', '\t']).count() == series.len() + 1));
        }
    }

    /// The steps of the farm's script for one plot: the words of the one line with the maxima, sorted as numbers; and
    /// all lines that are neither comments nor empty.
    #[test]
    fn the_plot_script_finds_the_maximum_and_the_rows() {
        let text = plot(&[series(&[3, 5, 1_200]), series(&[4, 399])]);
        let maxima: Vec<_> = text.lines().filter(|line| line.contains("Max Latencies")).collect();
        assert_eq!(maxima, ["# Max Latencies: 01200 00399"]);
        let data: Vec<_> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(data.join("\n") + "\n", rows(&[series(&[3, 5, 1_200]), series(&[4, 399])]));
        assert_eq!((data[3], data[399]), ("000003 000001\t000000", "000399 000000\t000001"));
        assert!(text.contains("# Histogram Overflows: 00001 00000\n"), "{text}");
    }
}
