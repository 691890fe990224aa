//! latmus' lines and histogram file (libevl 0.47), for a responder in user space.
//!
//! Two things differ on purpose. The second time of the RTS line is the requested one, where latmus prints the run
//! time twice. Overruns are our missed activations, which enter no figure of these lines but that count.
//! The switches to in-band mode (msw) are always 0: there is no such mode here.

use std::fmt::Write;

use histogram::{Histogram, Summary};
use record::time::UtcTime;
use units::{CpuId, Nanos};

use crate::rows::{missing_from_rows, row_count, split};

/// The titles above the RTD lines.
pub const TITLES: &str = "RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst";
/// The line above the RTS line.
pub const RULER: &str = "---|-----------|-----------|-----------|--------|------|-------------------------";

/// The measuring thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Responder {
    /// The period.
    pub interval: Nanos,
    /// Its real-time priority; 0 for a policy without.
    pub priority: u32,
    /// Its CPU.
    pub cpu: CpuId,
    /// Whether the kernel keeps other threads off that CPU (isolcpus).
    pub isolated: bool,
}

impl Responder {
    fn micros(&self) -> u64 {
        self.interval.0 / 1_000
    }

    fn place(&self) -> String {
        format!("CPU{}{}", self.cpu, if self.isolated { "" } else { "-noisol" })
    }
}

/// The first line, before the warm-up.
pub fn warming_up(responder: &Responder) -> String {
    let doubt = if responder.isolated { "" } else { " (not isolated)" };
    format!("warming up on CPU{}{doubt}...", responder.cpu)
}

/// The RTT line: `elapsed` is the time since the end of the warm-up.
pub fn heading(responder: &Responder, elapsed: Nanos) -> String {
    format!(
        "RTT|  {}  (user, {} us period, priority {}, {})",
        clock_face(elapsed),
        responder.micros(),
        responder.priority,
        responder.place()
    )
}

/// The RTD line of a second: its own figures, then the missed activations, best and worst since the start. None for
/// a second in which nothing woke up: latmus counts its seconds in samples and has no such second.
pub fn data(second: &Summary, since_start: &Summary, missed: u64) -> Option<String> {
    Some(format!(
        "RTD|{:>11}|{:>11}|{:>11}|{missed:8}|{:6}|{:>11}|{:>11}",
        micros(second.minimum()?),
        micros(second.average()?),
        micros(second.maximum()?),
        0,
        micros(since_start.minimum()?),
        micros(since_start.maximum()?),
    ))
}

/// The RTS line: the run's best, average and worst, its length, and the length asked for. None without samples, as
/// with latmus.
pub fn summary(since_start: &Summary, missed: u64, ran: Nanos, requested: Option<Nanos>) -> Option<String> {
    Some(format!(
        "RTS|{:>11}|{:>11}|{:>11}|{missed:8}|{:6}|    {}/{}",
        micros(since_start.minimum()?),
        micros(since_start.average()?),
        micros(since_start.maximum()?),
        0,
        clock_face(ran),
        clock_face(requested.unwrap_or(ran)),
    ))
}

/// What the histogram file tells beside its rows. What is none has no line, as in latmus' own files.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    /// When the test began.
    pub started: UtcTime,
    /// The program that measured, with its version; stands where latmus names libevl.
    pub program: &'a str,
    /// /proc/version.
    pub kernel: Option<&'a str>,
    /// /proc/cmdline.
    pub command_line: Option<&'a str>,
    /// The clock source.
    pub clock_source: Option<&'a str>,
    /// Whether reading the clock is a system call. If not, which of Dovetail's fast ways it is cannot be known from
    /// user space, and nothing is written.
    pub clock_is_system_call: bool,
    /// The measuring thread.
    pub responder: Responder,
    /// Whether the run held a request for the shallowest idle states, and it was honoured.
    pub restricted: bool,
    /// How long the test ran.
    pub duration: Nanos,
    /// When the worst latency was seen, since the start.
    pub peak: Option<Nanos>,
    /// Missed activations.
    pub missed: u64,
    /// Latencies of wake-ups.
    pub observed: &'a Histogram,
    /// Cells of 1 us, at most [`crate::MOST_ROWS`]; none for as many as are needed.
    pub cells: Option<u64>,
}

