//! The conditions: what measuring threads and CPUs said of themselves, and the doubts that follow from it.

use record::{
    CpuEvidence, Effect, Fact, FrequencyResidency, FrequencyTime, Record, Scenario, Series, TaskEvidence,
    ThreadEvidence,
};
use units::{Policy, Total};

use super::view::{Block, Cell, DataTable, DoubtView, Section, heads, unit_name};
use crate::counters;
use crate::figures::Terms;
use crate::phases;
use crate::validity::{self, milliseconds, policy_of};
use crate::warnings::{Doubt, doubts, effect_word, load_count};

/// Rows of the tables of threads and CPUs.
const MOST_ROWS: usize = 400;

/// The doubts with their cures.
pub(crate) fn doubts_section(record: &Record) -> Section {
    let doubts = doubts(record);
    let blocks = if doubts.is_empty() {
        vec![Block::Paragraph("No doubt about the conditions arose.".into())]
    } else {
        let loads = load_count(record);
        vec![Block::Doubts(doubts.iter().map(|doubt| doubt_view(doubt, loads)).collect())]
    };
    Section::new("doubts", "Doubts and cures", "What harms the figures or limits what they mean.", blocks)
}

/// A doubt as the page shows it.
pub(crate) fn doubt_view(doubt: &Doubt, loads: usize) -> DoubtView {
    let finding = |finding: &crate::warnings::Finding| match finding.place(loads) {
        Some(loads) => format!("{} [{loads}]", finding.evidence),
        None => finding.evidence.clone(),
    };
    DoubtView {
        id: doubt.id.as_str(),
        title: doubt.id.title(),
        effect: effect_word(doubt.effect),
        class: if doubt.effect == Effect::Note { "note" } else { "weighty" },
        findings: doubt.findings.iter().take(24).map(finding).collect(),
        cures: doubt.cures.clone(),
    }
}

/// The evidence.
pub(crate) fn section(record: &Record) -> Section {
    let summary = format!("{}.", validity::everything(record).replace(" us ", " µs "));
    let mut blocks = vec![Block::Paragraph(summary), Block::Table(scenario_table(record))];
    let rivals = rivals_table(record);
    if !rivals.rows.is_empty() {
        blocks.push(Block::Table(rivals));
    }
    for message in messages(record) {
        blocks.push(Block::Paragraph(message));
    }
    let counters = counter_table(record);
    if !counters.rows.is_empty() {
        blocks.push(Block::Table(counters));
    }
    blocks.extend([thread_table(record), cpu_table(record)].into_iter().map(Block::Table));
    let lead = "Read back from the running threads and the machine, not assumed from what was asked for.";
    Section::new("conditions", "Conditions", lead, blocks)
}

/// One row a scenario.
fn scenario_table(record: &Record) -> DataTable {
    let terms = Terms { limit: None, ..Terms::of(record) };
    let head = heads(
        "load",
        &[
            "ended",
            "length",
            &format!("warm-up max, {}", unit_name(terms.unit)),
            "°C at most",
            "suspended",
            "recorder CPU",
            "longest sync",
            "lost",
        ],
    );
    DataTable::new(
        "Each scenario",
        head,
        record.scenarios.iter().map(|scenario| scenario_row(scenario, terms)).collect(),
    )
    .at_most(MOST_ROWS)
}

fn scenario_row(scenario: &Scenario, terms: Terms) -> Vec<Cell> {
    let evidence = &scenario.evidence;
    let timers = scenario.series.iter().filter_map(Series::timer);
    let warm_up = timers.filter_map(|timer| timer.warm_up.observed.maximum()).max();
    let degrees = |millidegrees: i64| format!("{:.1}", millidegrees as f64 / 1e3);
    let recorder = &evidence.recorder;
    vec![
        Cell::text(&*scenario.head.planned.load),
        Cell::number(crate::group::end_word(&scenario.end).unwrap_or("as planned")),
        Cell::number(scenario.length.rounded()),
        Cell::latency(warm_up, terms),
        Cell::number(fact(&evidence.temperature_millidegrees, |value| degrees(*value))),
        Cell::number(fact(&evidence.suspends, u64::to_string)),
        Cell::number(milliseconds(recorder.cpu_time.0)),
        Cell::number(milliseconds(recorder.longest_sync.0)),
        Cell::count(recorder.seconds_lost + recorder.samples_lost),
    ]
}

