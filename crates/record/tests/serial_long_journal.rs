//! The journal of a day on 64 CPUs: what it takes on the disk, and in memory to be read.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};

use histogram::{Summary, layout};
use record::journal::{self, ClockReading, Growth, Line, SeriesGrowth};
use record::time::UtcTime;
use record::{CStates, Header, Machine, PlannedScenario, RunPlan, SCHEMA_VERSION, ScenarioHead, Setup, Tool};
use units::{CpuId, Nanos, Seed};

const SERIES: u64 = 64;
const DAY: u64 = 86_400;

fn head() -> ScenarioHead {
    ScenarioHead {
        planned: PlannedScenario {
            load: "full".into(),
            cstates: CStates::AsIs,
            repeat: 1,
            setup: Setup::every(Nanos::from_millis(1)),
        },
        started: UtcTime(1_795_295_522),
        offset: Nanos(0),
        cpus: (0..SERIES as u32).map(|cpu| Some(CpuId(cpu))).collect(),
    }
}

fn header() -> Header {
    Header {
        schema_version: SCHEMA_VERSION,
        tool: Tool { version: "0".into(), build: "test".into() },
        command_line: vec![],
        note: None,
        started: UtcTime(1_795_295_521),
        machine: Machine::default(),
        plan: RunPlan::default(),
        held: vec![],
        tuned: None,
    }
}

/// What the histograms grow by within `seconds`: cells of a busy machine, half of them low, the rest up to 3 ms.
fn grown(seconds: u64) -> Growth {
    let mut random = Seed(seconds).stream("cells");
    let series = |_| {
        let mut cells: Vec<usize> = (0..120 + random.below(300))
            .map(|_| layout::index(2_000 + random.below(28_000) * (1 + random.below(2) * random.below(100))))
            .collect();
        cells.sort_unstable();
        cells.dedup();
        let count = seconds * 1_000 / cells.len() as u64;
        let observed = cells.into_iter().map(|cell| (layout::lowest(cell), count.max(1))).collect();
        SeriesGrowth { observed, observed_summary: Summary::default(), ..SeriesGrowth::default() }
    };
    Growth { series: (0..SERIES).map(series).collect() }
}

/// The greatest resident size of this process so far, in kilobytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "long: writes a journal of some 600 MB"]
fn the_journal_of_a_day_on_64_cpus_stays_below_a_gigabyte_and_reads_in_100_mb() {
    let mut file = tempfile::tempfile().unwrap();
    let mut to = BufWriter::new(file.try_clone().unwrap());
    let mut write = |line: &Line| writeln!(to, "{}", serde_json::to_string(line).unwrap()).unwrap();
    write(&Line::Begin(Box::new(header())));
    write(&Line::Scenario(head()));
    let mut last_growth = 0;
    for second in 0..DAY {
        let figures = |series| [series, second, 1_000, 8_123_456, 2_345, 345_678 + second, 0];
        write(&Line::Seconds((0..SERIES).map(figures).collect()));
        let origins = if second == 0 { vec![1; SERIES as usize] } else { vec![] };
        write(&Line::Clock(ClockReading { now: second * 1_000_000_000, origins, overdue: vec![] }));
        let gap = second - last_growth;
        if gap >= (second / 30).clamp(1, 120) {
            last_growth = second;
            write(&Line::Growth(grown(gap)));
        }
    }
    to.flush().unwrap();
    let size = file.metadata().unwrap().len();
    file.rewind().unwrap();
    let before = peak();
    let read = journal::read(BufReader::new(File::try_clone(&file).unwrap())).unwrap();
    let used = peak() - before;
    println!("{} MB on the disk, {} MB of memory to read", size / 1_000_000, used / 1_000);
    assert_eq!(read.record.scenarios[0].series.len(), SERIES as usize);
    assert!(size <= 1_000_000_000, "{size}");
    assert!(used <= 100_000, "{used} kB");
}
