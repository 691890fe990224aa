//! Why wake-ups were late: delays that we make must be named.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use record::{Class, Hit, Record, WatchSummary};
use rustix::process::Signal;
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Nanos};

use crate::injection::{self, Delay, Ends, Stop, When};
use crate::support::{self, Run};

const MS: u64 = 1_000_000;
/// How long the rival holds the CPU, and how often.
const HOLD: u64 = 6 * MS;
const EVERY: u64 = 150 * MS;
/// What is not the rival's part of a delay may be the host's in so many hits: they are counted, and others are looked at.
const ATTEMPTS: usize = 8;

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

/// Instances of the trace that belong to the process.
pub fn instances(process: u32) -> Vec<String> {
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
    let kept = record.warnings.iter().find(|warning| warning.id == record::WarningId::NotExplained);
    let kept = kept.expect("record and page say it too");
    assert!(kept.evidence.starts_with("idle was not explained: ") && !kept.cure.is_empty(), "{kept:?}");
    let place = |words: &str| ended.err.find(words).unwrap_or_else(|| panic!("{words}: {}", ended.err));
    assert!(place("\nReport  ") < place("was not explained"), "the end is what is still seen: {}", ended.err);
}

/// A late wake-up, and how much of its latency was in delays that we made.
struct Beside {
    hit: Hit,
    delayed: u64,
}

/// How much of the latency lies in the delays. Each is at most `longest` long: the rest of its time went by before or after it.
fn delayed(hit: &Hit, delays: &[When], longest: u64) -> u64 {
    let end = hit.due.0 + hit.latency.0;
    let parts = delays.iter().map(|delay| {
        let until = delay.end.min(delay.start.saturating_add(longest)).min(end);
        until.saturating_sub(delay.start.max(hit.due.0))
    });
    parts.sum()
}

/// Hits of which half a delay's length and more was delayed and in which nothing is foreign, in some attempts; none where the
/// delay cannot be made.
fn explained(
    (name, place, fifo): (&'static str, CpuId, Option<&'static str>),
    (usual, longest): (u64, u64),
    make: fn(CpuId) -> Result<Delay<'static>, String>,
) -> Option<(Vec<Beside>, String)> {
    let measured = cpu();
    for _ in 0..ATTEMPTS {
        let stop = Stop::new(false);
        let (made, ended) = std::thread::scope(|scope| {
            let ends = Ends(&stop);
            let maker = (name, place, fifo);
            let delays = injection::again_and_again(scope, &stop, maker, EVERY, move || make(measured));
            let list = measured.to_string();
            let ended =
                Run::bench(&["--loads", "idle", "--cpus", &list, "--duration", "2s", "--explain=5"]).end();
            drop(ends);
            (delays.join().unwrap(), ended)
        });
        let delays = match made {
            Ok(delays) => delays,
            Err(error) => {
                support::skipped(&error);
                return None;
            }
        };
        let record = ended.record();
        assert_sums(&record);
        let Some(explanation) = record.explanations.into_iter().next() else {
            support::skipped(support::refusal(&ended.err));
            return None;
        };
        let hits = explanation.hits.into_iter();
        let beside = hits.map(|hit| Beside { delayed: delayed(&hit, &delays, longest), hit });
        let beside: Vec<Beside> =
            beside.filter(|Beside { hit, delayed }| *delayed >= usual / 2 && foreign(hit) <= 2).collect();
        if !beside.is_empty() {
            return Some((beside, ended.out));
        }
    }
    panic!("the host had a part in each delay");
}

/// What we delayed is named: at least 95 % of it is of this class, and nothing comes before it. What else made the thread late
/// is the machine's own. A rival computes until a time, and a softirq is timed by the call that began it: interrupts and softirqs
/// that came in between, what recording them took, and the call's own way to its softirq and back are named apart and are in that
/// time, for up to a tenth of it.
fn assert_class(beside: Vec<Beside>, class: Class, culprit: &str) {
    for Beside { hit, delayed } in beside {
        let of_it = hit.causes.iter().filter(|cause| cause.class == class && cause.culprit.contains(culprit));
        let named = sum(of_it.map(|cause| &cause.length));
        let is_between = |cause: &&record::Cause| match cause.class {
            Class::Interrupt | Class::Timer | Class::Tracing => class != Class::Call,
            Class::Softirq => class == Class::Rival,
            _ => class == Class::Softirq && cause.culprit.contains("the-sender ["),
        };
        let between = hit.causes.iter().filter(is_between);
        let between = sum(between.map(|cause| &cause.length));
        println!(
            "{}: {named} ns are {class:?}, {between} ns came in between, {delayed} ns were made",
            hit.latency
        );
        let expected = delayed - between.min(delayed / 10);
        assert!(named * 100 >= expected * 95, "{delayed} ns were made: {hit:#?}");
        assert!(delayed * 2 < hit.latency.0 || hit.main_cause().unwrap().class == class, "{hit:#?}");
    }
}

