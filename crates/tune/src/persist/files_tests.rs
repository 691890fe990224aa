//! The table of faults for files: whatever goes wrong at whichever step, nothing is lost, and nothing is half done unsaid.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use serde_json::{Value, json};

use super::scripted_disk::{Fault, Names, ScriptedDisk};
use super::*;
use crate::status::Now;
use crate::undo::Back;

/// A disk with a file to be changed, one to go and one that stays.
fn disk() -> ScriptedDisk {
    ScriptedDisk::new(&[
        ("/etc/default/grub", "GRUB_TIMEOUT=5\n"),
        ("/boot/old.conf", "old\n"),
        ("/var/lib/x", "x"),
    ])
}

/// Changes one file, makes one and a link in directories that are to be made, and removes one.
fn edits(disk: &ScriptedDisk) -> Vec<Edit> {
    let edit = |path: &str, after: Option<Contents>| Edit::of(disk, path, after).unwrap();
    vec![
        edit("/etc/default/grub.d/90-x.cfg", Some("A=1\n".into())),
        edit("/etc/systemd/wants/x.service", Some(Contents::Link("../x.service".into()))),
        edit("/etc/default/grub", Some("GRUB_TIMEOUT=6\n".into())),
        edit("/boot/old.conf", None),
    ]
}

fn files(disk: &mut ScriptedDisk) -> Files<'_> {
    Files::at(disk, STATE, "test")
}

/// What others see: everything but our own directory.
fn without_own(names: &Names) -> Names {
    let mut names = names.clone();
    names.files.retain(|path, _| !path.starts_with("/var/lib/worstcase"));
    names.directories.retain(|path| !path.starts_with("/var/lib/worstcase"));
    names
}

fn write(disk: &mut ScriptedDisk) -> crate::Result<()> {
    let edits = edits(disk);
    files(disk).write(&json!("note"), &edits)
}

/// Undo finds everything as it was, and leaves no transaction.
fn undone(disk: &mut ScriptedDisk, what: &str) {
    let undone = files(disk).undo().unwrap();
    assert!(undone.iter().all(|file| file.back.is_as_before()), "{what}: {undone:?}");
    assert_eq!(without_own(&disk.now), self::disk().now, "{what}");
    assert_eq!(files(disk).recorded().unwrap(), None, "{what}");
}

/// How many changes a write comes to.
fn changes() -> usize {
    let mut disk = disk();
    write(&mut disk).unwrap();
    disk.changes
}

#[test]
fn write_then_undo_is_the_identity() {
    let mut disk = disk();
    write(&mut disk).unwrap();
    assert_eq!(disk.text("/etc/default/grub").as_deref(), Some("GRUB_TIMEOUT=6\n"));
    assert_eq!(disk.text("/etc/systemd/wants/x.service").as_deref(), Some("-> ../x.service"));
    assert_eq!(disk.text("/boot/old.conf"), None);
    let kept = disk.now.files["/etc/default/grub"].attributes;
    assert_eq!(kept, Attributes { mode: 0o640, owner: Some((7, 8)) });
    let recorded = files(&mut disk).recorded().unwrap().unwrap();
    assert_eq!((recorded.note, recorded.paths.len(), recorded.is_whole), (json!("note"), 4, true));
    assert!(files(&mut disk).now().unwrap().iter().all(|(_, now)| *now == Now::Holds));
    let again = write(&mut disk).unwrap_err();
    assert!(again.to_string().contains("there already"), "{again}");
    undone(&mut disk, "undo");
    assert!(files(&mut disk).undo().unwrap().is_empty(), "the second time there is nothing to do");
    write(&mut disk).unwrap();
    undone(&mut disk, "a second transaction takes the place of the first");
}

#[test]
fn a_refusal_at_any_step_takes_everything_back() {
    for step in 0..changes() {
        for errno in [Errno::IO, Errno::PERM, Errno::NOSPC, Errno::ROFS] {
            let mut disk = disk().with(step, Fault::Refuse(errno));
            let error = write(&mut disk).unwrap_err();
            assert!(error.reason.contains(&std::io::Error::from(errno).to_string()), "{error}");
            undone(&mut disk, &format!("step {step}, {errno}"));
        }
    }
}

