//! What is applied, and what undo puts back.

use super::*;

#[test]
fn what_is_applied_holds_and_undo_is_the_identity() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let before = everything();
    let (code, out, err) = tuned.apply(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(&format!("done      {INTERVAL}: 1 -> 10")), "{out}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("10".into(), "0".into()));
    assert_ne!(everything(), before);
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(0) && out.contains("all as written"), "{out}");
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
    assert_eq!(everything(), before);
    assert_eq!(tuned.run("undo", &[]), (Some(0), "nothing is applied\n".into(), String::new()));
}

#[test]
fn what_is_applied_is_not_applied_twice() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    let (code, _, err) = tuned.apply(&[]);
    assert!(code == Some(2) && err.contains("settings are applied already"), "{err}");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

#[test]
fn somebody_elses_change_is_reported_and_left() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    fs::write(INTERVAL, "5\n").unwrap();
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(1) && out.contains(&format!("drifted   {INTERVAL}: 5, where we wrote 10")), "{out}");
    let (code, out, _) = tuned.run("undo", &[]);
    assert!(code == Some(1) && out.contains(&format!("{INTERVAL}: 1 before, 5 now")), "{out}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("5".into(), "1".into()));
}

#[test]
fn what_was_reset_is_written_again() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&[]).0, Some(0));
    fs::write(INTERVAL, "1\n").unwrap();
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(1) && out.contains("reset"), "{out}");
    let (code, out, _) = tuned.run("keep", &["--reconcile"]);
    assert!(code == Some(0) && out.contains("1 setting written again"), "{out}");
    assert_eq!(read(INTERVAL), "10");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
    assert_eq!(read(INTERVAL), "1");
}

/// Two files of four megabytes: one with a priority, one with the kernel's.
#[test]
fn swap_goes_off_and_comes_back_with_its_priority() {
    let Some(tuned) = Tuned::new() else { return };
    let swaps = || fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps().lines().count() != 1 {
        println!("skipped: this machine swaps already, or cannot");
        return;
    }
    let [one, other] = ["one", "other"].map(|name| tuned.directory.path().join(name));
    let on = |file: &Path, options: &[&str]| {
        fs::write(file, vec![0; 4 << 20]).unwrap();
        let run = |program: &str, options: &[&str]| {
            let mut command = Command::new(program);
            command.args(options).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        run("mkswap", &[]) && run("swapon", options)
    };
    let _off = SwapOff([one.clone(), other.clone()]);
    if !on(&one, &["-p", "5"]) || !on(&other, &[]) {
        println!("skipped: swapon does not take a file here");
        return;
    }
    let before = swaps();
    let (code, out, err) = tuned.run("apply", &["--profile", "rt", "--only", "rn-swap"]);
    assert!(code == Some(0) && out.contains("'priority 5' -> off"), "{out}{err}");
    assert_eq!(swaps().lines().count(), 1);
    assert_eq!(tuned.run("status", &[]).0, Some(0));
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
    // How much is in use, the fourth, moves by itself: a kernel may swap out what nobody needs (DAMON).
    let areas = |text: String| {
        let area = |line: &str| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            [columns[0], columns[2], columns[4]].map(str::to_owned)
        };
        text.lines().map(area).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(areas(swaps()), areas(before));
}

/// Files to which nothing is swapped when the test ends.
struct SwapOff([PathBuf; 2]);

impl Drop for SwapOff {
    fn drop(&mut self) {
        for file in &self.0 {
            let mut command = Command::new("swapoff");
            let _ = command.arg(file).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn another_worstcase_at_work_is_named_and_a_directory_of_others_refused() {
    let Some(tuned) = Tuned::new() else { return };
    DirBuilder::new().mode(0o700).create(tuned.state()).unwrap();
    let lock = fs::File::create(tuned.state().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (code, _, err) = tuned.run("apply", &["--only", "rn-compaction"]);
    assert!(code == Some(2) && err.contains("another worstcase changes settings right now"), "{err}");
    drop(lock);
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(tuned.state(), everybody).unwrap();
    let (code, _, err) = tuned.run("apply", &["--only", "rn-compaction"]);
    assert!(code == Some(2) && err.contains("mode 0700"), "{err}");
    assert_eq!(read(UNEVICTABLE), "1");
}

#[test]
fn a_limit_on_exit_latencies_is_held_by_a_process_and_ends_with_it() {
    let Some(tuned) = Tuned::new() else { return };
    if fs::File::options().write(true).open(LATENCY).is_err() {
        println!("skipped: {LATENCY} cannot be opened here");
        return;
    }
    let limit = || i32::from_ne_bytes(fs::read(LATENCY).unwrap().try_into().unwrap());
    let before = limit();
    DirBuilder::new().mode(0o700).create(tuned.state()).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("--hold-settings").arg(tuned.state()).args(["latency", "17"]);
    let mut holder = Ended(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("announced", || tuned.state().join("holder-latency").exists());
    assert!(limit() <= 17, "it holds before it says so: {}", limit());
    assert_eq!(tuned.holder("latency"), i32::try_from(holder.0.id()).unwrap());
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    wait_until("let go", || limit() == before);
}