/// The histogram file: comments, then `<us> <count>` from the first to the last cell that is not empty. The last
/// cell bears a `+` where it took in what lies beyond.
pub fn dump(dump: &Dump<'_>) -> String {
    let mut text = String::new();
    let mut add = |title: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "# {title}{}", value.trim_end());
        }
    };
    let total = dump.observed.summary();
    add("test started on: ", Some(date(dump.started)));
    add("", dump.kernel.map(str::to_owned));
    add("", dump.command_line.map(str::to_owned));
    add("measured by: ", Some(dump.program.to_owned()));
    add("sampling period: ", Some(format!("{} microseconds", dump.responder.micros())));
    add("clocksource: ", dump.clock_source.map(str::to_owned));
    add("vDSO access: ", dump.clock_is_system_call.then(|| "none".to_owned()));
    add("context: ", Some("user".to_owned()));
    add("thread priority: ", Some(dump.responder.priority.to_string()));
    add("thread affinity: ", Some(dump.responder.place()));
    add("C-state restricted", dump.restricted.then(String::new));
    add("duration (hhmmss): ", Some(clock_face(dump.duration)));
    add("peak (hhmmss): ", dump.peak.map(clock_face));
    add("OVERRUNS: ", (dump.missed > 0).then(|| dump.missed.to_string()));
    add("min latency: ", total.minimum().map(micros));
    add("avg latency: ", total.average().map(micros));
    add("max latency: ", total.maximum().map(micros));
    add("sample count: ", Some(total.count.to_string()));
    text.push_str(&missing_from_rows([dump.observed]).unwrap_or_default());
    text + &cells(dump.observed, row_count([dump.observed], dump.cells))
}

fn cells(observed: &Histogram, cells: u64) -> String {
    let (mut counts, beyond) = split(observed, cells);
    if let Some(last) = counts.last_mut() {
        *last = last.saturating_add(beyond);
    }
    let first = counts.iter().position(|&count| count > 0).unwrap_or(counts.len());
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or_default();
    let mut text = String::new();
    for (cell, count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let more = if beyond > 0 && cell == last { "+" } else { "" };
        let _ = writeln!(text, "{cell}{more} {count}");
    }
    text
}

/// Microseconds with three decimals, exact.
fn micros(nanos: Nanos) -> String {
    format!("{}.{:03}", nanos.0 / 1_000, nanos.0 % 1_000)
}

