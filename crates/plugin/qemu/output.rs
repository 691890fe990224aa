//! The stream, written as it comes.

use core::ffi::c_int;

use crate::abi;
use crate::guest::Path;

/// Words that are gathered before they are written.
const ROOM: usize = 512;

pub struct Output {
    file: c_int,
    gathered: [u64; ROOM],
    count: usize,
    /// Something was not written.
    pub has_failed: bool,
}

impl Output {
    /// None where the file cannot be opened.
    pub fn open(path: Path) -> Option<Self> {
        // SAFETY: the path ends with a zero.
        let file = unsafe { abi::open(path, abi::WRITE_ONLY) };
        (file >= 0).then_some(Self { file, gathered: [0; ROOM], count: 0, has_failed: false })
    }

    pub fn put(&mut self, words: &[u64]) {
        for &word in words {
            if self.count == ROOM {
                self.flush();
            }
            self.gathered[self.count] = word;
            self.count += 1;
        }
    }

    /// Bytes, filled up to a word.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.put(&[u64::from_le_bytes(word)]);
        }
    }

    pub fn flush(&mut self) {
        let count = core::mem::take(&mut self.count);
        let mut bytes = self.gathered.as_ptr().cast::<u8>();
        let mut left = count * 8;
        while left > 0 && !self.has_failed {
            // SAFETY: so many bytes of the array were filled.
            let written = unsafe { abi::write(self.file, bytes.cast(), left) };
            self.has_failed = written <= 0;
            let written = usize::try_from(written).unwrap_or(0).min(left);
            bytes = bytes.wrapping_add(written);
            left -= written;
        }
    }
}
