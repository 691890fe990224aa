//! What is printed as read back was read, and what somebody does to a run while it measures is found: threads moved and
//! moved back, priorities lowered and put back, quotas, throttling. Injected truth, on the built binary.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use record::verdict::Verdict;
use record::{Effect, Record, ScenarioEnd, Warning, WarningId};
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Nanos, Policy};

use crate::support::{BINARY, Run, is_root, skipped};

/// Far above what is measured here, so that only doubts decide.
const LIMIT: [&str; 2] = ["--limit", "60s"];

fn warnings(record: &Record, id: WarningId) -> Vec<Warning> {
    record.all_warnings().filter(|warning| warning.id == id).cloned().collect()
}

fn cpus() -> Vec<CpuId> {
    schedule::affinity(0).unwrap().iter().collect()
}

/// The threads of the run's probe that measure, by their names.
fn measuring_threads(run: &Run) -> Vec<i32> {
    let tasks = PathBuf::from(format!("/proc/{}/task", run.helper("__probe").pid));
    let ids = fs::read_dir(&tasks).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let measures = |id: &String| {
        fs::read_to_string(tasks.join(id).join("comm")).is_ok_and(|name| name.starts_with("probe/"))
    };
    ids.filter(measures).map(|id| id.parse().unwrap()).collect()
}

/// A run on one CPU whose measuring thread `act` gets to see after a second.
fn disturbed(duration: &str, act: impl FnOnce(i32)) -> Record {
    let cpu = cpus()[0].to_string();
    let mut run =
        Run::bench(&[&["--loads", "idle", "--duration", duration, "--cpus", &cpu][..], &LIMIT].concat());
    run.wait_measured("idle", 1);
    act(measuring_threads(&run)[0]);
    run.end().record()
}

/// A second CPU and the right to use it, or why not.
fn another_cpu() -> Option<CpuId> {
    if !is_root() {
        skipped("another process's threads can only be changed by root");
        return None;
    }
    let other = cpus().get(1).copied();
    if other.is_none() {
        skipped("there is no second CPU to move to");
    }
    other
}

fn moved_and_moved_back() {
    let Some(other) = another_cpu() else { return };
    let own = cpus()[0];
    // Between two readings of the affinity: only the wake-ups themselves can tell.
    let record = disturbed("2s", |tid| {
        schedule::set_affinity(tid, &CpuList::from_iter([other])).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        schedule::set_affinity(tid, &CpuList::from_iter([own])).unwrap();
    });
    let found = warnings(&record, WarningId::Migrated);
    assert_eq!((found.len(), found[0].effect), (1, Effect::Inconclusive), "{found:?}");
    assert_eq!(record.judgement.verdict, Verdict::Inconclusive);
    let thread = &record.scenarios[0].evidence.threads[0];
    let elsewhere = thread.elsewhere.unwrap();
    assert_eq!((elsewhere.cpu, thread.migrations), (other, 1));
    assert_eq!(thread.affinity.to_string(), own.to_string(), "the affinity is as it was at the end");
}

#[test]
fn a_thread_that_was_moved_and_moved_back_is_found() {
    moved_and_moved_back();
}

#[test]
#[ignore = "long: ten runs"]
fn a_thread_that_was_moved_and_moved_back_is_found_ten_times_of_ten() {
    (0..10).for_each(|_| moved_and_moved_back());
}

fn lowered_and_put_back() {
    if another_cpu().is_none() {
        return;
    }
    let record = disturbed("3s", |tid| {
        schedule::set_policy(tid, Policy::Fifo, 3).unwrap();
        std::thread::sleep(Duration::from_millis(900));
        schedule::set_policy(tid, Policy::Fifo, 98).unwrap();
    });
    let found = warnings(&record, WarningId::SetUpChanged);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].evidence.contains("priority 98 -> 3 from "), "{found:?}");
    assert_eq!(record.judgement.verdict, Verdict::Inconclusive);
    assert_eq!(record.scenarios[0].evidence.threads[0].priority, 98, "put back at the end");
}

#[test]
fn a_priority_that_was_lowered_and_put_back_is_found() {
    lowered_and_put_back();
}

#[test]
#[ignore = "long: ten runs"]
fn a_priority_that_was_lowered_and_put_back_is_found_ten_times_of_ten() {
    (0..10).for_each(|_| lowered_and_put_back());
}

/// A control group with a limit on CPU time, removed when dropped.
pub struct Quota(PathBuf);

