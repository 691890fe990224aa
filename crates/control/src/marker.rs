//! The marker of a trace.

use std::fs::{File, OpenOptions};
use std::io;

use rustix::io::Errno;

use crate::place;

/// `trace_marker` of an instance, open: what is written to it stands in the trace, with the time at which it was written.
#[derive(Debug)]
pub struct Marker(File);

impl Marker {
    /// What [`Marker::mark`] writes.
    pub const TEXT: &'static str = "LATE";

    /// Opens it.
    ///
    /// # Errors
    /// What the kernel answered; `EXDEV` for a file of no trace.
    pub fn open(path: &str) -> io::Result<Self> {
        place::check(&rustix::fs::statfs(path)?, &place::TRACES)?;
        OpenOptions::new().write(true).open(path).map(Self)
    }

    /// Marks this moment: one system call, no allocation. Where the trace does not take it, nothing is lost but the mark.
    pub fn mark(&self) -> Result<(), Errno> {
        rustix::io::write(&self.0, Self::TEXT.as_bytes()).map(drop)
    }
}
