//! Guests, from the command line: what comes back, and that nothing is left, whatever goes wrong.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/guests.rs"]
mod guests;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const KERNEL: &str = "debian-6.1-rt-amd64";

/// Whether guests cannot run here; says why.
fn hindered() -> bool {
    guests::hindered(&["qemu-system-x86_64", "busybox", "mke2fs"], &[&["--flavour", "rt"]])
}

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "run", "--kernel", KERNEL]).args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    lab(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a program with `word` in its command line runs.
fn runs(word: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    lines.filter_map(|line| fs::read(line).ok()).any(|line| text(&line).contains(word))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn output_files_and_the_exit_code_come_back_intact() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let script = "echo words; echo complaint >&2; mkdir deep; seq 1 200000 >deep/numbers; \
                  grep -q cgroup2 /proc/mounts && grep -q tracefs /proc/mounts && exit 7";
    let ran = run(&["--with", "busybox", "--out", out.to_str().unwrap(), "--", "sh", "-c", script]);
    assert_eq!(ran.status.code(), Some(7), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "words\n");
    assert!(text(&ran.stderr).starts_with("complaint\n"), "{}", text(&ran.stderr));
    let numbers: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    assert!(numbers.len() > 1 << 20);
    assert!(text(&fs::read(out.join("deep/numbers")).unwrap()) == numbers, "more than 1 MiB, intact");
    assert!(fs::read_to_string(out.join("lab.json")).unwrap().contains(KERNEL));
}

#[test]
fn two_runs_with_one_seed_are_equal_to_the_byte() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let record = |name: &str| {
        let out = directory.path().join(name);
        let measure = ["measure", "--samples", "200", "--warm-up", "100ms", "--seed", "7", "--out", "."];
        let arguments = ["--out", out.to_str().unwrap(), "--"];
        let ran = run(&[&arguments[..], &measure[..]].concat());
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
        ["record.json", "journal.ndjson", "report.html"].map(|file| fs::read(out.join(file)).unwrap())
    };
    assert!(record("first") == record("second"));
}

#[test]
fn a_disk_lies_under_the_directory_in_both_times() {
    if hindered() {
        return;
    }
    for time in ["instructions", "wall"] {
        let script = "df -T . | tail -n 1; echo kept >file; sync";
        let ran = run(&["--time", time, "--disk", "64M", "--with", "busybox", "--", "sh", "-c", script]);
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
        assert!(text(&ran.stdout).contains("ext4"), "{}", text(&ran.stdout));
        let place = text(&ran.stderr);
        let place = place.lines().find_map(|line| line.strip_prefix("back from the guest: ")).unwrap();
        assert_eq!(fs::read_to_string(Path::new(place).join("file")).unwrap(), "kept\n");
        fs::remove_dir_all(place).unwrap();
    }
}

#[test]
fn a_guest_that_panics_or_hangs_is_told_with_its_last_lines() {
    if hindered() {
        return;
    }
    let panic = run(&["--", "sh", "-c", "echo c >/proc/sysrq-trigger"]);
    let said = text(&panic.stderr);
    assert_eq!(panic.status.code(), Some(2));
    assert!(said.contains("panicked: sysrq triggered crash") && said.contains("hint:"), "{said}");
    let hang = run(&[
        "--timeout",
        "30s",
        "--append",
        "worstcase.test=hang",
        "--",
        "sh",
        "-c",
        "while :; do :; done",
    ]);
    let said = text(&hang.stderr);
    assert_eq!(hang.status.code(), Some(2));
    assert!(said.contains("given up after 30 s") || said.contains("in 30 s"), "{said}");
    assert!(!runs("worstcase.test=hang"), "QEMU is gone");
}

#[test]
fn what_cannot_boot_or_run_is_one_clear_error() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("vmlinuz");
    fs::write(&file, "words").unwrap();
    for (arguments, words) in [
        (vec!["lab", "run", "--kernel", file.to_str().unwrap(), "--", "bench"], "no kernel image"),
        (vec!["lab", "run", "--kernel", "nowhere", "--", "bench"], "no kernel nowhere"),
        (vec!["lab", "run", "--kernel", KERNEL, "--cpus", "2", "--", "bench"], "one CPU"),
        (vec!["lab", "run", "--kernel", KERNEL, "--disk", "1M", "--", "bench"], "too small"),
        (
            vec!["lab", "run", "--kernel", KERNEL, "--with", "no-such-program", "--", "bench"],
            "no-such-program",
        ),
        (vec!["lab", "run", "--kernel", KERNEL, "--", "no-such-program"], "run no-such-program"),
    ] {
        let ran = Command::new(PROGRAM).args(&arguments).stdin(Stdio::null()).output().unwrap();
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(words), "{arguments:?}: {said}");
    }
}

