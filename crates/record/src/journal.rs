//! The run as it happens: one JSON text a line, appended every second.
//!
//! Killed at any moment, a run can be reported up to the last second from this file alone; after power loss up to the
//! last fsync. A line that was cut in the middle is skipped. Cells of the running scenario's histograms are saved as
//! differences, each second at first and ever less often as the scenario grows long.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::time::{Duration, Instant};

use histogram::{Histogram, Summary, layout};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::time::UtcTime;
use crate::verdict::Judgement;
use crate::{
    Block, Evidence, Explanation, Grid, Header, LoadBlock, LoadEvidence, LoadTimeline, Own, Record, Sample,
    Scenario, ScenarioEnd, ScenarioHead, Series, Timeline, Warning, migrate,
};

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// The first: what is known when the run begins.
    Begin(Box<Header>),
    /// A scenario begins.
    Scenario(ScenarioHead),
    /// Figures of one or more seconds: `[series, second, count, sum, min, max, missed]`.
    Seconds(Vec<[u64; 7]>),
    /// What the clock reads, each second of a scenario.
    Clock(ClockReading),
    /// The histograms' growth since the last such line.
    Growth(Growth),
    /// What the load did in one or more seconds: `[second, CPUs busy in per mille, work of each stressor...]`.
    Load(Vec<Vec<u64>>),
    /// A scenario ended: all that is known of it.
    Ended(Box<Scenario>),
    /// A scenario was measured once more, traced, and its worst wake-ups explained.
    Explained(Box<Explanation>),
    /// The run ended.
    Finished {
        /// When.
        at: UtcTime,
        /// Doubts about the run as a whole.
        warnings: Vec<Warning>,
        /// What it means.
        judgement: Judgement,
    },
}

/// The parent's look at the clock: a thread that has gone silent is known by it, whatever ends the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockReading {
    /// What the plan's clock reads, in nanoseconds.
    pub now: u64,
    /// Where activation 0 of each series lies on that clock; empty where that is as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<u64>,
    /// The series that keep an activation waiting, by 100 ms and a period at least.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overdue: Vec<Overdue>,
}

/// A thread that has not come back for an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overdue {
    /// The series, from 0.
    pub series: u64,
    /// The activation that waits.
    pub activation: u64,
}

/// What the running scenario's histograms grew by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// One a series.
    pub series: Vec<SeriesGrowth>,
}

/// What one series grew by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesGrowth {
    /// New wake-ups: lowest latency of the cell in nanoseconds, how many.
    pub observed: Vec<(u64, u64)>,
    /// New missed activations: lowest latency of the cell in nanoseconds, how many.
    pub missed: Vec<(u64, u64)>,
    /// Exact figures of all wake-ups so far.
    #[serde(default)]
    pub observed_summary: Summary,
    /// Exact figures of all missed activations so far.
    pub missed_summary: Summary,
    /// Wake-ups so far that came when their next activation was due.
    pub late: u64,
    /// The worst wake-ups so far.
    pub worst: Vec<Sample>,
    /// What the instrument has beyond that so far; none for the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
}

/// The cells that `now` has beyond `before`, as the journal saves them.
pub fn growth(before: &Histogram, now: &Histogram) -> Vec<(u64, u64)> {
    let before: std::collections::BTreeMap<usize, u64> = before.cells().collect();
    now.cells()
        .map(|(cell, count)| {
            (layout::lowest(cell), count - before.get(&cell).copied().unwrap_or(0).min(count))
        })
        .filter(|(_, grown)| *grown > 0)
        .collect()
}

/// Writes the journal. A failing disk does not stop the measuring: the failure is kept, and writing is tried on.
#[derive(Debug)]
pub struct Journal {
    file: File,
    last_sync: Instant,
    longest_sync: Duration,
    failure: Option<String>,
    /// The last write may have left half a line.
    broken: bool,
}

/// After power loss no more than this is missing.
const SYNC_EVERY: Duration = Duration::from_secs(10);

impl Journal {
    /// On a file that is empty.
    pub fn new(file: File) -> Self {
        Self { file, last_sync: Instant::now(), longest_sync: Duration::ZERO, failure: None, broken: false }
    }

    /// Appends a line; to the disk at the end of a scenario and at most every 10 s.
    pub fn append(&mut self, line: &Line) {
        let mut text = serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
        if self.broken {
            text.insert(0, '\n');
        }
        let written = self.file.write_all(text.as_bytes());
        self.broken = written.is_err();
        self.note("write", written);
        let must = matches!(line, Line::Begin(_) | Line::Ended(_) | Line::Finished { .. });
        if must || self.last_sync.elapsed() >= SYNC_EVERY {
            self.sync();
        }
    }

