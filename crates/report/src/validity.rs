//! The evidence of all scenarios in one line: what every thread and every CPU said of the conditions.

use record::verdict::Verdict;
use record::{CpuEvidence, Fact, Record, RecorderEvidence, Scenario, ThreadEvidence};
use units::{Nanos, Total as _};

use crate::instrument;
use crate::text::count_of;

/// One thing that threads or CPUs said: `fifo 98 on every thread`, `0 page faults`, ...
#[derive(Debug)]
pub(crate) struct Part {
    text: String,
    /// Whether the terminal leaves it to the page: it is as it should be, or describes the method.
    is_detail: bool,
}

impl Part {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_detail: false }
    }

    fn detail(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_detail: true }
    }

    fn detail_if(is_detail: bool, text: impl Into<String>) -> Self {
        Self { text: text.into(), is_detail }
    }
}

/// All of them, for the page.
pub(crate) fn everything(record: &Record) -> String {
    joined(parts(record).into_iter())
}

/// What a reader of the terminal must know: what makes a measurement one, and what is not as it should be.
pub(crate) fn brief(record: &Record) -> String {
    joined(parts(record).into_iter().filter(|part| !part.is_detail))
}

fn joined(parts: impl Iterator<Item = Part>) -> String {
    parts.map(|part| part.text).collect::<Vec<_>>().join(", ")
}

/// The evidence of the CPUs that were measured, as warnings have it; of all where threads had none of their own.
fn of_measured_cpus(scenario: &Scenario) -> impl Iterator<Item = &CpuEvidence> {
    let cpus = &scenario.head.cpus;
    let is_measured = |one: &&CpuEvidence| cpus.iter().any(Option::is_none) || cpus.contains(&Some(one.cpu));
    scenario.evidence.cpus.iter().filter(is_measured)
}

fn parts(record: &Record) -> Vec<Part> {
    let threads: Vec<_> = record.scenarios.iter().flat_map(|s| &s.evidence.threads).collect();
    let cpus: Vec<_> = record.scenarios.iter().flat_map(of_measured_cpus).collect();
    let recorders: Vec<_> = record.scenarios.iter().map(|s| &s.evidence.recorder).collect();
    let mut parts = if threads.is_empty() {
        vec![Part::new("no measuring thread reported on itself")]
    } else {
        thread_parts(record, &threads)
    };
    let expected: usize = record.scenarios.iter().map(|scenario| scenario.series.len()).sum();
    if !threads.is_empty() && threads.len() < expected {
        parts.push(Part::new(format!("{} of {expected} threads did not report", expected - threads.len())));
    }
    let changes: usize = record.scenarios.iter().map(|scenario| scenario.evidence.watch.changes.len()).sum();
    if changes > 0 {
        parts.push(Part::new(format!(
            "{} of threads while they measured",
            count_of(changes as u64, "change")
        )));
    }
    parts.extend(loaded(record));
    parts.extend(
        record
            .header
            .plan
            .timer()
            .map(|_| Part::detail_if(!crate::phases::is_limited(record), crate::phases::part(record))),
    );
    parts.extend((instrument::of(&record.header.plan).seen)(record).map(Part::new));
    if !cpus.is_empty() {
        parts.extend(cpu_parts(&cpus));
    }
    parts.extend(limits(record).into_iter().map(Part::new));
    let lost: u64 = recorders.iter().map(|recorder| lost(recorder)).total();
    parts.push(Part::new(match lost {
        0 if is_not_saved(record) => "not everything could be saved".into(),
        0 => "nothing lost in recording".into(),
        lost => format!("{lost} recordings lost"),
    }));
    parts
}

/// Whether an output failed, as on a full disk. A measurement that is there has no other reason to be an error.
fn is_not_saved(record: &Record) -> bool {
    let judgement = &record.judgement;
    !judgement.losses.is_empty() || (judgement.verdict == Verdict::Error && record.is_measured())
}

/// For how much of the time the loads ran: the least of all whose time was watched, by name where that is little.
fn loaded(record: &Record) -> Option<Part> {
    const LITTLE_PERMILLE: u64 = 900;
    let measured = record.scenarios.iter().filter(|scenario| scenario.is_measured());
    let stressors =
        measured.flat_map(|scenario| scenario.load.stressors.iter().map(move |one| (scenario, one)));
    let shares =
        stressors.filter_map(|(scenario, one)| Some((one.exposure?.permille(), scenario, &one.name)));
    let (least, scenario, name) = shares.min_by_key(|(share, ..)| *share)?;
    let at_least = if least >= 1000 { "" } else { "at least " };
    let which = match record.load_name(&scenario.head.planned.load) {
        _ if least >= LITTLE_PERMILLE => String::new(),
        load if load == name => format!(" ({load})"),
        load => format!(" ({name} of {load})"),
    };
    if least == 0 {
        return Some(Part::new(format!("a load did not run{which}")));
    }
    Some(Part::new(format!("loads ran {at_least}{}.{} % of the time{which}", least / 10, least % 10)))
}

