//! Numbers and texts from a place in a file on.

use crate::Order;
use crate::error::{Error, Result};

use super::Part;
use super::store::Store;

/// How much is read at once.
const CHUNK: usize = 1 << 16;

/// A text that is longer is none: names of systems, clocks, instances.
const LONGEST_TEXT: usize = 4096;

/// Formats, symbols and names of tasks: a few megabytes of a file, whatever else it is long for.
pub(super) const MOST: u64 = 128 << 20;

/// A place in a file.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub order: Order,
    pub at: u64,
    store: &'a Store,
    path: &'a str,
    /// How many bytes may still be read: parts may be named again and again.
    allowed: u64,
    chunk: Vec<u8>,
    chunk_at: u64,
}

impl<'a> Input<'a> {
    pub fn new(store: &'a Store, path: &'a str) -> Self {
        Self { order: Order::Little, at: 0, store, path, allowed: MOST, chunk: Vec::new(), chunk_at: 0 }
    }

    /// Something is wrong with the file here.
    pub fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::new("read", self.path, format!("at byte {}: {what}", self.at))
    }

    /// So many bytes.
    pub fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        if length > self.left() {
            return Err(self.cut());
        }
        self.count(length)?;
        let mut bytes = Vec::new();
        // Not more than the file has.
        let whole = usize::try_from(length).map_err(|_| self.cut())?;
        self.store.read(self.at, whole, &mut bytes).map_err(|error| self.wrong(error))?;
        self.at += length;
        Ok(bytes)
    }

    fn count(&mut self, bytes: u64) -> Result<()> {
        let left = self.allowed.checked_sub(bytes);
        self.allowed = left.ok_or_else(|| self.wrong("it has more to say of its events than any kernel"))?;
        Ok(())
    }

    fn left(&self) -> u64 {
        self.store.len().saturating_sub(self.at)
    }

    fn cut(&self) -> Error {
        self.wrong("the file ends too early")
    }

    /// A piece that is read later.
    pub fn part(&mut self, size: u64) -> Result<Part> {
        if size > self.left() {
            return Err(self.cut());
        }
        let part = Part { offset: self.at, size };
        self.at += size;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.count(N as u64)?;
        let inside = |at: u64, chunk_at: u64| usize::try_from(at.checked_sub(chunk_at)?).ok();
        let found =
            inside(self.at, self.chunk_at).and_then(|begin| self.chunk.get(begin..begin.checked_add(N)?));
        let bytes = match found.and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => bytes,
            None => {
                self.store.read(self.at, CHUNK, &mut self.chunk).map_err(|error| self.wrong(error))?;
                self.chunk_at = self.at;
                self.chunk.get(..N).and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| self.cut())?
            }
        };
        self.at += N as u64;
        Ok(bytes)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        let bytes: [u8; 2] = self.array()?;
        Ok(self.order.u16(&bytes, 0).unwrap_or_default())
    }

    pub fn u32(&mut self) -> Result<u32> {
        let bytes: [u8; 4] = self.array()?;
        Ok(self.order.u32(&bytes, 0).unwrap_or_default())
    }

    pub fn u64(&mut self) -> Result<u64> {
        let bytes: [u8; 8] = self.array()?;
        Ok(self.order.u64(&bytes, 0).unwrap_or_default())
    }

    /// A text up to its NUL.
    pub fn text(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        loop {
            match self.u8()? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                _ if bytes.len() == LONGEST_TEXT => return Err(self.wrong("a text without an end")),
                byte => bytes.push(byte),
            }
        }
    }

    /// A text of so many bytes.
    pub fn text_of(&mut self, length: u64) -> Result<String> {
        let bytes = self.bytes(length)?;
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// A mark that must stand here.
    pub fn mark(&mut self, mark: &str) -> Result<()> {
        match self.text()? {
            text if text == mark => Ok(()),
            text => Err(self.wrong(format!("`{}` stands where `{mark}` should", text.escape_default()))),
        }
    }
}
