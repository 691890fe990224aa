//! Output that cannot be written: measuring goes on where it can, the loss is reported, what could be saved can be read.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::verdict::Verdict;
use record::{Record, ScenarioEnd};

use crate::support::{BINARY, Run, is_root, report, skipped};

/// A small file system in memory, unmounted when dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=777");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "worstcase-test"])
            .arg(directory.path())
            .status();
        mount.is_ok_and(|status| status.success()).then_some(Self { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn fill(&self) {
        let mut file = File::create(self.path().join("filler")).unwrap();
        for size in [65536, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Runs on a small disk that `meanwhile` fills; what could be saved is read from there.
fn on_a_small_disk(
    meanwhile: fn(&mut Run, &SmallDisk),
) -> Option<(crate::support::Ended, Record, PathBuf, SmallDisk)> {
    let Some(disk) = is_root().then(|| SmallDisk::mount("1m")).flatten() else {
        skipped("mounting a small file system needs root");
        return None;
    };
    let out = disk.path().join("record");
    let arguments = ["--loads", "idle,cpu", "--duration", "2s", "--warm-up", "100ms"];
    let mut run = Run::start(&[&["bench", "--out", out.to_str().unwrap()], &arguments[..]].concat());
    meanwhile(&mut run, &disk);
    let ended = run.end();
    let record = record::store::load(&out).unwrap();
    Some((ended, record, out, disk))
}

/// An empty file was left, which the next try found in its way and `check --root` took for a machine without files.
#[test]
fn a_snapshot_for_which_there_is_no_room_leaves_no_file() {
    let Some(disk) = is_root().then(|| SmallDisk::mount("64k")).flatten() else {
        return skipped("mounting a small file system needs root");
    };
    for name in ["board.txt", "board.tar.gz"] {
        let file = disk.path().join(name);
        disk.fill();
        let output = Command::new(BINARY).arg("snapshot").arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("No space left") && said.contains("hint: make room there"), "{said}");
        assert!(!file.exists(), "{name}");
    }
}

#[test]
fn a_disk_that_fills_up_while_measuring_is_an_error_and_measuring_goes_on() {
    let filled = on_a_small_disk(|run, disk| {
        let journal = disk.path().join("record/journal.ndjson");
        run.wait_until("a second", |_| {
            fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"seconds\""))
        });
        disk.fill();
    });
    let Some((ended, record, out, _disk)) = filled else { return };
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    // The table has both loads, all of them: nothing of the measuring was lost.
    let samples = ended.out.lines().find(|line| line.starts_with("samples")).unwrap();
    assert_eq!(samples.split_whitespace().count(), 3, "{samples}");
    for said in ["ERROR  ", "journal.ndjson: write: No space left", "record.json: No space left"] {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    assert!(!out.join("record.json").exists() && !out.join("report.html").exists(), "half a file was left");
    assert!(parts(&out).is_empty(), "{:?}", parts(&out));
    assert_eq!(
        (record.scenarios[0].head.planned.load.as_str(), &record.scenarios[0].end),
        ("idle", &ScenarioEnd::CutOff)
    );
    assert!(record.scenarios[0].series.iter().all(|series| series.expected() >= 999));
    assert_ne!(record.judgement.verdict, Verdict::Pass);
    let copy = tempfile::tempdir().unwrap();
    fs::copy(out.join("journal.ndjson"), copy.path().join("journal.ndjson")).unwrap();
    assert!(report(copy.path()).contains("cut off"));
}

/// Drafts of files that were left in a directory.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "part")).collect()
}

/// What fits on a disk differs from run to run: strace refuses the second file its name, which is the page.
#[test]
fn a_disk_with_room_for_the_record_alone_keeps_it() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("needs package strace (apt-get install)");
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("record");
    let page = out.join("report.html");
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-o", "/dev/null"]);
    strace.args(["-e", "inject=?rename,?renameat,?renameat2:error=ENOSPC:when=2"]);
    strace.args([BINARY, "bench", "--out", out.to_str().unwrap()]);
    strace.args(["--loads", "idle,cpu", "--duration", "1s", "--warm-up", "100ms"]);
    let ended = Run::start_as(&mut strace).end();
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert!(ended.out.contains("report.html: No space left"), "{}", ended.out);
    assert!(!page.exists() && parts(&out).is_empty(), "{:?}", parts(&out));
    let record = record::store::load(&out).unwrap();
    assert_eq!(record.scenarios.len(), 2);
    assert!(record.scenarios.iter().all(|scenario| scenario.end == ScenarioEnd::Complete));
}

