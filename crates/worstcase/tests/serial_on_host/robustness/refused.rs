//! What cannot be done is said before anything is measured, and what can be done with less is done.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use record::verdict::Verdict;
use record::{Effect, ScenarioEnd, WarningId};
use units::Policy;

use crate::support::{BINARY, Run, is_root, refused, skipped};

fn check(arguments: &[&str], message: &str, hint: &str) {
    let ended = refused(arguments);
    assert!(ended.err.contains(message) && ended.err.contains(hint), "{arguments:?}: {}", ended.err);
}

#[test]
fn places_that_cannot_be_written_to_are_refused() {
    let out = "choose a directory that can be written with --out";
    check(&["bench", "--out", "/proc/nowhere"], "create directory /proc/nowhere: No such file", out);
    check(&["bench", "--out", "stdout"], "create directory stdout: Not a directory", out);
    check(
        &["measure", "--out", "/dev/null/record"],
        "create directory /dev/null/record: Not a directory",
        out,
    );
    let file = "choose a file that does not exist yet";
    check(&["measure", "--samples-file", "stdout"], "create stdout: File exists", file);
    check(&["measure", "--samples-file", "nowhere/samples"], "create nowhere/samples: No such file", file);
    check(
        &["measure", "--histogram", "nowhere/h"],
        "write nowhere/h: No such file",
        "make its directory first",
    );
}

#[test]
fn a_record_is_never_overwritten() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    for name in ["first", "cut-off"] {
        let directory = records.join(name);
        let before = fs::read_dir(&directory).unwrap().count();
        check(
            &["bench", "--out", directory.to_str().unwrap()],
            "it holds a record already",
            "never overwritten",
        );
        assert_eq!(fs::read_dir(&directory).unwrap().count(), before);
    }
}

