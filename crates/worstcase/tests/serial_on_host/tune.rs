//! Settings of this machine changed for real, and put back: by undo, by time, after kill -9, beside others' changes.
//!
//! Only what harms nobody is changed: how often memory statistics are folded, what compaction may do, masks.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

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

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What threads and interrupts may use, too, and every file that a plan names.
fn everything() -> BTreeMap<String, String> {
    let output =
        Command::new(BINARY).args(["tune", "plan", "--isolate", &last_cpu(), "--json"]).output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = plan["steps"].as_array().unwrap();
    steps.iter().map(|step| (step["target"].to_string(), step["old"].to_string())).collect()
}

#[test]
fn what_is_applied_holds_and_undo_is_the_identity() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let before = everything();
    let (code, out, err) = tuned.apply(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(&format!("done      {INTERVAL}: 1 -> 10")), "{out}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("10".into(), "0".into()));
    assert_ne!(everything(), before);
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(0) && out.contains("all as written"), "{out}");
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
    assert_eq!(everything(), before);
    assert_eq!(tuned.run("undo", &[]), (Some(0), "nothing is applied\n".into(), String::new()));
}

#[test]
fn what_is_applied_is_not_applied_twice() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    let (code, _, err) = tuned.apply(&[]);
    assert!(code == Some(2) && err.contains("settings are applied already"), "{err}");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

#[test]
fn somebody_elses_change_is_reported_and_left() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    fs::write(INTERVAL, "5\n").unwrap();
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(1) && out.contains(&format!("drifted   {INTERVAL}: 5, where we wrote 10")), "{out}");
    let (code, out, _) = tuned.run("undo", &[]);
    assert!(code == Some(1) && out.contains(&format!("{INTERVAL}: 1 before, 5 now")), "{out}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("5".into(), "1".into()));
}

#[test]
fn what_was_reset_is_written_again() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    fs::write(INTERVAL, "1\n").unwrap();
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(1) && out.contains("reset"), "{out}");
    let (code, out, _) = tuned.run("keep", &["--reconcile"]);
    assert!(code == Some(0) && out.contains("1 setting written again"), "{out}");
    assert_eq!(read(INTERVAL), "10");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
    assert_eq!(read(INTERVAL), "1");
}

#[test]
fn a_time_that_runs_out_undoes_though_the_session_is_gone() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let last = last_cpu();
    // A session of its own, as a login has one, whose processes are all killed once the settings hold.
    let mut command = Command::new("setsid");
    let words = format!(
        "{BINARY} tune apply --for 3s --isolate {last} --only {RULES} --state {}; sleep 60",
        tuned.state().display()
    );
    let mut login = command.args(["sh", "-c", &words]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("applied", || {
        fs::read_to_string(tuned.state().join("journal")).is_ok_and(|text| text.contains("applied"))
    });
    let leader = rustix::process::Pid::from_raw(i32::try_from(login.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(leader, rustix::process::Signal::KILL).unwrap();
    login.wait().unwrap();
    assert_eq!(read(INTERVAL), "10");
    wait_until("undone", || !tuned.state().join("journal").exists());
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "1".into()));
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(0) && out.contains("their time had run out: everything read as before"), "{out}");
}

#[test]
fn what_is_kept_outlives_its_time() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "1s"]).0, Some(0));
    let holder = tuned.holder("deadline");
    let (code, out, _) = tuned.run("keep", &[]);
    assert!(code == Some(0) && out.contains("kept"), "{out}");
    wait_until("the holder goes", || !Path::new(&format!("/proc/{holder}/task")).exists());
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(read(INTERVAL), "10");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