#[test]
fn a_thread_of_higher_priority_is_named_with_its_share() {
    static NEVER: Stop = Stop::new(false);
    let rival = ("the-rival", cpu(), Some("99"));
    let beside = explained(rival, (HOLD, HOLD), |_| Ok(injection::computing(HOLD, &NEVER)));
    if let Some((beside, out)) = beside {
        assert!(out.contains("the-rival"), "{out}");
        assert_class(beside, Class::Rival, "the-rival [");
    }
}

/// A frozen ring would have the first of a cluster alone.
#[test]
fn where_many_are_wanted_each_late_wake_up_of_a_cluster_is_traced() {
    let measured = cpu();
    let stop = Stop::new(false);
    let ended = std::thread::scope(|scope| {
        let ends = Ends(&stop);
        let rival = ("the-rival", measured, Some("99"));
        injection::again_and_again(scope, &stop, rival, 15 * MS, || {
            static NEVER: Stop = Stop::new(false);
            Ok(injection::computing(2 * MS, &NEVER))
        });
        let list = measured.to_string();
        let ended =
            Run::bench(&["--loads", "idle", "--cpus", &list, "--duration", "1s", "--explain=100"]).end();
        drop(ends);
        ended
    });
    let record = ended.record();
    assert_sums(&record);
    let Some(explanation) = record.explanations.first() else {
        return support::skipped(support::refusal(&ended.err));
    };
    let record::Explanation { scenario, tracing, hits, .. } = explanation;
    let late = scenario.series[0].observed.at_least(tracing.threshold);
    let explained = hits.len() as u64 + tracing.own + tracing.blind;
    println!("{late} late, {} explained, {} blind, {} own", hits.len(), tracing.blind, tracing.own);
    // Of cells that the threshold divides, the histogram counts all or none.
    assert!(late.abs_diff(explained) <= 2 + late / 50, "{late} late wake-ups, {explained} explained");
    assert_eq!(tracing.freezes, 0);
    assert!(tracing.blind * 20 <= late, "{} of {late} have no trace", tracing.blind);
    let of_rival = |hit: &&Hit| hit.causes.iter().any(|cause| cause.culprit.contains("the-rival ["));
    // Some 59 are made in a second; each makes one wake-up late.
    assert!(hits.iter().filter(of_rival).count() >= 40, "{}", ended.out);
}

#[test]
fn an_interrupt_of_another_cpu_is_named_with_its_sender() {
    let others = CpuList::from_iter(schedule::affinity(0).unwrap().iter().filter(|one| *one != cpu()));
    let Some(other) = others.iter().next() else { return support::skipped("needs two CPUs") };
    let length = 3 * MS;
    let beside = explained(("the-sender", other, None), (length, length), |measured| {
        injection::waiting_on(measured, 3 * MS)
    });
    let Some((beside, _)) = beside else { return };
    let is_said = |one: &&Beside| one.hit.causes.iter().any(|cause| cause.witness.contains("the-sender ["));
    let said = beside.iter().filter(is_said).count();
    println!("{said} of {} with their sender", beside.len());
    // Linux 6.4 says who sent it.
    let is_traced = std::path::Path::new("/sys/kernel/tracing/events/csd/csd_queue_cpu").exists();
    assert!(!is_traced || said == beside.len(), "{:#?}", beside[0].hit.causes);
    assert_class(beside, Class::Call, "");
}

#[test]
fn a_softirq_that_serves_many_sockets_is_named() {
    let beside =
        explained(("the-sender", cpu(), None), (2 * MS, u64::MAX), |_| injection::one_datagram_for(6_000));
    if let Some((beside, _)) = beside {
        assert_class(beside, Class::Softirq, "NET_RX");
    }
}

