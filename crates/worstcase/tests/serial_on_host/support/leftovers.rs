//! What can outlive a program beside files and processes: objects of the kernel that have a name, and settings.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Directories whose entries are objects.
const ENTRIES: [&str; 3] = ["/dev/shm", "/run/netns", "/sys/class/net"];
/// Tables of objects: the first two columns say which one it is.
const TABLES: [&str; 5] =
    ["/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/sysvipc/shm", "/proc/net/if_inet6", "/proc/net/route"];
/// Settings that change by themselves.
const RESTLESS: [&str; 2] = ["/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/random"];
const PATIENCE: Duration = Duration::from_secs(10);

/// A look at this machine.
pub struct Machine {
    /// Where its message queues are shown; none where they cannot be.
    queues: Option<tempfile::TempDir>,
}

impl Machine {
    pub fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "mqueue", "none"]).arg(place.path()).status();
        Self { queues: mount.is_ok_and(|status| status.success()).then_some(place) }
    }

    /// All that there is now.
    pub fn state(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let queues = self.queues.iter().map(tempfile::TempDir::path);
        for directory in queues.chain(ENTRIES.iter().map(Path::new)) {
            found.extend(paths(directory));
        }
        for table in TABLES {
            let text = fs::read_to_string(table).unwrap_or_default();
            let object = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            found.extend(text.lines().map(|line| format!("{table}: {}", object(line))));
        }
        // Of each process; a namespace without any is named below /run/netns.
        found.extend(paths(Path::new("/proc")).iter().filter_map(|process| {
            fs::read_link(format!("{process}/ns/net")).ok().map(|space| space.display().to_string())
        }));
        control_groups(Path::new("/sys/fs/cgroup"), &mut found);
        settings(Path::new("/proc/sys"), &mut found);
        found
    }

    /// Waits until all is as it was; fails with what is not.
    pub fn is_again(&self, before: &BTreeSet<String>, what: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = self.state();
            if now == *before {
                return;
            }
            let differs: Vec<_> = now.symmetric_difference(before).collect();
            assert!(Instant::now() < until, "{what}: left behind or changed: {differs:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.queues.iter().for_each(|place| drop(Command::new("umount").arg(place.path()).status()));
    }
}

fn paths(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

fn control_groups(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.insert(entry.path().display().to_string());
            control_groups(&entry.path(), found);
        }
    }
}

/// Those that can be written, with their values.
fn settings(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = entry.metadata() else { continue };
        if RESTLESS.iter().any(|restless| path.starts_with(restless)) {
            continue;
        }
        if about.is_dir() {
            settings(&path, found);
        } else if about.permissions().mode() & 0o222 != 0 {
            let value = fs::read(&path).unwrap_or_default();
            found.insert(format!("{} = {}", path.display(), String::from_utf8_lossy(&value).trim()));
        }
    }
}

#[test]
fn what_is_left_behind_is_seen_until_it_is_gone() {
    let machine = Machine::new();
    let Some(queues) = &machine.queues else { return super::skipped("message queues cannot be shown here") };
    let before = machine.state();
    let name = format!("worstcase-test-{}", std::process::id());
    let group = Path::new("/sys/fs/cgroup/cpu").join(&name);
    let left = [queues.path().join(&name), Path::new("/dev/shm").join(&name)];
    left.iter().for_each(|path| drop(fs::File::create(path).unwrap()));
    let has_group = fs::create_dir(&group).is_ok();
    let now = machine.state();
    assert_eq!(now.difference(&before).count(), left.len() + usize::from(has_group), "{name}");
    left.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert!(!has_group || fs::remove_dir(&group).is_ok());
    machine.is_again(&before, &name);
}
