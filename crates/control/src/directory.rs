//! A directory of the kernel for as long as it is needed.

use std::time::Duration;

use record::Fact;
use rustix::io::Errno;

use crate::{Kernel, Live};

/// How often removal is tried: the kernel lets go of a group's last process a moment after it has ended.
const TRIES: usize = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// A control group, or an instance of the trace. Dropping it removes it, within half a second.
#[derive(Debug)]
pub struct Directory {
    kernel: Live,
    path: String,
}

impl Directory {
    /// Makes it.
    ///
    /// # Errors
    /// What the kernel answered: `EEXIST` where there is one.
    pub fn make(path: String) -> Result<Self, Errno> {
        let mut kernel = Live::default();
        kernel.make_directory(&path)?;
        Ok(Self { kernel, path })
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Whether it has that file.
    pub fn exists(&self, name: &str) -> bool {
        self.kernel.root().exists(&self.file(name)).value().is_some()
    }

    /// Reads one of its files.
    pub fn read(&self, name: &str) -> Fact<String> {
        self.kernel.root().read(&self.file(name))
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn write(&mut self, name: &str, value: &str) -> Result<(), Errno> {
        self.kernel.write_file(&self.file(name), value)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if self.kernel.remove_directory(&self.path) != Err(Errno::BUSY) {
                return;
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::print_stderr)]
    fn a_group_goes_with_its_guard() {
        // Where both versions are mounted, the first is not a control group itself.
        let path = |top: &str| format!("{top}/worstcase-test-{}", std::process::id());
        let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuset"];
        let made = tops.iter().find_map(|top| Some((path(top), Directory::make(path(top)).ok()?)));
        let Some((path, directory)) = made else {
            return eprintln!("skipped: no control group can be made here");
        };
        assert!(std::fs::exists(&path).unwrap());
        assert_eq!(Directory::make(path.clone()).unwrap_err(), Errno::EXIST);
        assert!(std::fs::exists(&path).unwrap(), "a guard that was not made removes nothing");
        drop(directory);
        assert!(!std::fs::exists(&path).unwrap());
    }
}