#[test]
fn late_wake_ups_of_a_thread_are_explained_as_they_come() {
    let cpu = cpu();
    let end = AtomicBool::new(false);
    let (held, ended) = std::thread::scope(|scope| {
        let rival = rival(scope, cpu, &end);
        let (say, said) = std::sync::mpsc::channel();
        let end = &end;
        scope.spawn(move || {
            schedule::set_affinity(0, &CpuList::from_iter([cpu])).unwrap();
            let _ = schedule::set(Scheduling::Fifo("50".parse().unwrap()));
            say.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let mut at = Clock::Monotonic.now();
            while !end.load(Ordering::Relaxed) {
                at = (at + MS).max(Clock::Monotonic.now());
                let _ = Clock::Monotonic.sleep_until(at);
            }
        });
        let tid = said.recv().unwrap().to_string();
        let mut command = Command::new(support::BINARY);
        command.args(["explain", "--live", "--json", "--threshold", "3ms", "-D", "2s", "--tid", &tid]);
        let ended = command.output().unwrap();
        end.store(true, Ordering::Relaxed);
        (rival.join().unwrap(), ended)
    });
    let words = String::from_utf8_lossy(&ended.stderr);
    if let Err(error) = held {
        return support::skipped(&error.to_string());
    }
    if !ended.status.success() && words.contains("tracing") {
        return support::skipped(support::refusal(&words));
    }
    assert!(ended.status.success(), "{words}");
    let text = String::from_utf8(ended.stdout).unwrap();
    text.lines().for_each(|line| support::schema::check("hit", &serde_json::from_str(line).unwrap()));
    let (hits, summary) = watched(&text);
    // How late some were is known, or that it is not: silence is no good news.
    assert_eq!(summary.late, hits.len() as u64);
    assert!(summary.wake_ups + summary.unknown > 100 && summary.wake_ups >= summary.late, "{summary:?}");
    assert!(summary.seconds <= 2.0, "{summary:?}");
    let named = hits.iter().filter(|hit| {
        assert_eq!(sum(hit.pieces.iter().map(|piece| &piece.length)), hit.latency.0, "{hit:#?}");
        hit.main_cause().is_some_and(|cause| cause.culprit.starts_with("the-rival ["))
    });
    // The rival holds the CPU 13 times in this time; the host may have had a part in some.
    let named = named.count();
    println!("{named} of {} by the rival", hits.len());
    assert!(named >= 3, "{text}");
}

/// The kernel may let an ordinary thread's timer come later by its slack, and does where nothing else is due.
#[test]
fn slack_that_a_thread_has_of_its_timers_is_no_fault_of_the_host() {
    const SLACK: u64 = 20 * MS;
    let end = AtomicBool::new(false);
    let watched_thread = std::thread::scope(|scope| {
        let (say, said) = std::sync::mpsc::channel();
        let end = &end;
        scope.spawn(move || {
            schedule::set_timer_slack(Nanos(SLACK)).unwrap();
            say.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            while !end.load(Ordering::Relaxed) {
                let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + 30 * MS);
            }
        });
        let tid = said.recv().unwrap().to_string();
        let ended = watch(&["--json", "--threshold", "3ms", "-D", "3s", "--tid", &tid]);
        end.store(true, Ordering::Relaxed);
        ended
    });
    let Some(ended) = watched_thread else { return };
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = String::from_utf8(ended.stdout).unwrap();
    let (hits, _) = watched(&text);
    let slack = |hit: &Hit| {
        let of_slack = hit.causes.iter().filter(|cause| cause.class == Class::TimerSlack);
        sum(of_slack.map(|cause| &cause.length))
    };
    assert!(hits.iter().all(|hit| slack(hit) <= SLACK), "{text}");
    let named = hits.iter().filter(|hit| slack(hit) * 2 > hit.latency.0).count();
    println!("{named} of {} by slack", hits.len());
    assert!(hits.len() >= 5 && named * 2 > hits.len(), "{text}");
}

/// What `explain --live --json` prints: hits, and in its last line the summary.
fn watched(text: &str) -> (Vec<Hit>, WatchSummary) {
    let (last, hits) =
        text.lines().collect::<Vec<_>>().split_last().map(|(last, hits)| (*last, hits.to_vec())).unwrap();
    let end: serde_json::Value = serde_json::from_str(last).unwrap();
    let hits = hits.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    (hits, serde_json::from_value(end["summary"].clone()).unwrap_or_else(|error| panic!("{error}: {last}")))
}