#[test]
fn a_second_run_on_the_same_cpus_is_refused_and_the_first_is_unharmed() {
    let mut first = Run::bench(&["--loads", "idle", "--duration", "3s", "--warm-up", "100ms"]);
    first.wait_measured("idle", 1);
    let directory = tempfile::tempdir().unwrap();
    let second = Command::new(BINARY)
        .args(["bench", "--out", "second"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(
        said.contains("is being measured by another worstcase, process ")
            && said.contains("\n  hint: wait for it, or measure other CPUs"),
        "{said}"
    );
    assert_eq!(
        (second.stdout.len(), fs::read_dir(directory.path()).unwrap().count()),
        (0, 0),
        "it left something"
    );
    let record = first.end().record();
    assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
    assert!(record.scenarios[0].series.iter().all(|series| series.expected() == 3000));
}

#[test]
fn a_load_whose_program_is_missing_is_refused_before_anything_is_measured() {
    let mut command = Command::new(BINARY);
    command.args(["bench", "--loads", "idle,stress-ng-cpu", "--out", "record"]).env("PATH", "/nonexistent");
    let ended = Run::start_as(&mut command).end();
    assert_eq!(ended.code(), Some(2));
    assert!(
        ended.err.starts_with("error: load `stress-ng-cpu` cannot run: the program stress-ng was not found"),
        "{}",
        ended.err
    );
    assert!(!ended.path("record").exists());
}

/// As uid 65534, from a copy of the binary that it may execute.
fn as_nobody(arguments: &[&str]) -> Option<Run> {
    if !is_root() {
        skipped("becoming nobody needs root");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join("worstcase");
    fs::copy(BINARY, &binary).unwrap();
    for path in [directory.path(), &binary] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let run = Run::start_as(Command::new(&binary).args(arguments).uid(65534).gid(65534));
    // The probe and the supervisor are started through /proc/self/exe: the name is no longer needed.
    Some(run)
}

#[test]
fn without_rights_it_measures_and_says_what_it_could_not() {
    let arguments =
        ["bench", "--loads", "idle,cpu", "--duration", "1s", "--warm-up", "100ms", "--out", "record"];
    let Some(run) = as_nobody(&[&arguments[..], &["--limit", "60s"]].concat()) else { return };
    let ended = run.end();
    let record = ended.record();
    assert_eq!(record.judgement.verdict, Verdict::Inconclusive, "{:?}", record.judgement);
    assert!(ended.out.contains("policy-differs") && ended.out.contains("CAP_SYS_NICE"), "{}", ended.out);
    for scenario in &record.scenarios {
        assert!(
            scenario
                .series
                .iter()
                .all(|series| series.expected() == 1000 && series.observed.summary().count > 0)
        );
        assert!(scenario.evidence.threads.iter().all(|thread| thread.policy == Some(Policy::Other)));
        assert!(scenario.warnings.iter().any(|warning| warning.id == WarningId::PolicyDiffers));
    }
    assert_eq!(record.scenarios.len(), 2);
    let load = &record.scenarios[1].load;
    assert!(load.stressors[0].work > 0, "the load works without rights too: {load:?}");
}

#[test]
fn an_ordinary_policy_that_was_asked_for_is_no_doubt() {
    let arguments = [
        "bench",
        "--loads",
        "idle",
        "--policy",
        "other",
        "--duration",
        "1s",
        "--warm-up",
        "100ms",
        "--out",
        "record",
    ];
    let Some(run) = as_nobody(&arguments) else { return };
    let ended = run.end();
    let record = ended.record();
    let doubts: Vec<_> = record
        .all_warnings()
        .filter(|warning| warning.effect == Effect::Inconclusive)
        .map(|warning| warning.id)
        .collect();
    assert!(!doubts.contains(&WarningId::PolicyDiffers), "{doubts:?}");
    assert_eq!(
        (record.judgement.verdict, ended.code()),
        (Verdict::Measured, Some(0)),
        "{:?}",
        record.judgement
    );
    assert_eq!(record.judgement.reasons, ["no limit given"]);
    assert!(record.all_warnings().any(|warning| warning.id == WarningId::NotRealTime));
}

#[test]
fn where_hdd_writes_is_a_disk_unless_another_place_is_named() {
    let is_tmpfs =
        |line: &str| line.split(' ').nth(1) == Some("/dev/shm") && line.split(' ').nth(2) == Some("tmpfs");
    if !fs::read_to_string("/proc/mounts").unwrap().lines().any(is_tmpfs) {
        return skipped("/dev/shm is no tmpfs");
    }
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("/dev/shm cannot be written to");
    };
    let bench = ["bench", "--loads", "hdd", "--duration", "100ms", "--warm-up", "0s", "--out", "record"];
    let output = Command::new(BINARY).args(bench).current_dir(directory.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(
            "is on tmpfs: writing there stresses no disk\n  hint: name a directory with --load-dir"
        ),
        "{said}"
    );
    let place = directory.path().to_str().unwrap();
    let record = Run::start(&[&bench[..], &["--load-dir", place]].concat()).end().record();
    assert_eq!(record.scenarios[0].load.directory.as_ref().unwrap().file_system, "tmpfs");
}

/// What a shell says in a mount namespace of its own, on a board of which no more is there than `mounts` leaves. `$W` is the
/// program, in the working directory, which cannot be written: what is mounted may lie over the place that it came from.
fn on_a_board(mounts: &str, script: &str) -> (Option<i32>, String, String) {
    let read_only = "mount -t tmpfs none /mnt && cp $W /mnt/worstcase && W=/mnt/worstcase && \
                     mount -o remount,ro /mnt && cd /mnt";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", &format!("{read_only}; {mounts}; {script}")]).env("W", BINARY);
    let output = shell.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const SHORT: &str = "$W bench --loads idle --duration 200ms --warm-up 50ms";

#[test]
fn where_the_working_directory_cannot_be_written_the_record_is_in_memory() {
    if !is_root() {
        return skipped("needs root");
    }
    let mounts = "mount -t tmpfs none /run";
    let (code, out, err) = on_a_board(mounts, &format!("{SHORT}; $W report /run/worstcase-2*"));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("record: /run/worstcase-"), "{err}");
    assert!(err.contains("warning: the working directory cannot be written"), "{err}");
    assert_eq!(out.matches("\nsamples ").count(), 2, "the table of the run, and of its record: {out}");
}

#[test]
fn where_nothing_can_be_written_json_is_printed_all_the_same() {
    if !is_root() {
        return skipped("needs root");
    }
    let mounts = "for place in /run /dev/shm /tmp; do mount -t tmpfs -o ro none $place; done";
    let (code, _, err) = on_a_board(mounts, SHORT);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("create directory worstcase-") && err.contains("Read-only file system"), "{err}");
    let (code, out, err) = on_a_board(mounts, &format!("{SHORT} --json"));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("warning: no record is kept"), "{err}");
    let record: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["scenarios"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_bare_root_lacks_is_named() {
    if !is_root() {
        return skipped("needs root");
    }
    let loaded = "$W bench --loads cpu --duration 200ms --warm-up 50ms --json";
    let (code, _, err) = on_a_board("mount -t tmpfs none /dev", loaded);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("/dev/null"), "{err}");
    for gone in ["mount -t tmpfs none /proc", "mount -t tmpfs none /proc; mount -t tmpfs none /sys"] {
        let (code, _, err) = on_a_board(gone, loaded);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("is /proc mounted"), "{err}");
    }
}
