//! Where tracefs is, and which instances in it are ours.

use control::{Kernel, Live};
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

use crate::error::{Error, Result};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// What the name of an instance of ours begins with; the id of its process follows, and its number there.
pub(super) const OWN: &str = "worstcase-";

/// Where the file system is, if this process may look into it.
///
/// # Errors
/// Why it cannot be had.
pub fn place(root: &SysRoot) -> Result<&'static str> {
    let look = |place: &'static str| (place, root.read(&format!("{place}/current_tracer")));
    let mut looked = PLACES.map(look).into_iter().filter(|(_, tracer)| *tracer != Fact::Absent);
    match looked.next() {
        Some((place, Fact::Value(_))) => Ok(place),
        Some((place, Fact::Unreadable(errno))) => {
            let answer = std::io::Error::from_raw_os_error(errno);
            Err(Error::new("read", place, &answer).hint(match answer.kind() {
                std::io::ErrorKind::PermissionDenied => "tracing needs root: run it as root",
                _ => "",
            }))
        }
        Some((place, tracer)) => Err(Error::new("read", place, tracer)),
        None => {
            let error = Error::new("find", PLACES[0], "tracefs is not mounted");
            Err(error.hint(format!("as root: mount -t tracefs none {}", PLACES[0])))
        }
    }
}

/// What to do where the kernel makes no instance in the tracefs at `top`.
pub(super) fn hint_on_making(errno: Errno, top: &str) -> String {
    match errno {
        Errno::ROFS => format!("tracefs is mounted read-only: mount -o remount,rw {top}"),
        Errno::ACCESS | Errno::PERM => "tracing needs root: run it as root".to_owned(),
        Errno::NOENT => "the kernel has no instances of its trace: Linux 3.10 and later have them".to_owned(),
        Errno::NOMEM => "there is no memory for another buffer".to_owned(),
        _ => String::new(),
    }
}

/// Takes away instances of ours whose process is gone; each with what the kernel answered.
pub fn clear() -> Vec<(String, std::result::Result<(), Errno>)> {
    let mut kernel = Live::default();
    let root = kernel.root();
    let left = instances(&root).into_iter().filter(|(_, process)| !is_running(&root, *process));
    left.map(|(directory, _)| {
        let removed = kernel.remove_directory(&directory);
        (directory, removed)
    })
    .collect()
}

fn is_running(root: &SysRoot, process: i32) -> bool {
    machine::tasks::task(root, process, process).is_some()
}

/// The instances that worstcase has made, each with the id of the process that did.
fn instances(root: &SysRoot) -> Vec<(String, i32)> {
    let Ok(place) = place(root) else { return Vec::new() };
    let directory = format!("{place}/instances");
    let names = root.directories(&directory).value().cloned().unwrap_or_default();
    let own = |name: String| {
        let process = name.strip_prefix(OWN)?.split('-').next()?.parse().ok()?;
        Some((format!("{directory}/{name}"), process))
    };
    names.into_iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    fn root(files: &[&str]) -> SysRoot {
        SysRoot::of(Tree::whole(files.iter().map(|path| ((*path).to_owned(), b"nop".to_vec()))))
    }

    #[test]
    fn instances_of_ours_are_known_by_name() {
        let root = root(&[
            "/sys/kernel/tracing/current_tracer",
            "/sys/kernel/tracing/instances/worstcase-70-3/trace",
            "/sys/kernel/tracing/instances/worstcase-71/trace",
            "/sys/kernel/tracing/instances/other/trace",
        ]);
        let path = |name: &str| format!("/sys/kernel/tracing/instances/{name}");
        assert_eq!(instances(&root), [(path("worstcase-70-3"), 70), (path("worstcase-71"), 71)]);
    }

    #[test]
    fn a_tracefs_that_is_mounted_read_only_says_how_to_mount_it() {
        let hint = hint_on_making(Errno::ROFS, PLACES[0]);
        assert_eq!(hint, "tracefs is mounted read-only: mount -o remount,rw /sys/kernel/tracing");
    }

    #[test]
    fn the_old_place_serves_and_a_missing_one_says_what_to_mount() {
        assert_eq!(place(&root(&["/sys/kernel/debug/tracing/current_tracer"])).unwrap(), PLACES[1]);
        let error = place(&root(&[])).unwrap_err();
        assert_eq!(error.to_string(), "find /sys/kernel/tracing: tracefs is not mounted");
        assert_eq!(error.hint, "as root: mount -t tracefs none /sys/kernel/tracing");
    }
}
