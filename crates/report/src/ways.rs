//! Ways to do one task in time, side by side.

use record::ways::{Task, UnderLoad, Way, Ways};
use record::{Record, Scenario, Series};
use units::{Nanos, Total};

use crate::figures::{Figures, Row};
use crate::grid::{Cell, Column, Grid};
use crate::style::{Style, Tone};
use crate::text::{aligned, count_of, harmless, wrap};

/// What must be known before one row is called better than another.
const CAUTION: &str =
    "Each row is one run after another, and one draw: repeat this before one is called better.";
/// What a column of it is.
const WORK: &str = "work: what the loads' workers did, against the first row.";
/// Why another one is not there.
const NO_POWER: &str = "Power: not measured here, the machine has no meter that this program reads.";

/// The table, what was not measured and why, and what each way needs. `directory` is where the records lie.
pub fn text(ways: &Ways, directory: &str, style: &Style) -> String {
    let mut parts = vec![wrap("", &head(ways), 0, style.width)];
    let measured: Vec<&Way> = ways.ways.iter().filter(|way| way.why_not.is_none()).collect();
    if !measured.is_empty() {
        parts.push(grid(&measured, ways).render(style).lines().map(str::to_owned).collect());
        let has_work = measured.first().is_some_and(|way| way.figures.iter().any(|one| one.work.is_some()));
        let has_power = measured.iter().any(|way| way.figures.iter().any(|one| one.watts.is_some()));
        let words = [(true, CAUTION), (has_work, WORK), (!has_power, NO_POWER)];
        let words: Vec<&str> =
            words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words).collect();
        parts.push(wrap("", &words.join(" "), 0, style.width));
    }
    parts.push(conclusion(&measured, ways).iter().flat_map(|line| wrap("", line, 2, style.width)).collect());
    parts.push(notes(&measured).iter().flat_map(|line| wrap("note  ", line, 6, style.width)).collect());
    parts.push(missing(ways).iter().flat_map(|line| wrap("not measured: ", line, 2, style.width)).collect());
    parts.push(ways.ways.iter().flat_map(|way| about(way, style)).collect());
    parts.push(crate::next::steps(&next(&measured, ways, directory), style));
    let parts = parts.into_iter().filter(|lines| !lines.is_empty());
    parts.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

fn head(ways: &Ways) -> String {
    let kernel = &ways.machine.kernel;
    let preemption =
        kernel.preemption.value().map_or_else(String::new, |mode| format!(", preemption {mode}"));
    let ended = if ways.interrupted { "; ended by the user before all were measured" } else { "" };
    harmless(&format!(
        "{} each {} on {}, Linux {}{preemption}: {} under each load{ended}",
        once(ways.task),
        ways.interval,
        ways.machine.host,
        kernel.release,
        ways.duration
    ))
}

fn once(task: Task) -> &'static str {
    match task {
        Task::Activation => "One activation",
        Task::Message => "One message from another CPU, until it is received,",
        Task::Stages => "One message from another CPU, which two pass on, until the third receives it,",
    }
}

/// What a way's record has under its loads, in its order: the figures that its own table shows.
pub fn under_loads(record: &Record) -> Vec<UnderLoad> {
    let of_scenario = |scenario: &Scenario| {
        let figures = Figures::of(&scenario.series, None);
        let work: u64 = scenario.load.stressors.iter().map(|stressor| stressor.work).total();
        let seconds = scenario.length.0 as f64 / 1e9;
        UnderLoad {
            load: scenario.head.planned.load.clone(),
            minimum: figures.latency(Row::Minimum),
            median: figures.corrected.quantile(0.5),
            p999: figures.latency(Row::Percentile(1)),
            maximum: figures.latency(Row::Maximum),
            samples: figures.observed.count,
            missed: figures.missed,
            work: (work > 0 && seconds > 0.0).then(|| work as f64 / seconds),
            watts: scenario.evidence.counters.watts(),
        }
    };
    record.scenarios.iter().filter(|scenario| scenario.is_measured()).map(of_scenario).collect()
}

/// Of a way that goes through a guest, what the worst latency of all loads consisted of, and which exits it had.
pub fn worst_in_guest(record: &Record) -> Option<String> {
    let has_guest = |series: &Series| series.timer().is_some_and(|timer| timer.guest.is_some());
    let (latency, scenario, series) = record.worst().filter(|(_, _, series)| has_guest(series))?;
    let unit = record.header.machine.unit();
    let parts = crate::patterns::parts(record, latency, series, unit)?;
    Some(format!(
        "worst {} under {}. {parts}",
        unit.with_name(latency),
        record.load_name(&scenario.head.planned.load)
    ))
}