fn watch(words: &[&str]) -> Option<std::process::Output> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", "60", support::BINARY, "explain", "--live"]).args(words);
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if !ended.status.success() && said.contains("tracing") {
        support::skipped(support::refusal(&said));
        return None;
    }
    Some(ended)
}

/// A thread of an ordinary program that is late, because a rival has its CPU, and that is called as threads of the watch are.
#[test]
fn threads_of_others_that_are_called_as_ours_are_not_taken_for_them() {
    let (cpu, end) = (cpu(), AtomicBool::new(false));
    let found = std::thread::scope(|scope| {
        let end = &end;
        let rival = rival(scope, cpu, end);
        let (say, said) = std::sync::mpsc::channel();
        let impostor = move || {
            schedule::set_affinity(0, &CpuList::from_iter([cpu])).unwrap();
            say.send(schedule::thread_id()).unwrap();
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        std::thread::Builder::new().name(format!("explain/{cpu}")).spawn_scoped(scope, impostor).unwrap();
        let tid = said.recv().unwrap();
        let own = watch(&["--json", "--threshold", "3ms", "-D", "2s"]);
        let asked = watch(&["--json", "--threshold", "3ms", "-D", "2s", "--tid", &tid.to_string()]);
        end.store(true, Ordering::Relaxed);
        rival.join().unwrap().map_err(|error| support::skipped(&error.to_string())).ok()?;
        Some((tid, own?, asked?))
    });
    let Some((tid, own, asked)) = found else { return };
    let hits = |of: &std::process::Output| -> Vec<i32> {
        watched(&String::from_utf8_lossy(&of.stdout)).0.iter().map(|hit| hit.tid).collect()
    };
    assert!(!hits(&own).contains(&tid), "{own:?}");
    assert!(hits(&asked).len() > 3 && hits(&asked).iter().all(|&of| of == tid), "{asked:?}");
}

/// What is watched is said to be gone: before, or while it is watched.
#[test]
fn a_process_that_is_gone_is_not_waited_for() {
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    for words in
        [["--pid", &gone.id().to_string()], ["--tid", "0"], ["--pid=-1", "--json"], ["--tid", "2147483647"]]
    {
        let ended = watch(&words).unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{words:?} {said}");
        assert!(said.contains("there is no process or thread"), "{words:?} {said}");
    }
    let mut sleeps = Command::new("sleep").arg("2").spawn().unwrap();
    let ended = watch(&["--pid", &sleeps.id().to_string()]);
    sleeps.wait().unwrap();
    let Some(ended) = ended else { return };
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("have ended"), "{ended:?}");
}

#[test]
fn a_process_of_another_user_is_watched_by_root_alone() {
    if !support::is_root() {
        return support::skipped("becoming another user needs root");
    }
    use std::os::unix::process::CommandExt;
    let mut theirs = Command::new("sleep").arg("60").uid(65_534).gid(65_534).spawn().unwrap();
    let pid = theirs.id().to_string();
    let ended = watch(&["--pid", &pid, "-D", "500ms"]);
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("worstcase");
    std::fs::copy(support::BINARY, &program).unwrap();
    for path in [directory.path(), &program] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut refused = Command::new(&program);
    refused.args(["explain", "--live", "-D", "500ms", "--pid", &pid]).uid(65_534).gid(65_534);
    let refused = refused.current_dir("/").output().unwrap();
    theirs.kill().unwrap();
    theirs.wait().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/sys/kernel/tracing"), "{refused:?}");
    let Some(ended) = ended else { return };
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn a_killed_watch_leaves_no_instance_of_the_trace() {
    let mut command = Command::new(support::BINARY);
    command.args(["explain", "--live", "--threshold", "10s"]).stdout(std::process::Stdio::null());
    let mut watch = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let process = watch.id();
    let patience = Instant::now() + Duration::from_secs(20);
    while instances(process).is_empty() && Instant::now() < patience {
        if watch.try_wait().unwrap().is_some() {
            let ended = watch.wait_with_output().unwrap();
            return support::skipped(support::refusal(&String::from_utf8_lossy(&ended.stderr)));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    while !instances(process).is_empty() {
        assert!(Instant::now() < patience, "{:?}", instances(process));
        std::thread::sleep(Duration::from_millis(20));
    }
}