/// What stood between the run and the machine, where it matters.
fn limits(record: &Record) -> Vec<String> {
    let machine = &record.header.machine;
    let mut limits = Vec::new();
    if let Some(maker) = machine.place.container.value().filter(|maker| *maker != "none") {
        limits.push(format!("in a container ({maker})"));
    }
    if machine.place.user_namespace.value() == Some(&true) {
        limits.push("in a user namespace".into());
    }
    for quota in machine.place.cpu_quotas.value().into_iter().flatten() {
        limits.push(format!("CPU quota {} of each {}", quota.quota, quota.period));
    }
    let quotas = record.scenarios.iter().filter_map(|scenario| scenario.evidence.quotas.value()).flatten();
    let throttled: Vec<_> = quotas.map(|quota| quota.throttled.clone().map(|time| time.0)).collect();
    if !throttled.is_empty() {
        limits
            .push(format!("throttled by it {}", shown(&total(throttled.iter(), |time| *time), milliseconds)));
    }
    let coarse = machine.timers.resolution.value().filter(|resolution| resolution.0 > 1_000);
    limits.extend(coarse.map(|resolution| format!("timers of {resolution}")));
    let unread = |scenario: &&record::Scenario| {
        let evidence = &scenario.evidence;
        !evidence.threads.is_empty() && evidence.kernel_messages.value().is_none()
    };
    if record.scenarios.iter().any(|scenario| unread(&scenario)) {
        limits.push("the kernel's log was not read".into());
    }
    limits
}

fn lost(recorder: &RecorderEvidence) -> u64 {
    recorder.seconds_lost + recorder.samples_lost
}

fn thread_parts(record: &Record, threads: &[&ThreadEvidence]) -> Vec<Part> {
    let sum = |count: fn(&ThreadEvidence) -> u64| threads.iter().map(|thread| count(thread)).total();
    let system_calls = threads.iter().any(|thread| thread.clock_is_system_call);
    let mut parts = vec![
        Part::new(policies(threads)),
        Part::new(every(threads, |thread| thread.memory_locked, "memory locked", "memory not locked")),
        Part::new(count_of(sum(|thread| thread.minor_faults + thread.major_faults), "page fault")),
        Part::new(migrations(threads)),
        slack(threads),
        Part::detail_if(
            !system_calls,
            every(
                threads,
                |thread| !thread.clock_is_system_call,
                "clock without system call",
                "clock by system call",
            ),
        ),
    ];
    // sched_yield counts as involuntary: what a reservation was preempted is not known.
    if !record.header.plan.is_reservation() {
        let preemptions = sum(|thread| thread.involuntary_switches);
        parts.insert(4, Part::new(count_of(preemptions, "preemption")));
    }
    if let Some(cost) = cost(record) {
        let cost = record.header.machine.unit().with_name(cost);
        parts.push(Part::detail(format!("{cost} of CPU time per wake-up")));
    }
    parts
}

/// `0 migrations`, where the CPU of each wake-up was read; what is unknown is not 0.
fn migrations(threads: &[&ThreadEvidence]) -> String {
    let count = threads.iter().map(|thread| thread.migrations).total();
    match threads.iter().filter(|thread| thread.cpu_reading.is_none()).count() {
        0 => count_of(count, "migration"),
        unread if unread == threads.len() && count == 0 => "migrations not counted".into(),
        unread => {
            format!(
                "{} seen, not counted on {unread} of {} threads",
                count_of(count, "migration"),
                threads.len()
            )
        }
    }
}

/// CPU time per wake-up, over all threads that reported.
fn cost(record: &Record) -> Option<Nanos> {
    record.header.plan.timer()?;
    let scenarios = || record.scenarios.iter().filter(|scenario| !scenario.evidence.threads.is_empty());
    let time: u64 = scenarios().flat_map(|s| &s.evidence.threads).map(|thread| thread.cpu_time.0).total();
    let wakes: u64 =
        scenarios().flat_map(|s| &s.series).map(|series| series.observed.summary().count).total();
    time.checked_div(wakes).map(Nanos)
}

/// `SCHED_FIFO 98`, as the kernel says it of a thread.
pub(crate) fn policy_of(thread: &ThreadEvidence) -> String {
    match thread.policy {
        None => "policy unknown".into(),
        Some(policy) if thread.priority == 0 => policy.kernel_name().into(),
        Some(policy) => format!("{} {}", policy.kernel_name(), thread.priority),
    }
}

fn policies(threads: &[&ThreadEvidence]) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for policy in threads.iter().map(|thread| policy_of(thread)) {
        match kinds.iter_mut().find(|(kind, _)| *kind == policy) {
            Some((_, count)) => *count += 1,
            None => kinds.push((policy, 1)),
        }
    }
    match kinds.as_slice() {
        [(kind, _)] => format!("{kind} on every thread"),
        _ => kinds.iter().map(|(kind, count)| format!("{kind} on {count}")).collect::<Vec<_>>().join(" and "),
    }
}

fn every(threads: &[&ThreadEvidence], holds: fn(&ThreadEvidence) -> bool, good: &str, bad: &str) -> String {
    let count = threads.iter().filter(|thread| holds(thread)).count();
    if count == threads.len() {
        good.into()
    } else {
        format!("{bad} on {} of {} threads", threads.len() - count, threads.len())
    }
}