#[test]
fn a_dead_holder_is_reported_and_undone_at_the_next_start() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "10m"]).0, Some(0));
    kill(tuned.holder("deadline"));
    wait_until("shown", || {
        tuned.run("status", &[]).2.contains("the process that was to undo them was killed")
    });
    assert_eq!(tuned.run("status", &[]).0, Some(1));
    fs::write(UNEVICTABLE, "1\n").unwrap();
    let (code, out, err) = tuned.run("apply", &["--only", "rn-compaction"]);
    assert!(code == Some(0) && err.contains("undone first"), "{out}{err}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "0".into()));
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

/// Starts apply and kills it as soon as `steps` intentions are in the journal; whether it was killed before its end.
fn killed_in_the_middle(tuned: &Tuned, arguments: &[&str], steps: usize) -> bool {
    let last = last_cpu();
    let apart = ["--isolate", last.as_str(), "--only", RULES];
    let mut child =
        tuned.command("apply", &[&apart[..], arguments].concat()).stdout(Stdio::null()).spawn().unwrap();
    let journal = tuned.state().join("journal");
    let text = || fs::read_to_string(&journal).unwrap_or_default();
    while text().matches("\"intend\"").count() < steps && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    !text().contains("\"applied\"")
}

#[test]
fn a_command_killed_in_the_middle_is_undone_from_its_journal() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let before = everything();
    for steps in 1..6 {
        if !killed_in_the_middle(&tuned, &[], steps) {
            println!("apply was faster than its end at step {steps}");
        }
        let (code, out, err) = tuned.run("undo", &[]);
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(everything(), before, "killed at step {steps}");
    }
}

#[test]
fn a_command_with_a_time_that_is_killed_is_undone_at_once() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let before = everything();
    if !killed_in_the_middle(&tuned, &["--for", "10m"], 2) {
        println!("skipped: apply was faster than its end");
        return;
    }
    wait_until("undone", || !tuned.state().join("journal").exists());
    assert_eq!(everything(), before);
    let (_, out, _) = tuned.run("status", &[]);
    assert!(out.contains("the command that applied them was killed"), "{out}");
}

