//! The pages of one CPU's buffer as the kernel has them: `per_cpu/cpuN/trace_pipe_raw`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use sysroot::SysRoot;
use units::{Bytes, CpuId};

use crate::error::{Error, Result};
use crate::merge::Pages;

/// What fits into a pipe.
const PIPE: usize = 64 * 1024;

/// A buffer that is read while the kernel writes it.
#[derive(Debug)]
pub(super) struct Ring {
    file: File,
    path: String,
    size: usize,
    has_buffer: bool,
}

/// How much was moved into a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spooled {
    /// Whole pages, which the kernel handed over itself.
    pub spliced: Bytes,
    /// The page that was being filled, which was read and written.
    pub copied: Bytes,
}

/// Opens a file of tracefs so that reading never waits.
pub(super) fn open(root: &SysRoot, path: &str) -> Result<File> {
    root.open(path).map_err(|error| Error::new("open", path, error))
}

impl Ring {
    /// Of a CPU, in pages of so many bytes.
    pub fn open(root: &SysRoot, directory: &str, cpu: CpuId, size: usize) -> Result<Self> {
        let path = format!("{directory}/per_cpu/cpu{cpu}/trace_pipe_raw");
        Ok(Self { file: open(root, &path)?, path, size, has_buffer: true })
    }

    /// Whether the CPU had a buffer when it was read last: one that was not online since the instance was made has none.
    pub fn has_buffer(&self) -> bool {
        self.has_buffer
    }

    /// Moves all pages into a file.
    pub fn spool(&mut self, file: &File) -> Result<Spooled> {
        let wrong = |path: &str, error: std::io::Error| Error::new("copy", path, error);
        let mut spooled = Spooled::default();
        spooled.spliced = match splice_all(&self.file, file) {
            Err(errno) if lacks_buffer(&errno.into()) => return Ok(spooled),
            spliced => Bytes(spliced.map_err(|errno| wrong(&self.path, errno.into()))?),
        };
        let mut page = Vec::new();
        while self.next_page(&mut page)? {
            let mut file = file;
            file.write_all(&page).map_err(|error| wrong(&self.path, error))?;
            spooled.copied.0 += page.len() as u64;
        }
        Ok(spooled)
    }
}

/// Moves whole pages through a pipe, in which they are references; how many bytes.
fn splice_all(from: &File, to: &File) -> std::result::Result<u64, Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    let mut sum = 0;
    loop {
        let mut left = match splice(from, None, &write, None, PIPE, flags) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(sum),
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        sum += left as u64;
        while left > 0 {
            match splice(&read, None, to, None, left, SpliceFlags::MOVE) {
                Ok(0) => return Err(Errno::IO),
                Ok(length) => left -= length,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl Pages for Ring {
    /// The page may be one that is still being filled: then the next one goes on where it ends.
    fn next_page(&mut self, page: &mut Vec<u8>) -> Result<bool> {
        page.resize(self.size, 0);
        loop {
            let answer = self.file.read(page);
            self.has_buffer = !answer.as_ref().is_err_and(lacks_buffer);
            match pages_end(answer) {
                Ok(None) => {}
                Ok(Some(length)) => {
                    page.truncate(length);
                    return Ok(length > 0);
                }
                Err(error) => return Err(Error::new("read", &self.path, error)),
            }
        }
    }
}

/// Whether the kernel answers that a CPU has no buffer. There are directories for all CPUs that may ever be there, and buffers for
/// those that have been online since the instance was made (kernel/trace/ring_buffer.c).
fn lacks_buffer(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

/// How long the page is that was read, 0 where there is none now; none where reading is to be tried again.
fn pages_end(answer: std::io::Result<usize>) -> std::io::Result<Option<usize>> {
    match answer {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) if error.kind() == ErrorKind::WouldBlock || lacks_buffer(&error) => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_without_a_buffer_has_no_page_and_other_refusals_are_errors() {
        let answer = |errno: Errno| pages_end(Err(errno.into()));
        assert_eq!(answer(Errno::NODEV).unwrap(), Some(0), "it is offline");
        assert_eq!(answer(Errno::AGAIN).unwrap(), Some(0), "it recorded nothing since");
        assert_eq!(answer(Errno::INTR).unwrap(), None);
        assert_eq!(pages_end(Ok(4096)).unwrap(), Some(4096));
        assert!(answer(Errno::IO).is_err() && answer(Errno::BUSY).is_err());
    }
}
