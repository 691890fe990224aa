//! The noise probe beside the kernel's own tracers of noise, on a PREEMPT_RT kernel: a thread of the highest priority takes
//! a CPU for a known time, again and again, and each of them is asked what it saw.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::io::Read;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use guest_tests::Guests;
use record::{Class, Hit, Record};
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use trace::tracer::{Context, Hwlat, Kind, Plan, Running, Sample};
use units::{CpuList, Nanos};

const MS: u64 = 1_000_000;
/// So long that no pause of the host is taken for it.
const HELD: u64 = 60 * MS;
/// The host has a part in some delays, because the guest's CPUs are its threads: another run is looked at within this time,
/// which leaves the other tests of this guest theirs.
const PATIENCE: Duration = Duration::from_secs(100);
const LOOK: Duration = Duration::from_secs(3);

static RT: Guests = Guests::new("debian-6.1-rt-amd64", "quiet no_timer_check")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);

/// Takes CPU 1 again and again while `look` looks; how often it did.
fn beside_a_hog<T>(look: impl FnOnce() -> T) -> (T, u64) {
    let (stop, holds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let hog = std::thread::Builder::new().name("the-hog".to_owned());
        let body = || {
            schedule::set_affinity(0, &"1".parse::<CpuList>().unwrap()).unwrap();
            schedule::set(Scheduling::Fifo("99".parse().unwrap())).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // No multiple of the period of whoever looks: its pauses are not met each time.
                let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + 237 * MS);
                let end = Clock::Monotonic.now() + HELD;
                while Clock::Monotonic.now() < end {
                    std::hint::spin_loop();
                }
                holds.fetch_add(1, Ordering::Relaxed);
            }
        };
        hog.spawn_scoped(scope, body).unwrap();
        let seen = look();
        stop.store(true, Ordering::Relaxed);
        (seen, holds.load(Ordering::Relaxed))
    })
}

fn ours() -> u64 {
    let arguments = ["measure", "--probe", "noise", "--cpus", "1", "--duration", "3s", "--out", "noise"];
    let output = Command::new("worstcase").args(arguments).output().unwrap();
    let record: Record = record::store::load("noise".as_ref())
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    record.scenarios[0].series[0].observed.summary().maximum().unwrap().0
}

/// What a tracer of noise recorded on CPU 1.
fn traced(plan: &Plan) -> Vec<Sample> {
    let mut running = Running::start(plan).unwrap();
    std::thread::sleep(LOOK);
    let mut samples = Vec::new();
    running.each(&mut |sample| samples.push(*sample)).unwrap();
    running.stop().unwrap();
    samples
}

fn measured() -> CpuList {
    "1".parse().unwrap()
}

/// The longest that was taken at once.
fn osnoise() -> u64 {
    let samples = traced(&Plan::usual(Kind::Osnoise, measured()));
    let worst = |sample: &Sample| match sample {
        Sample::Osnoise { worst, .. } => Some(worst.0),
        _ => None,
    };
    samples.iter().filter_map(worst).max().unwrap_or_else(|| panic!("no sample: {samples:?}"))
}

/// How often it was so long or longer.
fn hwlat(at_least: u64) -> u64 {
    let plan = Hwlat { cpus: measured(), window: Nanos(1_000 * MS), width: Nanos(900 * MS) };
    let is_long = |sample: &&Sample| matches!(sample, Sample::Hwlat { worst, .. } if worst.0 >= at_least);
    traced(&Plan::Hwlat(plan)).iter().filter(is_long).count() as u64
}

/// The longest that timerlat's thread and its interrupt waited.
fn timerlat() -> (u64, u64) {
    let mut worst = (0, 0);
    for sample in traced(&Plan::usual(Kind::Timerlat, measured())) {
        match sample {
            Sample::Timerlat { context: Context::Thread, latency, .. } => worst.0 = latency.0.max(worst.0),
            Sample::Timerlat { latency, .. } => worst.1 = latency.0.max(worst.1),
            _ => panic!("{sample:?}"),
        }
    }
    worst
}

#[test]
fn a_hog_is_seen_by_the_noise_probe_as_by_osnoise_and_not_by_hwlat() {
    RT.run(|| {
        let (ours, holds) = beside_a_hog(ours);
        assert!(holds >= 3, "{holds}");
        let (osnoise, _) = beside_a_hog(osnoise);
        let (hwlat, held) = beside_a_hog(|| hwlat(HELD * 9 / 10));
        println!(
            "held {HELD} ns: noise probe {ours} ns, osnoise {osnoise} ns, hwlat {hwlat} of {held} holds"
        );
        assert!(ours >= HELD * 95 / 100 && osnoise >= HELD * 95 / 100, "{ours} {osnoise}");
        // hwlat keeps interrupts off: nothing but the machine below the kernel takes its CPU.
        assert!(held >= 3 && hwlat * 2 < held, "{hwlat} of {held}");
    });
}

/// The hog has the CPU with interrupts on: timerlat's interrupt comes in time, its thread does not.
#[test]
fn a_hog_is_seen_by_timerlats_thread_and_not_by_its_interrupt() {
    RT.run(|| {
        let ((thread, interrupt), holds) = beside_a_hog(timerlat);
        println!("{holds} holds of {HELD} ns: thread {thread} ns, interrupt {interrupt} ns");
        assert!(holds >= 3 && thread >= HELD * 90 / 100 && interrupt * 2 < thread, "{thread} {interrupt}");
    });
}

