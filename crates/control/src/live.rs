//! The running machine.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sysroot::SysRoot;
use units::{CpuList, Policy};

use crate::kernel::Kernel;
use crate::latency::{KeepLatency, LatencyRequest};
use crate::programs::{errno, run_silently, systemctl};
use crate::slice_property::SliceProperty;
use crate::{place, slice};

/// The running kernel.
#[derive(Debug)]
pub struct Live {
    latency: Box<dyn KeepLatency>,
}

/// A limit on exit latencies lasts as long as this value.
impl Default for Live {
    fn default() -> Self {
        Self::keeping_latency_by(None::<LatencyRequest>)
    }
}

impl Live {
    /// With somebody else who keeps the limit on exit latencies, beyond the end of this process.
    pub fn keeping_latency_by(keeper: impl KeepLatency + 'static) -> Self {
        Self { latency: Box::new(keeper) }
    }
}

impl Kernel for Live {
    fn root(&self) -> SysRoot {
        SysRoot::live()
    }

    /// `EXDEV` for a file that is none of the kernel's settings, whatever its path looks like.
    fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        let path = self.root().path(path);
        let systems = place::systems_at(&path)?;
        place::check(&rustix::fs::statfs(&path)?, systems)?;
        // A device at such a path would be opened with all that this does.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::empty())?;
        // What was looked at can have been mounted over since.
        place::check(&rustix::fs::fstatfs(&file)?, systems)?;
        write_once(&file, value)
    }

    /// `EXDEV` where directories are no groups and no instances.
    fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        let path = self.root().path(path);
        place::check_parent(&path)?;
        std::fs::create_dir(path).map_err(errno)
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        let path = self.root().path(path);
        place::check_parent(&path)?;
        std::fs::remove_dir(path).map_err(errno)
    }

    fn set_affinity(&mut self, tid: i32, cpus: &CpuList) -> Result<(), Errno> {
        sys::schedule::set_affinity(tid, cpus).map_err(|error| error.errno)
    }

    fn set_scheduling(&mut self, tid: i32, policy: Policy, priority: u32) -> Result<(), Errno> {
        sys::schedule::set_policy(tid, policy, priority).map_err(|error| error.errno)
    }

    fn swap(&mut self, path: &str, priority: Option<i32>) -> Result<(), Errno> {
        let done = match priority {
            None => sys::machine::swap_off(path),
            Some(priority) => sys::machine::swap_on(path, u16::try_from(priority).ok()),
        };
        done.map_err(|error| error.errno)
    }

    /// `EXDEV` for what is no name of a service.
    fn service(&mut self, manager: &str, run: bool) -> Result<(), Errno> {
        if !place::is_service(manager) {
            return Err(Errno::XDEV);
        }
        let verb = if run { "start" } else { "stop" };
        match manager.starts_with('/') {
            true => run_silently(manager, &[verb]),
            false => systemctl(&[verb, manager]),
        }
    }

    fn slice(&mut self, group: &str, property: SliceProperty, value: &str) -> Result<(), Errno> {
        slice::set(self, group, property, value)
    }

    fn limit_latency(&mut self, microseconds: Option<u32>) -> Result<(), Errno> {
        self.latency.limit(microseconds)
    }
}

/// In one write: the kernel takes each for a value.
fn write_once(file: impl AsFd, value: &str) -> Result<(), Errno> {
    let text = format!("{value}\n");
    match rustix::io::write(file, text.as_bytes())? {
        length if length == text.len() => Ok(()),
        _ => Err(Errno::IO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(directory: &tempfile::TempDir, name: &str) -> String {
        directory.path().join(name).to_str().unwrap().to_owned()
    }

    #[test]
    fn a_value_is_written_over_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = path(&directory, "file");
        std::fs::write(&file, "before").unwrap();
        write_once(std::fs::OpenOptions::new().write(true).open(&file).unwrap(), "1").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\nfore", "nothing is cut off first");
    }

    #[test]
    fn files_of_no_kernel_file_system_are_not_written_whatever_they_are_called() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (path(&directory, "file"), path(&directory, "link"));
        std::fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink("/proc/self/oom_score_adj", &link).unwrap();
        let mut kernel = Live::default();
        let own = std::process::id();
        for path in [
            file.clone(),
            format!("/proc/self/root{file}"),
            format!("/proc/{own}/task/{own}/root{file}"),
            format!("/proc/thread-self/cwd{file}"),
            "/proc/self/fd/1".to_owned(),
            "/proc/self/mem".to_owned(),
            "/proc/sysrq-trigger".to_owned(),
            "/proc/sys/kernel/core_pattern".to_owned(),
            "/dev/null".to_owned(),
            link,
        ] {
            assert_eq!(kernel.write_file(&path, "1"), Err(Errno::XDEV), "{path}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
        assert_eq!(
            kernel.write_file(&path(&directory, "none"), "1"),
            Err(Errno::NOENT),
            "nothing is created"
        );
        assert_eq!(kernel.write_file("/proc/sys/no/such/file", "1"), Err(Errno::NOENT));
        kernel.write_file("/proc/self/oom_score_adj", "1000").unwrap();
    }

    #[test]
    fn directories_are_made_and_removed_where_they_are_groups_or_instances() {
        let directory = tempfile::tempdir().unwrap();
        let group = path(&directory, "group");
        let mut kernel = Live::default();
        assert_eq!(kernel.make_directory(&group), Err(Errno::XDEV));
        std::fs::create_dir(&group).unwrap();
        assert_eq!(kernel.remove_directory(&group), Err(Errno::XDEV));
        assert!(std::fs::exists(&group).unwrap());
    }

    #[test]
    fn a_service_has_a_name_that_services_have() {
        let mut kernel = Live::default();
        for name in [
            "/bin/true",
            "/tmp/script",
            "/etc/init.d/../../bin/true",
            "--root=/",
            "a b.service",
            "x.mount",
            "",
        ] {
            assert_eq!(kernel.service(name, true), Err(Errno::XDEV), "{name}");
        }
        assert_eq!(kernel.service("/etc/init.d/no-such-script", true), Err(Errno::NOENT));
    }

    #[test]
    fn a_service_that_fails_is_an_error() {
        assert_eq!(run_silently("/no/such/script", &["start"]), Err(Errno::NOENT));
        assert_eq!(run_silently("/bin/false", &["stop"]), Err(Errno::IO));
        assert_eq!(run_silently("/bin/true", &["stop"]), Ok(()));
    }
}