#[test]
fn what_reads_otherwise_than_written_is_taken_back_or_reported() {
    for step in 0..changes() {
        let mut disk = disk().with(step, Fault::Garble);
        let written = write(&mut disk);
        let garbled = disk.now.files.iter().filter(|(_, found)| found.contents == "garbled".into());
        let garbled: Vec<String> = garbled.map(|(path, _)| path.clone()).collect();
        match garbled.as_slice() {
            [] if written.is_ok() => undone(&mut disk, "nothing was garbled"),
            [own] if own.starts_with(STATE) => {}
            [path] => {
                assert!(written.unwrap_err().hint.contains("not all could be put back"));
                let back = files(&mut disk).undo().unwrap();
                assert!(back.is_empty(), "{path} says what neither we nor anybody before us wrote");
            }
            other => panic!("step {step}: {other:?} {written:?}"),
        }
    }
}

#[test]
fn a_process_killed_at_any_step_leaves_what_undo_needs() {
    for step in 0..changes() {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let mut disk = disk().with(step, fault);
            let end = catch_unwind(AssertUnwindSafe(|| write(&mut disk)));
            assert!(end.is_err(), "step {step}");
            let recorded = files(&mut disk).recorded().unwrap();
            let is_said = recorded.is_some_and(|recorded| !recorded.is_whole);
            let is_touched = without_own(&disk.now) != self::disk().now;
            assert!(is_said || !is_touched || step + 2 >= changes(), "step {step}: half done and unsaid");
            undone(&mut disk, &format!("killed at {step}, {fault:?}"));
            write(&mut disk).unwrap();
        }
    }
}

#[test]
fn an_undo_killed_at_any_step_is_undone_by_the_next() {
    let mut whole = disk();
    write(&mut whole).unwrap();
    let first = whole.changes;
    files(&mut whole.clone()).undo().unwrap();
    for step in 0.. {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let mut disk = whole.clone().with(step, fault);
            if catch_unwind(AssertUnwindSafe(|| files(&mut disk).undo())).is_ok() {
                assert!(step > 10, "{first} changes to write, and {step} to undo");
                return;
            }
            undone(&mut disk, &format!("undo killed at {step}, {fault:?}"));
        }
    }
}

#[test]
fn a_power_cut_at_any_step_of_write_or_undo_loses_nothing() {
    let mut worlds = 0;
    let mut cut = |disk: &ScriptedDisk, what: &str| {
        for mut disk in disk.after_power_cuts() {
            worlds += 1;
            undone(&mut disk, what);
        }
    };
    for step in 0..changes() {
        let mut disk = disk().with(step, Fault::KillAfter);
        let _ = catch_unwind(AssertUnwindSafe(|| write(&mut disk)));
        cut(&disk, &format!("written, step {step}"));
    }
    let mut whole = disk();
    write(&mut whole).unwrap();
    for step in 0.. {
        let mut disk = whole.clone().with(step, Fault::KillAfter);
        let is_over = catch_unwind(AssertUnwindSafe(|| files(&mut disk).undo())).is_ok();
        cut(&disk, &format!("undone, step {step}"));
        if is_over {
            break;
        }
    }
    assert!(worlds > 100, "{worlds}");
}

#[test]
fn somebody_elses_later_change_is_never_overwritten() {
    let mut disk = disk();
    write(&mut disk).unwrap();
    disk.put("/etc/default/grub", "GRUB_TIMEOUT=9\n");
    disk.put("/etc/default/grub.d/50-other.cfg", "B=1\n");
    disk.put("/boot/old.conf", "new\n");
    let now = files(&mut disk).now().unwrap();
    let drifted: Vec<_> = now.iter().filter(|(_, now)| *now != Now::Holds).collect();
    assert_eq!(drifted.len(), 2, "{drifted:?}");
    let undone = files(&mut disk).undo().unwrap();
    let foreign = undone.iter().filter(|file| matches!(file.back, Back::Foreign(_)));
    assert_eq!(foreign.count(), 2, "{undone:?}");
    assert_eq!(disk.text("/etc/default/grub").as_deref(), Some("GRUB_TIMEOUT=9\n"));
    assert_eq!(disk.text("/boot/old.conf").as_deref(), Some("new\n"));
    assert_eq!(disk.text("/etc/default/grub.d/50-other.cfg").as_deref(), Some("B=1\n"));
    assert_eq!(disk.text("/etc/default/grub.d/90-x.cfg"), None);
}