/// The most memory that the probe of a way's record had locked, in bytes; none where one of its scenarios does not know.
pub fn locked_memory(record: &Record) -> Option<u64> {
    let of_scenario = |scenario: &Scenario| scenario.evidence.watch.locked_memory.value().copied();
    let all: Option<Vec<u64>> = record.scenarios.iter().map(of_scenario).collect();
    all?.into_iter().max()
}

fn under<'a>(way: &'a Way, load: &str) -> Option<&'a UnderLoad> {
    way.figures.iter().find(|one| one.load == load)
}

/// How readers know a load: where nothing else was to be loaded, idle is no load.
fn called<'a>(load: &'a str, ways: &Ways) -> &'a str {
    if ways.loads == [record::IDLE] { record::NO_LOAD } else { load }
}

/// A row a way; of each load its median, p99.9, maximum and misses, and what the load still did.
fn grid(measured: &[&Way], ways: &Ways) -> Grid {
    let mut columns: Vec<Column> = Vec::new();
    for load in &ways.loads {
        let mut add = |name: &str, cell: &dyn Fn(&UnderLoad) -> Cell| {
            let cells = measured.iter().map(|way| under(way, load).map_or_else(Cell::none, cell)).collect();
            columns.push(Column { head: vec![called(load, ways).to_owned(), name.to_owned()], cells });
        };
        let latency = |found: Option<Nanos>| {
            found.map_or_else(Cell::none, |found| Cell::plain(aligned(ways.machine.unit(), found)))
        };
        add("median", &|one| latency(one.median));
        add("p99.9", &|one| latency(one.p999));
        add("max", &|one| latency(one.maximum));
        // The next message is sent when the one before was received.
        if ways.task == Task::Activation {
            add("missed", &|one| Cell::plain(one.missed.to_string()));
        }
        let first = measured.first().and_then(|way| under(way, load)?.work).filter(|work| *work > 0.0);
        if let Some(first) = first {
            add("work", &|one| {
                one.work.map_or_else(Cell::none, |work| Cell::plain(format!("{:.2} x", work / first)))
            });
        }
        if measured.iter().any(|way| under(way, load).is_some_and(|one| one.watts.is_some())) {
            add("watts", &|one| {
                one.watts.map_or_else(Cell::none, |watts| Cell::plain(format!("{watts:.1}")))
            });
        }
    }
    let megabytes = |bytes: u64| Cell::plain(format!("{:.1}", bytes as f64 / (1 << 20) as f64));
    let locked = measured.iter().map(|way| way.locked_memory.map_or_else(Cell::none, megabytes)).collect();
    columns.push(Column { head: vec!["MiB".to_owned(), "locked".to_owned()], cells: locked });
    let taken = measured.iter().map(|way| Cell::plain(way.cpus_taken.to_string())).collect();
    columns.push(Column { head: vec!["CPUs".to_owned(), "taken".to_owned()], cells: taken });
    Grid {
        corner: format!("latency, {}", ways.machine.unit().name()),
        labels: measured.iter().map(|way| way.name.clone()).collect(),
        columns,
    }
}

/// Under each load the way whose greatest value was the least.
fn conclusion(measured: &[&Way], ways: &Ways) -> Vec<String> {
    let of_load = |load: &String| {
        let known = measured.iter().filter_map(|way| Some((way, under(way, load)?.maximum?)));
        let known: Vec<_> = known.collect();
        let (best, least) = known.iter().min_by_key(|(_, maximum)| *maximum)?;
        let (first, greatest) = known.first().filter(|(first, _)| first.name != best.name)?;
        let unit = ways.machine.unit();
        let text = |latency| format!("{} {}", unit.figure(latency), unit.name());
        Some(format!(
            "Under {} the highest latency was least with {}: {}; with {} it was {}.",
            called(load, ways),
            best.name,
            text(*least),
            first.name,
            text(*greatest)
        ))
    };
    ways.loads.iter().filter_map(of_load).collect()
}

fn notes(measured: &[&Way]) -> Vec<String> {
    let all = measured.iter().flat_map(|way| way.notes.iter().map(|note| (way.name.clone(), note.as_str())));
    let by_note = crate::cost::by_reason(all);
    by_note.into_iter().map(|(names, note)| format!("{}: {note}", names.join(", "))).collect()
}

fn missing(ways: &Ways) -> Vec<String> {
    let missing = ways.ways.iter().filter_map(|way| Some((way, way.why_not.as_ref()?)));
    missing.map(|(way, why)| format!("{}: {why}", way.name)).collect()
}

/// What a way is, needs, gains and costs.
fn about(way: &Way, style: &Style) -> Vec<String> {
    let head = style.paint(Tone::Strong, &harmless(&format!("{}: {}", way.name, way.title)));
    let parts = [("needs  ", &way.needs), ("for    ", &way.gains), ("against", &way.costs)];
    let lines = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let lines = lines.flat_map(|(name, text)| wrap(&format!("  {name}  "), text, 11, style.width));
    std::iter::once(head).chain(lines).collect()
}