    fn sync(&mut self) {
        let start = Instant::now();
        let synced = self.file.sync_data();
        self.longest_sync = self.longest_sync.max(start.elapsed());
        self.last_sync = Instant::now();
        self.note("fdatasync", synced);
    }

    fn note(&mut self, call: &str, result: std::io::Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| format!("journal.ndjson: {call}: {error}"));
        }
    }

    /// The longest that a sync took since this was last asked.
    pub fn take_longest_sync(&mut self) -> Nanos {
        std::mem::take(&mut self.longest_sync).into()
    }

    /// The first failure, if any.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// What a journal tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// The record, with a judgement only where the run was finished.
    pub record: Record,
    /// Whether the run came to its end.
    pub finished: bool,
    /// Lines that could not be read: one, the last, where the run was killed while writing.
    pub unreadable_lines: u64,
}

/// Reads a journal. None where not even its first line is whole.
pub fn read(lines: impl BufRead) -> Option<Recovered> {
    let mut recovered: Option<Recovered> = None;
    let mut open: Option<Open> = None;
    let (mut unreadable_lines, mut is_old) = (0, false);
    for line in whole_lines(lines).filter(|line| !line.is_empty()) {
        is_old |= recovered.is_none() && begins_old(&line);
        let Ok(line) = parse(&line, is_old) else {
            unreadable_lines += 1;
            continue;
        };
        match (line, &mut recovered) {
            (Line::Begin(header), None) => recovered = Some(Recovered::begin(*header)),
            (Line::Scenario(head), Some(recovered)) => {
                recovered.record.scenarios.extend(open.replace(Open::new(head)).map(Open::cut_off));
            }
            (Line::Seconds(seconds), _) => open.iter_mut().for_each(|open| open.seconds(&seconds)),
            (Line::Clock(clock), _) => open.iter_mut().for_each(|open| open.look(&clock)),
            (Line::Growth(growth), _) => open.iter_mut().for_each(|open| open.grow(&growth)),
            (Line::Load(seconds), _) => open.iter_mut().for_each(|open| open.load(&seconds)),
            (Line::Ended(scenario), Some(recovered)) => {
                open = None;
                recovered.record.scenarios.push(*scenario);
            }
            (Line::Explained(explanation), Some(recovered)) => {
                recovered.record.explanations.push(*explanation);
            }
            (Line::Finished { at, warnings, judgement }, Some(recovered)) => {
                recovered.finished = true;
                recovered.record =
                    Record { ended: Some(at), warnings, judgement, ..recovered.record.clone() };
            }
            _ => unreadable_lines += 1,
        }
    }
    let mut recovered = recovered?;
    recovered.record.scenarios.extend(open.map(Open::cut_off));
    recovered.unreadable_lines = unreadable_lines;
    Some(recovered)
}

/// No line of a journal is longer, in bytes: what follows a longer one is not a journal's.
const LONGEST_LINE: u64 = 1 << 28;

fn whole_lines(mut lines: impl BufRead) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        let is_whole = line.last() == Some(&b'\n');
        line.truncate(line.len() - usize::from(is_whole));
        (read > 0 && (is_whole || (read as u64) < LONGEST_LINE)).then_some(line)
    })
}

/// Whether a first line is that of an older program.
fn begins_old(line: &[u8]) -> bool {
    let first = crate::json::read::<serde_json::Value>(line).unwrap_or_default();
    let version = first.pointer("/begin/schema_version").and_then(serde_json::Value::as_u64);
    version.and_then(|version| u32::try_from(version).ok()).is_some_and(migrate::is_old)
}

fn parse(line: &[u8], is_old: bool) -> serde_json::Result<Line> {
    if !is_old {
        return crate::json::read(line);
    }
    let mut old = crate::json::read(line)?;
    migrate::line(&mut old);
    crate::json::read_value(&old)
}

impl Recovered {
    fn begin(header: Header) -> Self {
        let record = Record {
            header,
            ended: None,
            scenarios: Vec::new(),
            explanations: Vec::new(),
            warnings: Vec::new(),
            judgement: Judgement::default(),
        };
        Self { record, finished: false, unreadable_lines: 0 }
    }
}

