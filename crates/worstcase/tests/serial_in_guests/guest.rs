//! The commands in a guest with a CPU set apart: as root, with cgroup v2, tracefs and a clock that may be set.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use guest_tests::Guests;
use record::journal::Line;
use record::{Record, WarningId};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use units::Nanos;

static GUEST: Guests = Guests::new("debian-6.1-amd64", "isolcpus=1 nohz_full=1 rcu_nocbs=1")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);

/// The program that was put into the guest.
fn worstcase(arguments: &[&str]) -> Command {
    let mut command = Command::new("worstcase");
    command.args(arguments);
    command
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn record(directory: &str) -> Record {
    record::store::load(Path::new(directory)).unwrap()
}

/// In wall time a guest's latencies mean nothing: the verdict is inconclusive whatever was measured.
const INCONCLUSIVE: Option<i32> = Some(3);

#[test]
fn a_guest_has_what_the_commands_look_for() {
    GUEST.run(|| {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        for mounted in ["/sys/fs/cgroup cgroup2 ", "/sys/kernel/tracing tracefs "] {
            assert!(mounts.contains(mounted), "{mounts}");
        }
        let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap();
        assert!(controllers.contains("cpuset"), "{controllers}");
    });
}

#[test]
fn an_isolated_cpu_is_measured_and_seen_to_be_isolated() {
    GUEST.run(|| {
        let measure =
            ["measure", "--cpus", "1", "--samples", "500", "--warm-up", "100ms", "--out", "measured"];
        let output = worstcase(&measure).output().unwrap();
        assert_eq!(output.status.code(), INCONCLUSIVE, "{}", text(&output));
        let record = record("measured");
        assert_eq!(record.header.machine.cpus.isolated.value().unwrap().to_string(), "1");
        assert_eq!(record.header.machine.cpus.nohz_full.value().unwrap().to_string(), "1");
        assert_eq!(record.header.plan.cpus.to_string(), "1");
        assert_eq!(record.activations(), 500);
        let evidence = &record.scenarios[0].evidence;
        assert_eq!(evidence.threads[0].affinity.to_string(), "1");
        assert!(
            !evidence.recorder.shares_measured_cpus,
            "the rest of the program stays off the isolated CPU"
        );
        let all =
            || record.warnings.iter().chain(record.scenarios.iter().flat_map(|scenario| &scenario.warnings));
        assert!(all().any(|warning| warning.id == WarningId::LabWallTime));
        assert!(all().all(|warning| warning.id != WarningId::NotIsolated));
    });
}

#[test]
fn bench_runs_under_loads_beside_an_isolated_cpu() {
    GUEST.run(|| {
        let bench =
            ["bench", "--cpus", "1", "--loads", "idle,cpu", "--duration", "500ms", "--warm-up", "100ms"];
        let output = worstcase(&bench).args(["--out", "benched"]).output().unwrap();
        assert_eq!(output.status.code(), INCONCLUSIVE, "{}", text(&output));
        let loads: Vec<_> =
            record("benched").scenarios.iter().map(|scenario| scenario.head.planned.load.clone()).collect();
        assert_eq!(loads, ["idle", "cpu"]);
        assert!(Path::new("benched/report.html").is_file());
    });
}

#[test]
fn check_sees_the_isolated_cpu() {
    GUEST.run(|| {
        let output = worstcase(&["check", "--json"]).output().unwrap();
        assert!([Some(0), Some(1), Some(3)].contains(&output.status.code()), "{}", text(&output));
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&shown["division"]["isolated"], &shown["division"]["housekeeping"]),
            (&"1".into(), &"0".into())
        );
        let findings = shown["findings"].as_array().unwrap();
        for rule in
            ["bt-nohz-full", "bt-rcu-nocbs", "rn-isolated-online", "rn-tasks-on-iso", "kc-cpu-isolation"]
        {
            let finding = findings.iter().find(|finding| finding["rule"] == rule).unwrap();
            assert_eq!(finding["outcome"], "passed", "{finding:#}");
        }
    });
}

/// Ends it where a test fails before it has ended.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sets CLOCK_REALTIME forwards or back.
fn set_clock(seconds: i64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let to = Timespec { tv_sec: now.as_secs() as i64 + seconds, tv_nsec: now.subsec_nanos().into() };
    clock_settime(ClockId::Realtime, to).unwrap();
}

/// Waits until so many seconds stand in the journal of the one scenario.
fn wait_for_seconds(directory: &str, count: usize) {
    let shown = || {
        let journal = fs::read_to_string(Path::new(directory).join("journal.ndjson")).unwrap_or_default();
        let lines = journal.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.filter(|line| matches!(line, Line::Seconds(_))).count()
    };
    let until = Instant::now() + Duration::from_secs(60);
    while shown() < count {
        assert!(Instant::now() < until, "{count} seconds were not measured");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_clock_that_is_set_makes_no_latency() {
    const STEP: i64 = 3_600;
    GUEST.run(|| {
        let measure =
            ["measure", "--cpus", "1", "--clock", "realtime", "--interval", "5ms", "--samples", "1600"];
        let mut command = worstcase(&measure);
        command.args(["--warm-up", "100ms", "--out", "stepped"]).stdout(Stdio::null());
        let mut running = Running(command.spawn().unwrap());
        for (seconds, step) in [(2, STEP), (4, -STEP)] {
            wait_for_seconds("stepped", seconds);
            set_clock(step);
        }
        assert_eq!(running.0.wait().unwrap().code(), INCONCLUSIVE);
        let record = record("stepped");
        let series = &record.scenarios[0].series[0];
        let counted = series.observed.summary().count + series.missed().summary().count;
        assert_eq!((counted, series.expected()), (1_600, 1_600), "every activation is accounted for");
        let greatest = series.observed.summary().max.max(series.missed().summary().max);
        assert!(greatest < STEP as u64 * 1_000_000_000 / 2, "{greatest} ns: the step became a latency");
        assert_eq!(record.scenarios[0].evidence.threads[0].clock_steps, 2);
        assert!(
            record.scenarios[0].length < Nanos::from_secs(STEP as u64 / 2),
            "it did not sleep the step through"
        );
    });
}

/// Seconds on a clock of the guest's.
fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Suspends to memory as far as the last step before the hardware's, and comes back after five seconds
/// (Documentation/power/basic-pm-debugging.rst).
fn suspend() {
    fs::write("/sys/power/pm_test", "core").unwrap();
    fs::write("/sys/power/state", "mem").unwrap();
    fs::write("/sys/power/pm_test", "none").unwrap();
}

#[test]
fn the_time_until_settings_are_undone_runs_on_in_suspend() {
    const SETTING: &str = "/proc/sys/vm/stat_interval";
    GUEST.run(|| {
        let before = fs::read_to_string(SETTING).unwrap();
        let apply = ["tune", "apply", "--isolate", "1", "--only", "rn-stat-interval", "--for", "6s"];
        let output = worstcase(&apply).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert_ne!(fs::read_to_string(SETTING).unwrap(), before);
        let (awake, all) = (seconds(ClockId::Monotonic), seconds(ClockId::Boottime));
        suspend();
        while fs::read_to_string(SETTING).unwrap() != before {
            assert!(seconds(ClockId::Boottime) < all + 60.0, "not undone");
            std::thread::sleep(Duration::from_millis(50));
        }
        let (awake, all) = (seconds(ClockId::Monotonic) - awake, seconds(ClockId::Boottime) - all);
        assert!(awake < 6.0 && all - awake > 3.0, "{all} s, of which {awake} s awake");
    });
}
