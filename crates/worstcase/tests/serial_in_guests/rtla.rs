//! rtla's analysis of a late wake-up of its thread beside ours of the same one.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use guest_tests::Guests;
use record::Hit;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList};

use crate::injection::{self, Delay, MS, Stop};

static RT: Guests = Guests::new("debian-6.1-rt-amd64", "quiet no_timer_check")
    .in_instructions()
    .programs(&[env!("CARGO_BIN_EXE_worstcase"), "rtla"])
    .patience(Duration::from_secs(900));

const CPU: CpuId = CpuId(0);
/// What is made, and what both are asked to explain.
const HELD: u64 = 15 * MS;
const THRESHOLD: &str = "5000";
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose names no other thread has.
const NAMES: [&str; 10] =
    ["late-0", "late-1", "late-2", "late-3", "late-4", "late-5", "late-6", "late-7", "late-8", "late-9"];

/// Threads that compute at a higher priority, and threads that have preemption off in a system call, by turns.
#[test]
#[ignore = "long: ten runs of rtla in a guest"]
fn rtla_and_we_name_the_same_culprit() {
    RT.run(|| {
        let mut same = 0;
        for (number, name) in NAMES.into_iter().enumerate() {
            let made = if number % 2 == 0 { Made::Computing } else { Made::Unpreemptible };
            let Some((theirs, ours)) = both(name, made) else { return };
            println!("{name} {made:?}: rtla {theirs:?}, worstcase {ours:?}");
            let is_same = theirs.starts_with(&format!("{name}:")) && ours.contains(&format!("{name} ["));
            same += u32::from(is_same);
        }
        assert!(same >= 9, "{same} of 10");
    });
}

#[derive(Clone, Copy, Debug)]
enum Made {
    Computing,
    Unpreemptible,
}

/// What each of both says of the one late wake-up that a thread of this name makes. None where this rtla analyses nothing.
fn both(name: &'static str, made: Made) -> Option<(String, String)> {
    let mut rtla = Command::new("rtla");
    rtla.args(["timerlat", "top", "--cpus", "0", "--auto", THRESHOLD, "-q"]).stdout(Stdio::piped());
    let mut rtla = rtla.spawn().unwrap();
    let thread = awaited("rtla's thread", || thread_named("timerlat/0"));
    let mut explain = Command::new("worstcase");
    explain.args(["explain", "--live", "--json", "--threshold", "5ms", "--tid", &thread]);
    let explain = explain.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    awaited("explain's trace", || instance_of("worstcase"));
    std::thread::sleep(Duration::from_secs(2));
    make_late(name, made);
    let mut theirs = String::new();
    rtla.stdout.as_mut().unwrap().read_to_string(&mut theirs).unwrap();
    rtla.wait().unwrap();
    let ours = ended(explain);
    if !theirs.contains("analyzing it") {
        println!("skipped: this rtla does not analyse what it stops at (6.4 and later do)");
        return None;
    }
    // The last line is the summary.
    let hits = ours.lines().filter(|line| !line.starts_with("{\"summary\""));
    let hits = hits.map(|line| serde_json::from_str::<Hit>(line).unwrap());
    let worst = hits.max_by_key(|hit| hit.latency).unwrap_or_else(|| panic!("no hit beside {theirs}"));
    Some((culprit(&theirs), worst.main_cause().unwrap().culprit.clone()))
}

/// What `look` finds, which takes a while.
fn awaited<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} has not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn thread_named(name: &str) -> Option<String> {
    let is_it = |process: &PathBuf| {
        std::fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let found = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).find(is_it)?;
    Some(found.file_name()?.to_string_lossy().into_owned())
}

fn instance_of(name: &str) -> Option<()> {
    let mut instances = std::fs::read_dir("/sys/kernel/tracing/instances").ok()?.flatten();
    instances.any(|instance| instance.file_name().to_string_lossy().starts_with(name)).then_some(())
}

/// One delay of rtla's thread.
fn make_late(name: &'static str, made: Made) {
    static NEVER: Stop = Stop::new(false);
    let make = move || {
        let mut delay: Delay<'_> = match made {
            Made::Computing => injection::computing(HELD, &NEVER),
            Made::Unpreemptible => injection::waiting_on(CPU, HELD).unwrap(),
        };
        schedule::set_affinity(0, &CpuList::from_iter([CPU])).unwrap();
        if matches!(made, Made::Computing) {
            schedule::set(Scheduling::Fifo(99.try_into().unwrap())).unwrap();
        }
        delay();
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(make).unwrap().join().unwrap();
}

/// What it had printed when it was asked to end.
fn ended(mut child: Child) -> String {
    let pid = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    let mut text = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    text
}

/// Of the lines `name:number  x us` of its analysis the one with the longest time, several of one name together.
fn culprit(analysis: &str) -> String {
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for line in analysis.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, time, "us"] if name.contains(':') => {
                *times.entry(name).or_default() += time.parse::<f64>().unwrap_or_default();
            }
            _ => {}
        }
    }
    let longest = times.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
    longest.map(|(name, _)| name.to_owned()).unwrap_or_default()
}
