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
        Ok(Self { file: open(root, &path)?, path, size })
    }

    /// Moves all pages into a file.
    pub fn spool(&mut self, file: &File) -> Result<Spooled> {
        let wrong = |path: &str, error: std::io::Error| Error::new("copy", path, error);
        let mut spooled = Spooled::default();
        let spliced = splice_all(&self.file, file).map_err(|errno| wrong(&self.path, errno.into()))?;
        spooled.spliced = Bytes(spliced);
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
            match self.file.read(page) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    page.truncate(length);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(Error::new("read", &self.path, error)),
            }
        }
    }
}
