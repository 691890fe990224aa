//! Undo from a journal of another boot, a damaged one, and on file systems that became read-only.

use super::*;

#[test]
fn settings_of_another_boot_are_not_undone() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    // As after a boot: the boot has another name, and another program has written the same value.
    let journal = tuned.state().join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let json = first.split_once(' ').unwrap().1.replace(&read("/proc/sys/kernel/random/boot_id"), "other");
    let mut crc = flate2::Crc::new();
    crc.update(json.as_bytes());
    fs::write(&journal, format!("{:08x} {json}\n{rest}", crc.sum())).unwrap();
    assert_eq!(tuned.run("status", &[]).0, Some(1));
    let (code, out, _) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.contains("booted since"), "{out}");
    assert_eq!(read(INTERVAL), "10");
    // This boot's journal undoes what is there.
    fs::write(&journal, text).unwrap();
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

#[test]
fn a_damaged_journal_is_undone_as_far_as_it_tells_and_proves_nothing() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    let journal = tuned.state().join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let damaged = text.replacen("\"old\":\"20\"", "\"old\":\"21\"", 1);
    assert_ne!(damaged, text, "compaction_proactiveness was 20");
    fs::write(&journal, &damaged).unwrap();
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(1) && err.contains("of the journal is damaged"), "{out}{err}");
    assert!(out.contains("there may be more") && !out.contains("proof"), "{out}");
    assert_eq!(read(INTERVAL), "1");
}

#[test]
fn a_state_directory_that_became_read_only_is_undone_all_the_same() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || { echo no mounts; exit 77; }\n\
                  exec \"$2\" tune undo --state \"$1\"";
    let mut undo = Command::new("unshare");
    undo.args(["--mount", "sh", "-c", script, "sh"]).arg(tuned.state()).arg(BINARY);
    let (code, out, err) = shown(undo.env("COLUMNS", "200").output().unwrap());
    if code == Some(77) {
        return println!("skipped: {out}");
    }
    assert!(code == Some(0) && out.contains("proof: everything reads as before"), "{out}{err}");
    assert!(err.contains("Read-only file system"), "that the journal stays is said: {err}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "1".into()));
    assert_eq!(tuned.run("undo", &[]).0, Some(0), "once it can be written");
    assert_eq!(tuned.run("status", &[]).1, "nothing is applied\n");
}

/// In a container, or on a machine that was locked down: what can be done is, and each refusal has its reason.
#[test]
fn where_sys_is_read_only_the_rest_is_done_and_the_exit_code_says_so() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let script = "mount -o remount,bind,ro /sys || { echo no mounts; exit 77; }\nexec \"$@\"";
    let read_only = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", BINARY, "tune", "apply"]);
        let rules = ["--isolate", &last_cpu(), "--only", "rn-stat-interval,rn-wq-cpumask", "--state"];
        command.args(rules).arg(tuned.state()).args(words).env("COLUMNS", "200");
        shown(command.output().unwrap())
    };
    let (code, out, err) = read_only(&[]);
    if code == Some(77) {
        return println!("skipped: {out}");
    }
    assert!(code == Some(2) && err.contains("--keep-going"), "{code:?}: {out}{err}");
    assert_eq!(read(INTERVAL), "1", "what was changed before it was put back");
    let (code, out, err) = read_only(&["--keep-going"]);
    assert!(code == Some(1) && err.contains("the kernel did not take 1 setting"), "{code:?}: {out}{err}");
    let refused = out.lines().find(|line| line.starts_with("refused")).unwrap_or_default();
    assert!(refused.contains("/workqueue/cpumask: ") && refused.contains("Read-only file system"), "{out}");
    assert!(out.contains("1 setting written and read back"), "what was refused is not written: {out}");
    assert_eq!(read(INTERVAL), "10");
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
}

#[test]
fn a_holder_undoes_a_journal_whose_first_line_is_damaged() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "3s"]).0, Some(0));
    let journal = tuned.state().join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let damaged = tuned.state().join("damaged");
    fs::write(&damaged, text.replacen("\"started\"", "\"Started\"", 1)).unwrap();
    fs::rename(damaged, &journal).unwrap();
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(1) && out.contains("line 1 of the journal is damaged"), "{out}");
    wait_until("undone", || read(INTERVAL) == "1" && !journal.exists());
}
