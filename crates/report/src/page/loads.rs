//! Proof that the loads ran.

use record::{Fact, Record, Scenario, StressorEvidence};
use units::Nanos;

use super::view::{Block, Cell, DataTable, Section, grouped, heads};
use crate::group::{did_no_work, end_word};

/// Work done by each stressor, and how busy each CPU was.
pub(crate) fn section(record: &Record) -> Section {
    let lead = "What each load did while latencies were measured. A load that did no work proves nothing, and one that \
                stood still for a while proves nothing for that while.";
    let mut blocks = vec![Block::Table(work_table(record))];
    let remarks: Vec<_> = record.scenarios.iter().flat_map(remarks).collect();
    let mut seen: Vec<String> = Vec::new();
    for remark in remarks {
        if !seen.contains(&remark) {
            seen.push(remark);
        }
    }
    blocks.extend(seen.into_iter().map(Block::Paragraph));
    blocks.push(Block::Table(share_table(record)));
    Section::new("loads", "Loads", lead, blocks)
}

fn work_table(record: &Record) -> DataTable {
    let head = vec![
        Cell::text("load"),
        Cell::text("stressor"),
        Cell::number("workers"),
        Cell::number("work"),
        Cell::text("of"),
        Cell::number("per second"),
        Cell::number("CPU time"),
        Cell::number("loaded, %"),
        Cell::number("CPUs busy, %"),
    ];
    let rows = record.scenarios.iter().flat_map(scenario_rows).collect();
    DataTable::new("Work done", head, rows).at_most(200)
}

fn scenario_rows(scenario: &Scenario) -> Vec<Vec<Cell>> {
    let busy = busy(scenario);
    if scenario.load.stressors.is_empty() {
        let why = if end_word(&scenario.end).is_some() { "not known: ended early" } else { "none" };
        let empty = || Cell::number("–");
        let cells = [empty(), empty(), Cell::text(""), empty(), empty(), empty(), Cell::number(busy)];
        return vec![[Cell::text(name(scenario)), Cell::text(why)].into_iter().chain(cells).collect()];
    }
    scenario.load.stressors.iter().map(|stressor| stressor_row(scenario, stressor, &busy)).collect()
}

fn stressor_row(scenario: &Scenario, stressor: &StressorEvidence, busy: &str) -> Vec<Cell> {
    let rate = stressor.work as f64 / scenario.length.as_secs_f64().max(1e-9);
    let kind = if stressor.built_in { "" } else { " (external)" };
    vec![
        Cell::text(name(scenario)),
        Cell::text(format!("{}{kind}", stressor.name)),
        Cell::count(u64::from(stressor.workers)),
        Cell { text: grouped(stressor.work), class: if stressor.did_nothing() { "n over" } else { "n" } },
        Cell::text(&*stressor.unit),
        Cell::number(if rate < 10.0 { format!("{rate:.1}") } else { grouped(rate as u64) }),
        Cell::number(Nanos(stressor.cpu_time.0).rounded()),
        loaded(stressor),
        Cell::number(busy),
    ]
}

/// For how much of the time it ran; marked where that was too little for a verdict.
fn loaded(stressor: &StressorEvidence) -> Cell {
    let Some(exposure) = stressor.exposure else { return Cell::number("–") };
    let share = exposure.permille();
    let class = if share < record::validity::LEAST_EXPOSURE_PERMILLE { "n over" } else { "n" };
    Cell { text: permille(u32::try_from(share).unwrap_or(1000)), class }
}

/// The load, and which repetition of it.
fn name(scenario: &Scenario) -> String {
    match scenario.head.planned.repeat {
        1 => scenario.head.planned.load.clone(),
        repeat => format!("{} #{repeat}", scenario.head.planned.load),
    }
}

/// The least and the most busy CPU.
fn busy(scenario: &Scenario) -> String {
    let shares = || scenario.load.shares.iter().map(|share| share.busy_permille);
    match (shares().min(), shares().max()) {
        (Some(least), Some(most)) if least == most => permille(least),
        (Some(least), Some(most)) => format!("{} to {}", permille(least), permille(most)),
        _ => "–".into(),
    }
}

fn permille(share: u32) -> String {
    format!("{}.{}", share / 10, share % 10)
}

/// What else is to be said of a load: where it wrote, what failed.
fn remarks(scenario: &Scenario) -> Vec<String> {
    let load = &scenario.load;
    let mut remarks = Vec::new();
    if did_no_work(scenario) {
        remarks.push(format!("{}: a stressor did no work.", name(scenario)));
    }
    if let Some(directory) = &load.directory {
        let reached = load.device.as_ref().map(reached).unwrap_or_default();
        remarks.push(format!(
            "{} wrote to {} ({} on {}).{reached}",
            scenario.head.planned.load, directory.path, directory.file_system, directory.device
        ));
    }
    let failures = load.stressors.iter().flat_map(|stressor| stressor.failures.iter());
    remarks.extend(failures.map(|failure| format!("{}: {failure}", scenario.head.planned.load)));
    let outside = load.outside_other.iter();
    remarks.extend(
        outside.map(|thread| format!("{}: outside SCHED_OTHER: {thread}", scenario.head.planned.load)),
    );
    remarks
}

/// What of that reached the device: files that are dropped soon stay in the page cache.
fn reached(device: &record::DeviceWrites) -> String {
    match &device.written {
        Fact::Value(bytes) => {
            format!(" {} bytes reached the device ({}), whoever wrote them.", grouped(*bytes), device.number)
        }
        missing => format!(" How much reached a device is not known ({missing})."),
    }
}

/// How busy each CPU was under each load.
fn share_table(record: &Record) -> DataTable {
    let cpus = &record.header.machine.cpus.online;
    let scenarios: Vec<_> = record.scenarios.iter().filter(|s| !s.load.shares.is_empty()).take(24).collect();
    let names: Vec<_> = scenarios.iter().map(|scenario| name(scenario)).collect();
    let share =
        |scenario: &Scenario, cpu| scenario.load.shares.iter().find(|share| share.cpu == cpu).copied();
    let row = |cpu| {
        let cells = scenarios.iter().map(|scenario| {
            Cell::number(
                share(scenario, cpu).map_or_else(|| "–".into(), |share| permille(share.busy_permille)),
            )
        });
        std::iter::once(Cell::text(format!("CPU {cpu}"))).chain(cells).collect()
    };
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let rows = cpus.iter().map(row).collect();
    DataTable::new("Time not idle on each CPU, %", heads("CPU", &names), rows).fold().at_most(256)
}