impl Quota {
    /// So many microseconds of each period, which has so many too, in whichever hierarchy has the controller.
    pub fn of(quota: u32, period: u32) -> Option<Self> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let base =
            if v1.join("cpu.cfs_quota_us").exists() || v1.join("cpu.shares").exists() { v1 } else { v2 };
        let group = Self(base.join(format!("worstcase-test-{}", std::process::id())));
        fs::create_dir_all(&group.0).ok()?;
        let set = |name: &str, value: &str| fs::write(group.0.join(name), value).is_ok();
        let limited = set("cpu.max", &format!("{quota} {period}"))
            || set("cpu.cfs_period_us", &period.to_string()) && set("cpu.cfs_quota_us", &quota.to_string());
        // A group of v1 has no real-time run time at first.
        let _ = fs::write(group.0.join("cpu.rt_runtime_us"), "100000");
        limited.then_some(group)
    }

    /// Of one CPU, in whichever hierarchy has the controller.
    pub fn of_one_cpu(cpu: &str) -> Option<Self> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpuset"), Path::new("/sys/fs/cgroup"));
        let base = if v1.join("cpuset.cpus").exists() { v1 } else { v2 };
        let group = Self(base.join(format!("worstcase-test-{}", std::process::id())));
        fs::create_dir_all(&group.0).ok()?;
        let set = |name: &str, value: &str| fs::write(group.0.join(name), value).is_ok();
        (set("cpuset.cpus", cpu) && set("cpuset.mems", "0")).then_some(group)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let procs = self.0.join("cgroup.procs");
        let mut command = Command::new("/bin/sh");
        let words = format!("echo $$ > {} && exec \"$0\" \"$@\"", procs.display());
        command.args(["-c", &words, BINARY]).args(arguments);
        command
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn under_a_quota() {
    let group = match is_root().then(|| Quota::of(20_000, 100_000)).flatten() {
        Some(group) => group,
        None => return skipped("a CPU quota needs root and the cpu controller"),
    };
    let bench = [
        "bench",
        "--out",
        "record",
        "--loads",
        "cpu",
        "--duration",
        "2s",
        "--warm-up",
        "100ms",
        "--policy",
        "other",
    ];
    let record = Run::start_as(&mut group.command(&[&bench[..], &LIMIT].concat())).end().record();
    let found = warnings(&record, WarningId::CpuQuota);
    assert_eq!((found.len(), found[0].effect), (1, Effect::Inconclusive), "{found:?}");
    let group = group.0.display().to_string();
    assert!(found[0].evidence.starts_with(&format!("{group}: 20 ms in each 100 ms")), "{found:?}");
    let limits = record.header.machine.place.cpu_quotas.value().unwrap();
    assert_eq!(limits[0].group, group);
    assert_eq!(limits[0].quota, Nanos::from_millis(20));
}

#[test]
fn a_cpu_quota_that_stopped_the_load_is_found() {
    under_a_quota();
}

#[test]
#[ignore = "long: ten runs"]
fn a_cpu_quota_that_stopped_the_load_is_found_ten_times_of_ten() {
    (0..10).for_each(|_| under_a_quota());
}

/// The budget of real-time threads in a period of a second, put back when dropped.
struct Budget(Vec<(&'static str, String)>);

impl Budget {
    /// Of the root group first where there are real-time groups: it may not have more than all.
    const FILES: [&'static str; 2] =
        ["/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"];

    fn set(micros: u32) -> Self {
        let mut before = Vec::new();
        for file in Self::FILES {
            let Ok(value) = fs::read_to_string(file) else { continue };
            before.push((file, value));
            fs::write(file, micros.to_string()).unwrap();
        }
        Self(before)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        for (file, value) in self.0.iter().rev() {
            fs::write(file, value.trim()).unwrap();
        }
    }
}

/// A thread that fills a CPU at SCHED_FIFO 1 until it is dropped.
struct Spinner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    fn on(cpu: CpuId) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let spin = move || {
            schedule::set_affinity(0, &CpuList::from_iter([cpu])).unwrap();
            schedule::set(Scheduling::new(Policy::Fifo, "1".parse().ok())).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        Self { stop, thread: Some(std::thread::spawn(spin)) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()) || std::thread::panicking());
    }
}

/// Whether this kernel throttles real-time threads: before 6.12, or with real-time groups.
fn throttles() -> bool {
    fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|release| {
        let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
        (numbers.next(), numbers.next()) < (Some(6), Some(12))
    }) || fs::metadata("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").is_ok()
}