/// The same in one table with our own thread, whose figures say what it says where timerlat is asked alone. The machine has its settings
/// afterwards, and a period that timerlat cannot have is refused before anything is changed.
#[test]
fn the_kernels_contexts_stand_beside_our_own_thread() {
    RT.run(|| {
        let before = settings();
        let measure = |more: &[&str]| {
            let words = ["measure", "--contexts", "--cpus", "1", "--duration", "3s", "--out", "contexts"];
            Command::new("worstcase").args(words).args(more).output().unwrap()
        };
        let (output, holds) = beside_a_hog(|| measure(&[]));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{text}{complaints}");
        let record: Record = record::store::load("contexts".as_ref()).unwrap();
        let series = &record.scenarios[0].series[0];
        let contexts = series.timer().unwrap().contexts.clone().unwrap();
        assert_eq!(contexts.problem, None);
        let most = |of: &histogram::Histogram| of.summary().maximum().unwrap().0;
        let [own, thread, interrupt] = [&series.observed, &contexts.thread, &contexts.interrupt].map(most);
        assert!(holds >= 3 && thread >= HELD * 90 / 100 && interrupt * 2 < thread, "{thread} {interrupt}");
        assert!(own >= HELD * 90 / 100, "{own}");
        for row in ["interrupt p99", "interrupt max", "thread p99", "thread max"] {
            assert!(text.contains(row), "{row}");
        }
        assert_eq!(settings(), before);
        let refused = measure(&["--interval", "99us"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("100 us to 1 s"), "{refused:?}");
        assert_eq!(settings(), before);
    });
}

/// The lines of `worstcase explain --live --json` but for the last one, which is the summary.
fn hits(text: &str) -> Vec<Hit> {
    text.lines()
        .filter(|line| !line.starts_with("{\"summary\""))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The settings of timerlat, which belong to the machine.
fn settings() -> Vec<String> {
    let files = ["cpus", "timerlat_period_us", "stop_tracing_total_us"];
    let read = |file: &str| {
        // `cpus` refuses reads that are no longer than the list.
        let mut text = [0; 4096];
        let mut file = fs::File::open(format!("/sys/kernel/tracing/osnoise/{file}")).unwrap();
        let length = file.read(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    files.map(read).to_vec()
}

/// timerlat's threads are those that are watched: our account of their wake-ups names the hog, and both have the same worst.
#[test]
fn timerlat_beside_our_account_of_its_own_threads_agrees_with_it() {
    RT.run(|| {
        let before = settings();
        let watch = |json: &[&str]| {
            let words =
                ["explain", "--live", "--beside", "timerlat", "--threshold", "20ms", "--duration", "3s"];
            let output = Command::new("worstcase").args(words).args(json).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let begun = std::time::Instant::now();
        let mut seen = Vec::new();
        let are_named = std::iter::from_fn(|| (begun.elapsed() < PATIENCE).then_some(())).any(|()| {
            let (text, _) = beside_a_hog(|| watch(&["--json"]));
            let main_causes =
                hits(&text).into_iter().filter(|hit| hit.latency.0 >= HELD * 9 / 10).map(|hit| {
                    let main = hit.main_cause().unwrap();
                    (hit.latency, main.class, main.culprit.clone())
                });
            // What the host took is set apart: it is none of the guest's threads.
            let (of_host, others): (Vec<_>, Vec<_>) =
                main_causes.partition(|(_, class, _)| *class == Class::Host);
            let of_hog = others
                .iter()
                .filter(|(_, class, culprit)| *class == Class::Rival && culprit.starts_with("the-hog ["));
            let are_named = others.len() >= 3 && of_hog.count() * 10 >= others.len() * 9;
            seen.push((of_host, others));
            are_named
        });
        assert!(are_named, "{seen:?}");
        assert_eq!(settings(), before);
        let (text, _) = beside_a_hog(|| watch(&[]));
        println!("{text}");
        assert!(text.contains("timerlat, beside: thread: ") && text.contains("timer late"), "{text}");
    });
}

#[test]
fn who_has_timerlat_measure_and_is_killed_leaves_its_settings_as_they_were() {
    RT.run(|| {
        killed(&["explain", "--live", "--beside", "timerlat", "--duration", "60s"]);
        killed(&["measure", "--contexts", "--cpus", "1", "--duration", "60s", "--out", "killed"]);
    });
}

fn killed(words: &[&str]) {
    // A value that it changes.
    fs::write("/sys/kernel/tracing/osnoise/timerlat_period_us", "2000").unwrap();
    let before = settings();
    let mut child = Command::new("worstcase").args(words).spawn().unwrap();
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let patience = std::time::Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(std::time::Instant::now() < patience, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait("timerlat runs", &|| threads_of_timerlat() > 0);
    assert_ne!(settings(), before);
    child.kill().unwrap();
    child.wait().unwrap();
    wait("timerlat ends", &|| threads_of_timerlat() == 0);
    wait("settings are put back", &|| settings() == before);
    fs::write("/sys/kernel/tracing/osnoise/timerlat_period_us", "1000").unwrap();
}

fn threads_of_timerlat() -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    names.filter(|name| name.starts_with("timerlat/")).count()
}