/// The policies of the threads of the guest whose command line has `word`: its first thread's, then the others'. proc(5),
/// field 41 of stat.
fn policies(word: &str) -> Option<(u32, Vec<u32>)> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let line = |pid: &String| text(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    let pid = pids.filter(|pid| line(pid).contains(word)).find(|pid| line(pid).contains("-icount"))?;
    let policy = |stat: String| stat.rsplit_once(") ")?.1.split(' ').nth(38)?.parse().ok();
    let of = |tid: &str| policy(fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?);
    let tids = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let tids = tids.filter_map(|entry| entry.file_name().into_string().ok()).filter(|tid| *tid != pid);
    Some((of(&pid)?, tids.filter_map(|tid| of(&tid)).collect()))
}

#[test]
fn a_guests_clock_is_moved_on_by_a_thread_that_is_not_held_up() {
    if hindered() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root, to run at once");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let word = "worstcase.test=policy";
    let mut command = lab(&["--append", word, "--", "sh", "-c", "while :; do :; done"]);
    let mut tool = command.current_dir(directory.path()).spawn().unwrap();
    wait_until("QEMU has its threads", || policies(word).is_some_and(|(_, others)| !others.is_empty()));
    let (first, others) = policies(word).unwrap();
    tool.kill().unwrap();
    tool.wait().unwrap();
    wait_until("the guest is gone", || !runs(word));
    assert!(others.iter().all(|policy| *policy == 0), "the CPU's thread is an ordinary one: {others:?}");
    assert_eq!(first, 1, "SCHED_FIFO");
}

#[test]
fn a_killed_tool_leaves_no_guest_and_no_file() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (signal, word) in [("KILL", "worstcase.test=killed"), ("INT", "worstcase.test=interrupted")] {
        let mut command = lab(&["--append", word, "--", "sh", "-c", "while :; do :; done"]);
        let mut tool = command.current_dir(directory.path()).env("TMPDIR", directory.path()).spawn().unwrap();
        let guest = format!("{word} ");
        wait_until("the guest starts", || runs("-kernel") && runs(word) && fs::read_dir("/proc").is_ok());
        std::thread::sleep(Duration::from_secs(1));
        Command::new("kill").args(["-s", signal, &tool.id().to_string()]).status().unwrap();
        let ended = tool.wait().unwrap();
        assert!(!ended.success());
        wait_until("the guest is gone", || !runs(guest.trim()));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_guest_of_another_architecture_measures_in_each_kind_of_time() {
    const ARM64: &str = "debian-6.1-rt-arm64";
    if hindered() {
        return;
    }
    let kernel = ["--version", "6.1", "--flavour", "rt", "--arch", "arm64"];
    if guests::hindered(&["qemu-system-aarch64"], &[&kernel]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for time in ["instructions", "wall"] {
        let out = directory.path().join(time);
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "run", "--kernel", ARM64, "--time", time, "--out"]).arg(&out);
        command.args(["--", "measure", "--samples", "100", "--seed", "1", "--out", "."]).stdin(Stdio::null());
        let ran = command.output().unwrap();
        let said = text(&ran.stderr);
        if said.contains("no static worstcase for arm64") {
            assert!(said.contains("hint: build it with `cargo xtask dist --target aarch64-"), "{said}");
            return println!(
                "skipped: target aarch64-unknown-linux-gnu: nothing in dist/ (cargo xtask dist)"
            );
        }
        assert!(matches!(ran.status.code(), Some(0 | 3)), "{:?}: {said}", ran.status);
        let record = record::store::load(&out).unwrap();
        assert_eq!(record.activations(), 100);
        assert_eq!(record.header.machine.lab.as_ref().unwrap().kernel, ARM64);
    }
}
