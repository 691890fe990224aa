//! The file systems that programs expect.

use std::fs;
use std::path::Path;

use super::Result;

/// Kind, where, options.
type Mount = (&'static str, &'static str, &'static str);

/// What no kernel that the lab boots is without.
const NEEDED: [Mount; 7] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", "mode=0755"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    ("tmpfs", "/run", "mode=0755"),
    ("tmpfs", "/tmp", "mode=1777"),
];

/// What a kernel may be built without.
const OFFERED: [Mount; 6] = [
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("securityfs", "/sys/kernel/security", ""),
    ("bpf", "/sys/fs/bpf", "mode=0700"),
    ("mqueue", "/dev/mqueue", ""),
];

/// What comes with a module.
const OF_MODULES: [Mount; 1] = [("configfs", "/sys/kernel/config", "")];

/// Mounts what is needed, and of the rest what this kernel has.
pub fn mount_all() -> Result<()> {
    NEEDED.iter().try_for_each(mount)?;
    OFFERED.iter().for_each(|offered| drop(mount(offered)));
    Ok(())
}

/// Mounts what modules have brought.
pub fn mount_of_modules() {
    OF_MODULES.iter().for_each(|offered| drop(mount(offered)));
}

fn mount((kind, target, options): &Mount) -> Result<()> {
    let target = Path::new(target);
    // A directory of sysfs is there or the kernel lacks what it is for.
    if !target.starts_with("/sys/") {
        fs::create_dir_all(target).map_err(|error| format!("create {}: {error}", target.display()))?;
    }
    sys::machine::mount(kind, target, kind, options).map_err(|error| error.to_string())
}
