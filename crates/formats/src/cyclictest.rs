//! cyclictest's text: its `T:` lines, and its histogram as rt-tests up to 2.6 print it.
//!
//! rt-tests 2.7 leaves out empty rows and the `# Total:` line; the older form is the one that plot scripts expect.
//! Widths are those of cyclictest 2.4, read off its output. Values are whole microseconds, rounded down as
//! cyclictest does; the average is that of the exact latencies, not of the rounded ones.

use std::fmt::Write;

use record::Series;
use units::Nanos;

use crate::rows::{missing_from_rows, row_count, split, sum};

/// What cyclictest prints for a thread that has not woken yet: where its minimum starts.
const NO_MINIMUM: u64 = 1_000_000;

/// What a `T:` line says of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The thread's number in the probe, from 0.
    pub thread: u32,
    /// Its kernel thread id.
    pub tid: i32,
    /// Its real-time priority; 0 for a policy without.
    pub priority: u32,
    /// Its period.
    pub interval: Nanos,
    /// Wake-ups so far.
    pub count: u64,
    /// The least latency.
    pub min: Nanos,
    /// The latest latency.
    pub act: Nanos,
    /// The average latency.
    pub avg: Nanos,
    /// The greatest latency.
    pub max: Nanos,
}

/// The thread's line, live or at the end.
pub fn line(thread: &Thread) -> String {
    let micros = |nanos: Nanos| nanos.0 / 1_000;
    format!(
        "T:{:2} ({:5}) P:{:2} I:{} C:{:7} Min:{:7} Act:{:5} Avg:{:5} Max:{:8}",
        thread.thread,
        thread.tid,
        thread.priority,
        micros(thread.interval),
        thread.count,
        if thread.count == 0 { NO_MINIMUM } else { micros(thread.min) },
        micros(thread.act),
        micros(thread.avg),
        micros(thread.max),
    )
}

/// The histogram of `series`, one column each, as `cyclictest -h` prints it.
///
/// `rows` is what `-h` would be given: rows `0..rows` of 1 us, at most [`crate::MOST_ROWS`]; without it, up to the
/// greatest latency. A latency at or above the last row's end is an overflow; the cycle numbers of overflows are
/// those among [`Series::worst`], and count missed activations, which cyclictest's do not.
pub fn histogram(series: &[Series], rows: Option<u64>) -> String {
    let table = Table::new(series, rows);
    let mut text = table.preamble() + "# Histogram\n";
    table.write_rows(&mut text);
    table.write_totals(&mut text);
    text.push_str("# Histogram Overflow at cycle number:\n");
    for (thread, one) in series.iter().enumerate() {
        let _ = writeln!(text, "# Thread {thread}:{}", table.overflow_cycles(thread, one));
    }
    text + "\n"
}

/// Rows and overflows of several series side by side.
pub(super) struct Table<'a> {
    series: &'a [Series],
    rows: u64,
    columns: Vec<(Vec<u64>, u64)>,
}

impl<'a> Table<'a> {
    pub(super) fn new(series: &'a [Series], rows: Option<u64>) -> Self {
        let rows = row_count(series.iter().map(|one| &one.observed), rows);
        Self { series, rows, columns: series.iter().map(|one| split(&one.observed, rows)).collect() }
    }

    /// Comments of our own. Readers take every line that begins with `#`; none of these contains a title that they
    /// search for.
    pub(super) fn preamble(&self) -> String {
        let cpus: Vec<_> =
            self.series.iter().map(|one| one.cpu.map_or("-".to_owned(), |cpu| cpu.to_string())).collect();
        let mut text = format!("# CPU of each column: {}\n", cpus.join(" "));
        let beyond = sum(self.columns.iter().map(|(_, beyond)| *beyond));
        if beyond > 0 {
            let _ =
                writeln!(text, "# {beyond} samples of {} us and above are in the overflows only", self.rows);
        }
        text + &missing_from_rows(self.series.iter().map(|one| &one.observed)).unwrap_or_default()
    }

    /// `<us> <count>`, further counts after tabs, empty rows included.
    pub(super) fn write_rows(&self, text: &mut String) {
        for row in 0..self.rows {
            let counts: Vec<_> =
                self.columns.iter().map(|(counts, _)| format!("{:06}", counts[row as usize])).collect();
            let _ = writeln!(text, "{row:06} {}", counts.join("\t"));
        }
    }

    /// The lines from `# Total:` to `# Histogram Overflows:`.
    pub(super) fn write_totals(&self, text: &mut String) {
        let summary = |figure: fn(&histogram::Summary) -> Option<Nanos>| {
            self.series.iter().map(move |one| figure(one.observed.summary()).unwrap_or_default().0 / 1_000)
        };
        let totals = self.columns.iter().map(|(counts, _)| sum(counts.iter().copied()));
        write_line(text, "# Total:", 9, totals);
        write_line(text, "# Min Latencies:", 5, summary(histogram::Summary::minimum));
        write_line(text, "# Avg Latencies:", 5, summary(histogram::Summary::average));
        write_line(text, "# Max Latencies:", 5, summary(histogram::Summary::maximum));
        write_line(text, "# Histogram Overflows:", 5, self.columns.iter().map(|(_, beyond)| *beyond));
    }