/// A scenario that the journal has not seen the end of.
struct Open {
    head: ScenarioHead,
    series: Vec<OpenSeries>,
    /// The last one.
    clock: ClockReading,
    load: LoadTimeline,
}

#[derive(Default)]
struct OpenSeries {
    timeline: Timeline,
    block: Block,
    last_second: u64,
    observed: BTreeMap<usize, u64>,
    missed: BTreeMap<usize, u64>,
    latest: SeriesGrowth,
}

impl Open {
    fn new(head: ScenarioHead) -> Self {
        let series = head.cpus.iter().map(|_| OpenSeries::default()).collect();
        Self { head, series, clock: ClockReading::default(), load: LoadTimeline::default() }
    }

    fn seconds(&mut self, seconds: &[[u64; 7]]) {
        for &[series, second, count, sum, min, max, missed] in seconds {
            let place = usize::try_from(series).ok().and_then(|series| self.series.get_mut(series));
            // A second that no run reaches is damage, and would make the timeline double for ever.
            if let Some(series) = place.filter(|_| second < 1 << 40) {
                let block = Block { observed: Summary { count, sum, min, max }, missed };
                series.timeline.push(second, block);
                series.block.merge(&block);
                series.last_second = series.last_second.max(second);
            }
        }
    }

    fn look(&mut self, clock: &ClockReading) {
        let origins = std::mem::take(&mut self.clock.origins);
        self.clock = clock.clone();
        if self.clock.origins.is_empty() {
            self.clock.origins = origins;
        }
    }

    fn grow(&mut self, growth: &Growth) {
        for (series, grown) in self.series.iter_mut().zip(&growth.series) {
            merge(&mut series.observed, &grown.observed);
            merge(&mut series.missed, &grown.missed);
            series.latest = SeriesGrowth { observed: vec![], missed: vec![], ..grown.clone() };
        }
    }

    fn load(&mut self, seconds: &[Vec<u64>]) {
        for second in seconds {
            if let [second, busy_permille, work @ ..] = second.as_slice() {
                let busy_permille = *busy_permille.min(&1000);
                self.load.push(*second, &LoadBlock { seconds: 1, busy_permille, work: work.to_vec() });
            }
        }
    }

    fn cut_off(self) -> Scenario {
        let seconds = self.series.iter().filter(|series| series.block != Block::default());
        let length = seconds.map(|series| series.last_second + 1).max().unwrap_or(0);
        let (head, clock) = (self.head.clone(), self.clock);
        let close = |(index, series): (usize, OpenSeries)| series.close(&head, index, &clock);
        let series: Vec<Series> = self.series.into_iter().enumerate().map(close).collect();
        Scenario {
            load: LoadEvidence {
                name: self.head.planned.load.clone(),
                timeline: self.load,
                ..LoadEvidence::default()
            },
            head: self.head,
            end: ScenarioEnd::CutOff,
            length: Nanos::from_secs(length),
            series,
            evidence: Evidence::default(),
            warnings: Vec::new(),
        }
    }
}

/// Takes in what a histogram grew by. A counter that a damaged journal makes absurd stays at the greatest number.
fn merge(cells: &mut BTreeMap<usize, u64>, grown: &[(u64, u64)]) {
    for &(lowest, count) in grown {
        let cell = cells.entry(layout::index(lowest)).or_default();
        *cell = cell.saturating_add(count);
    }
}

impl OpenSeries {
    /// What is known of the series numbered `index`, and what the clock says of it: a thread that was overdue when it
    /// was looked at last is as late as it was by then.
    fn close(self, head: &ScenarioHead, index: usize, clock: &ClockReading) -> Series {
        let (latest, block) = (self.latest, self.block);
        // Growth is ahead of the seconds where the last second is not written yet, and behind them elsewhere.
        let observed = [latest.observed_summary, block.observed].into_iter().max_by_key(|seen| seen.count);
        let missed =
            Summary { count: block.missed.max(latest.missed_summary.count), ..latest.missed_summary };
        let mut series = Series {
            cpu: head.cpus.get(index).copied().flatten(),
            observed: Histogram::from_parts(observed.unwrap_or_default(), self.observed),
            worst: latest.worst,
            timeline: self.timeline,
            own: latest.own.unwrap_or_else(|| Own::from(&head.planned.setup)),
            ..Series::default()
        };
        let measured = series.observed.summary().count.saturating_add(missed.count);
        let is_counted = series.own.is_counted();
        if let Some((expected, of_missed)) = series.account_mut() {
            let counted = if is_counted { *expected } else { 0 };
            (*expected, *of_missed) = (measured.max(counted), Histogram::from_parts(missed, self.missed));
        }
        if let Some(timer) = series.timer_mut() {
            timer.late = latest.late;
        }
        let origin = clock.origins.get(index).copied().filter(|&origin| origin > 0);
        let Some(grid) = origin.map(|origin| head.grid(index, origin)) else { return series };
        let due = grid.due_by(clock.now);
        let overdue = clock.overdue.iter().find(|overdue| overdue.series == index as u64);
        let overdue = overdue.filter(|overdue| overdue.activation < due);
        if let Some((expected, _)) = series.account_mut().filter(|_| !is_counted) {
            *expected =
                if overdue.is_some() { due } else { due_at_least(*expected, self.last_second, &grid) };
        }
        if let Some(timer) = series.timer_mut() {
            timer.first_due = Nanos(grid.due(0));
        }
        if let Some(overdue) = overdue {
            series.censor(&grid, overdue.activation, clock.now);
        }
        series
    }
}