/// The value, or why there is none, in a word or two.
fn fact<T>(fact: &Fact<T>, show: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Value(value) => show(value),
        Fact::Absent => "absent".into(),
        Fact::Unreadable(errno) => format!("unreadable ({errno})"),
        Fact::Unsupported => "unknown".into(),
    }
}

/// What the kernel said, and what changed under way.
fn messages(record: &Record) -> Vec<String> {
    let mut messages = Vec::new();
    for scenario in &record.scenarios {
        let (load, evidence) = (&scenario.head.planned.load, &scenario.evidence);
        let lines = evidence.kernel_messages.value().into_iter().flatten();
        messages.extend(lines.map(|line| format!("{load}: the kernel logged: {line}")));
        messages
            .extend(evidence.online_changed.iter().map(|cpus| format!("{load}: CPUs online became {cpus}.")));
        let source = evidence.clock_source_changed.iter();
        messages.extend(source.map(|source| format!("{load}: the clock source became {source}.")));
    }
    messages.truncate(MOST_ROWS);
    messages
}

fn rivals_table(record: &Record) -> DataTable {
    let mut rivals: Vec<&TaskEvidence> = Vec::new();
    for rival in record.scenarios.iter().flat_map(|scenario| &scenario.evidence.rivals) {
        if !rivals.iter().any(|known| (known.tid, &known.name) == (rival.tid, &rival.name)) {
            rivals.push(rival);
        }
    }
    let rows = rivals.into_iter().map(|rival| {
        vec![
            Cell::text(&*rival.name),
            Cell::number(rival.tid.to_string()),
            Cell::text(format!("{} {}", rival.policy, rival.priority)),
            Cell::text(rival.cpus.to_string()),
            Cell::text(if rival.kernel { "kernel" } else { "program" }),
        ]
    });
    let head = ["thread", "tid", "policy", "measured CPUs", "of"].map(Cell::text).to_vec();
    DataTable::new("Threads of the probe's priority or above", head, rows.collect()).fold().at_most(MOST_ROWS)
}

/// What the kernel and the CPUs counted, each with the place where it was read.
fn counter_table(record: &Record) -> DataTable {
    let row = |row: counters::Row| {
        let figures = row.counts.into_iter().map(Cell::number);
        let words = [Cell::text(row.load), Cell::text(row.what)].into_iter();
        words.chain(figures).chain([Cell::text(row.source)]).collect()
    };
    let rows = counters::rows(record).into_iter().map(row).collect();
    let mut head = heads("load", &counters::HEADS);
    head.insert(1, Cell::text("counter"));
    DataTable::new("What the kernel counted meanwhile", head, rows).fold().at_most(MOST_ROWS)
}

const THREAD_HEADS: [&str; 13] = [
    "policy",
    "CPUs",
    "page faults",
    "migrations",
    "preemptions",
    "sleeps",
    "CPU time",
    "slack",
    "memory",
    "clock read",
    "clock steps",
    "early",
    "phases",
];

fn thread_table(record: &Record) -> DataTable {
    let rows = record.scenarios.iter().flat_map(|scenario| {
        scenario.evidence.threads.iter().map(move |thread| thread_row(scenario, thread))
    });
    DataTable::new("Each measuring thread", heads("load", &THREAD_HEADS), rows.collect())
        .fold()
        .at_most(MOST_ROWS)
}

