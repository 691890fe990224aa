//! Why wake-ups were late: delays that we make must be named.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use record::{Class, Hit, Record};
use rustix::process::Signal;
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList};

use crate::support::{self, Run};

const MS: u64 = 1_000_000;
/// How long the rival holds the CPU, and how often.
const HOLD: u64 = 6 * MS;
const EVERY: u64 = 150 * MS;
/// What is not the rival's part of a delay may be the host's in so many hits: they are counted, and others are looked at.
const ATTEMPTS: usize = 3;

fn cpu() -> CpuId {
    schedule::affinity(0).unwrap().iter().last().unwrap()
}

/// Holds `cpu` again and again at the highest priority until `end`; none without rights.
fn rival<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    cpu: CpuId,
    end: &'scope AtomicBool,
) -> std::thread::ScopedJoinHandle<'scope, Result<(), sys::Error>> {
    let body = move || {
        schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
        schedule::set(Scheduling::Fifo("99".parse().unwrap()))?;
        let mut at = Clock::Monotonic.now();
        while !end.load(Ordering::Relaxed) {
            at += EVERY;
            let _ = Clock::Monotonic.sleep_until(at);
            let start = Clock::Monotonic.now();
            while Clock::Monotonic.now() < start + HOLD {
                std::hint::spin_loop();
            }
        }
        Ok(())
    };
    std::thread::Builder::new().name("the-rival".to_owned()).spawn_scoped(scope, body).unwrap()
}

fn sum<'a>(lengths: impl Iterator<Item = &'a units::Nanos>) -> u64 {
    lengths.map(|length| length.0).sum()
}

/// The share of a hit's latency, in percent, that is the host's or not explained.
fn foreign(hit: &Hit) -> u64 {
    let foreign = hit.causes.iter().filter(|cause| matches!(cause.class, Class::Host | Class::Unknown));
    sum(foreign.map(|cause| &cause.length)) * 100 / hit.latency.0
}

/// Pieces and causes sum to the latency, whatever they are.
fn assert_sums(record: &Record) {
    for hit in record.explanations.iter().flat_map(|explanation| &explanation.hits) {
        assert_eq!(sum(hit.pieces.iter().map(|piece| &piece.length)), hit.latency.0, "{hit:#?}");
        assert_eq!(sum(hit.causes.iter().map(|cause| &cause.length)), hit.latency.0, "{hit:#?}");
    }
}

#[test]
fn a_thread_of_higher_priority_is_named_with_its_share() {
    let cpu = cpu();
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let end = AtomicBool::new(false);
        let (held, ended) = std::thread::scope(|scope| {
            let rival = rival(scope, cpu, &end);
            let list = cpu.to_string();
            let run = Run::bench(&["--loads", "idle", "--cpus", &list, "--duration", "2s", "--explain=5"]);
            let ended = run.end();
            end.store(true, Ordering::Relaxed);
            (rival.join().unwrap(), ended)
        });
        if let Err(error) = held {
            return support::skipped(&error.to_string());
        }
        let record = ended.record();
        assert_sums(&record);
        let Some(explanation) = record.explanations.first() else {
            return support::skipped(&ended.err);
        };
        let hits = explanation.hits.iter().filter(|hit| hit.latency.0 >= 5 * MS);
        for hit in hits.filter(|hit| foreign(hit) <= 2) {
            let cause = hit.main_cause().unwrap();
            assert_eq!(cause.class, Class::Rival, "{hit:#?}");
            assert!(cause.culprit.starts_with("the-rival ["), "{cause:?}");
            assert!(cause.length.0 * 100 >= hit.latency.0 * 95, "{hit:#?}");
            seen.push(hit.latency);
        }
        if seen.len() >= 3 {
            assert!(ended.out.contains("the-rival"), "{}", ended.out);
            return;
        }
    }
    panic!("the host had a part in all but {} of the delays", seen.len());
}

/// Instances of the trace that belong to the process.
fn instances(process: u32) -> Vec<String> {
    let names = std::fs::read_dir("/sys/kernel/tracing/instances");
    let names = names.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let own = format!("worstcase-{process}-");
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.starts_with(&own)).collect()
}

#[test]
fn a_killed_run_leaves_no_instance_of_the_trace() {
    let cpu = cpu().to_string();
    let mut run = Run::bench(&["--loads", "idle", "--cpus", &cpu, "--duration", "1s", "--explain=1"]);
    let process = run.pid();
    run.wait_until("an instance, or the end", |run| {
        !instances(process).is_empty() || run.text("stderr").contains("was not explained")
    });
    if instances(process).is_empty() {
        return support::skipped(&run.text("stderr"));
    }
    run.signal(Signal::KILL);
    let patience = Instant::now() + Duration::from_secs(20);
    while !instances(process).is_empty() {
        assert!(Instant::now() < patience, "{:?}", instances(process));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn figures_do_not_suffer_where_nothing_can_be_traced() {
    if !support::is_root() {
        return support::skipped("needs root, to become another user");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", support::BINARY, "bench"]);
    command.args(["--out", "record", "--loads", "idle", "--duration", "1s", "--explain"]);
    let ended = Run::start_as(&mut command).end();
    let record = ended.record();
    assert!(record.is_measured() && record.explanations.is_empty());
    assert!(ended.err.contains("warning: idle was not explained: "), "{}", ended.err);
}