/// Every second that was written is whole: at least so many activations were due, `known` of which are accounted for.
fn due_at_least(known: u64, last_second: u64, grid: &Grid) -> u64 {
    let second = |activation: u64| u128::from(activation) * u128::from(grid.interval) / 1_000_000_000;
    let last = second(known.saturating_sub(1)).max(last_second.into());
    let whole = (last * 1_000_000_000).div_ceil(grid.interval.into());
    known.max(u64::try_from(whole).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CStates, Machine, PlannedScenario, RunPlan, SCHEMA_VERSION, Setup, Tool};
    use proptest::prelude::*;
    use std::io::Seek;
    use units::CpuId;

    fn header() -> Header {
        Header {
            schema_version: SCHEMA_VERSION,
            tool: Tool { version: "0".into(), build: "test".into() },
            command_line: vec!["worstcase".into()],
            note: None,
            started: UtcTime(1_795_295_521),
            machine: Machine::default(),
            plan: RunPlan::default(),
            held: vec![],
            tuned: None,
        }
    }

    fn head() -> ScenarioHead {
        ScenarioHead {
            planned: PlannedScenario {
                load: "idle".into(),
                cstates: CStates::AsIs,
                repeat: 1,
                setup: Setup::every(Nanos::from_millis(500)),
            },
            started: UtcTime(1_795_295_522),
            offset: Nanos::from_secs(1),
            cpus: vec![Some(CpuId(3))],
        }
    }

    fn histogram(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|&latency| histogram.record(Nanos(latency)));
        histogram
    }

    /// Two seconds of one series, as a run would write them.
    fn lines() -> Vec<Line> {
        let (first, both) = (histogram(&[5_000, 9_000]), histogram(&[5_000, 9_000, 7_000, 2_500_000]));
        let missed = histogram(&[1_500_000, 500_000]);
        let grown = |observed, missed: &Histogram, worst: u64| {
            let worst = vec![Sample { latency: Nanos(worst), due: Nanos(0), activation: 0 }];
            let missed_summary = *missed.summary();
            let missed = growth(&Histogram::default(), missed);
            Line::Growth(Growth {
                series: vec![SeriesGrowth {
                    observed,
                    missed,
                    observed_summary: Summary::default(),
                    missed_summary,
                    late: 1,
                    worst,
                    own: None,
                }],
            })
        };
        vec![
            Line::Begin(Box::new(header())),
            Line::Scenario(head()),
            Line::Clock(ClockReading { now: 1_000, origins: vec![1_000], overdue: vec![] }),
            Line::Seconds(vec![[0, 0, 2, 14_000, 5_000, 9_000, 0]]),
            grown(growth(&Histogram::default(), &first), &Histogram::default(), 9_000),
            Line::Seconds(vec![[0, 1, 2, 2_507_000, 7_000, 2_500_000, 2]]),
            grown(growth(&first, &both), &missed, 2_500_000),
        ]
    }

    fn text(lines: &[Line]) -> String {
        lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
    }

    #[test]
    fn a_killed_run_reads_up_to_its_last_second() {
        let recovered = read(text(&lines()).as_bytes()).unwrap();
        assert!(!recovered.finished);
        let scenario = &recovered.record.scenarios[0];
        assert_eq!((&scenario.end, scenario.length), (&ScenarioEnd::CutOff, Nanos::from_secs(2)));
        let series = &scenario.series[0];
        assert_eq!(series.cpu, Some(CpuId(3)));
        assert_eq!(series.observed, histogram(&[5_000, 9_000, 7_000, 2_500_000]));
        assert_eq!(*series.missed(), histogram(&[1_500_000, 500_000]));
        assert_eq!((series.expected(), series.late()), (6, 1));
        assert_eq!(series.worst[0].latency, Nanos(2_500_000));
        assert_eq!(series.timeline.blocks.len(), 2);
    }

    #[test]
    fn a_killed_run_shows_the_cpu_that_had_gone_silent() {
        let mut lines = lines();
        // Activation 6 is due at 3 s; the clock was looked at 5.2 s after the start.
        let overdue = vec![Overdue { series: 0, activation: 6 }];
        lines.push(Line::Clock(ClockReading { now: 5_200_001_000, origins: vec![], overdue }));
        let series = &read(text(&lines).as_bytes()).unwrap().record.scenarios[0].series[0];
        assert_eq!(series.censored.unwrap().latency, Nanos(2_200_000_000));
        assert_eq!(series.observed.summary().max, 2_200_000_000);
        assert_eq!(series.missed().summary().max, 1_700_000_000);
        assert_eq!((series.expected(), series.accounted()), (11, 11));
    }

    #[test]
    fn seconds_that_are_missing_in_a_journal_are_not_accounted_for() {
        let mut lines = lines();
        lines.push(Line::Seconds(vec![[0, 9, 2, 10_000, 5_000, 5_000, 0]]));
        let series = &read(text(&lines).as_bytes()).unwrap().record.scenarios[0].series[0];
        assert!(series.expected() > series.accounted(), "{} {}", series.expected(), series.accounted());
    }

    #[test]
    fn a_killed_run_knows_what_its_load_did() {
        let mut lines = lines();
        lines.push(Line::Load(vec![vec![0, 980, 70, 5], vec![1, 1000, 80, 6], vec![]]));
        let recovered = read(text(&lines).as_bytes()).unwrap();
        let blocks = &recovered.record.scenarios[0].load.timeline.blocks;
        assert_eq!(blocks.iter().map(|block| block.work.clone()).collect::<Vec<_>>(), [[70, 5], [80, 6]]);
        assert_eq!(blocks[0].busy(), Some(980));
    }

    #[test]
    fn a_line_cut_in_the_middle_loses_only_itself() {
        let whole = text(&lines());
        let last = text(&lines()[6..]).len();
        let recovered = read(&whole.as_bytes()[..whole.len() - last / 2]).unwrap();
        assert_eq!(recovered.unreadable_lines, 1);
        let series = &recovered.record.scenarios[0].series[0];
        assert_eq!(series.observed.summary().max, 2_500_000, "the maximum is in the seconds already");
        assert_eq!((series.observed.summary().count, series.observed.cell_count()), (4, 2));
    }

    #[test]
    fn a_full_disk_is_reported_and_what_follows_is_readable_again() {
        let mut file = tempfile::tempfile().unwrap();
        let mut journal = Journal::new(file.try_clone().unwrap());
        journal.append(&lines()[0]);
        // What ENOSPC leaves behind: half a line.
        file.write_all(br#"{"scenario":{"loa"#).unwrap();
        (journal.broken, journal.failure) =
            (true, Some("journal.ndjson: write: No space left on device".into()));
        journal.append(&lines()[1]);
        journal.append(&lines()[2]);
        let mut written = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut written).unwrap();
        let recovered = read(written.as_bytes()).unwrap();
        assert_eq!((recovered.unreadable_lines, recovered.record.scenarios.len()), (1, 1));
        assert!(journal.failure().unwrap().contains("No space"));
    }

    proptest! {
        #[test]
        fn a_journal_cut_anywhere_or_damaged_is_read_without_a_panic(cut in 0.0..1.0_f64, at in 0.0..1.0_f64, byte: u8) {
            let mut text = text(&lines()).into_bytes();
            let place = (at * (text.len() - 1) as f64) as usize;
            text[place] = byte;
            text.truncate((cut * text.len() as f64) as usize);
            let _ = read(&text[..]);
        }
    }

    /// As a file whose end is a hole.
    #[test]
    fn a_line_without_end_ends_the_journal() {
        let begun = [serde_json::to_vec(&Line::Begin(Box::new(header()))).unwrap(), b"\n".to_vec()].concat();
        let endless = std::io::BufReader::new(begun.as_slice().chain(std::io::repeat(0)));
        assert!(read(endless).is_some());
    }
}
