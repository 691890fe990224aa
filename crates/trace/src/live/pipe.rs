//! The events of an instance as the kernel prints them: `trace_pipe`.

use std::fs::File;
use std::io::{ErrorKind, Read};

use sysroot::SysRoot;

use super::ring::open;
use crate::error::{Error, Result};
use crate::event::Item;
use crate::text;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Where events come faster than they are read, only so much is shown in one go.
const MOST: usize = 16 << 20;

/// The open file, and the beginning of a line whose end has not come yet.
#[derive(Debug)]
pub(super) struct Pipe {
    file: File,
    path: String,
    unread: Vec<u8>,
}

impl Pipe {
    pub fn open(root: &SysRoot, directory: &str) -> Result<Self> {
        let path = format!("{directory}/trace_pipe");
        let file = open(root, &path)?;
        Ok(Self { file, path, unread: Vec::new() })
    }

    /// Shows the whole lines that have come since; none are waited for.
    pub fn each(&mut self, see: &mut dyn FnMut(&Item<'_>)) -> Result<()> {
        let mut piece = vec![0; PIECE];
        let mut sum = 0;
        while sum < MOST {
            let length = match self.file.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(Error::new("read", &self.path, error)),
            };
            sum += length;
            self.unread.extend_from_slice(&piece[..length]);
            self.show(see);
        }
        Ok(())
    }

    fn show(&mut self, see: &mut dyn FnMut(&Item<'_>)) {
        let end = self.unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        let lines = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        lines.lines().filter_map(text::parse).for_each(|item| see(&item));
        self.unread.drain(..end);
    }
}