    /// The activations of overflows that are known, in order, and how many are not.
    fn overflow_cycles(&self, thread: usize, series: &Series) -> String {
        let end = Nanos(self.rows * 1_000);
        let mut known: Vec<u64> = series
            .worst
            .iter()
            .filter(|sample| sample.latency >= end)
            .map(|sample| sample.activation)
            .collect();
        known.sort_unstable();
        known.truncate(self.rows as usize);
        let mut text: String = known.iter().map(|cycle| format!(" {cycle:05}")).collect();
        let others = self.columns[thread].1.saturating_sub(known.len() as u64);
        if others > 0 {
            let _ = write!(text, " # {others:05} others");
        }
        text
    }
}

fn write_line(text: &mut String, title: &str, width: usize, values: impl Iterator<Item = u64>) {
    text.push_str(title);
    for value in values {
        let _ = write!(text, " {value:0width$}");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mend as insta;
    use proptest::prelude::*;
    use record::Sample;
    use units::CpuId;

    fn series(cpu: u32, latencies: &[u64]) -> Series {
        let mut series = Series { cpu: Some(CpuId(cpu)), ..Series::default() };
        for (activation, &latency) in latencies.iter().enumerate() {
            series.observed.record(Nanos(latency));
            let (latency, activation) = (Nanos(latency), activation as u64);
            series.worst.push(Sample { latency, due: Nanos::ZERO, activation });
        }
        series.worst.sort_by_key(|sample| std::cmp::Reverse(sample.latency));
        series
    }

    #[test]
    fn lines_have_cyclictests_widths() {
        let micros = Nanos::from_micros;
        let thread = Thread {
            thread: 0,
            tid: 10_497,
            priority: 98,
            interval: micros(1_000),
            count: 100,
            min: Nanos(3_999),
            act: micros(3),
            avg: Nanos(4_520),
            max: micros(24),
        };
        // As cyclictest 2.4 printed it.
        let printed = "T: 0 (10497) P:98 I:1000 C:    100 Min:      3 Act:    3 Avg:    4 Max:      24";
        assert_eq!(line(&thread), printed);
        let unborn = Thread { tid: 0, interval: micros(300_000), count: 0, ..Thread::default() };
        assert_eq!(
            line(&Thread { priority: 98, ..unborn }),
            "T: 0 (    0) P:98 I:300000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0"
        );
    }

    #[test]
    fn a_histogram_of_two_threads() {
        let first = series(2, &[1_100, 2_900, 2_100, 5_000, 9_400, 7_000]);
        let second = series(3, &[1_000, 1_999]);
        insta::assert_snapshot!(histogram(&[first, second], Some(5)), @"
        # CPU of each column: 2 3
        # 3 samples of 5 us and above are in the overflows only
        # Histogram
        000000 000000	000000
        000001 000001	000002
        000002 000002	000000
        000003 000000	000000
        000004 000000	000000
        # Total: 000000003 000000002
        # Min Latencies: 00001 00001
        # Avg Latencies: 00004 00001
        # Max Latencies: 00009 00001
        # Histogram Overflows: 00003 00000
        # Histogram Overflow at cycle number:
        # Thread 0: 00003 00004 00005
        # Thread 1:
        ");
    }

    #[test]
    fn overflow_cycles_that_nobody_kept_are_counted_as_others() {
        let mut one = series(0, &[1_000, 50_000, 60_000, 70_000]);
        one.worst.truncate(1);
        let text = histogram(&[one], Some(10));
        assert!(text.ends_with("# Histogram Overflows: 00003\n# Histogram Overflow at cycle number:\n# Thread 0: 00003 # 00002 others\n\n"), "{text}");
    }

    #[test]
    fn rows_end_at_ten_milliseconds_and_say_so() {
        let text = histogram(&[series(0, &[5_000, 9_999_999, 10_000_000])], None);
        assert!(text.contains("\n009999 000001\n# Total: 000000002\n"), "{}", &text[text.len() - 300..]);
        assert!(text.contains("# 1 samples of 10000 us and above are in the overflows only\n"));
        let text = histogram(&[series(0, &[5_000])], None);
        assert!(text.contains("000005 000001\n# Total:") && !text.contains("overflows only"), "{text}");
    }

    #[test]
    fn a_cut_off_histogram_says_what_it_lacks() {
        let mut one = series(0, &[5_000]);
        let summary = histogram::Summary { count: 8, ..*one.observed.summary() };
        one.observed = histogram::Histogram::from_parts(summary, one.observed.cells().collect::<Vec<_>>());
        assert!(histogram(&[one], None).contains("# cut off: 7 samples"));
    }

    /// A reader as others write them: rows are what does not begin with `#`, totals are found by their title.
    struct Read {
        rows: Vec<(u64, Vec<u64>)>,
        overflows: Vec<u64>,
        total: Vec<u64>,
    }

    fn read(text: &str) -> Read {
        let numbers =
            |text: &str| text.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<u64>>();
        let titled = |title| numbers(text.lines().find_map(|line| line.strip_prefix(title)).unwrap());
        let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows = rows.map(|line| (numbers(line)[0], numbers(line)[1..].to_vec())).collect();
        Read { rows, overflows: titled("# Histogram Overflows:"), total: titled("# Total:") }
    }

    proptest! {
        #[test]
        fn rows_and_overflows_add_up_and_each_sample_is_in_its_row(
            latencies in proptest::collection::vec(proptest::collection::vec(0..20_000_000_u64, 0..40), 1..4),
            asked in proptest::option::of(1..12_000_u64),
        ) {
            let all: Vec<_> = latencies.iter().map(|latencies| series(0, latencies)).collect();
            let read = read(&histogram(&all, asked));
            prop_assert!(read.rows.iter().zip(0..).all(|((row, _), expected)| *row == expected));
            for (thread, latencies) in latencies.iter().enumerate() {
                let sum: u64 = read.rows.iter().map(|(_, counts)| counts[thread]).sum();
                prop_assert_eq!(sum, read.total[thread]);
                prop_assert_eq!(sum + read.overflows[thread], latencies.len() as u64);
                for &latency in latencies {
                    let row = read.rows.get((latency / 1_000) as usize);
                    prop_assert!(row.is_none_or(|(_, counts)| counts[thread] > 0));
                }
            }
        }
    }

    /// Every digit as `0`, and numbers that outgrew cyclictest's least width of five cut to it.
    fn shape(text: &str) -> String {
        let mut shape = String::new();
        for character in text.chars() {
            match character.is_ascii_digit() {
                true if shape.ends_with("00000") => (),
                true => shape.push('0'),
                false => shape.push(character),
            }
        }
        shape
    }

    fn run_cyclictest(options: &[&str]) -> Option<String> {
        match std::process::Command::new("cyclictest").args(options).output() {
            Ok(output) if output.status.success() => String::from_utf8(output.stdout).ok(),
            Ok(output) => {
                skipped(&format!("cyclictest failed: {}", String::from_utf8_lossy(&output.stderr)));
                None
            }
            Err(error) => {
                skipped(&format!("cyclictest: {error}"));
                None
            }
        }
    }

    #[allow(clippy::print_stderr)]
    fn skipped(why: &str) {
        eprintln!("skipped: {why}");
    }

    /// The figures of a real line, put into ours, must give the real line back.
    #[test]
    fn a_real_line_is_reproduced() {
        let Some(text) = run_cyclictest(&["-l", "20", "-i", "1000", "-q"]) else { return };
        let real = text.lines().find(|line| line.starts_with("T:")).unwrap();
        let numbers: Vec<u64> =
            real.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
        let micros = |place: usize| Nanos::from_micros(numbers[place]);
        let ours = Thread {
            thread: numbers[0] as u32,
            tid: numbers[1] as i32,
            priority: numbers[2] as u32,
            interval: micros(3),
            count: numbers[4],
            min: micros(5),
            act: micros(6),
            avg: micros(7),
            max: micros(8),
        };
        assert_eq!(line(&ours), real);
    }

    /// A real histogram, read and written again, must be the same from its rows to its end, but for what a histogram
    /// of ours does not know: the exact extremes beyond the rows and the cycle numbers.
    #[test]
    fn a_real_histogram_has_our_shape() {
        let Some(text) = run_cyclictest(&["-h", "50", "-l", "200", "-q"]) else { return };
        if !text.contains("# Total:") {
            return skipped("this cyclictest is 2.7 or later and leaves out empty rows");
        }
        let real = read(&text);
        let latencies = real.rows.iter().flat_map(|(row, counts)| vec![row * 1_000; counts[0] as usize]);
        let ours = histogram(&[series(0, &latencies.collect::<Vec<_>>())], Some(50));
        let body = |text: &str| text[text.find("# Histogram\n").unwrap()..].to_owned();
        let (real_rows, real_end) =
            body(&text).split_once("# Min").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let (our_rows, our_end) =
            body(&ours).split_once("# Min").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(our_rows, real_rows);
        let until_cycles = |text: &str| shape(text.split_once("# Thread 0:").unwrap().0);
        assert_eq!(until_cycles(&our_end), until_cycles(&real_end));
    }
}
