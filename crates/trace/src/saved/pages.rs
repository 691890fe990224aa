//! The pages of one CPU in a file.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::merge::Pages;

use super::Part;
use super::store::Store;

/// Pages that have not been read yet.
#[derive(Debug)]
pub(super) struct SavedPages {
    store: Arc<Store>,
    at: u64,
    end: u64,
    size: usize,
}

impl SavedPages {
    pub fn new(store: Arc<Store>, part: Part, size: usize) -> Self {
        Self { store, at: part.offset, end: part.offset.saturating_add(part.size), size }
    }
}

impl Pages for SavedPages {
    /// A page that the file does not have, or not to its end, is there and damaged: what it held is lost.
    fn next_page(&mut self, page: &mut Vec<u8>) -> Result<bool> {
        if self.at >= self.end {
            return Ok(false);
        }
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = left.min(self.size);
        let read = self.store.read(self.at, length, page);
        read.map_err(|error| Error::new("read", "a page of trace.dat", error))?;
        // What lies beyond the end of the file is one loss, however many pages it was.
        self.at = if page.len() < length { self.end } else { self.at + length as u64 };
        Ok(true)
    }
}
