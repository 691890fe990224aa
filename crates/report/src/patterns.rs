//! What the worst values of a record have in common: CPUs late at the same moment, one CPU only, one length, one period, the
//! beginning only. Each is said only where it is plain: a pattern that is not there sends a reader the wrong way.

use record::{CStates, Record, Scenario, Series, Unit};
use units::{InOrder, Nanos};

use crate::group::cpu_name;
use crate::instrument;

/// Values alike to one part in this many are of one length.
const ALIKE: u64 = 50;
/// Values of one length, or times of one period, that make a pattern.
const LEAST: usize = 4;
/// Activations that a period of delays spans at least: below that chance makes periods out of the grid of activations.
const SHORTEST_PERIOD: u64 = 20;
/// How many times its own median a CPU's latency must be for it to have been late.
const LATE: u64 = 3;
/// How many times one maximum must exceed the others to stand alone.
const APART: u64 = 5;

/// One of a scenario's worst values.
#[derive(Clone, Copy)]
struct Worst<'a> {
    series: &'a Series,
    latency: Nanos,
    /// When it was due or began, since the scenario's first.
    due: Nanos,
    /// On the time line that all threads of the scenario share, in nanoseconds.
    begins: u64,
}

impl Worst<'_> {
    fn ends(&self) -> u64 {
        self.begins.saturating_add(self.latency.0)
    }
}

/// The worst value with its place and time, then what it and its like have in common.
pub(crate) fn sentences(record: &Record) -> Vec<String> {
    let Some((latency, scenario, series)) = record.worst() else { return Vec::new() };
    let unit = record.header.machine.unit();
    let worst = worst_of(scenario);
    let sample = worst.iter().find(|one| std::ptr::eq(one.series, series) && one.latency == latency).copied();
    let load = record.load_name(&scenario.head.planned.load);
    let under = load.to_owned() + &among_several(record, scenario);
    let mut sentences = vec![headline(latency, &under, series, sample, unit)];
    sentences.extend(parts(record, latency, series, unit));
    sentences.extend(sample.and_then(|sample| same_moment(sample, &worst, unit)));
    sentences.extend(one_cpu(scenario, unit));
    sentences.extend(one_length(scenario, load, &worst, unit));
    sentences.extend(one_period(scenario, &worst, unit));
    sentences.extend(beginning(scenario, load, unit));
    sentences
}

/// `, every 1ms, C-states restricted`, `, pi-mutex across`: what of a scenario is one of several in this run.
fn among_several(record: &Record, scenario: &Scenario) -> String {
    let plan = &record.header.plan;
    let planned = &scenario.head.planned;
    let own = plan.instrument.setups(plan, 1).len() > 1;
    let cstates = match planned.cstates {
        _ if plan.cstates.len() < 2 => "",
        CStates::AsIs => ", C-states as they are",
        CStates::Restrict => ", C-states restricted",
    };
    let own = if own { format!(", {}", planned.setup) } else { String::new() };
    own + cstates
}

/// `Worst: 787 us on CPU 1 under io, 1.2 s into the scenario.` `under` is the load, with what else is one of several.
fn headline(latency: Nanos, under: &str, series: &Series, sample: Option<Worst<'_>>, unit: Unit) -> String {
    let at_least = if series.is_bound(latency) { "at least " } else { "" };
    let time = sample.map_or(String::new(), |sample| format!(", {:.1} s into it", sample.due.0 as f64 / 1e9));
    let time = if unit == Unit::Instructions { String::new() } else { time };
    let place = series.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    format!("Worst: {at_least}{}{place} under {under}{time}.", unit.with_name(latency))
}

/// `Of it: send 5.1, wire 20.3, peer 8.0, receive 753.0 us.` Of a value that was split, and kept.
pub(crate) fn parts(record: &Record, latency: Nanos, series: &Series, unit: Unit) -> Option<String> {
    let place = series.worst.iter().position(|sample| sample.latency == latency)?;
    let parts = series.own.parts_of_worst(place)?;
    let part = |(name, took): (&&str, &Option<Nanos>)| {
        let took = took.map_or_else(|| "unknown".into(), |took| unit.with_name(took));
        format!("{name} {took}")
    };
    let names = instrument::of(&record.header.plan).page.worst_parts;
    let parts: Vec<String> = names.iter().zip(parts).map(part).collect();
    let exits = instrument::exits_of_worst(series, place, unit);
    let exits = exits.map_or_else(String::new, |exits| format!("; {exits}"));
    Some(format!("Of it: {}{exits}.", parts.join(", ")))
}

/// The worst values of all threads of a scenario, worst first.
fn worst_of(scenario: &Scenario) -> Vec<Worst<'_>> {
    let mut worst: Vec<_> = scenario
        .series
        .iter()
        .enumerate()
        .flat_map(|(place, series)| {
            let first = scenario.head.grid(place, 0).due(0);
            series.worst.iter().map(move |sample| Worst {
                series,
                latency: sample.latency,
                due: sample.due,
                begins: first.wrapping_add(sample.due.0),
            })
        })
        .collect();
    worst.order_by_key(|one| std::cmp::Reverse(one.latency));
    worst
}

