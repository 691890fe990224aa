//! Places where boards measure: file systems in memory, a chroot, a terminal that draws nothing, an emulator, little memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::geteuid;

use crate::support::guests;
use crate::support::{BINARY, skipped};

/// Each of the default loads for a fifth of a second.
const DEFAULT: [&str; 5] = ["bench", "--duration", "200ms", "--warm-up", "0s"];

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn on_tmpfs_the_default_loads_run_but_those_that_write_to_a_disk() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("/dev/shm cannot be written to");
    };
    let stated = fs::read_to_string("/proc/mounts").unwrap();
    if !stated.lines().any(|line| line.split(' ').nth(1) == Some("/dev/shm") && line.contains(" tmpfs ")) {
        return skipped("/dev/shm is no tmpfs");
    }
    let mut bench = Command::new(BINARY);
    let output = output_in(bench.args(DEFAULT).args(["--out", "run"]), directory.path());
    let words = said(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{words}");
    assert!(words.contains("warning: load hdd is left out") && words.contains("is on tmpfs"), "{words}");
    let record = record::store::load(&directory.path().join("run")).unwrap();
    let left_out: Vec<&str> =
        record.header.plan.loads_left_out.iter().map(|load| load.load.as_str()).collect();
    assert_eq!((left_out.as_slice(), record.scenarios.len()), (&["hdd", "full"][..], 4));
}

fn output_in(command: &mut Command, directory: &Path) -> Output {
    command.current_dir(directory).output().unwrap()
}

#[test]
fn in_a_chroot_the_default_loads_are_measured() {
    if !geteuid().is_root() {
        return skipped("needs root");
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "mount --make-rprivate / && mount --bind / /mnt && mount -t proc proc /mnt/proc \
        && mount --rbind /dev /mnt/dev && exec chroot /mnt sh -c \
        'cd $PLACE && exec $W bench --duration 200ms --warm-up 0s --out run'";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script]).env("W", BINARY).env("PLACE", directory.path());
    let output = shell.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    let record = record::store::load(&directory.path().join("run")).unwrap();
    assert_eq!(
        record.scenarios.len() + record.header.plan.loads_left_out.len(),
        6,
        "each load was measured or named"
    );
    assert!(record.scenarios.len() >= 4, "{}", said(&output));
}

/// What a run writes to a terminal of that kind.
fn on_a_terminal(kind: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let run = format!("{BINARY} bench --loads idle --duration 1s --warm-up 0s");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &run, "/dev/null"]).env("TERM", kind);
    said(&output_in(&mut script, directory.path()))
}

#[test]
fn a_dumb_terminal_gets_lines_and_no_escape_sequence() {
    if Command::new("script").arg("--version").output().is_err() {
        return skipped("needs script(1), package bsdutils");
    }
    let drawn = on_a_terminal("xterm");
    assert!(drawn.contains("\u{1b}["), "a terminal that can is drawn on: {drawn}");
    let plain = on_a_terminal("dumb");
    assert!(plain.contains("[1/1] no load") && !plain.contains('\u{1b}'), "{plain:?}");
}

/// As qemu-user did: a supervisor that cannot adopt orphans gives its own reason.
#[test]
fn what_an_emulator_refuses_the_supervisor_names() {
    let directory = tempfile::tempdir().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=prctl", "-e", "inject=prctl:error=EINVAL"]);
    strace.args([BINARY, "load", "cpu", "--duration", "200ms"]);
    let words = said(&output_in(&mut strace, directory.path()));
    assert!(words.contains("prctl: Invalid argument") && !words.contains("supervisor died"), "{words}");
}

#[test]
fn a_guest_with_too_little_memory_is_given_up_at_once_and_says_so() {
    let kernel = ["--version", "6.1", "--flavour", "plain", "--arch", "amd64"];
    if guests::hindered(&["qemu-system-x86_64"], &[&kernel]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Command::new(BINARY);
    lab.args(["lab", "run", "--kernel", "debian-6.1-amd64", "--memory", "64M", "--timeout", "2m", "--"]);
    lab.args(["measure", "--samples", "10"]);
    let words = said(&output_in(&mut lab, directory.path()));
    assert!(words.contains("the guest has 64 MiB of memory, too little"), "{words}");
}