#[test]
fn a_samples_file_that_grows_too_large_is_an_error_and_measuring_goes_on() {
    let Some(disk) = is_root().then(|| SmallDisk::mount("64k")).flatten() else {
        return skipped("mounting a small file system needs root");
    };
    let file = disk.path().join("samples");
    let arguments = ["--loads", "idle", "--interval", "50us", "--duration", "2s", "--warm-up", "50ms"];
    let ended = Run::bench(&[&arguments[..], &["--samples-file", file.to_str().unwrap()]].concat()).end();
    let record = ended.record();
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    // The kernel refuses the write, or whoever looks at the space before it does.
    let refused = ["No space left", "0 B are free there", "KiB are free there"];
    let refusal = format!("write {}: ", file.display());
    let is_said = |why: &&str| ended.out.contains(&refusal) && ended.out.contains(*why);
    assert!(refused.iter().any(is_said), "{}", ended.out);
    assert!(record.scenarios[0].series.iter().all(|series| series.expected() == 40_000));
    let output = Command::new(BINARY).arg("samples").arg(&file).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.lines().count() > 10_000, "what fitted in is readable: {} lines", shown.lines().count());
}

#[test]
fn output_that_is_lost_is_an_error_unless_the_run_has_failed() {
    for (limit, code) in [("1h", 2), ("1ns", 1)] {
        let mut command = Command::new(BINARY);
        command.args([
            "bench",
            "--loads",
            "idle",
            "--duration",
            "300ms",
            "--warm-up",
            "0s",
            "--limit",
            limit,
            "--out",
            "record",
        ]);
        let directory = tempfile::tempdir().unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output =
            command.current_dir(directory.path()).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains("error: write to standard output: No space left") && said.contains("hint: "),
            "{said}"
        );
        assert!(
            directory.path().join("record/record.json").exists(),
            "what was measured is saved all the same"
        );
    }
}

#[test]
fn a_live_view_that_cannot_be_written_leaves_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(BINARY);
    command
        .args(["measure", "--duration", "20s", "--warm-up", "0s", "--out", "record"])
        .current_dir(directory.path());
    let started = Instant::now();
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("error: write to standard output: No space left")
    );
    assert!(started.elapsed() < Duration::from_secs(15), "nobody can see it: why go on?");
    let record = record::store::load(&directory.path().join("record")).unwrap();
    assert!(record.ended.is_some() && record.activations() > 0);
    assert_eq!(record.judgement.verdict, Verdict::Error, "{:?}", record.judgement);
}

#[test]
fn a_reader_that_goes_away_ends_a_live_view_quietly() {
    for format in [&[][..], &["--json"], &["--format", "latmus", "--cpus", "0"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(BINARY);
        command.args(["measure", "--duration", "40s", "--warm-up", "0s", "--out", "record"]).args(format);
        command.current_dir(directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut String::new()).unwrap();
        drop(reader);
        let closed = Instant::now();
        let (mut said, mut errors) = (String::new(), child.stderr.take().unwrap());
        errors.read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert!(closed.elapsed() < Duration::from_secs(15), "{format:?}: it took {:?}", closed.elapsed());
        assert!(!said.contains("error") && !said.contains("panicked"), "{format:?}: {said}");
        let record = record::store::load(&directory.path().join("record")).unwrap();
        assert_eq!(status.code(), Some(record.judgement.verdict.exit_code().into()), "{format:?}: {said}");
        assert_eq!(record.scenarios[0].end, ScenarioEnd::Interrupted);
    }
}
