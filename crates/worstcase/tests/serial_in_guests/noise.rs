//! The noise probe beside the kernel's own tracers of noise, on a PREEMPT_RT kernel: a thread of the highest priority takes
//! a CPU for a known time, again and again, and each of them is asked what it saw.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use guest_tests::Guests;
use record::Record;
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::CpuList;

const TRACING: &str = "/sys/kernel/tracing";
const MS: u64 = 1_000_000;
/// So long that no pause of the host is taken for it.
const HELD: u64 = 60 * MS;
const LOOK: Duration = Duration::from_secs(3);

static RT: Guests = Guests::new("debian-6.1-rt-amd64", "quiet no_timer_check")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);

/// Takes CPU 1 again and again while `look` looks; how often it did.
fn beside_a_hog<T>(look: impl FnOnce() -> T) -> (T, u64) {
    let (stop, holds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
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
        });
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

fn write(file: &str, text: &str) {
    fs::write(format!("{TRACING}/{file}"), text).unwrap_or_else(|error| panic!("{file}: {error}"));
}

/// What a tracer of noise recorded on CPU 1, a line a sample.
fn traced(tracer: &str, prepare: &[(&str, &str)]) -> String {
    write("current_tracer", "nop");
    prepare.iter().for_each(|(file, text)| write(file, text));
    write("trace", "");
    write("current_tracer", tracer);
    write("tracing_on", "1");
    std::thread::sleep(LOOK);
    write("tracing_on", "0");
    let text = fs::read_to_string(format!("{TRACING}/trace")).unwrap();
    write("current_tracer", "nop");
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// The greatest "max single noise" of the samples, in nanoseconds (Documentation/trace/osnoise-tracer.rst).
fn osnoise() -> u64 {
    let prepare = [("osnoise/cpus", "1"), ("osnoise/period_us", "1000000"), ("osnoise/runtime_us", "900000")];
    let text = traced("osnoise", &prepare);
    let worst = |line: &str| line.split_once(": ")?.1.split_whitespace().nth(3)?.parse::<u64>().ok();
    text.lines().filter_map(worst).max().unwrap_or_else(|| panic!("no sample: {text}")) * 1000
}

/// How many samples of that length or more there are (Documentation/trace/hwlat_detector.rst).
fn hwlat(at_least: u64) -> u64 {
    let prepare =
        [("tracing_cpumask", "2"), ("hwlat_detector/window", "1000000"), ("hwlat_detector/width", "900000")];
    let text = traced("hwlat", &prepare);
    let worst = |line: &str| {
        let (inner, outer) =
            line.split_once("inner/outer(us):")?.1.split_whitespace().next()?.split_once('/')?;
        Some(inner.parse::<u64>().ok()?.max(outer.parse().ok()?) * 1000)
    };
    text.lines().filter_map(worst).filter(|length| *length >= at_least).count() as u64
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