/// `script` gives the command a terminal; killed, it closes that terminal, and the kernel sends SIGHUP to whatever runs
/// there, as where a connection drops.
#[test]
fn a_terminal_that_is_closed_while_settings_are_written_undoes_them() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    if !Path::new("/usr/bin/script").exists() {
        println!("skipped: needs script");
        return;
    }
    let before = everything();
    let journal = tuned.state().join("journal");
    let text = || fs::read_to_string(&journal).unwrap_or_default();
    let mut in_the_middle = 0;
    for steps in 1..5 {
        let last = last_cpu();
        let words = format!(
            "{BINARY} tune apply --for 1s --isolate {last} --only {RULES} --state {}",
            tuned.state().display()
        );
        let mut terminal = Command::new("/usr/bin/script");
        terminal.args(["-q", "-c", &words, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut terminal = Ended(terminal.spawn().unwrap());
        while text().matches("\"intend\"").count() < steps && terminal.0.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        terminal.0.kill().unwrap();
        in_the_middle += usize::from(!text().contains("\"applied\""));
        wait_until("undone", || !journal.exists());
        assert_eq!(everything(), before, "closed at step {steps}");
    }
    println!("{in_the_middle} of 4 terminals were closed in the middle");
}

/// Two files of four megabytes: one with a priority, one with the kernel's.
#[test]
fn swap_goes_off_and_comes_back_with_its_priority() {
    let Some(tuned) = Tuned::new() else { return };
    let swaps = || fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps().lines().count() != 1 {
        println!("skipped: this machine swaps already, or cannot");
        return;
    }
    let [one, other] = ["one", "other"].map(|name| tuned.directory.path().join(name));
    let on = |file: &Path, options: &[&str]| {
        fs::write(file, vec![0; 4 << 20]).unwrap();
        let run = |program: &str, options: &[&str]| {
            let mut command = Command::new(program);
            command.args(options).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        run("mkswap", &[]) && run("swapon", options)
    };
    let _off = SwapOff([one.clone(), other.clone()]);
    if !on(&one, &["-p", "5"]) || !on(&other, &[]) {
        println!("skipped: swapon does not take a file here");
        return;
    }
    let before = swaps();
    let (code, out, err) = tuned.run("apply", &["--profile", "rt", "--only", "rn-swap"]);
    assert!(code == Some(0) && out.contains("'priority 5' -> off"), "{out}{err}");
    assert_eq!(swaps().lines().count(), 1);
    assert_eq!(tuned.run("status", &[]).0, Some(0));
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
    // How much is in use, the fourth, moves by itself: a kernel may swap out what nobody needs (DAMON).
    let areas = |text: String| {
        let area = |line: &str| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            [columns[0], columns[2], columns[4]].map(str::to_owned)
        };
        text.lines().map(area).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(areas(swaps()), areas(before));
}

/// Files to which nothing is swapped when the test ends.
struct SwapOff([PathBuf; 2]);

impl Drop for SwapOff {
    fn drop(&mut self) {
        for file in &self.0 {
            let mut command = Command::new("swapoff");
            let _ = command.arg(file).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn settings_of_another_boot_are_not_undone() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    // As after a boot: the boot has another name, and another program has written the same value.
    let journal = tuned.state().join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let json = first.split_once(' ').unwrap().1.replace(&read("/proc/sys/kernel/random/boot_id"), "other");
    let mut crc = flate2::Crc::new();
    crc.update(json.as_bytes());
    fs::write(&journal, format!("{:08x} {json}\n{rest}", crc.sum())).unwrap();
    assert_eq!(tuned.run("status", &[]).0, Some(1));
    let (code, out, _) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.contains("booted since"), "{out}");
    assert_eq!(read(INTERVAL), "10");
    // This boot's journal undoes what is there.
    fs::write(&journal, text).unwrap();
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

#[test]
fn a_damaged_journal_is_undone_as_far_as_it_tells_and_proves_nothing() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    let journal = tuned.state().join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let damaged = text.replacen("\"old\":\"20\"", "\"old\":\"21\"", 1);
    assert_ne!(damaged, text, "compaction_proactiveness was 20");
    fs::write(&journal, &damaged).unwrap();
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(1) && err.contains("of the journal is damaged"), "{out}{err}");
    assert!(out.contains("there may be more") && !out.contains("proof"), "{out}");
    assert_eq!(read(INTERVAL), "1");
}

#[test]
fn a_state_directory_that_became_read_only_is_undone_all_the_same() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || { echo no mounts; exit 77; }\n\
                  exec \"$2\" tune undo --state \"$1\"";
    let mut undo = Command::new("unshare");
    undo.args(["--mount", "sh", "-c", script, "sh"]).arg(tuned.state()).arg(BINARY);
    let (code, out, err) = shown(undo.env("COLUMNS", "200").output().unwrap());
    if code == Some(77) {
        return println!("skipped: {out}");
    }
    assert!(code == Some(0) && out.contains("proof: everything reads as before"), "{out}{err}");
    assert!(err.contains("Read-only file system"), "that the journal stays is said: {err}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "1".into()));
    assert_eq!(tuned.run("undo", &[]).0, Some(0), "once it can be written");
    assert_eq!(tuned.run("status", &[]).1, "nothing is applied\n");
}

/// In a container, or on a machine that was locked down: what can be done is, and each refusal has its reason.
#[test]
fn where_sys_is_read_only_the_rest_is_done_and_the_exit_code_says_so() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let script = "mount -o remount,bind,ro /sys || { echo no mounts; exit 77; }\nexec \"$@\"";
    let read_only = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", BINARY, "tune", "apply"]);
        let rules = ["--isolate", &last_cpu(), "--only", "rn-stat-interval,rn-wq-cpumask", "--state"];
        command.args(rules).arg(tuned.state()).args(words).env("COLUMNS", "200");
        shown(command.output().unwrap())
    };
    let (code, out, err) = read_only(&[]);
    if code == Some(77) {
        return println!("skipped: {out}");
    }
    assert!(code == Some(2) && err.contains("--keep-going"), "{code:?}: {out}{err}");
    assert_eq!(read(INTERVAL), "1", "what was changed before it was put back");
    let (code, out, err) = read_only(&["--keep-going"]);
    assert!(code == Some(1) && err.contains("the kernel did not take 1 setting"), "{code:?}: {out}{err}");
    let refused = out.lines().find(|line| line.starts_with("refused")).unwrap_or_default();
    assert!(refused.contains("/workqueue/cpumask: ") && refused.contains("Read-only file system"), "{out}");
    assert!(out.contains("1 setting written, 1 as asked for"), "what was refused is not written: {out}");
    assert_eq!(read(INTERVAL), "10");
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
}

