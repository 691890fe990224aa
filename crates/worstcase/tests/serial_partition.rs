//! A partition on a real kernel: made, found by counting, entered, and given back.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use guest_tests::Guests;
use rustix::process::{Pid, Signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
/// What bench answers in a guest in wall time, whose latencies mean nothing.
const INCONCLUSIVE: i32 = 3;
const GROUP: &str = "/sys/fs/cgroup/worstcase";

static TWO: Guests =
    Guests::new("debian-6.1-amd64", "quiet").processors(2).programs(&[PROGRAM, "sleep", "sh", "yes"]);

fn command(words: &str) -> Command {
    let mut command = Command::new("worstcase");
    command.arg("partition").args(words.split_whitespace());
    command
}

fn answer(words: &str) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(words).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

/// What verify found on CPU 1: kinds and names.
fn found() -> Vec<(String, String)> {
    let (code, text) = answer("verify --rt 1 --duration 3s --allow 0 --json");
    assert_eq!(code, Some(1), "{text}");
    let proof: serde_json::Value = serde_json::from_str(&text).unwrap();
    let word = |residue: &serde_json::Value, key: &str| residue[key].as_str().unwrap().to_owned();
    let residues = proof["residues"].as_array().unwrap();
    assert!(residues.iter().all(|residue| !word(residue, "source").is_empty()), "{text}");
    residues.iter().map(|residue| (word(residue, "kind"), word(residue, "name"))).collect()
}

fn has(found: &[(String, String)], kind: &str, name: &str) -> bool {
    found.iter().any(|(this, of)| this == kind && of == name)
}

/// Two threads that may run anywhere and never sleep.
fn spinners(ended: &Arc<AtomicBool>) {
    for _ in 0..2 {
        let ended = Arc::clone(ended);
        let spin = move || while !ended.load(Ordering::Relaxed) {};
        std::thread::Builder::new().name("spinner".into()).spawn(spin).unwrap();
    }
}

/// A command in the partition, once it is there.
fn inside(words: &str, program: &str) -> Child {
    let child = command(words).stdout(Stdio::null()).spawn().unwrap();
    let name = || fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    while name().trim() != program {
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// The processes in the partition.
fn residents() -> Vec<u32> {
    let text = fs::read_to_string(format!("{GROUP}/cgroup.procs")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Looks until it is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a program starts in the partition is there too, and may not run elsewhere.
fn children_stay_inside() {
    let before = residents();
    let shell = command("run -- sh").arg("-c").arg("sleep 100 & sleep 101; true").spawn().unwrap();
    let new = || residents().into_iter().filter(|pid| !before.contains(pid)).collect::<Vec<u32>>();
    until("a shell and its two children are inside", || new().len() == 3);
    for pid in new() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t1\n"), "{status}");
        let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
    end(shell);
    until("they are gone", || new().is_empty());
}

/// The probe's process is inside while it measures; the command that started it, recorder and loads are not.
fn the_probe_alone_is_inside() {
    let out = std::env::temp_dir().join("bench");
    let words = "bench --partition worstcase --loads cpu --duration 3s --out";
    let mut bench = Command::new("worstcase");
    bench.args(words.split_whitespace()).arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = residents();
    let bench = bench.spawn().unwrap();
    let new = || residents().into_iter().filter(|pid| !before.contains(pid)).collect::<Vec<u32>>();
    until("the probe is inside", || !new().is_empty());
    let load = || processes().any(|pid| command_of(pid).contains("__supervise-load"));
    until("a load runs", load);
    let inside: Vec<String> = new().into_iter().map(command_of).collect();
    assert!(inside.len() == 1 && inside[0].contains("__probe"), "{inside:?}");
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(INCONCLUSIVE), "{output:#?}");
    let record = fs::read(out.join("record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let (plan, scenario) = (&record["header"]["plan"], &record["scenarios"][0]);
    assert_eq!((&plan["cpus"], &plan["load_cpus"]), (&"1".into(), &"0".into()));
    assert_eq!(plan["partition"]["group"], GROUP);
    assert_eq!(scenario["evidence"]["partition"]["state"], "isolated");
    assert!(scenario["series"][0]["expected"].as_u64().unwrap() > 1000, "{scenario}");
    let told = record.to_string();
    assert!(!told.contains("partition-invalid") && !told.contains("not-isolated"), "{told}");
}

fn processes() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

fn command_of(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_partition_is_proven_by_counting_entered_and_given_back() {
    TWO.run(|| {
        let ended = Arc::new(AtomicBool::new(false));
        spinners(&ended);
        let before = found();
        assert!(has(&before, "stranger", "spinner") && has(&before, "interrupt", "LOC"), "{before:?}");

        let (_, text) = answer("verify --rt 1 --duration 1s");
        assert!(text.contains("over program spinner") && text.contains("from: the timer tick"), "{text}");

        let (code, text) = answer("create --rt 0-1");
        assert!(code == Some(2) && text.contains("leaves no CPU"), "{text}");
        let (code, text) = answer("create --rt 1");
        assert_eq!(code, Some(0), "{text}");
        assert!(answer("list").1.starts_with(&format!("{GROUP}: CPUs 1, isolated, 0 processes")));
        let (code, text) = answer("create --rt 1");
        assert!(code == Some(2) && text.contains("already"), "{text}");

        let busy = inside("run -- yes", "yes");
        let between = found();
        assert!(!has(&between, "stranger", "spinner"), "{between:?}");
        assert!(has(&between, "resident", "yes"), "{between:?}");
        assert!(has(&between, "interrupt", "LOC"), "a busy CPU without nohz_full ticks: {between:?}");
        end(busy);

        let child = inside("run --policy fifo --priority 80 -- sleep 100", "sleep");
        let pid = i32::try_from(child.id()).unwrap();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t1\n"), "{status}");
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.split_whitespace().collect();
        assert_eq!((fields[39], fields[40]), ("80", "1"), "priority and policy: {stat}");
        assert_eq!(fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap().trim(), "0::/worstcase");
        assert!(sys::schedule::set_affinity(pid, &"0".parse().unwrap()).is_err());

        children_stay_inside();
        the_probe_alone_is_inside();

        let (code, text) = answer("undo");
        assert!(code == Some(0) && text.ends_with("proof: everything reads as before\n"), "{text}");
        assert!(!Path::new(GROUP).exists());
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0-1\n"), "it is where it may run again: {status}");
        end(child);
        ended.store(true, Ordering::Relaxed);
    });
}
