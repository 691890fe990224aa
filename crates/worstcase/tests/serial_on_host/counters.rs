//! What is counted around a scenario, against numbers that are known.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::{Counted, CountedOn, Fact, Record};

/// Messages there and back; each is two context switches where both ends share a CPU.
const ROUNDS: u64 = 20_000;

/// One scenario on CPU 0 with `options`, which is ended when `beside` is done.
fn measured(options: &[&str], beside: impl FnOnce()) -> Record {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("record");
    let mut child = Command::new(env!("CARGO_BIN_EXE_worstcase"))
        .args(["measure", "--cpus", "0", "-D", "2m", "--warm-up", "0s"])
        .args(options)
        .arg("--out")
        .arg(&out)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let journal = out.join("journal.ndjson");
    let begun = || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"seconds\""));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !begun() {
        assert!(Instant::now() < deadline, "no first second after a minute");
        assert_eq!(child.try_wait().unwrap(), None, "ended before it measured");
        std::thread::sleep(Duration::from_millis(10));
    }
    beside();
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)));
    record::store::load(&out).unwrap()
}

fn added(record: &Record, what: Counted, of: CountedOn) -> Fact<u64> {
    let counters = &record.scenarios[0].evidence.counters;
    let counts = counters.counters.iter().filter(|counter| counter.what == what);
    let mut found = counts.flat_map(|counter| &counter.counts).filter(|count| count.of == of);
    found.next().unwrap_or_else(|| panic!("{what:?} of {of:?}: {counters:?}")).added.clone()
}

/// Sends a byte there and back between two threads on one CPU.
fn switch_to_and_fro() {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let pin = || sys::schedule::set_affinity(0, &"0".parse().unwrap()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin();
            let mut byte = [0];
            (0..ROUNDS).for_each(|_| {
                there.read_exact(&mut byte).unwrap();
                there.write_all(&byte).unwrap();
            });
        });
        scope.spawn(move || {
            pin();
            let mut byte = [7];
            (0..ROUNDS).for_each(|_| {
                here.write_all(&byte).unwrap();
                here.read_exact(&mut byte).unwrap();
            });
        });
    });
}

/// What the whole machine counts, and the line of /proc/stat that holds its sum since boot (proc(5)).
const OF_THE_MACHINE: [(Counted, &str); 4] = [
    (Counted::ContextSwitches, "ctxt"),
    (Counted::Interrupts, "intr"),
    (Counted::Softirqs, "softirq"),
    (Counted::TasksCreated, "processes"),
];

/// The sums of [`OF_THE_MACHINE`] now.
fn sums() -> [u64; 4] {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    OF_THE_MACHINE.map(|(_, name)| {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    })
}

#[test]
fn switches_tasks_and_wake_ups_that_were_made_are_counted() {
    let (mut begun, mut ended) = ([0; 4], [0; 4]);
    let before = sums();
    let record = measured(&["--interval", "1ms"], || {
        begun = sums();
        switch_to_and_fro();
        (0..100).for_each(|_| std::thread::spawn(|| ()).join().unwrap());
        ended = sums();
    });
    let after = sums();
    // Others switch and create tasks too: what the kernel counted within the scenario, and around it, are the bounds.
    for (at, (what, _)) in OF_THE_MACHINE.into_iter().enumerate() {
        let counted = added(&record, what, CountedOn::Machine).value().copied().unwrap();
        let (least, most) = (ended[at] - begun[at], after[at] - before[at]);
        assert!((least..=most).contains(&counted), "{what:?}: {least} to {most}, counted {counted}");
    }
    let made = |at: usize| ended[at] - begun[at];
    assert!(made(0) >= 2 * ROUNDS && made(3) >= 100, "{begun:?} {ended:?}");
    let cpu = |what| added(&record, what, CountedOn::Cpu(units::CpuId(0))).value().copied().unwrap();
    let wakes = record.scenarios[0].series[0].observed.summary().count;
    assert!(wakes > 1_000 && cpu(Counted::Interrupts) >= wakes, "{} of {wakes}", cpu(Counted::Interrupts));
    // Kernels without CONFIG_SCHEDSTATS have no such table.
    match added(&record, Counted::Slices, CountedOn::Cpu(units::CpuId(0))) {
        Fact::Value(slices) => assert!(slices >= 2 * ROUNDS, "{slices}"),
        missing => assert_eq!(missing, Fact::Absent),
    }
    let sleeps = record.scenarios[0].evidence.threads[0].sleeps;
    let thread = added(&record, Counted::ContextSwitches, CountedOn::Thread(0)).value().copied().unwrap();
    // Both are read while the thread runs, one after the other: it may have slept once more in between.
    assert!(thread + 1 >= sleeps && thread <= 2 * wakes, "{thread} switches in {sleeps} sleeps of {wakes}");
}

#[test]
fn counters_of_a_cpu_that_has_none_are_not_readable_and_never_zero() {
    let record = measured(&["--interval", "1ms", "--perf"], || ());
    assert!(record.header.plan.perf);
    for of in [CountedOn::Cpu(units::CpuId(0)), CountedOn::Thread(0)] {
        match added(&record, Counted::Instructions, of) {
            Fact::Value(instructions) => {
                let wakes = record.scenarios[0].series[0].observed.summary().count;
                assert!(instructions > 100 * wakes, "{instructions} for {wakes} wake-ups");
            }
            Fact::Unsupported | Fact::Unreadable(_) => {}
            Fact::Absent => panic!("a counter of the CPU has no file"),
        }
    }
    let text = report::counters::text(&record, &report::Style { width: 200, ..report::Style::default() });
    let line = text.lines().find(|line| line.trim_start().starts_with("instructions")).unwrap();
    assert!(!line.contains(": 0,") && line.contains("perf_event_open"), "{line}");
}
