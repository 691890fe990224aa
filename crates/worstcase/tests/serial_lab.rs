//! Guests, from the command line: what comes back, and that nothing is left, whatever goes wrong.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const KERNEL: &str = "debian-6.1-rt-amd64";

/// Whether guests can run here; says why not. The kernel is fetched where it is not in the cache yet.
fn hindered() -> bool {
    let missing = ["qemu-system-x86_64", "busybox", "mke2fs"].into_iter().find(|program| {
        !["/bin", "/usr/bin", "/sbin", "/usr/sbin"].iter().any(|path| Path::new(path).join(program).exists())
    });
    if let Some(program) = missing {
        println!("skipped: needs {program}");
        return true;
    }
    let fetched =
        Command::new(PROGRAM).args(["lab", "kernels", "fetch", "debian", "--flavour", "rt"]).output();
    let fetched = fetched.unwrap();
    if !fetched.status.success() {
        println!("skipped: no kernel: {}", text(&fetched.stderr));
    }
    !fetched.status.success()
}

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "run", "--kernel", KERNEL]).args(arguments).stdin(Stdio::null());
    command
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