#[test]
fn a_file_that_changed_since_it_was_looked_at_is_not_touched() {
    let mut disk = disk();
    let edits = edits(&disk);
    disk.put("/boot/old.conf", "somebody else's\n");
    let error = files(&mut disk).write(&Value::Null, &edits).unwrap_err();
    assert!(error.to_string().contains("/boot/old.conf"), "{error}");
    assert_eq!(disk.text("/boot/old.conf").as_deref(), Some("somebody else's\n"));
    assert_eq!(disk.text("/etc/default/grub").as_deref(), Some("GRUB_TIMEOUT=5\n"));
}

#[test]
fn a_damaged_backup_is_reported_and_never_written() {
    let mut disk = disk();
    write(&mut disk).unwrap();
    disk.put(&format!("{STATE}/test/2-before"), "damaged");
    let undone = files(&mut disk).undo().unwrap();
    assert!(undone.iter().any(|file| matches!(file.back, Back::Unclear(_))), "{undone:?}");
    assert_eq!(disk.text("/etc/default/grub").as_deref(), Some("GRUB_TIMEOUT=6\n"));
}

#[test]
fn edits_can_be_added_and_are_taken_back_together() {
    let mut disk = disk();
    let edits = edits(&disk);
    let mut files = files(&mut disk);
    files.begin(&Value::Null).unwrap();
    files.add(&edits[..2]).unwrap();
    files.add(&edits[2..]).unwrap();
    assert!(!files.recorded().unwrap().unwrap().is_whole);
    files.finish().unwrap();
    assert_eq!(files.now().unwrap().len(), 4);
    undone(&mut disk, "all of them");
}

#[test]
fn a_real_directory_keeps_modes_and_its_own_files_to_itself() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path.trim_start_matches('/'));
    std::fs::create_dir_all(at("/etc")).unwrap();
    std::fs::write(at("/etc/line"), "before").unwrap();
    std::fs::set_permissions(at("/etc/line"), std::fs::Permissions::from_mode(0o604)).unwrap();
    let mut disk = Live::at(root.path());
    let script = Edit::of(&disk, "/etc/init.d/x", Some("#!/bin/sh\n".into())).unwrap().with_mode(0o755);
    let edits = [Edit::of(&disk, "/etc/line", Some("after".into())).unwrap(), script];
    let mut files = Files::at(&mut disk, STATE, "test");
    files.write(&Value::Null, &edits).unwrap();
    let mode = |path: &str| std::fs::metadata(at(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("/etc/line"), mode("/etc/init.d/x"), mode(STATE)), (0o604, 0o755, 0o700));
    assert_eq!(std::fs::read_to_string(at("/etc/line")).unwrap(), "after");
    assert!(files.undo().unwrap().iter().all(|file| file.back == Back::Restored));
    assert_eq!(std::fs::read_to_string(at("/etc/line")).unwrap(), "before");
    assert!(!at("/etc/init.d").exists() && mode("/etc/line") == 0o604);
}

#[test]
fn nothing_outside_the_system_is_reached_by_a_link() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), root.path().join("etc")).unwrap();
    let error = Edit::of(&Live::at(root.path()), "/etc/x", Some("x".into())).unwrap_err();
    assert!(error.to_string().contains("cross-device"), "{error}");
    let above = Edit::of(&Live::at(root.path()), "/../x", Some("x".into())).unwrap();
    let mut disk = Live::at(root.path());
    Files::at(&mut disk, "/state", "test").write(&Value::Null, &[above]).unwrap();
    assert!(root.path().join("x").exists());
}
