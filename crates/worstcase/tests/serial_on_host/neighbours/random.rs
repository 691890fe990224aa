//! A user who swaps what he may write at random, while root runs every command there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use units::Seed;

use super::{Places, as_other_user, give_away, measured, names, run, said};

/// Swaps links, pipes, directories and files in for each other where another user may write, and says how often.
fn swap_at_random(directories: &[PathBuf], targets: &[PathBuf], until: &AtomicBool) -> usize {
    let mut swaps = 0;
    let mut random = Seed(1).stream("neighbour");
    let mut below = |limit: usize| random.below(limit as u64) as usize;
    const NAMES: [&str; 16] = [
        "record",
        "cost.json",
        "lab.json",
        "record.json",
        "journal.ndjson",
        "report.html",
        "histogram",
        "samples",
        "snapshot",
        "trial",
        "experiment.json",
        "config",
        "choice.toml",
        "kernels",
        "load",
        "kernel.json",
    ];
    while !until.load(Ordering::Relaxed) {
        let directory = &directories[below(directories.len())];
        let path = directory.join(NAMES[below(NAMES.len())]);
        let target = &targets[below(targets.len())];
        // Each may fail, as what is there may be root's.
        let _ = fs::remove_file(&path);
        let _ = match below(7) {
            0 | 1 => symlink(target, &path),
            2 => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).map_err(Into::into),
            3 => fs::rename(directory.join(NAMES[below(NAMES.len())]), &path),
            4 => fs::write(&path, "{\"header\":{\"schema_version\":1}}"),
            // A terabyte that costs nothing.
            5 => fs::File::create_new(&path).and_then(|file| file.set_len(1 << 40)),
            _ => fs::remove_dir_all(&path),
        };
        // So that root's commands get on beside it.
        std::thread::sleep(Duration::from_micros(100));
        swaps += 1;
    }
    swaps
}

fn hostile_neighbour(length: Duration) {
    let Some(places) = Places::new() else { return };
    fs::write(places.ours.join("secret"), "root's").unwrap();
    let marker = "the-text-of-a-file-outside";
    fs::write(places.directory.path().join("outside"), marker).unwrap();
    let [load, cache, old] = ["loads", "cache", "old"].map(|name| places.theirs.join(name));
    assert!(measured(&old).status.success());
    for directory in [&load, &cache] {
        fs::create_dir(directory).unwrap();
    }
    give_away(&places.theirs);
    let directories = vec![places.theirs.clone(), load.clone(), cache.clone(), old.clone()];
    let targets = vec![
        places.ours.clone(),
        places.ours.join("secret"),
        places.ours.join("new"),
        places.directory.path().join("outside"),
        "/dev/zero".into(),
        "/proc/kmsg".into(),
        places.theirs.clone(),
    ];
    let over = Arc::new(AtomicBool::new(false));
    let neighbour = {
        let over = Arc::clone(&over);
        as_other_user(move || swap_at_random(&directories, &targets, &over))
    };
    let short = ["--loads", "idle,hdd", "--duration", "50ms", "--warm-up", "1ms", "--load-dir", "loads"];
    const COSTS: [&str; 6] = ["--only", "files,fifo-stream", "--rounds", "1", "--sample", "1ms"];
    let commands: Vec<Vec<&str>> = vec![
        [&["bench", "--out", "record"], &short[..]].concat(),
        vec!["report", "old"],
        vec!["report", "record", "--html", "report.html"],
        vec!["measure", "--samples", "5", "--warm-up", "1ms", "--histogram", "histogram"],
        vec!["measure", "--samples", "5", "--warm-up", "1ms", "--samples-file", "samples"],
        vec!["samples", "samples"],
        vec!["snapshot", "snapshot"],
        vec!["check", "--kconfig", "config"],
        vec!["check", "--root", "record"],
        vec!["load", "hdd", "--duration", "50ms", "--load-dir", "loads"],
        vec!["load", "hdd", "--duration", "50ms", "--load-dir", "load"],
        vec!["lab", "kernels", "list"],
        vec!["lab", "explain", "old"],
        vec!["explain", "old", "--export", "perfetto", "--output", "report.html"],
        vec!["bench", "--against", "old", "--loads", "idle", "--duration", "50ms", "--out", "record"],
        [&["cost", "--directory", "loads", "--out", "record"], &COSTS[..]].concat(),
        [&["cost", "--directory", "load", "--against", "old"], &COSTS[..]].concat(),
        vec!["check", "--recipe", "config"],
        vec!["check", "--recipe", "."],
        vec!["check", "--kconfig", "config", "--kernel-source", "."],
        vec!["check", "--kconfig", "config", "--checklist", "snapshot"],
        vec!["check", "--kconfig", "config", "--verify-fragment", "record"],
        vec!["check", "--against", "snapshot"],
        vec!["report", "old", "trial", "--json"],
        vec!["report", "old", "record", "--trade"],
        vec!["explain", "old"],
        vec!["monitor", "--loop-back", "--pulse", "0:1", "--calibration", "config", "--duration", "50ms"],
        vec!["lab", "kernels", "add", "config"],
        vec!["lab", "ladder", "config", "--out", "record"],
        vec!["lab", "ladder", "--resume", "trial"],
        vec!["lab", "bisect", "--resume", "trial"],
        vec!["tune", "search", "--resume", "trial"],
        vec!["tune", "persist", "--isolate", "1", "--root", "."],
        vec!["partition", "undo", "--state", "kernels"],
        vec!["tune", "plan", "--file", "choice.toml"],
        vec!["tune", "trial", "--resume", "trial"],
        vec!["tune", "status", "--state", "kernels"],
        vec!["tune", "undo", "--state", "kernels"],
    ];
    let began = Instant::now();
    let mut failures = Vec::new();
    for arguments in commands.iter().cycle() {
        let output =
            run(arguments, |command| command.current_dir(&places.theirs).env("WORSTCASE_CACHE", &cache));
        let text = said(&output) + &String::from_utf8_lossy(&output.stdout);
        let hung = matches!(output.status.code(), Some(124 | 137) | None);
        if hung || text.contains("panicked") || text.contains(marker) {
            failures.push(format!("{arguments:?}: {:?}: {text}", output.status));
        }
        if began.elapsed() > length {
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    let swaps = neighbour.join().unwrap();
    println!("{swaps} swaps");
    assert!(swaps >= 1_000, "{swaps} swaps are no race");
    assert!(failures.is_empty(), "{failures:#?}");
    places.assert_untouched();
    assert_eq!(names(places.directory.path()), ["ours", "outside", "theirs"]);
    assert_eq!(fs::read_to_string(places.directory.path().join("outside")).unwrap(), marker);
}

#[test]
fn a_hostile_neighbour_reaches_nothing() {
    hostile_neighbour(Duration::from_secs(8));
}

#[test]
#[ignore = "long: ten minutes"]
fn a_hostile_neighbour_reaches_nothing_in_ten_minutes() {
    hostile_neighbour(Duration::from_secs(600));
}
