//! The command or the process that holds settings is killed, stopped, or has run out of time.

use super::*;

#[test]
fn a_time_that_runs_out_undoes_though_the_session_is_gone() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let last = last_cpu();
    // A session of its own, as a login has one, whose processes are all killed once the settings hold.
    let mut command = Command::new("setsid");
    let words = format!(
        "{BINARY} tune apply --for 3s --isolate {last} --only {RULES} --state {}; sleep 60",
        tuned.state().display()
    );
    let mut login = command.args(["sh", "-c", &words]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("applied", || {
        fs::read_to_string(tuned.state().join("journal")).is_ok_and(|text| text.contains("applied"))
    });
    let leader = rustix::process::Pid::from_raw(i32::try_from(login.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(leader, rustix::process::Signal::KILL).unwrap();
    login.wait().unwrap();
    assert_eq!(read(INTERVAL), "10");
    wait_until("undone", || !tuned.state().join("journal").exists());
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "1".into()));
    let (code, out, _) = tuned.run("status", &[]);
    assert!(code == Some(0) && out.contains("their time had run out: everything read as before"), "{out}");
}

#[test]
fn what_is_kept_outlives_its_time() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "1s"]).0, Some(0));
    let holder = tuned.holder("deadline");
    let (code, out, _) = tuned.run("keep", &[]);
    assert!(code == Some(0) && out.contains("kept"), "{out}");
    wait_until("the holder goes", || !Path::new(&format!("/proc/{holder}/task")).exists());
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(read(INTERVAL), "10");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

#[test]
fn a_dead_holder_is_reported_and_undone_at_the_next_start() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "10m"]).0, Some(0));
    kill(tuned.holder("deadline"));
    wait_until("shown", || {
        tuned.run("status", &[]).2.contains("the process that was to undo them was killed")
    });
    assert_eq!(tuned.run("status", &[]).0, Some(1));
    fs::write(UNEVICTABLE, "1\n").unwrap();
    let (code, out, err) = tuned.run("apply", &["--only", "rn-compaction"]);
    assert!(code == Some(0) && err.contains("undone first"), "{out}{err}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "0".into()));
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
}

/// Starts apply and kills it as soon as `steps` intentions are in the journal; whether it was killed before its end.
fn killed_in_the_middle(tuned: &Tuned, arguments: &[&str], steps: usize) -> bool {
    let last = last_cpu();
    let apart = ["--isolate", last.as_str(), "--only", RULES];
    let mut child =
        tuned.command("apply", &[&apart[..], arguments].concat()).stdout(Stdio::null()).spawn().unwrap();
    let journal = tuned.state().join("journal");
    let text = || fs::read_to_string(&journal).unwrap_or_default();
    while text().matches("\"intend\"").count() < steps && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    !text().contains("\"applied\"")
}

#[test]
fn a_command_killed_in_the_middle_is_undone_from_its_journal() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let before = everything();
    for steps in 1..6 {
        if !killed_in_the_middle(&tuned, &[], steps) {
            println!("apply was faster than its end at step {steps}");
        }
        let (code, out, err) = tuned.run("undo", &[]);
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(everything(), before, "killed at step {steps}");
    }
}

#[test]
fn a_command_with_a_time_that_is_killed_is_undone_at_once() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    let before = everything();
    if !killed_in_the_middle(&tuned, &["--for", "10m"], 2) {
        println!("skipped: apply was faster than its end");
        return;
    }
    wait_until("undone", || !tuned.state().join("journal").exists());
    assert_eq!(everything(), before);
    let (_, out, _) = tuned.run("status", &[]);
    assert!(out.contains("the command that applied them was killed"), "{out}");
}

/// `script` gives the command a terminal; killed, it closes that terminal, and the kernel sends SIGHUP to whatever runs
/// there, as where a connection drops.
#[test]
fn a_terminal_that_is_closed_while_settings_are_written_undoes_them() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    if !Path::new("/usr/bin/script").exists() {
        println!("skipped: needs script");
        return;
    }
    let before = everything();
    let journal = tuned.state().join("journal");
    let text = || fs::read_to_string(&journal).unwrap_or_default();
    let mut in_the_middle = 0;
    for steps in 1..5 {
        let last = last_cpu();
        let words = format!(
            "{BINARY} tune apply --for 1s --isolate {last} --only {RULES} --state {}",
            tuned.state().display()
        );
        let mut terminal = Command::new("/usr/bin/script");
        terminal.args(["-q", "-c", &words, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut terminal = Ended(terminal.spawn().unwrap());
        while text().matches("\"intend\"").count() < steps && terminal.0.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        terminal.0.kill().unwrap();
        in_the_middle += usize::from(!text().contains("\"applied\""));
        wait_until("undone", || !journal.exists());
        assert_eq!(everything(), before, "closed at step {steps}");
    }
    println!("{in_the_middle} of 4 terminals were closed in the middle");
}

#[test]
fn a_holder_that_is_stopped_is_seen_and_undo_does_not_wait_for_it() {
    let (Some(tuned), true) = (Tuned::new(), has_two_cpus()) else { return };
    assert_eq!(tuned.apply(&["--for", "10m"]).0, Some(0));
    assert_eq!(tuned.run("status", &[]).0, Some(0));
    let holder = tuned.holder("deadline");
    stop(holder);
    wait_until("it is stopped", || read(&format!("/proc/{holder}/stat")).contains(") T "));
    wait_until("shown", || tuned.run("status", &[]).0 == Some(1));
    let (_, _, err) = tuned.run("status", &[]);
    assert!(err.contains("the process that is to undo them is stopped"), "{err}");
    // One that was stopped while it had the lock.
    let lock = tuned.state().join("lock");
    let mut undoing = Command::new("sh");
    let mut undoing =
        undoing.args(["-c", "exec 9<\"$0\"; flock 9; exec sleep 600"]).arg(&lock).spawn().unwrap();
    let pid = i32::try_from(undoing.id()).unwrap();
    wait_until("it has the lock", || read(&format!("/proc/{pid}/comm")) == "sleep");
    let root = sysroot::SysRoot::live();
    let start = machine::tasks::task(&root, pid, pid).unwrap().start;
    kill(holder);
    let announced = format!("{{\"pid\":{pid},\"start\":{start},\"errno\":null}}");
    fs::write(tuned.state().join("holder-deadline"), announced).unwrap();
    stop(pid);
    wait_until("it is stopped", || read(&format!("/proc/{pid}/stat")).contains(") T "));
    let (code, out, err) = tuned.run("undo", &[]);
    assert!(code == Some(0) && out.contains("proof: everything reads as before"), "{out}{err}");
    assert!(err.contains("is stopped: it is ended"), "{err}");
    undoing.wait().unwrap();
}

fn stop(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
}