/// `HH:MM:SS`, rounded down; hours go on past 99.
fn clock_face(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// As ctime(3) writes it, in UTC: `Fri Jan 24 15:36:34 2020`.
fn date(time: UtcTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = time.to_string();
    let number =
        |range: std::ops::Range<usize>| text.get(range).and_then(|digits| digits.parse::<usize>().ok());
    let month = number(5..7).and_then(|month| MONTHS.get(month.wrapping_sub(1))).unwrap_or(&"???");
    let day = number(8..10).unwrap_or_default();
    let (year, hours) = (text.get(..4).unwrap_or_default(), text.get(11..19).unwrap_or_default());
    format!("{} {month} {day:2} {hours} {year}", DAYS[(time.0 / 86_400 % 7) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mend as insta;
    use proptest::prelude::*;

    const RESPONDER: Responder =
        Responder { interval: Nanos::from_millis(1), priority: 98, cpu: CpuId(1), isolated: true };

    fn summary_of(count: u64, min: u64, avg: u64, max: u64) -> Summary {
        Summary { count, sum: avg * count, min, max }
    }

    fn plain<'a>(observed: &'a Histogram) -> Dump<'a> {
        Dump {
            started: UtcTime(1_579_880_194),
            program: "worstcase 0.1.0",
            kernel: None,
            command_line: None,
            clock_source: None,
            clock_is_system_call: false,
            responder: RESPONDER,
            restricted: false,
            duration: Nanos::from_secs(72),
            peak: None,
            missed: 0,
            observed,
            cells: None,
        }
    }

    /// Appendix A of the facts: what libevl 0.47 printed, byte by byte, but for the RTS line's second time.
    #[test]
    fn lines_are_latmus_own() {
        assert_eq!(warming_up(&RESPONDER), "warming up on CPU1...");
        assert_eq!(
            heading(&RESPONDER, Nanos::from_secs(1)),
            "RTT|  00:00:01  (user, 1000 us period, priority 98, CPU1)"
        );
        assert_eq!(
            data(&summary_of(1000, 38_192, 94_661, 946_377), &summary_of(1000, 38_192, 94_661, 946_377), 0)
                .unwrap(),
            "RTD|     38.192|     94.661|    946.377|       0|     0|     38.192|    946.377"
        );
        assert_eq!(
            data(
                &summary_of(995, 38_823, 112_304, 3_690_900),
                &summary_of(1995, 38_192, 103_000, 3_690_900),
                5
            )
            .unwrap(),
            "RTD|     38.823|    112.304|   3690.900|       5|     0|     38.192|   3690.900"
        );
        assert_eq!(
            summary(
                &summary_of(2020, 3_500, 5_742, 19_750),
                2,
                Nanos::from_millis(3_020),
                Some(Nanos::from_secs(3))
            )
            .unwrap(),
            "RTS|      3.500|      5.742|     19.750|       2|     0|    00:00:03/00:00:03"
        );
    }

    #[test]
    fn every_table_line_has_the_columns_of_its_ruler() {
        let total = summary_of(3, 1_000, 2_000, 3_000);
        let bars = |line: &str| line.match_indices('|').map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(bars(TITLES), bars(&data(&total, &total, 7).unwrap()));
        assert_eq!(bars(RULER), bars(&summary(&total, 7, Nanos::ZERO, None).unwrap()));
        assert_eq!(bars(RULER), bars(TITLES)[..6]);
    }

    #[test]
    fn a_shared_cpu_says_so_and_the_second_time_is_the_requested_one() {
        let shared = Responder { isolated: false, ..RESPONDER };
        assert_eq!(warming_up(&shared), "warming up on CPU1 (not isolated)...");
        assert!(heading(&shared, Nanos::ZERO).ends_with("CPU1-noisol)"));
        let line =
            |requested| summary(&summary_of(1, 1, 1, 1), 0, Nanos::from_secs(3_725), requested).unwrap();
        assert!(line(Some(Nanos::from_secs(86_400))).ends_with("|    01:02:05/24:00:00"));
        assert!(line(None).ends_with("|    01:02:05/01:02:05"));
    }

    #[test]
    fn nothing_measured_has_no_line() {
        assert_eq!(data(&Summary::default(), &summary_of(1, 1, 1, 1), 0), None);
        assert_eq!(summary(&Summary::default(), 0, Nanos::ZERO, None), None);
        let empty = Histogram::default();
        assert!(dump(&plain(&empty)).ends_with("# sample count: 0\n"));
    }

    #[test]
    fn the_file_has_the_documented_lines_in_their_order() {
        let mut observed = Histogram::default();
        for latency in [205, 950, 1_100, 3_097, 25_510, 12_000_000] {
            observed.record(Nanos(latency));
        }
        let text = dump(&Dump {
            kernel: Some("Linux version 6.18.0 (builder) #1 SMP PREEMPT_RT\n"),
            command_line: Some("root=/dev/sda1 isolcpus=1\n"),
            clock_source: Some("tsc"),
            clock_is_system_call: true,
            restricted: true,
            peak: Some(Nanos::from_secs(47)),
            missed: 12,
            cells: Some(6),
            ..plain(&observed)
        });
        insta::assert_snapshot!(text, @r"
        # test started on: Fri Jan 24 15:36:34 2020
        # Linux version 6.18.0 (builder) #1 SMP PREEMPT_RT
        # root=/dev/sda1 isolcpus=1
        # measured by: worstcase 0.1.0
        # sampling period: 1000 microseconds
        # clocksource: tsc
        # vDSO access: none
        # context: user
        # thread priority: 98
        # thread affinity: CPU1
        # C-state restricted
        # duration (hhmmss): 00:01:12
        # peak (hhmmss): 00:00:47
        # OVERRUNS: 12
        # min latency: 0.205
        # avg latency: 2005.143
        # max latency: 12000.000
        # sample count: 6
        0 2
        1 1
        2 0
        3 1
        4 0
        5+ 2
        ");
    }

    proptest! {
        #[test]
        fn cells_add_up_to_the_samples(
            latencies in proptest::collection::vec(0..20_000_000_u64, 1..60), cells in proptest::option::of(1..12_000_u64)
        ) {
            let mut observed = Histogram::default();
            latencies.iter().for_each(|&latency| observed.record(Nanos(latency)));
            let text = dump(&Dump { cells, ..plain(&observed) });
            let rows: Vec<(u64, bool, u64)> = text.lines().filter(|line| !line.starts_with('#')).map(row).collect();
            prop_assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), latencies.len() as u64);
            prop_assert!(rows.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1));
            let cells = row_count([&observed], cells);
            for &(cell, merged, count) in &rows {
                let is_here = |latency: u64| (latency / 1_000).min(cells - 1) == cell;
                prop_assert_eq!(latencies.iter().filter(|&&latency| is_here(latency)).count() as u64, count);
                prop_assert_eq!(merged, cell == cells - 1 && latencies.iter().any(|latency| latency / 1_000 >= cells));
            }
        }
    }

    fn row(line: &str) -> (u64, bool, u64) {
        let (cell, count) = line.split_once(' ').unwrap();
        (cell.trim_end_matches('+').parse().unwrap(), cell.ends_with('+'), count.parse().unwrap())
    }
}