/// The least that the kernel has delays nothing.
const LEAST_SLACK: Nanos = Nanos(1);

fn slack(threads: &[&ThreadEvidence]) -> Part {
    let unread = |thread: &&&ThreadEvidence| thread.unread.iter().any(|what| what.starts_with("timer slack"));
    let unknown = threads.iter().filter(unread).count();
    if unknown > 0 {
        return Part::new(format!("timer slack unknown on {unknown} of {} threads", threads.len()));
    }
    let slack = threads.iter().map(|thread| thread.timer_slack).max().unwrap_or_default();
    let text = if slack == Nanos::ZERO { "no timer slack".into() } else { format!("timer slack {slack}") };
    Part::detail_if(slack <= LEAST_SLACK, text)
}

fn cpu_parts(cpus: &[&CpuEvidence]) -> Vec<Part> {
    let smis = total(cpus.iter().map(|cpu| &cpu.smis), |count| *count);
    let throttles = total(cpus.iter().map(|cpu| &cpu.thermal_throttles), |count| *count);
    let steal = total(cpus.iter().map(|cpu| &cpu.steal), |time| time.0);
    let steal_text = shown(&steal, |nanos| if nanos == 0 { "0".into() } else { milliseconds(nanos) });
    // What cannot be counted here is no news on this machine; what was counted and is above 0 is.
    let is_detail = |total: &Total| total.sum.value().is_none_or(|sum| *sum == 0);
    vec![
        Part::detail_if(is_detail(&steal), format!("steal time {steal_text}")),
        Part::detail_if(is_detail(&smis), format!("SMIs {}", shown(&smis, |count| count.to_string()))),
        Part::detail_if(
            is_detail(&throttles),
            format!("thermal throttling {}", shown(&throttles, |count| count.to_string())),
        ),
    ]
}

/// Milliseconds with one decimal.
pub(crate) fn milliseconds(nanos: u64) -> String {
    format!("{}.{} ms", nanos / 1_000_000, nanos / 100_000 % 10)
}

/// The sum of what could be read, and how many could not; where nothing could, why not.
fn total<'a, T: 'a>(facts: impl Iterator<Item = &'a Fact<T>>, count: impl Fn(&T) -> u64) -> Total {
    let mut total: Fact<u64> = Fact::Unsupported;
    let (mut all, mut unread) = (0, 0);
    for fact in facts {
        all += 1;
        unread += usize::from(fact.value().is_none());
        match (fact, &mut total) {
            (Fact::Value(value), Fact::Value(sum)) => *sum = sum.saturating_add(count(value)),
            (Fact::Value(value), state) => *state = Fact::Value(count(value)),
            (Fact::Absent, state @ Fact::Unsupported) => *state = Fact::Absent,
            (Fact::Unreadable(errno), state @ (Fact::Unsupported | Fact::Absent)) => {
                *state = Fact::Unreadable(*errno);
            }
            _ => (),
        }
    }
    Total { sum: total, all, unread }
}

/// A sum over CPUs or scenarios.
struct Total {
    sum: Fact<u64>,
    all: usize,
    unread: usize,
}

fn shown(total: &Total, show: impl Fn(u64) -> String) -> String {
    match &total.sum {
        Fact::Value(value) if total.unread > 0 => {
            format!("{} or more (unknown of {} of {})", show(*value), total.unread, total.all)
        }
        Fact::Value(value) => show(*value),
        Fact::Absent => "not counted here".into(),
        fact => fact.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_lacks_cpus_says_so() {
        let sum =
            |facts: &[Fact<u64>]| shown(&total(facts.iter(), |count| *count), |count| count.to_string());
        assert_eq!(sum(&[Fact::Value(2), Fact::Value(3)]), "5");
        assert_eq!(sum(&[Fact::Value(2), Fact::Unreadable(5)]), "2 or more (unknown of 1 of 2)");
        assert_eq!(sum(&[Fact::Absent, Fact::Absent]), "not counted here");
        assert_eq!(sum(&[Fact::Unreadable(5), Fact::Absent]), "unreadable: Input/output error");
    }

    fn thread() -> ThreadEvidence {
        ThreadEvidence { cpu_reading: Some(record::CpuReading::Library), ..ThreadEvidence::default() }
    }

    #[test]
    fn migrations_that_were_not_counted_are_no_zero() {
        let (looked, blind) = (thread(), ThreadEvidence { cpu_reading: None, ..thread() });
        assert_eq!(migrations(&[&looked, &looked]), "0 migrations");
        assert_eq!(migrations(&[&blind, &blind]), "migrations not counted");
        assert_eq!(migrations(&[&looked, &blind]), "0 migrations seen, not counted on 1 of 2 threads");
    }

    #[test]
    fn a_slack_that_could_not_be_read_is_not_none() {
        assert_eq!(slack(&[&thread()]).text, "no timer slack");
        let unread = ThreadEvidence { unread: vec!["timer slack: refused".into()], ..thread() };
        assert_eq!(slack(&[&thread(), &unread]).text, "timer slack unknown on 1 of 2 threads");
    }
}
