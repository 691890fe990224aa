//! Settings of this machine changed for real, and put back: by undo (`applied`), by time and after kill -9 (`ended`), from a journal
//! that is damaged or cannot be written (`journal`), as a file of choice says (`chosen`).
//!
//! Only what harms nobody is changed: how often memory statistics are folded, what compaction may do, masks.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod applied;
mod chosen;
mod ended;
mod journal;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::support::wait_until;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

const INTERVAL: &str = "/proc/sys/vm/stat_interval";
const UNEVICTABLE: &str = "/proc/sys/vm/compact_unevictable_allowed";
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Rules whose cures are harmless here.
const RULES: &str =
    "rn-stat-interval,rn-compaction,rn-compaction-proactive,rn-wq-cpumask,rn-irq-default,rn-rcu-kthreads";

/// Files that are written back when the test ends, however it ends.
const KEPT: [&str; 6] = [
    INTERVAL,
    UNEVICTABLE,
    "/proc/sys/vm/compaction_proactiveness",
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/vm/swappiness",
];

/// This machine with a state directory of its own. Dropped, it is as it was.
struct Tuned {
    directory: tempfile::TempDir,
    before: BTreeMap<&'static str, String>,
}

impl Tuned {
    /// None where this machine cannot be changed, which is said.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root");
            return None;
        }
        let before: BTreeMap<_, _> =
            KEPT.into_iter().filter_map(|path| Some((path, fs::read_to_string(path).ok()?))).collect();
        let writable = |path: &str| before.get(path).is_some_and(|text| fs::write(path, text).is_ok());
        if ![INTERVAL, UNEVICTABLE].into_iter().all(writable) {
            println!("skipped: {INTERVAL} or {UNEVICTABLE} cannot be written here");
            return None;
        }
        let tuned = Self { directory: tempfile::tempdir().unwrap(), before };
        fs::write(INTERVAL, "1\n").unwrap();
        fs::write(UNEVICTABLE, "1\n").unwrap();
        Some(tuned)
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(["tune", verb]).args(arguments).arg("--state").arg(self.state());
        command.env("NO_COLOR", "1").env("COLUMNS", "200").stdin(Stdio::null());
        command
    }

    /// Exit code, what was said, what was warned of.
    fn run(&self, verb: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        shown(self.command(verb, arguments).output().unwrap())
    }

    /// The last CPU set apart, or the only one's rules.
    fn apply(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let last = last_cpu();
        let apart = ["--isolate", last.as_str(), "--only", RULES];
        self.run("apply", &[&apart[..], arguments].concat())
    }

    fn holder(&self, kind: &str) -> i32 {
        let text = fs::read_to_string(self.state().join(format!("holder-{kind}"))).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        i32::try_from(value["pid"].as_i64().unwrap()).unwrap()
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        let _ = self.command("undo", &[]).output();
        for (path, text) in &self.before {
            let _ = fs::write(path, text);
        }
    }
}

fn shown(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

fn last_cpu() -> String {
    let online = read("/sys/devices/system/cpu/online");
    online.rsplit(['-', ',']).next().unwrap().to_owned()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A machine with one CPU cannot set one apart.
fn has_two_cpus() -> bool {
    let has = last_cpu() != "0";
    if !has {
        println!("skipped: needs two CPUs");
    }
    has
}

/// What threads and interrupts may use, too, and every file that a plan names.
fn everything() -> BTreeMap<String, String> {
    let output =
        Command::new(BINARY).args(["tune", "plan", "--isolate", &last_cpu(), "--json"]).output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = plan["steps"].as_array().unwrap();
    steps.iter().map(|step| (step["target"].to_string(), step["old"].to_string())).collect()
}

/// A child that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