#[test]
fn a_holder_that_is_stopped_is_seen_and_undo_does_not_wait_for_it() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "10m"]).0, Some(0));
    assert_eq!(tuned.run("status", &[]).0, Some(0));
    let holder = tuned.holder("deadline");
    stop(holder);
    wait_until("it is stopped", || read(&format!("/proc/{holder}/stat")).contains(") T "));
    wait_until("shown", || tuned.run("status", &[]).0 == Some(1));
    let (_, _, err) = tuned.run("status", &[]);
    assert!(err.contains("the process that is to undo them is stopped"), "{err}");
    // One that was stopped while it had the lock.
    let lock = tuned.state().join("lock");
    let mut undoing = Command::new("sh");
    let mut undoing =
        undoing.args(["-c", "exec 9<\"$0\"; flock 9; exec sleep 600"]).arg(&lock).spawn().unwrap();
    let pid = i32::try_from(undoing.id()).unwrap();
    wait_until("it has the lock", || read(&format!("/proc/{pid}/comm")) == "sleep");
    let root = sysroot::SysRoot::live();
    let start = machine::tasks::task(&root, pid, pid).unwrap().start;
    kill(holder);
    let announced = format!("{{\"pid\":{pid},\"start\":{start},\"errno\":null}}");
    fs::write(tuned.state().join("holder-deadline"), announced).unwrap();
    stop(pid);
    wait_until("it is stopped", || read(&format!("/proc/{pid}/stat")).contains(") T "));
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.contains("proof: everything reads as before"), "{out}{err}");
    assert!(err.contains("is stopped: it is ended"), "{err}");
    undoing.wait().unwrap();
}

#[test]
fn a_holder_undoes_a_journal_whose_first_line_is_damaged() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "3s"]).0, Some(0));
    let journal = tuned.state().join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let damaged = tuned.state().join("damaged");
    fs::write(&damaged, text.replacen("\"started\"", "\"Started\"", 1)).unwrap();
    fs::rename(damaged, &journal).unwrap();
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(1) && out.contains("line 1 of the journal is damaged"), "{out}");
    wait_until("undone", || read(INTERVAL) == "1" && !journal.exists());
}

fn stop(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
}

