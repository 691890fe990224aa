//! A control group for the workers, where this process may make one: cgroup v2, `cgroup.kill` (Linux 5.14).
//! Documentation/admin-guide/cgroup-v2.rst.

use std::path::PathBuf;

use control::{Directory, Kernel, Live};
use sys::Errno;

/// A group below the supervisor's own; removed when dropped.
#[derive(Debug)]
pub(super) struct Group(Directory);

impl Group {
    /// Makes a group and finds out by trying whether processes may be moved into it and killed there.
    pub fn make() -> Option<Self> {
        let path = own_group()?.join(format!("worstcase-load-{}", std::process::id()));
        let group = Self(Directory::make(path.to_str()?.to_owned()).ok()?);
        if !group.0.exists("cgroup.kill") {
            return None;
        }
        let trial = sys::process::fork(|| u8::from(group.join().is_err())).ok()?;
        let ended = sys::process::wait(trial).ok()?.ended;
        (ended == sys::process::Ended::Exited(0)).then_some(group)
    }

    /// Moves this process into the group.
    pub fn join(&self) -> Result<(), Errno> {
        Live::default().write_file(&self.0.file("cgroup.procs"), "0")
    }

    /// Kills every process in it.
    pub fn kill(&self) {
        // Where it fails, the walk over descendants still comes.
        let _ = Live::default().write_file(&self.0.file("cgroup.kill"), "1");
    }
}

/// This process's directory in the unified hierarchy.
fn own_group() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = machine::mounts::parse(&std::fs::read_to_string("/proc/self/mountinfo").ok()?);
    let mount = mounts.into_iter().find(|mount| mount.file_system == "cgroup2")?;
    let below = PathBuf::from(path);
    Some(mount.point.join(below.strip_prefix(&mount.root).or_else(|_| below.strip_prefix("/")).ok()?))
}