/// Other CPUs that were kept at the same time for a quarter as long or longer, and for longer than is usual there.
fn same_moment(sample: Worst<'_>, worst: &[Worst<'_>], unit: Unit) -> Option<String> {
    let overlaps = |other: &&Worst<'_>| {
        other.series.cpu != sample.series.cpu
            && other.begins < sample.ends()
            && sample.begins < other.ends()
            && other.latency.0 >= sample.latency.0 / 4
            && is_late(other)
    };
    let mut others: Vec<&Worst<'_>> = Vec::new();
    for other in worst.iter().filter(overlaps) {
        if !others.iter().any(|known| known.series.cpu == other.series.cpu) {
            others.push(other);
        }
    }
    match others[..] {
        [] => None,
        [other] => Some(format!(
            "{} was late at the same moment ({}): the cause reaches more than one CPU.",
            cpu_name(other.series.cpu),
            unit.with_name(other.latency)
        )),
        _ => Some(format!(
            "{} other CPUs were late at the same moment ({} and less): the cause reaches more than one CPU.",
            others.len(),
            unit.with_name(others[0].latency)
        )),
    }
}

fn is_late(one: &Worst<'_>) -> bool {
    let median = one.series.observed.quantile(0.5);
    median.is_some_and(|median| one.latency.0 >= median.0.saturating_mul(LATE))
}

/// A CPU that was late alone. What was missed was waited for, and counts: a response that did not come is in no other figure.
fn one_cpu(scenario: &Scenario, unit: Unit) -> Option<String> {
    let mut maxima: Vec<_> = scenario
        .series
        .iter()
        .filter_map(|series| Some((series.corrected().summary().maximum()?, series.cpu?)))
        .collect();
    maxima.order_by_key(|(latency, _)| std::cmp::Reverse(*latency));
    let ((worst, cpu), (second, _)) = (*maxima.first()?, *maxima.get(1)?);
    let missing = maxima.len() < scenario.series.len();
    (!missing && worst.0 > second.0.saturating_mul(APART)).then(|| {
        format!(
            "Only CPU {cpu} was so late: under the same load the others stayed at {} or below.",
            unit.with_name(second)
        )
    })
}

/// Values of one length, far above the rest.
fn one_length(scenario: &Scenario, load: &str, worst: &[Worst<'_>], unit: Unit) -> Option<String> {
    let first = worst.first()?.latency;
    let alike = worst.iter().take_while(|one| one.latency.0 >= first.0 - first.0 / ALIKE).count();
    let median = scenario.series.iter().filter_map(|series| series.observed.quantile(0.5)).max()?;
    let last = worst.get(alike.checked_sub(1)?)?.latency;
    (alike >= LEAST && last > median.saturating_mul(APART)).then(|| {
        format!(
            "The {alike} worst under {load} are of one length ({} to {}): a time slice, a timeout or a fixed piece of work.",
            unit.figure(last),
            unit.with_name(first)
        )
    })
}

/// Delays that come back after the same time.
fn one_period(scenario: &Scenario, worst: &[Worst<'_>], unit: Unit) -> Option<String> {
    let interval = scenario.head.planned.setup.interval()?.0.max(1);
    let series = worst.first()?.series;
    let mut times: Vec<u64> =
        worst.iter().filter(|one| std::ptr::eq(one.series, series)).map(|one| one.due.0).collect();
    times.sort_unstable();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let period = *gaps.iter().min()?;
    let is_multiple = |gap: &u64| {
        let over = gap % period;
        over.min(period - over) <= period / ALIKE + interval
    };
    let is_pattern = gaps.len() >= LEAST
        && period >= interval.saturating_mul(SHORTEST_PERIOD).saturating_mul(2)
        && gaps.iter().all(is_multiple);
    is_pattern.then(|| {
        format!(
            "The worst on {} come each {} or a multiple of it: look for what runs with that period.",
            cpu_name(series.cpu),
            if unit == Unit::Instructions { unit.with_name(Nanos(period)) } else { Nanos(period).rounded() }
        )
    })
}

/// Lateness in the first second alone.
fn beginning(scenario: &Scenario, load: &str, unit: Unit) -> Option<String> {
    const LEAST_BLOCKS: usize = 5;
    let greatest = |range: std::ops::Range<usize>| {
        scenario
            .series
            .iter()
            .flat_map(|series| series.timeline.blocks.get(range.clone()).into_iter().flatten())
            .filter_map(|block| block.observed.maximum())
            .max()
    };
    let blocks = scenario.series.iter().map(|series| series.timeline.blocks.len()).min()?;
    let step = scenario.series.first()?.timeline.step;
    if blocks < LEAST_BLOCKS || step != Nanos::from_secs(1) {
        return None;
    }
    let (first, later) = (greatest(0..1)?, greatest(1..blocks)?);
    (first.0 > later.0.saturating_mul(APART)).then(|| {
        format!(
            "Under {load} this was in the first second only, later at most {}: a longer --warm-up sets the start apart.",
            unit.with_name(later)
        )
    })
}
