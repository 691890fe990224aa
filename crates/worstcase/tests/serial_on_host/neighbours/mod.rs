//! Other users on the same machine: what they may write, root must not fall for.

mod random;
mod terminal;

use std::fs::{self, Permissions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use record::WarningId;

use crate::support::{BINARY, is_root, skipped};

/// `nobody` on most systems; no process of this machine need have it.
const OTHER_USER: u32 = 65_534;

/// A directory that another user has, beside one of root's. None without root.
struct Places {
    directory: tempfile::TempDir,
    theirs: PathBuf,
    ours: PathBuf,
}

impl Places {
    fn new() -> Option<Self> {
        if !is_root() {
            skipped("another user's files take root to make");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| directory.path().join(name));
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        fs::create_dir(&ours).unwrap();
        fs::write(ours.join("secret"), "root's").unwrap();
        fs::set_permissions(ours.join("secret"), Permissions::from_mode(0o600)).unwrap();
        Some(Self { directory, theirs, ours })
    }

    /// A link of the other user's.
    fn link(&self, target: &Path, name: &str) -> PathBuf {
        let link = self.theirs.join(name);
        symlink(target, &link).unwrap();
        lchown(&link, Some(OTHER_USER), None).unwrap();
        link
    }

    /// Nothing of root's has changed.
    fn assert_untouched(&self) {
        assert_eq!(names(&self.ours), ["secret"]);
        assert_eq!(fs::read(self.ours.join("secret")).unwrap(), b"root's");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn run(arguments: &[&str], prepare: impl FnOnce(&mut Command) -> &mut Command) -> Output {
    // A command that hangs on a pipe fails by the time it is killed.
    let mut command = Command::new("timeout");
    prepare(command.args(["--kill-after=1", "60", BINARY]).args(arguments)).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Hands a tree over to the other user.
fn give_away(directory: &Path) {
    lchown(directory, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    if directory.is_dir() {
        fs::read_dir(directory).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

const SHORT: [&str; 7] = ["bench", "--loads", "idle", "--duration", "100ms", "--warm-up", "10ms"];

fn measured(out: &Path) -> Output {
    run(&[&SHORT[..], &["--out", out.to_str().unwrap()]].concat(), |command| command)
}

#[test]
fn report_writes_no_page_into_another_users_directory() {
    let Some(places) = Places::new() else { return };
    let record = places.theirs.join("record");
    assert!(measured(&record).status.success());
    fs::remove_file(record.join("report.html")).unwrap();
    give_away(&record);
    let output = run(&["report", record.to_str().unwrap()], |command| command);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("belongs to another user"), "{}", said(&output));
    assert!(!record.join("report.html").exists());
    places.assert_untouched();
}

#[test]
fn links_and_pipes_of_another_user_are_neither_written_nor_read() {
    let Some(places) = Places::new() else { return };
    let (secret, linked) = (places.ours.join("secret"), places.link(&places.ours, "linked"));
    let file = places.link(&secret, "file");
    let output = measured(&linked.join("record"));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("another user laid a link"), "{}", said(&output));
    for arguments in [["report", linked.to_str().unwrap()], ["samples", file.to_str().unwrap()]] {
        let output = run(&arguments, |command| command);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {}", said(&output));
    }
    let measure = ["measure", "--samples", "10", "--histogram"];
    let output = run(&[&measure[..], &[file.to_str().unwrap()]].concat(), |command| {
        command.current_dir(&places.directory)
    });
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::symlink_metadata(&file).unwrap().is_file(), "the link was replaced");
    places.assert_untouched();
}

#[test]
fn an_experiment_of_another_user_is_not_gone_on_with() {
    let Some(places) = Places::new() else { return };
    let (trial, proof) = (places.theirs.join("trial"), places.directory.path().join("proof"));
    let command = format!("touch {}; sleep 9", proof.display());
    let begun = ["tune", "trial", "/proc/sys/vm/swappiness=10", "--blocks", "6", "--duration", "100ms"];
    let rest = ["--warm-up", "10ms", "--load-command", "false", "--out", trial.to_str().unwrap()];
    run(&[&begun[..], &rest].concat(), |command| command);
    let file = trial.join("experiment.json");
    let text = fs::read_to_string(&file).unwrap().replace("\"false\"", &format!("{command:?}"));
    assert!(text.contains("sleep 9"), "{text}");
    fs::write(&file, text).unwrap();
    let resumed = || run(&["tune", "trial", "--resume", trial.to_str().unwrap()], |command| command);
    for mode in [0o755, 0o777] {
        fs::set_permissions(&trial, Permissions::from_mode(mode)).unwrap();
        let output = resumed();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("another user owns it"), "{}", said(&output));
    }
    give_away(&trial);
    assert!(said(&resumed()).contains("another user owns it"));
    assert!(!proof.exists(), "the command was run");
}

#[test]
fn a_kernel_cache_of_another_user_is_refused() {
    let Some(places) = Places::new() else { return };
    let cache = places.theirs.join("cache");
    fs::create_dir(&cache).unwrap();
    let kernels = |arguments: &[&str]| {
        run(&[&["lab", "kernels"], arguments].concat(), |command| command.env("WORSTCASE_CACHE", &cache))
    };
    // Root's own directory below one that the other user could put another in place of, and one that is his.
    for _ in 0..2 {
        for arguments in [&["list"][..], &["fetch", "debian", "--version", "6.1", "--flavour", "rt"]] {
            let output = kernels(arguments);
            assert_eq!(output.status.code(), Some(2), "{}", said(&output));
            assert!(said(&output).contains("another user owns it"), "{}", said(&output));
        }
        give_away(&cache);
    }
    assert_eq!(names(&cache), Vec::<String>::new());
}

/// Runs `act` in a thread that is another user. Credentials are a thread's own: credentials(7).
fn as_other_user<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::spawn(move || {
        sys::privilege::become_user(OTHER_USER, OTHER_USER).unwrap();
        act()
    })
}

#[test]
fn names_that_another_user_takes_stop_no_run() {
    let Some(places) = Places::new() else { return };
    let (bound, is_bound) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let holder = as_other_user(move || {
        let cpus = sys::schedule::affinity(0).unwrap();
        let bind = |cpu| {
            let name = format!("worstcase-measures-cpu-{cpu}");
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
        };
        let _sockets: Vec<UnixListener> = cpus.iter().map(bind).collect();
        bound.send(()).unwrap();
        let _ = ended.recv();
    });
    is_bound.recv().unwrap();
    let output = measured(&places.ours.join("record"));
    drop(end);
    holder.join().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let record = record::store::load(&places.ours.join("record")).unwrap();
    assert!(record.warnings.iter().any(|warning| warning.id == WarningId::ClaimedByOthers));
}

#[test]
fn load_commands_have_no_privileges() {
    let Some(places) = Places::new() else { return };
    let capabilities = |user: &[&str]| {
        let file = places.theirs.join("status");
        let _ = fs::remove_file(&file);
        fs::set_permissions(&places.theirs, Permissions::from_mode(0o777)).unwrap();
        let command = format!("cat /proc/self/status > {}; sleep 9", file.display());
        run(&[&["load", "--duration", "500ms", "--load-command", &command], user].concat(), |command| {
            command
        });
        let text = fs::read_to_string(file).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().to_owned()
        };
        (
            field("Uid:"),
            u64::from_str_radix(&field("CapEff:"), 16).unwrap(),
            u64::from_str_radix(&field("CapBnd:"), 16).unwrap(),
        )
    };
    assert_eq!(capabilities(&[]), ("0".to_owned(), 0, 0));
    assert_eq!(capabilities(&["--load-user", "65534"]).0, "65534");
    let (user, effective, _) = capabilities(&["--load-user", "root"]);
    assert!(user == "0" && effective != 0, "root was asked for");
    let output = run(&["load", "--load-user", "no-such-user", "--load-command", "true"], |command| command);
    assert!(said(&output).contains("there is no user no-such-user"), "{}", said(&output));
}

/// The processes that `of` has started, and those that they have.
fn descendants(of: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let own: Vec<u32> = all.into_iter().filter(|pid| parent(*pid) == Some(of)).collect();
    own.iter().copied().chain(own.iter().flat_map(|pid| descendants(*pid))).collect()
}

#[test]
fn workers_have_no_privileges_but_those_that_their_work_takes() {
    let Some(places) = Places::new() else { return };
    // linux/capability.h: to write where another user may, CAP_DAC_OVERRIDE.
    for (load, kept) in [("cpu", 0), ("hdd", 1_u64 << 1)] {
        let mut command = Command::new(BINARY);
        command.args(["load", load, "--duration", "60s", "--load-dir"]).arg(&places.ours);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let effective = |pid: &u32| -> Option<u64> {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        };
        // Processes that watch over the workers have some of their own.
        let of_workers = || -> Vec<u64> {
            let all = descendants(child.id()).into_iter();
            all.filter(|pid| descendants(*pid).is_empty()).filter_map(|pid| effective(&pid)).collect()
        };
        let began = Instant::now();
        let mut seen = Vec::new();
        while seen.is_empty() || seen.iter().any(|one| *one != kept) {
            assert!(began.elapsed() < Duration::from_secs(40), "{load}: {seen:x?} instead of {kept:x}");
            std::thread::sleep(Duration::from_millis(50));
            seen = of_workers();
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        child.wait().unwrap();
    }
    places.assert_untouched();
}

/// What setcap(8) writes: linux/capability.h, `struct vfs_cap_data` of revision 2.
fn give_capabilities(file: &Path) -> bool {
    const EFFECTIVE: u32 = 0x0200_0001;
    const IPC_LOCK_AND_SYS_NICE: u32 = 1 << 14 | 1 << 23;
    let words = [EFFECTIVE, IPC_LOCK_AND_SYS_NICE, 0, 0, 0];
    let value: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(file, "security.capability", &value, flags).is_ok()
}

#[test]
fn file_capabilities_measure_and_change_nothing() {
    let Some(places) = Places::new() else { return };
    let program = places.directory.path().join("worstcase");
    fs::copy(BINARY, &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    if !give_capabilities(&program) {
        return skipped("the file system has no capabilities");
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=1", "60"]).arg(&program).args(arguments);
        command.uid(OTHER_USER).gid(OTHER_USER).current_dir(&places.theirs).output().unwrap()
    };
    let refused = |arguments: &[&str], why: &str| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {}", said(&output));
        assert!(said(&output).contains(why), "{arguments:?} {}", said(&output));
    };
    let short = ["measure", "--samples", "20", "--warm-up", "10ms"];
    let output = run(&[&short[..], &["--out", "record"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let record = record::store::load(&places.theirs.join("record")).unwrap();
    let thread = &record.scenarios[0].evidence.threads[0];
    assert_eq!((thread.policy, thread.priority), (Some(units::Policy::Fifo), 98));
    refused(&[&short[..], &["--priority", "99"]].concat(), "the highest priority is 98");
    refused(&[&short[..], &["--interval", "10us"]].concat(), "the shortest interval is 100us");
    let request = r#"{"instrument":{"timer":{"intervals":[1000]}},"samples":9}"#;
    let output = run(&["__measure", request]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for changing in [
        &["tune", "undo", "--state", "state"][..],
        &["tune", "apply", "--only", "rn-swappiness"],
        &["partition", "list"],
        &["lab", "kernels", "list"],
    ] {
        refused(changing, "it measures and reads, and changes nothing");
    }
    for hidden in [tune::holder::ARGUMENT, lab::guest::ARGUMENT, "__block"] {
        let output = run(&[hidden, "deadline", "{}"]);
        assert_eq!(output.status.code(), Some(2), "{hidden} {}", said(&output));
    }
    let load =
        run(&["load", "--duration", "300ms", "--load-command", "cat /proc/self/status > status; sleep 9"]);
    let text = fs::read_to_string(places.theirs.join("status")).unwrap();
    assert!(text.contains("CapEff:\t0000000000000000"), "{} {text}", said(&load));
}

#[test]
fn paths_that_lead_out_of_the_kernels_files_are_refused() {
    let Some(places) = Places::new() else { return };
    let path = format!("/proc/self/root{}", places.ours.join("secret").display());
    let choice = places.directory.path().join("choice.toml");
    fs::write(&choice, format!("only = []\n[settings]\n\"{path}\" = \"1\"\n")).unwrap();
    for arguments in [
        ["tune", "plan", "--file", choice.to_str().unwrap()],
        ["tune", "trial", &format!("{path}=1"), "--blocks=6"],
    ] {
        let output = run(&arguments, |command| command.current_dir(&places.directory));
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {}", said(&output));
    }
    places.assert_untouched();
}

#[test]
fn a_forged_journal_changes_no_file_runs_no_script_and_removes_no_directory() {
    let Some(places) = Places::new() else { return };
    let (state, proof) = (places.directory.path().join("state"), places.directory.path().join("proof"));
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    let script = places.directory.path().join("script");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\n", proof.display())).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let secret = places.ours.join("secret");
    let begin = serde_json::json!({
        "line": "begin", "id": "x", "tool-version": "0.1.0", "started": "", "boot-id": tune::boot_id(), "seconds": null,
    });
    let step = |step: usize, target: serde_json::Value, old: &str, new: &str| {
        let line = serde_json::json!({
            "line": "intend", "step": step, "rules": [], "target": target, "old": old, "new": new,
        });
        [line, serde_json::json!({"line": "done", "step": step, "outcome": "exact"})]
    };
    let mut lines = vec![begin];
    lines.extend(step(0, serde_json::json!({"file": secret}), "ALL ALL=NOPASSWD", "root's"));
    lines.extend(step(1, serde_json::json!({"group": places.theirs}), "absent", "there"));
    let service = serde_json::json!({"service": {"program": "no-such-program", "manager": script}});
    lines.extend(step(2, service, "running", "stopped"));
    let text: String = lines.iter().map(with_sum).collect();
    fs::write(state.join("journal"), text).unwrap();
    let output = run(&["tune", "undo", "--state", state.to_str().unwrap()], |command| command);
    assert_ne!(output.status.code(), Some(124), "{}", said(&output));
    places.assert_untouched();
    assert!(
        places.theirs.is_dir() && !proof.exists(),
        "{}{}",
        said(&output),
        String::from_utf8_lossy(&output.stdout)
    );
}

/// A line of a journal: CRC-32, a blank, JSON.
fn with_sum(line: &serde_json::Value) -> String {
    let text = line.to_string();
    let sum = text.bytes().fold(!0_u32, |sum, byte| {
        (0..8).fold(
            sum ^ u32::from(byte),
            |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 },
        )
    });
    format!("{:08x} {text}\n", !sum)
}

#[test]
fn another_root_is_not_left_by_its_links() {
    let Some(places) = Places::new() else { return };
    let root = places.directory.path().join("root");
    for directory in ["etc/systemd/system", "lib/systemd", "usr/bin", "proc/sys/vm"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("lib/systemd/systemd"), "").unwrap();
    fs::copy(BINARY, root.join("usr/bin/worstcase")).unwrap();
    symlink(&places.ours, root.join("var")).unwrap();
    symlink(places.ours.join("secret"), root.join("proc/sys/vm/swappiness")).unwrap();
    // What is shown as it stands there.
    fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
    symlink(places.ours.join("secret"), root.join("proc/sys/kernel/osrelease")).unwrap();
    symlink(places.ours.join("secret"), root.join("proc/cmdline")).unwrap();
    let persist = ["tune", "persist", "--isolate", "1", "--root", root.to_str().unwrap()];
    let output = run(&persist, |command| command);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let checked = run(&["check", "--all", "--root", root.to_str().unwrap()], |command| command);
    let text = String::from_utf8_lossy(&checked.stdout).into_owned() + &said(&checked);
    assert!(!text.contains("root's"), "{text}");
    places.assert_untouched();
}

/// In place of each file that is asked for.
#[test]
fn pipes_devices_and_links_in_another_root_are_neither_waited_for_nor_followed() {
    let Some(places) = Places::new() else { return };
    let (root, snapshot) =
        (places.directory.path().join("root"), places.directory.path().join("snapshot.txt"));
    assert!(run(&["snapshot", snapshot.to_str().unwrap()], |command| command).status.success());
    let tree = sysroot::Tree::of_text(&fs::read_to_string(snapshot).unwrap()).unwrap();
    assert!(tree.files.contains_key("/proc/sys/kernel/osrelease"));
    let known = ["/proc/sys/kernel/arch".to_owned()];
    let secret = places.ours.join("secret");
    for turn in 0..3 {
        for (number, path) in known.iter().chain(tree.files.keys()).enumerate() {
            let path = root.join(path.trim_start_matches('/'));
            // One may be a file where another's directory is.
            if fs::create_dir_all(path.parent().unwrap()).is_err() || path.is_dir() {
                continue;
            }
            let _ = fs::remove_file(&path);
            match (number + turn) % 3 {
                0 => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap(),
                1 => symlink("/dev/zero", &path).unwrap(),
                _ => symlink(&secret, &path).unwrap(),
            }
        }
        let output = run(&["check", "--all", "--root", root.to_str().unwrap()], |command| command);
        assert!(matches!(output.status.code(), Some(0..=3)), "{turn}: {:?} {}", output.status, said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert!(!text.contains("root's"), "{text}");
    }
    places.assert_untouched();
}

/// Puts a link to `target` in the place of each directory that appears in `directory`, and says of how many.
fn swap_directories(directory: &Path, target: &Path, until: &AtomicBool) -> usize {
    let mut swapped = 0;
    while !until.load(Ordering::Relaxed) {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let (path, moved) = (entry.path(), directory.join(format!("moved-{swapped}")));
            let is_new = entry.file_type().is_ok_and(|kind| kind.is_dir())
                && !entry.file_name().to_string_lossy().starts_with("moved-");
            if is_new && fs::rename(&path, &moved).is_ok() {
                symlink(target, &path).unwrap();
                swapped += 1;
            }
        }
    }
    swapped
}

#[test]
fn operations_on_files_reach_no_directory_that_another_user_puts_in_the_place_of_theirs() {
    let Some(places) = Places::new() else { return };
    let others = places.directory.path().join("others");
    fs::create_dir(&others).unwrap();
    // As files of the operations are called.
    const NAMES: [&str; 2] = ["fifo", "file"];
    NAMES.iter().for_each(|name| fs::write(others.join(name), "precious").unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let neighbour = {
        let (over, directory, target) = (Arc::clone(&over), places.theirs.clone(), others.clone());
        as_other_user(move || swap_directories(&directory, &target, &over))
    };
    let cost = ["cost", "--only", "files,fifo-stream", "--rounds", "3", "--sample", "5ms", "--directory"];
    let out = places.ours.join("costs");
    let rest = [places.theirs.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = run(&[&cost[..], &rest].concat(), |command| command);
    over.store(true, Ordering::Relaxed);
    let swapped = neighbour.join().unwrap();
    assert!(swapped > 10, "{swapped} of 30 samples: {}", said(&output));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(&others), NAMES);
    assert!(NAMES.iter().all(|name| fs::read(others.join(name)).unwrap() == b"precious"));
    let measured = record::cost::load(&out).unwrap().unwrap();
    assert!(
        measured.operations.iter().all(|one| one.failures.is_empty()),
        "its own directory stays the one that is worked in: {measured:?}"
    );
}

#[test]
fn a_guest_that_another_user_describes_is_not_booted() {
    let Some(places) = Places::new() else { return };
    let left = places.theirs.join("left");
    fs::create_dir(&left).unwrap();
    for name in ["record.json", "lab.json"] {
        fs::write(left.join(name), "{}").unwrap();
    }
    // Root's own directory below one that the other user could put another in place of, and one that is his.
    for _ in 0..2 {
        let output = run(&["lab", "explain", left.to_str().unwrap()], |command| command);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("another user owns it"), "{}", said(&output));
        give_away(&left);
    }
}
