//! Files without a name, in memory, that a child opens by its descriptor.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, SeekFrom};
use rustix::io::Errno;

use crate::Error;

/// A file in memory.
#[derive(Debug)]
pub(crate) struct MemoryFile(File);

impl MemoryFile {
    /// An empty one. memfd_create(2).
    pub fn new(name: &str) -> Result<Self, Error> {
        let created = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC);
        let failed = |errno| Error::new(format!("create a file in memory: {errno}"));
        created.map(|descriptor| Self(descriptor.into())).map_err(failed)
    }

    /// One that holds `bytes`.
    pub fn of(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let mut file = Self::new(name)?;
        file.0.write_all(bytes).map_err(|error| {
            Error::new(format!("write {} bytes into memory: {error}", bytes.len()))
                .hint("is there memory for the guest's programs and disk?")
        })?;
        Ok(file)
    }

    /// Makes it `size` bytes long, without taking memory for what is not written. ftruncate(2).
    pub fn stretch(&self, size: u64) -> Result<(), Error> {
        self.0.set_len(size).map_err(|error| Error::new(format!("make a file of {size} bytes: {error}")))
    }

    /// What it holds.
    pub fn content(&self) -> Result<Vec<u8>, Error> {
        self.content_from(0)
    }

    /// How many bytes it holds.
    pub fn length(&self) -> Result<u64, Error> {
        let kind = self.0.metadata();
        kind.map(|kind| kind.len())
            .map_err(|error| Error::new(format!("look at what the guest wrote: {error}")))
    }

    /// What it holds from `place` on.
    pub fn content_from(&self, place: u64) -> Result<Vec<u8>, Error> {
        let failed = |error| Error::new(format!("read what the guest wrote: {error}"));
        let length = self.0.metadata().map_err(failed)?.len().saturating_sub(place);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.0.read_exact_at(&mut bytes, place).map_err(failed)?;
        Ok(bytes)
    }

    /// The first byte from `place` on that was written, or that stands beside one; none where there is none. lseek(2),
    /// SEEK_DATA.
    pub fn written_from(&self, place: u64) -> Result<Option<u64>, Error> {
        match rustix::fs::seek(&self.0, SeekFrom::Data(place)) {
            Ok(place) => Ok(Some(place)),
            Err(Errno::NXIO) => Ok(None),
            Err(errno) => Err(Error::new(format!("look for what was written to memory: {errno}"))),
        }
    }

    /// At most `most` bytes from `place` on.
    pub fn piece(&self, place: u64, most: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; most];
        let read = self.0.read_at(&mut bytes, place);
        let read = read.map_err(|error| Error::new(format!("read a file in memory: {error}")))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Writes into it.
    #[cfg(test)]
    pub fn put(&self, place: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, place).unwrap();
    }

    /// As a child's output.
    pub fn as_output(&self) -> Result<Stdio, Error> {
        self.0.try_clone().map(Stdio::from).map_err(|error| Error::new(format!("copy a descriptor: {error}")))
    }

    /// The same file, to be kept beside this one.
    pub fn again(&self) -> Result<Self, Error> {
        self.0.try_clone().map(Self).map_err(|error| Error::new(format!("copy a descriptor: {error}")))
    }

    /// Lets `command` open it; its path there. The file is opened anew there: it has a place of its own in it.
    pub fn pass_to(&self, command: &mut Command) -> Result<String, Error> {
        let copied = self.0.try_clone().map(OwnedFd::from);
        let descriptor = copied.map_err(|error| Error::new(format!("copy a descriptor: {error}")))?;
        let path = format!("/proc/self/fd/{}", sys::process::number(&descriptor));
        sys::process::pass_on(command, descriptor);
        Ok(path)
    }
}
