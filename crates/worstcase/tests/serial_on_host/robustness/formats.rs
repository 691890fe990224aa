//! `measure` in other tools' forms and in its own: what it prints is what the record holds.

use record::{Record, Series};
use serde_json::Value;
use units::Nanos;

use crate::support::{Ended, Run};

fn measure(arguments: &[&str]) -> (Ended, Record) {
    let ended = Run::measure(&[&["--duration", "2s", "--warm-up", "50ms"], arguments].concat()).end();
    let record = ended.record();
    (ended, record)
}

fn series(record: &Record) -> &[Series] {
    &record.scenarios[0].series
}

#[test]
fn latmus_lines_are_as_latmus_has_them() {
    let (ended, record) = measure(&["--cpus", "0", "--format", "latmus"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    let starts: Vec<&str> = lines.iter().map(|line| &line[..4]).collect();
    assert_eq!(starts, ["warm", "RTT|", "RTH|", "RTD|", "RTD|", "---|", "RTS|"], "{}", ended.out);
    assert!(
        lines[0].starts_with("warming up on CPU0")
            && lines[1].contains("(user, 1000 us period, priority 98, CPU0")
    );
    let fields: Vec<&str> = lines[6].split('|').map(str::trim).collect();
    let observed = series(&record)[0].observed.summary();
    let shown =
        |latency: Option<Nanos>| format!("{}.{:03}", latency.unwrap().0 / 1000, latency.unwrap().0 % 1000);
    let expected = [observed.minimum(), observed.average(), observed.maximum()].map(shown);
    assert_eq!(fields[1..4], expected, "{}", ended.out);
    let missed = series(&record)[0].missed().summary().count.to_string();
    assert_eq!(fields[4..], [missed.as_str(), "0", "00:00:02/00:00:02"], "{}", ended.out);
    // Data alone: the verdict is words.
    assert!(
        ["Measured, ", "INCONCLUSIVE  "].iter().any(|verdict| ended.err.contains(verdict)),
        "{}",
        ended.err
    );
}

#[test]
fn cyclictest_lines_are_as_cyclictest_has_them() {
    let (ended, record) = measure(&["--format", "cyclictest"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), series(&record).len(), "{}", ended.out);
    for (number, (line, series)) in lines.iter().zip(series(&record)).enumerate() {
        let summary = series.observed.summary();
        let words: Vec<&str> = line.split([' ', ':', '(', ')']).filter(|word| !word.is_empty()).collect();
        let tid = record.scenarios[0].evidence.threads[number].tid.to_string();
        assert_eq!(words[..7], ["T", &number.to_string(), &tid, "P", "98", "I", "1000"], "{line}");
        let [count, min, avg, max] =
            [summary.count, summary.min / 1000, summary.sum / summary.count / 1000, summary.max / 1000];
        assert_eq!((words[7], words[8]), ("C", count.to_string().as_str()), "{line}");
        assert_eq!((words[9], words[10]), ("Min", min.to_string().as_str()), "{line}");
        assert_eq!((words[13], words[14]), ("Avg", avg.to_string().as_str()), "{line}");
        assert_eq!((words[15], words[16]), ("Max", max.to_string().as_str()), "{line}");
    }
}

/// The rows of a histogram text: microsecond and a count per column. latmus marks its last row, `1000+`, where it holds
/// all that is above too.
fn rows(text: &str) -> Vec<Vec<u64>> {
    let data = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    data.map(|line| line.split_whitespace().map(|word| word.trim_end_matches('+').parse().unwrap()).collect())
        .collect()
}

/// From here on a histogram in cyclictest's form has overflows, no rows: a busy machine can be that late.
const CYCLICTEST_LIMIT_US: u64 = 10_000;

/// Sums of a histogram's rows, per column, are the record's counts below `limit_us`.
fn check_rows(text: &str, record: &Record, limit_us: u64) {
    for (column, series) in series(record).iter().enumerate() {
        let below: u64 = rows(text).iter().map(|row| row[column + 1]).sum();
        let above = series.observed.at_least(Nanos::from_micros(limit_us));
        assert_eq!(below + above, series.observed.summary().count, "{text}");
        let first = rows(text).iter().find(|row| row[column + 1] > 0).unwrap()[0];
        assert_eq!(first, series.observed.summary().min / 1000);
    }
}

#[test]
fn histograms_hold_what_the_record_holds() {
    let (ended, record) = measure(&["--histogram", "h", "--histogram-format", "cyclictest"]);
    check_rows(&std::fs::read_to_string(ended.path("h")).unwrap(), &record, CYCLICTEST_LIMIT_US);
    let (ended, record) = measure(&["--histogram", "h", "--histogram-format", "osadl"]);
    check_rows(&std::fs::read_to_string(ended.path("h")).unwrap(), &record, 400);
    let (ended, record) = measure(&["--cpus", "0", "--histogram", "h", "--histogram-format", "latmus"]);
    let text = std::fs::read_to_string(ended.path("h")).unwrap();
    check_rows(&text, &record, 10_000_000);
    let count = series(&record)[0].observed.summary().count;
    assert!(
        text.contains(&format!("# sample count: {count}\n")) && text.contains("# context: user\n"),
        "{text}"
    );
}

#[test]
fn a_histogram_can_go_where_the_lines_go() {
    let (ended, record) = measure(&["--format", "cyclictest", "--histogram", "-"]);
    let (lines, histogram) = ended.out.split_at(ended.out.find('#').unwrap());
    assert!(lines.lines().all(|line| line.starts_with("T: ")));
    check_rows(histogram, &record, CYCLICTEST_LIMIT_US);
}

#[test]
fn one_cpu_is_all_that_latmus_form_holds() {
    if sys::schedule::affinity(0).unwrap().len() < 2 {
        return crate::support::skipped("one CPU");
    }
    for arguments in [
        &["measure", "--format", "latmus"][..],
        &["measure", "--histogram", "h", "--histogram-format", "latmus"],
    ] {
        let said = crate::support::refused(arguments).err;
        assert!(
            said.contains("latmus' form holds one CPU") && said.contains("hint: choose one: --cpus "),
            "{said}"
        );
    }
}

#[test]
fn json_lines_are_objects_and_the_last_holds_the_record() {
    let (ended, saved) = measure(&["--json", "--samples-file", "samples"]);
    let mut lines: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| crate::support::schema::check("second", line));
    let last = lines.pop().unwrap();
    let record: Record = serde_json::from_value(last["record"].clone()).unwrap();
    assert_eq!(record, saved);
    assert_eq!(lines.len(), 2 * series(&record).len(), "a line a CPU and second");
    for series in series(&record) {
        let own: Vec<&Value> = lines.iter().filter(|line| line["cpu"] == series.cpu.unwrap().0).collect();
        assert_eq!(own.iter().map(|line| line["second"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
        let count: u64 = own.iter().map(|line| line["block"]["count"].as_u64().unwrap()).sum();
        assert_eq!(count, series.observed.summary().count);
        let max = own.iter().map(|line| line["block"]["max"].as_u64().unwrap()).max().unwrap();
        assert_eq!(max, series.observed.summary().max);
        assert_eq!(own[1]["total"]["max"], series.observed.summary().max);
    }
}

#[test]
fn plain_lines_come_with_a_table_at_the_end() {
    let (ended, record) = measure(&[]);
    let seconds = ended.out.lines().filter(|line| line.contains(" s  CPU ")).count();
    assert_eq!(seconds, 2 * series(&record).len(), "{}", ended.out);
    assert!(ended.out.contains("\nChecked: ") && ended.out.contains("\nMeasured, "), "{}", ended.out);
}
