//! Looking changes nothing: `check` and `snapshot` read, answer twice the same, and read nothing that disturbs others.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};

use crate::support::is_root;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

/// Settings were applied for one profile and judged by another, which asks for more: a new user saw more failures than before.
#[test]
fn what_was_applied_for_a_profile_is_judged_by_it_and_named_in_records() {
    if !is_root() {
        return println!("skipped: settings are written by root");
    }
    let run = |arguments: &[&str]| Command::new(BINARY).args(arguments).output().unwrap();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let applied = run(&["tune", "apply", "--profile", "rt", "--isolate", "0", "--only", "rn-stat-interval"]);
    if !applied.status.success() {
        return println!("skipped: {}", said(&applied));
    }
    let check = ["check", "rn-thp", "--json"];
    let (itself, named) = (run(&check), run(&["check", "rn-thp", "--json", "--profile", "general"]));
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("record").display().to_string();
    let measured = run(&["bench", "-D", "1s", "--loads", "idle", "--out", &out]);
    let undone = run(&["tune", "undo"]);
    let after = run(&check);
    assert!(undone.status.success(), "{}", said(&undone));
    assert!(
        said(&itself).contains("judged as what tune has applied: --profile rt --isolate 0"),
        "{}",
        said(&itself)
    );
    let judged = |output: &Output| serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    assert_eq!(judged(&itself)["profiles"]["kernel"], "rt");
    for other in [&named, &after] {
        assert!(!said(other).contains("judged as"), "{}", said(other));
    }
    assert!(measured.status.success(), "{}", said(&measured));
    let record = record::store::load(Path::new(&out)).unwrap();
    let tuned = record.header.tuned.unwrap();
    assert_eq!(tuned.iter().map(|one| one.rule.as_str()).collect::<Vec<_>>(), ["rn-stat-interval"]);
}

/// System calls that change more than the process that makes them.
const CHANGING: [&str; 49] = [
    "acct",
    "adjtimex",
    "bpf",
    "chmod",
    "chown",
    "clock_adjtime",
    "clock_settime",
    "creat",
    "delete_module",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "finit_module",
    "ftruncate",
    "init_module",
    "kexec_load",
    "kill",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "mount",
    "move_mount",
    "perf_event_open",
    "pivot_root",
    "ptrace",
    "pwrite64",
    "reboot",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "setpriority",
    "setxattr",
    "sethostname",
    "settimeofday",
    "swapoff",
    "swapon",
    "symlink",
    "symlinkat",
    "truncate",
    "unlinkat",
];

/// Questions about a terminal.
const HARMLESS_REQUESTS: [&str; 3] = ["TCGETS", "TIOCGWINSZ", "TCGETS2"];

/// A question to the driver of a network interface, asked without the privilege that changing something takes
/// (`__dev_ethtool`, net/ethtool/ioctl.c): a command that changes is refused with EPERM.
const OF_A_DRIVER: &str = "SIOCETHTOOL";
const WITHOUT_PRIVILEGE: [&str; 2] = ["setpriv", "--bounding-set=-net_admin"];
/// Who is not root has it not.
const AS_IT_IS: [&str; 2] = ["env", "--"];

/// Files whose reading interrupts other CPUs, or holds locks that timers need.
const DISTURBING: [&str; 5] =
    ["scaling_cur_freq", "cpuinfo_cur_freq", "cpuinfo_avg_freq", "/proc/cpuinfo", "/proc/timer_list"];

fn run(arguments: &[&str], directory: &Path) -> Output {
    Command::new(BINARY).args(arguments).current_dir(directory).env("NO_COLOR", "1").output().unwrap()
}

/// The calls that a command makes, one a line: `openat(AT_FDCWD, "/proc/stat", O_RDONLY) = 3`.
fn calls(arguments: &[&str], directory: &Path) -> Option<Vec<String>> {
    let trace = directory.join("trace");
    let [program, option] = if is_root() { WITHOUT_PRIVILEGE } else { AS_IT_IS };
    let traced = Command::new(program)
        .arg(option)
        .args(["strace", "-f", "-y", "-s", "300", "-o"])
        .arg(&trace)
        .arg(BINARY)
        .args(arguments)
        .current_dir(directory)
        .output();
    let text = std::fs::read_to_string(&trace).unwrap_or_default();
    if traced.is_err() || text.is_empty() {
        println!("skipped: needs package strace (apt-get install), or the kernel forbids it");
        return None;
    }
    let call = |line: &str| line.split_once(' ').map(|(_, call)| call.trim_start().to_owned());
    Some(text.lines().filter_map(call).collect())
}