/// The kernel logs throttling once a boot: the second run must find it by itself.
#[test]
fn throttling_is_found_in_the_second_run_after_a_boot_too() {
    let Some(cpu) = another_cpu() else { return };
    if !throttles() {
        return skipped("this kernel has the fair server in throttling's place");
    }
    let cpu_name = cpu.to_string();
    for run in 0..2 {
        let _budget = Budget::set(200_000);
        let _spinner = Spinner::on(cpu);
        let options = ["--loads", "idle", "--duration", "3s", "--warm-up", "100ms", "--cpus", &cpu_name];
        let record = Run::bench(&[&options[..], &LIMIT].concat()).end().record();
        let found = warnings(&record, WarningId::Throttled);
        let by_itself = found.iter().find(|warning| warning.evidence.contains("fifo 1 on CPU"));
        let evidence = &by_itself.unwrap_or_else(|| panic!("run {run}: {found:?}")).evidence;
        assert!(evidence.contains("sched_rt_runtime_us is 200000 of 1000000"), "{evidence}");
        println!("{evidence}");
    }
}

#[test]
fn lines_of_other_tools_have_the_priority_that_was_had() {
    let mut command = Command::new(BINARY);
    command.args(["measure", "--format", "cyclictest", "--duration", "1s", "--warm-up", "0s"]);
    if is_root() {
        // Without its root privileges, and without a limit that lets it have a real-time policy.
        let mut unprivileged = Command::new("setpriv");
        unprivileged
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", BINARY])
            .args(command.get_args());
        command = unprivileged;
    }
    let ended = Run::start_as(&mut command).end();
    if ended.out.is_empty() {
        return skipped(&format!("needs setpriv (util-linux): {}", ended.err));
    }
    let lines: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("T:")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(") P: 0 I:")), "{}", ended.out);
}

#[test]
fn every_threads_cpu_is_known_at_every_wake_up() {
    let record = Run::bench(&["--loads", "idle", "--duration", "1s", "--warm-up", "100ms"]).end().record();
    let evidence = &record.scenarios[0].evidence;
    assert!(evidence.threads.iter().all(|thread| thread.cpu_reading.is_some() && thread.elsewhere.is_none()));
    assert!(evidence.watch.readings >= 2, "{:?}", evidence.watch);
    assert!(evidence.watch.failures.is_empty() && evidence.watch.changes.is_empty(), "{:?}", evidence.watch);
    let timers = &record.header.machine.timers;
    assert!(timers.tick.value().is_some() && timers.resolution.value().is_some(), "{timers:?}");
}

/// With a tenth of the time that a run is given otherwise.
#[test]
#[ignore = "long: every load"]
fn no_load_is_taken_for_a_machine_that_cannot_be_reached() {
    let catalogue = load::Catalogue::shipped().unwrap();
    // What the kernel does for the load `network`, in softirqs, does keep ordinary threads from two CPUs for seconds.
    let can_run = |load: &&load::Load| load.missing().is_empty() && load.name != "network";
    let names: Vec<&str> = catalogue.loads().iter().filter(can_run).map(|load| &*load.name).collect();
    assert!(names.len() > 5, "{names:?}");
    let loads = names.join(",");
    for words in [&["--interval", "100us"][..], &["--probe", "noise"]] {
        let words = [&["--loads", &loads, "--duration", "3s", "--fail-safe", "1s"], words].concat();
        let record = Run::bench(&words).end().record();
        assert_eq!(record.scenarios.len(), names.len());
        assert_eq!(warnings(&record, WarningId::FailSafe), []);
        assert!(record.scenarios.iter().all(|scenario| scenario.end == ScenarioEnd::Complete));
    }
}

/// Arenas of threads reserve addresses that count as locked, and without privilege 8 MiB is the usual limit.
#[test]
fn no_more_is_locked_than_is_resident() {
    if !is_root() {
        return skipped("without root memory may not be locked at all");
    }
    let mut run = Run::bench(&["--loads", "idle", "--duration", "2s"]);
    run.wait_measured("idle", 1);
    let status = fs::read_to_string(format!("/proc/{}/status", run.helper("__probe").pid)).unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (locked, resident) = (kib("VmLck:"), kib("VmRSS:"));
    assert!(run.end().record().scenarios[0].evidence.threads[0].memory_locked);
    assert!(locked > 0 && locked < resident + 1024, "{locked} KiB locked, {resident} resident");
}