fn next(measured: &[&Way], ways: &Ways, directory: &str) -> Vec<(String, String)> {
    let cpu = ways.machine.cpus.online.iter().last();
    let partition = cpu.filter(|_| ways.partition.is_none() && ways.task == Task::Activation).map(|cpu| {
        let command = format!("worstcase partition create --rt {cpu}");
        (command, "as root: give the task a CPU of its own, then worstcase ways again".to_owned())
    });
    let records: Vec<String> =
        measured.iter().filter_map(|way| Some(format!("{directory}/{}", way.record.as_ref()?))).collect();
    let compare = (records.len() > 1).then(|| {
        let command = format!("worstcase report {} --html ways.html", crate::text::shell(&records));
        (
            command,
            format!(
                "the tails of {} in one plot, and in what they differ",
                count_of(records.len() as u64, "way")
            ),
        )
    });
    partition.into_iter().chain(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &str, maximum: u64, work: f64) -> Way {
        let figures = UnderLoad {
            load: "full".into(),
            minimum: Some(Nanos(1_000)),
            median: Some(Nanos(2_000)),
            p999: None,
            maximum: Some(Nanos(maximum)),
            samples: 10,
            missed: 1,
            work: Some(work),
            watts: None,
        };
        Way { name: name.into(), record: Some(name.into()), figures: vec![figures], ..Way::default() }
    }

    fn ways(all: Vec<Way>) -> Ways {
        Ways {
            ways_version: 1,
            tool: record::Tool { version: "0.1.0".into(), build: "test".into() },
            started: record::time::UtcTime(0),
            machine: record::Machine::default(),
            task: Task::Activation,
            partition: None,
            interval: Nanos::from_millis(1),
            duration: Nanos::from_secs(1),
            loads: vec!["full".into()],
            ways: all,
            interrupted: false,
        }
    }

    #[test]
    fn what_was_not_measured_is_a_row_with_its_reason_and_no_figure() {
        let absent =
            Way { name: "kvm".into(), why_not: Some("there is no /dev/kvm".into()), ..Way::default() };
        let all = ways(vec![way("other", 9_000_000, 4.0), way("runtime-spin", 90_000, 2.0), absent]);
        let text = text(&all, "out", &Style { width: 200, ..Style::default() });
        assert!(text.contains("not measured: kvm: there is no /dev/kvm"), "{text}");
        let spin = text.lines().find(|line| line.starts_with("runtime-spin ")).unwrap();
        assert!(spin.contains("90.0") && spin.contains("0.50 x"), "{spin}");
        assert!(!text.lines().any(|line| line.starts_with("kvm  ")), "{text}");
        assert!(text.contains("least with runtime-spin: 90.0 us; with other it was 9000.0 us."), "{text}");
        assert!(text.contains("worstcase report out/other out/runtime-spin --html"), "{text}");
    }

    #[test]
    fn power_and_locked_memory_have_columns_where_they_are_known() {
        let mut all = ways(vec![way("other", 9_000_000, 4.0)]);
        let shown = |all: &Ways| text(all, "out", &Style { width: 200, ..Style::default() });
        assert!(shown(&all).contains("Power: not measured here") && !shown(&all).contains("watts"));
        all.ways[0].locked_memory = Some(6 << 20);
        all.ways[0].figures[0].watts = Some(12.52);
        let text = shown(&all);
        let row = text.lines().find(|line| line.starts_with("other ")).unwrap();
        assert!(row.contains(" 12.5 ") && row.contains(" 6.0 ") && !text.contains("not measured"), "{text}");
    }

    #[test]
    fn messages_are_not_missed() {
        let mut all = ways(vec![way("other", 9_000_000, 4.0)]);
        let shown = |all: &Ways| text(all, "out", &Style { width: 200, ..Style::default() });
        assert!(shown(&all).contains("missed"));
        all.task = Task::Stages;
        let text = shown(&all);
        assert!(!text.contains("missed") && text.contains("until the third receives it"), "{text}");
    }

    #[test]
    fn a_partition_is_proposed_where_there_was_none() {
        let mut all = ways(vec![way("other", 9_000_000, 4.0)]);
        all.machine.cpus.online = units::CpuList::from_iter([units::CpuId(0), units::CpuId(1)]);
        let proposes =
            |all: &Ways| text(all, "out", &Style::default()).contains("worstcase partition create");
        assert!(proposes(&all));
        all.partition = Some("worstcase".into());
        assert!(!proposes(&all));
    }

    #[test]
    fn a_run_that_was_ended_says_so() {
        let mut all = ways(vec![]);
        all.interrupted = true;
        assert!(text(&all, "out", &Style::default()).contains("ended by the user"));
    }
}
