//! What is on the disk when: each file before it has its name, each name before anything rests on it, and room that stays free.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");
const INTERVAL: &str = "/proc/sys/vm/stat_interval";

/// The calls of a command and of its children that are about files, one a line, with the paths behind the descriptors; none where
/// nobody may trace here, which is said.
fn traced(directory: &Path, words: &[&str]) -> Option<Vec<String>> {
    let log = directory.join("calls");
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-y",
        "-s",
        "64",
        "-e",
        "trace=openat,renameat,rename,fsync,fdatasync,syncfs,write,mkdirat",
        "-o",
    ]);
    command.arg(&log).arg(BINARY).args(words).current_dir(directory).stdin(Stdio::null());
    command.env("WORSTCASE_CACHE", directory.join("cache"));
    let Ok(output) = command.output() else {
        println!("skipped: needs strace");
        return None;
    };
    let calls = fs::read_to_string(&log).unwrap_or_default();
    if calls.is_empty() {
        println!("skipped: nobody may trace here: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // `123 fsync(5</tmp/a>)   = 0`, without who it was.
    let call = |line: &str| line.split_once(' ').map(|(_, call)| call.trim().to_owned());
    Some(calls.lines().filter_map(call).filter(|call| !call.contains(" = -1 ")).collect())
}

/// Where the first call at or behind `from` is that begins so and has all of these parts.
fn find(calls: &[String], from: usize, call: &str, parts: &[&str]) -> usize {
    let is_it = |line: &String| line.starts_with(call) && parts.iter().all(|part| line.contains(part));
    let found = calls.iter().skip(from).position(is_it);
    from + found.unwrap_or_else(|| panic!("no {call} of {parts:?} from {from} on: {calls:#?}"))
}

/// The file's bytes, then its name, then the directory that has the name.
fn is_replaced_in_order(calls: &[String], directory: &str, name: &str) {
    let draft = format!("{directory}/{name}.");
    let bytes = find(calls, 0, "fsync(", &[&draft, ".part>"]);
    let renamed = find(calls, 0, "renameat(", &[&format!("\"{name}.")]);
    let named = find(calls, renamed, "fsync(", &[&format!("<{directory}>")]);
    assert!(bytes < renamed && renamed < named, "{name}: {bytes}, {renamed}, {named}");
}

/// The name of a new file, then what is appended to it.
fn is_begun_in_order(calls: &[String], directory: &str, name: &str) {
    let made = find(calls, 0, "openat(", &[&format!("\"{name}\""), "O_EXCL"]);
    let named = find(calls, made, "fsync(", &[&format!("<{directory}>")]);
    let written = find(calls, made, "write(", &[&format!("<{directory}/{name}>")]);
    assert!(named < written, "{name}: {made}, {named}, {written}");
}

#[test]
fn a_record_and_its_journal_are_on_the_disk_before_their_names_are_relied_on() {
    let place = tempfile::tempdir().unwrap();
    let words = ["measure", "-D", "100ms", "--warm-up", "0s", "--out", "run", "--samples-file", "samples"];
    let Some(calls) = traced(place.path(), &words) else { return };
    let above = fs::canonicalize(place.path()).unwrap().display().to_string();
    let directory = format!("{above}/run");
    let made = find(&calls, 0, "mkdirat(", &["\"run\""]);
    find(&calls, made, "fsync(", &[&format!("<{above}>")]);
    is_begun_in_order(&calls, &above, "samples");
    is_begun_in_order(&calls, &directory, "journal.ndjson");
    is_replaced_in_order(&calls, &directory, "record.json");
    is_replaced_in_order(&calls, &directory, "report.html");
}

#[test]
fn a_kernel_of_the_cache_is_on_the_disk_before_its_name_is() {
    let place = tempfile::tempdir().unwrap();
    // As much of a bzImage as is looked at: Documentation/arch/x86/boot.rst.
    let mut image = vec![0; 1024 + 64];
    for (at, bytes) in [
        (0x1f1, &[1][..]),
        (0x1f4, &[4]),
        (0x202, b"HdrS"),
        (0x206, &[0x0f, 2]),
        (0x20e, &[0, 1]),
        (0x236, &[1]),
        (0x300, b"6.12.1-mine (me@here) #1 SMP\0"),
    ] {
        image[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fs::write(place.path().join("image"), image).unwrap();
    let words = ["lab", "kernels", "add", "mine", "--image", "image"];
    let Some(calls) = traced(place.path(), &words) else { return };
    let cache = format!("{}/cache", fs::canonicalize(place.path()).unwrap().display());
    is_replaced_in_order(&calls, &format!("{cache}/.new-mine"), "kernel.json");
    let copied = find(&calls, 0, "write(", &["/.new-mine/image>"]);
    let synced = find(&calls, copied, "syncfs(", &["/.new-mine>"]);
    let moved = find(&calls, 0, "rename(", &["/.new-mine\"", "/mine\""]);
    let named = find(&calls, moved, "fsync(", &[&format!("<{cache}>")]);
    assert!(copied < synced && synced < moved && moved < named, "{copied}, {synced}, {moved}, {named}");
}

/// Nothing is changed before the line that says so is on the disk, and the journal's own name before that.
#[test]
fn a_setting_is_changed_after_its_line_is_on_the_disk() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root");
    }
    let Ok(before) = fs::read_to_string(INTERVAL) else { return println!("skipped: no {INTERVAL}") };
    fs::write(INTERVAL, "1\n").unwrap();
    let place = tempfile::tempdir().unwrap();
    let words = "tune apply --only rn-stat-interval --isolate 0 --state state";
    let calls = traced(place.path(), &words.split(' ').collect::<Vec<_>>());
    let mut undo = Command::new(BINARY);
    let undone = undo.args(["tune", "undo", "--state", "state"]).current_dir(place.path()).output().unwrap();
    fs::write(INTERVAL, before).unwrap();
    let Some(calls) = calls else { return };
    assert!(undone.status.success(), "{undone:?}");
    let directory = format!("{}/state", fs::canonicalize(place.path()).unwrap().display());
    is_begun_in_order(&calls, &directory, "journal");
    let journal = format!("<{directory}/journal>");
    let line = find(&calls, 0, "write(", &[&journal, "intend"]);
    let synced = find(&calls, line, "fsync(", &[&journal]);
    let changed = find(&calls, 0, "write(", &[&format!("<{INTERVAL}>")]);
    assert!(line < synced && synced < changed, "{line}, {synced}, {changed}");
}

/// A run on a file system of one megabyte, whose floor is a tenth of it; `free` kilobytes are left, and `later` of them taken while
/// it measures. None where no file system can be mounted.
fn on_a_small_disk(free: u32, later: u32) -> Option<(Output, u64)> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "set -e; mount -t tmpfs -o size=1m none disk; head -c {}k /dev/zero > disk/full\n\
         (sleep 1; head -c {later}k /dev/zero > disk/fuller) & \n\
         set +e; $0 measure -i 200us -D 4s --warm-up 0s --out run --samples-file disk/samples; code=$?; wait\n\
         stat -f -c 'free %f %S' disk; exit $code",
        1024 - free
    );
    fs::create_dir(place.path().join("disk")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, BINARY]).current_dir(place.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let Some((_, free)) = said.rsplit_once("free ") else {
        println!("skipped: nothing can be mounted here: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    };
    let numbers: Vec<u64> = free.split_whitespace().map(|number| number.parse().unwrap()).collect();
    Some((output, numbers[0] * numbers[1]))
}

#[test]
fn samples_leave_room_on_the_disk_and_say_so() {
    let Some((refused, _)) = on_a_small_disk(90, 0) else { return };
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("are to stay free"), "{said}");
    let Some((ended, free)) = on_a_small_disk(600, 520) else { return };
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("are to stay free"), "{said}");
    assert!(free > 0, "samples filled the disk: {said}");
}