/// What is wrong with a call, if anything.
fn fault(call: &str, may_write: &str) -> Option<&'static str> {
    let (name, arguments) = call.split_once('(')?;
    let descriptor = arguments.split(['<', ',', ')']).next().unwrap_or_default();
    match name {
        "open" | "openat" | "openat2" => {
            let writes =
                ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| arguments.contains(flag));
            let is_own = !may_write.is_empty() && arguments.contains(may_write);
            (writes && !is_own).then_some("opens for writing")
        }
        "write" | "writev" => {
            let is_own = !may_write.is_empty() && arguments.contains(may_write);
            (!matches!(descriptor, "1" | "2") && !is_own).then_some("writes elsewhere")
        }
        "ioctl" => {
            let is_harmless = HARMLESS_REQUESTS.iter().any(|request| arguments.contains(request))
                || arguments.contains(OF_A_DRIVER) && !arguments.contains("EPERM");
            (!is_harmless).then_some("asks a device for something")
        }
        name if CHANGING.contains(&name) => Some("changes something"),
        _ => None,
    }
}

fn assert_only_reads(arguments: &[&str], may_write: &str) {
    let directory = tempfile::tempdir().unwrap();
    let Some(calls) = calls(arguments, directory.path()) else { return };
    let opened = calls.iter().filter(|call| call.starts_with("open")).count();
    assert!(opened > 20, "only {opened} files were opened: the trace is not of a check");
    let faults: Vec<_> = calls.iter().filter_map(|call| Some((fault(call, may_write)?, call))).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let disturbing: Vec<_> =
        calls.iter().filter(|call| DISTURBING.iter().any(|path| call.contains(path))).collect();
    assert!(disturbing.is_empty(), "{disturbing:#?}");
}

#[test]
fn a_check_only_reads() {
    assert_only_reads(&["check", "--all", "--json"], "");
    assert_only_reads(&["check", "--isolate", "0", "--all"], "");
}

#[test]
fn a_plan_only_reads() {
    assert_only_reads(&["tune", "plan"], "");
    assert_only_reads(&["tune", "plan", "--isolate", "0", "--json"], "");
}

#[test]
fn a_snapshot_writes_its_own_file_alone() {
    assert_only_reads(&["snapshot", "board.tar.gz"], "board.tar.gz");
}

/// The fault that is looked for is found where it is.
#[test]
fn faults_are_distinguished_from_reading() {
    for (call, expected) in [
        ("openat(AT_FDCWD</tmp>, \"/proc/stat\", O_RDONLY|O_CLOEXEC) = 3</proc/stat>", None),
        ("openat(AT_FDCWD</tmp>, \"/dev/cpu_dma_latency\", O_RDWR) = 3", Some("opens for writing")),
        ("write(1</dev/pts/0>, \"x\", 1) = 1", None),
        ("write(5</sys/x>, \"x\", 1) = 1", Some("writes elsewhere")),
        ("ioctl(1</dev/pts/0>, TIOCGWINSZ, {ws_row=24}) = 0", None),
        ("ioctl(3<socket:[1]>, SIOCSIFFLAGS, {}) = 0", Some("asks a device for something")),
        ("mount(\"none\", \"/sys/kernel/debug\", \"debugfs\", 0, NULL) = 0", Some("changes something")),
    ] {
        assert_eq!(fault(call, ""), expected, "{call}");
    }
}

/// Facts that count may differ from one look to the next; what is said of each rule may not.
#[test]
fn a_machine_is_answered_twice_the_same_and_as_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let outcomes = |arguments: &[&str]| {
        let output = run(&[&["check", "--all", "--json"], arguments].concat(), directory.path());
        let audit: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = audit["findings"].as_array().unwrap();
        let outcome = |finding: &serde_json::Value| format!("{}: {}", finding["rule"], finding["outcome"]);
        let mut outcomes: Vec<String> = findings.iter().map(outcome).collect();
        outcomes.sort_unstable();
        (outcomes, audit["profiles"].clone(), output.status.code())
    };
    let live = outcomes(&[]);
    assert!(live.0.len() > 20 && live.0.iter().all(|line| !line.contains("null")), "{:?}", live.0);
    assert_eq!(outcomes(&[]), live);
    for file in ["board.tar.gz", "board.txt"] {
        let taken = run(&["snapshot", file], directory.path());
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
        assert!(String::from_utf8_lossy(&taken.stdout).contains("/proc/cmdline\n"));
        assert_eq!(outcomes(&["--root", file]), live, "{file}");
    }
}

#[test]
fn a_snapshot_names_nobody() {
    let directory = tempfile::tempdir().unwrap();
    assert!(run(&["snapshot", "board.txt"], directory.path()).status.success());
    let text = std::fs::read_to_string(directory.path().join("board.txt")).unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let addresses = std::fs::read_dir("/sys/class/net").into_iter().flatten().filter_map(|entry| {
        let address = std::fs::read_to_string(entry.ok()?.path().join("address")).ok()?;
        Some(address.trim().to_owned()).filter(|address| !address.replace([':', '0'], "").is_empty())
    });
    for address in addresses {
        assert!(!text.contains(&address), "{address}");
    }
    let names_host = |line: &&str| host.trim().len() > 4 && line.contains(host.trim());
    assert_eq!(text.lines().find(names_host), None);
    assert!(!text.contains("=== /proc/cpuinfo") && !text.contains("Linux version"));
}
