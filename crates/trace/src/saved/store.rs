//! Where the bytes of a file are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file, or what one holds.
#[derive(Debug)]
pub(super) enum Store {
    File(File, u64),
    Memory(Vec<u8>),
}

impl Store {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self::File(file, length))
    }

    pub fn len(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Puts up to `length` bytes from `offset` on into `bytes`, fewer at the end.
    pub fn read(&self, offset: u64, length: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        match self {
            Self::Memory(all) => {
                let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
                let end = begin.saturating_add(length).min(all.len());
                bytes.extend_from_slice(&all[begin..end]);
            }
            Self::File(file, all) => {
                let left = usize::try_from(all.saturating_sub(offset)).unwrap_or(usize::MAX);
                bytes.resize(length.min(left), 0);
                file.read_exact_at(bytes, offset)?;
            }
        }
        Ok(())
    }
}