#[test]
fn another_worstcase_at_work_is_named_and_a_directory_of_others_refused() {
    let Some(tuned) = Tuned::new() else { return };
    DirBuilder::new().mode(0o700).create(tuned.state()).unwrap();
    let lock = fs::File::create(tuned.state().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (code, _, err) = tuned.run("apply", &["--only", "rn-compaction"]);
    assert!(code == Some(2) && err.contains("another worstcase changes settings right now"), "{err}");
    drop(lock);
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(tuned.state(), everybody).unwrap();
    let (code, _, err) = tuned.run("apply", &["--only", "rn-compaction"]);
    assert!(code == Some(2) && err.contains("mode 0700"), "{err}");
    assert_eq!(read(UNEVICTABLE), "1");
}

#[test]
fn a_limit_on_exit_latencies_is_held_by_a_process_and_ends_with_it() {
    let Some(tuned) = Tuned::new() else { return };
    if fs::File::options().write(true).open(LATENCY).is_err() {
        println!("skipped: {LATENCY} cannot be opened here");
        return;
    }
    let limit = || i32::from_ne_bytes(fs::read(LATENCY).unwrap().try_into().unwrap());
    let before = limit();
    DirBuilder::new().mode(0o700).create(tuned.state()).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("--hold-settings").arg(tuned.state()).args(["latency", "17"]);
    let mut holder = Ended(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("announced", || tuned.state().join("holder-latency").exists());
    assert!(limit() <= 17, "it holds before it says so: {}", limit());
    assert_eq!(tuned.holder("latency"), i32::try_from(holder.0.id()).unwrap());
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    wait_until("let go", || limit() == before);
}

/// A child that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file of choice beside the state directory.
fn chosen(tuned: &Tuned, text: &str) -> String {
    let path = tuned.directory.path().join("tune.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn what_a_file_asks_for_later_is_added_and_what_was_reset_is_written_again() {
    let Some(tuned) = Tuned::new() else { return };
    let first = format!("only = [\"rn-thp-nosuch\"]\n[settings]\n\"{INTERVAL}\" = \"7\"\n");
    let file = chosen(&tuned, &first);
    let (code, _, err) = tuned.run("apply", &["--file", &file]);
    assert!(code == Some(2) && err.contains("tune.toml: there is no rule or layer `rn-thp-nosuch`"), "{err}");
    chosen(&tuned, &first.replace("rn-thp-nosuch", "rn-stat-interval"));
    let (code, out, err) = tuned.run("apply", &["--file", &file]);
    assert!(code == Some(0) && out.contains("1 setting written, 1 as asked for"), "{out}{err}");
    let (_, out, _) = tuned.run("status", &[]);
    assert!(out.contains(&format!(" as {file} says\n")), "{out}");
    fs::write(INTERVAL, "1\n").unwrap();
    chosen(&tuned, &format!("only = [\"rn-compaction\"]\n[settings]\n\"{INTERVAL}\" = \"7\"\n"));
    let (code, out, err) = tuned.run("keep", &["--reconcile", "--file", &file]);
    assert!(code == Some(0) && out.contains("1 setting written again"), "{out}{err}");
    assert!(out.contains(&format!("done      {UNEVICTABLE}: 1 -> 0\n1 setting added")), "{out}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("7".into(), "0".into()));
    let (_, out, _) = tuned.run("keep", &["--reconcile", "--file", &file]);
    assert_eq!(out, "0 settings written again\n");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "1".into()));
}

#[test]
fn a_service_never_keeps_what_somebody_tries_for_a_while() {
    let Some(tuned) = Tuned::new() else { return };
    let file = chosen(&tuned, "only = [\"rn-stat-interval\"]\n");
    assert_eq!(tuned.run("apply", &["--only", "rn-compaction", "--for", "1m"]).0, Some(0));
    let (code, out, _) = tuned.run("keep", &["--reconcile", "--file", &file]);
    assert!(code == Some(0) && out.contains("is not applied: nothing is done"), "{out}");
    let (_, out, _) = tuned.run("status", &[]);
    assert!(out.contains("undone 60 s after that unless kept"), "{out}");
    assert_eq!(read(INTERVAL), "1");
    let (_, out, _) = tuned.run("undo", &["--left"]);
    assert!(out.contains("what is applied is answered for"), "{out}");
    assert_eq!(read(UNEVICTABLE), "0");
    kill(tuned.holder("deadline"));
    wait_until("killed", || tuned.run("status", &[]).2.contains("was killed"));
    let (code, out, err) = tuned.run("undo", &["--left"]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
    assert_eq!(read(UNEVICTABLE), "1");
}

/// What the init script is asked for, in a mount namespace where nothing of this machine's files is touched. Each line
/// that is printed is a verb, its exit code, and the interval after it.
const SCRIPTED: &str = r#"
set -e
for directory in /var/lib /etc /opt; do mount -t tmpfs tmpfs $directory; done
mkdir /etc/init.d
cp "$1" /opt/worstcase
/opt/worstcase tune persist --root / --init sysv --binary /opt/worstcase --file "$2" > /dev/null
set +e
ask() { $shell /etc/init.d/worstcase-tune $1 > /opt/said 2>&1; echo "$1 $? $(cat /proc/sys/vm/stat_interval)"; }
for shell in "$3" "$4 sh"; do
    ask status; ask start; ask start; ask status
    echo 1 > /proc/sys/vm/stat_interval
    ask status; ask reconcile; ask restart; ask stop; ask stop; ask nonsense
done
"#;

#[test]
fn the_init_script_applies_and_undoes_under_each_shell() {
    let Some(tuned) = Tuned::new() else { return };
    let there = |name: &str| {
        ["/bin", "/usr/bin"]
            .map(|at| format!("{at}/{name}"))
            .into_iter()
            .find(|path| Path::new(path).exists())
    };
    let (Some(dash), Some(busybox), Some(_)) = (there("dash"), there("busybox"), there("unshare")) else {
        println!("skipped: needs dash, busybox and unshare");
        return;
    };
    let file = chosen(&tuned, &format!("only = [\"rn-compaction\"]\n[settings]\n\"{INTERVAL}\" = \"7\"\n"));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPTED, "sh", BINARY, &file, &dash, &busybox]);
    let (code, out, err) = shown(command.output().unwrap());
    let expected = "status 3 1\nstart 0 7\nstart 0 7\nstatus 0 7\n\
                    status 1 1\nreconcile 0 7\nrestart 0 7\nstop 0 1\nstop 0 1\nnonsense 2 1\n";
    assert_eq!((code, out.as_str()), (Some(0), expected.repeat(2).as_str()), "{err}");
}
