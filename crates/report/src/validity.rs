//! The evidence of all scenarios in one line: what every thread and every CPU said of the conditions.

use record::{CpuEvidence, Fact, Record, RecorderEvidence, ThreadEvidence};
use units::Nanos;

use crate::text::count_of;

/// The parts of the validity line: `fifo 98 on every thread`, `0 page faults`, ...
pub(crate) fn parts(record: &Record) -> Vec<String> {
    let threads: Vec<_> = record.scenarios.iter().flat_map(|s| &s.evidence.threads).collect();
    let cpus: Vec<_> = record.scenarios.iter().flat_map(|s| &s.evidence.cpus).collect();
    let recorders: Vec<_> = record.scenarios.iter().map(|s| &s.evidence.recorder).collect();
    let mut parts = if threads.is_empty() {
        vec!["no measuring thread reported on itself".to_owned()]
    } else {
        thread_parts(record, &threads)
    };
    if !cpus.is_empty() {
        parts.extend(cpu_parts(&cpus));
    }
    let lost: u64 = recorders.iter().map(|recorder| lost(recorder)).sum();
    parts.push(if lost == 0 {
        "nothing lost in recording".into()
    } else {
        format!("{lost} recordings lost")
    });
    parts
}

fn lost(recorder: &RecorderEvidence) -> u64 {
    recorder.seconds_lost + recorder.samples_lost
}

fn thread_parts(record: &Record, threads: &[&ThreadEvidence]) -> Vec<String> {
    let sum = |count: fn(&ThreadEvidence) -> u64| threads.iter().map(|thread| count(thread)).sum::<u64>();
    let mut parts = vec![
        policies(threads),
        count_of(sum(|thread| thread.minor_faults + thread.major_faults), "page fault"),
        count_of(sum(|thread| thread.migrations), "migration"),
        count_of(sum(|thread| thread.involuntary_switches), "preemption"),
        every(threads, |thread| thread.memory_locked, "memory locked", "memory not locked"),
        slack(threads),
        every(
            threads,
            |thread| !thread.clock_is_system_call,
            "clock without system call",
            "clock by system call",
        ),
    ];
    if let Some(cost) = cost(record) {
        parts.push(format!("{} of CPU time per wake-up", record.header.machine.unit().with_name(cost)));
    }
    parts
}

/// CPU time per wake-up, over all threads that reported.
fn cost(record: &Record) -> Option<Nanos> {
    let scenarios = || record.scenarios.iter().filter(|scenario| !scenario.evidence.threads.is_empty());
    let time: u64 = scenarios().flat_map(|s| &s.evidence.threads).map(|thread| thread.cpu_time.0).sum();
    let wakes: u64 = scenarios().flat_map(|s| &s.series).map(|series| series.observed.summary().count).sum();
    time.checked_div(wakes).map(Nanos)
}

/// `fifo 98`, as the kernel says it of a thread.
pub(crate) fn policy_of(thread: &ThreadEvidence) -> String {
    match thread.policy {
        None => "policy unknown".into(),
        Some(policy) if thread.priority == 0 => policy.to_string(),
        Some(policy) => format!("{policy} {}", thread.priority),
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

fn slack(threads: &[&ThreadEvidence]) -> String {
    let slack = threads.iter().map(|thread| thread.timer_slack).max().unwrap_or_default();
    if slack == Nanos::ZERO { "no timer slack".into() } else { format!("timer slack {slack}") }
}

fn cpu_parts(cpus: &[&CpuEvidence]) -> Vec<String> {
    let smis = total(cpus.iter().map(|cpu| &cpu.smis), |count| *count);
    let throttles = total(cpus.iter().map(|cpu| &cpu.thermal_throttles), |count| *count);
    let steal = total(cpus.iter().map(|cpu| &cpu.steal), |time| time.0);
    vec![
        format!(
            "steal time {}",
            shown(&steal, |nanos| if nanos == 0 { "0".into() } else { milliseconds(nanos) })
        ),
        format!("SMIs {}", shown(&smis, |count| count.to_string())),
        format!("thermal throttling {}", shown(&throttles, |count| count.to_string())),
    ]
}

/// Milliseconds with one decimal.
pub(crate) fn milliseconds(nanos: u64) -> String {
    format!("{}.{} ms", nanos / 1_000_000, nanos / 100_000 % 10)
}

/// The sum of what could be read; where nothing could, why not.
fn total<'a, T: 'a>(facts: impl Iterator<Item = &'a Fact<T>>, count: impl Fn(&T) -> u64) -> Fact<u64> {
    let mut total = Fact::Unsupported;
    for fact in facts {
        match (fact, &mut total) {
            (Fact::Value(value), Fact::Value(sum)) => *sum += count(value),
            (Fact::Value(value), state) => *state = Fact::Value(count(value)),
            (Fact::Absent, state @ Fact::Unsupported) => *state = Fact::Absent,
            (Fact::Unreadable(errno), state @ (Fact::Unsupported | Fact::Absent)) => {
                *state = Fact::Unreadable(*errno);
            }
            _ => (),
        }
    }
    total
}

fn shown(fact: &Fact<u64>, show: impl Fn(u64) -> String) -> String {
    match fact {
        Fact::Value(value) => show(*value),
        Fact::Absent => "not counted here".into(),
        _ => fact.to_string(),
    }
}