fn thread_row(scenario: &Scenario, thread: &ThreadEvidence) -> Vec<Cell> {
    let timer = scenario.series.get(thread.thread as usize).and_then(Series::timer);
    let phases = timer.map(|timer| phases::cell(&timer.tick_phases));
    vec![
        Cell::text(&*scenario.head.planned.load),
        Cell::number(policy_of(thread)),
        Cell::number(thread.affinity.to_string()),
        Cell::count(thread.minor_faults + thread.major_faults),
        migrations(thread),
        preemptions(thread),
        Cell::count(thread.voluntary_switches),
        Cell::number(milliseconds(thread.cpu_time.0)),
        Cell::number(thread.timer_slack.to_string()),
        Cell::number(if thread.memory_locked { "locked" } else { "not locked" }),
        Cell::number(if thread.clock_is_system_call { "system call" } else { "vDSO" }),
        Cell::count(thread.clock_steps),
        Cell::count(thread.early_wakes),
        Cell::number(phases.unwrap_or_else(|| "unknown".into())),
    ]
}

/// sched_yield, by which a reservation sleeps, counts as involuntary: how often one was preempted is not known.
fn preemptions(thread: &ThreadEvidence) -> Cell {
    match thread.policy {
        Some(Policy::Deadline) => Cell::number("unknown"),
        _ => Cell::count(thread.involuntary_switches),
    }
}

/// How often the thread changed CPUs, where somebody looked.
fn migrations(thread: &ThreadEvidence) -> Cell {
    match thread.cpu_reading {
        None if thread.migrations == 0 => Cell::number("not counted"),
        _ => Cell::count(thread.migrations),
    }
}

fn cpu_table(record: &Record) -> DataTable {
    let rows = record
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.evidence.cpus.iter().map(move |cpu| cpu_row(scenario, cpu)));
    let of_cpus = [
        "CPU",
        "steal",
        "SMIs",
        "throttled by heat",
        "governor",
        "time in idle states",
        "time at frequencies",
    ];
    let head = heads("load", &of_cpus);
    DataTable::new("Each CPU", head, rows.collect()).fold().at_most(MOST_ROWS)
}

fn cpu_row(scenario: &Scenario, cpu: &CpuEvidence) -> Vec<Cell> {
    let share = |time: units::Nanos| 100.0 * time.0 as f64 / scenario.length.0.max(1) as f64;
    let idle: Vec<_> =
        cpu.idle.iter().map(|idle| format!("{} {:.0} %", idle.name, share(idle.time))).collect();
    vec![
        Cell::text(&*scenario.head.planned.load),
        Cell::number(cpu.cpu.to_string()),
        Cell::number(fact(&cpu.steal, |time| milliseconds(time.0))),
        Cell::number(fact(&cpu.smis, u64::to_string)),
        Cell::number(fact(&cpu.thermal_throttles, u64::to_string)),
        Cell::number(fact(&cpu.governor, String::clone)),
        Cell::number(if idle.is_empty() { "unknown".into() } else { idle.join(", ") }),
        Cell::number(frequencies(&cpu.frequencies)),
    ]
}

/// Shares of what cpufreq counted, which is longer than the scenario by what reading takes.
fn frequencies(residency: &Fact<FrequencyResidency>) -> String {
    let shown = |residency: &FrequencyResidency| {
        let whole: u64 = residency.times.iter().map(|one| one.time.0).total();
        let share = |one: &FrequencyTime| {
            let percent = 100.0 * one.time.0 as f64 / whole as f64;
            (one.time.0 > 0).then(|| format!("{} MHz {percent:.0} %", one.kilohertz / 1_000))
        };
        let times: Vec<_> = residency.times.iter().filter_map(share).collect();
        let changes = fact(&residency.changes, u64::to_string);
        if times.is_empty() { "unknown".into() } else { format!("{}; {changes} changes", times.join(", ")) }
    };
    match residency {
        Fact::Absent => "not measured here".into(),
        read => fact(read, shown),
    }
}
