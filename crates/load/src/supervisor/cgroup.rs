//! A control group for the workers, where this process may make one: cgroup v2, `cgroup.kill` (Linux 5.14).
//! Documentation/admin-guide/cgroup-v2.rst.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A group below the supervisor's own; removed when dropped.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes a group and finds out by trying whether processes may be moved into it and killed there.
    pub fn make() -> Option<Self> {
        let path = own_group()?.join(format!("worstcase-load-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        if !group.0.join("cgroup.kill").exists() {
            return None;
        }
        let trial = sys::process::fork(|| u8::from(group.join().is_err())).ok()?;
        let ended = sys::process::wait(trial).ok()?.ended;
        (ended == sys::process::Ended::Exited(0)).then_some(group)
    }

    /// Moves this process into the group.
    pub fn join(&self) -> std::io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    /// Kills every process in it.
    pub fn kill(&self) {
        // Where it fails, the walk over descendants still comes.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel lets go of the last process a moment after it has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// This process's directory in the unified hierarchy.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = machine::mounts::parse(&fs::read_to_string("/proc/self/mountinfo").ok()?);
    let mount = mounts.into_iter().find(|mount| mount.file_system == "cgroup2")?;
    let below = PathBuf::from(path);
    Some(mount.point.join(below.strip_prefix(&mount.root).or_else(|_| below.strip_prefix("/")).ok()?))
}
