//! A file that trace-cmd saved: `trace.dat`, versions 6 and 7 (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)).
//!
//! A file has the formats of the kernel that was traced, so that it can be read on any machine, and the pages of each
//! CPU's ring buffer as the kernel gave them. Pages are read when they are needed: a file may be larger than memory.

mod events;
mod input;
mod pages;
mod sections;
mod store;
mod strings;

use std::path::Path;
use std::sync::Arc;

use units::{CpuId, Nanos};

use crate::error::{Error, Result};
use crate::event::Item;
use crate::format::Formats;
use crate::merge::Merge;
use crate::page::Layout;
use crate::{Order, Symbols, Tasks};
use input::Input;
use pages::SavedPages;
use store::Store;

/// What every file begins with.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Clocks that do not count nanoseconds.
const OTHER_CLOCKS: [&str; 3] = ["counter", "x86-tsc", "ppc-tb"];

/// An open file.
#[derive(Debug)]
pub struct Saved {
    store: Arc<Store>,
    path: String,
    formats: Arc<Formats>,
    content: Content,
}

/// What the parts of a file say, in whichever order they stand.
#[derive(Debug, Default)]
struct Content {
    header_page: Option<String>,
    formats: Vec<String>,
    symbols: Option<Part>,
    tasks: Tasks,
    clock: Option<String>,
    buffers: Vec<Buffer>,
}

/// A file has a handful of instances.
const MOST_BUFFERS: usize = 1000;

impl Content {
    fn add(&mut self, buffer: Buffer, input: &Input<'_>) -> Result<()> {
        if self.buffers.len() == MOST_BUFFERS {
            return Err(input.wrong("more instances than any kernel has"));
        }
        self.buffers.push(buffer);
        Ok(())
    }
}

/// A piece of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    offset: u64,
    size: u64,
}

/// What was recorded in one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The instance; empty for the top one.
    pub name: String,
    /// The clock of its events, where the file says so.
    pub clock: Option<String>,
    cpus: Vec<(CpuId, Part)>,
}

impl Saved {
    /// Opens a file.
    ///
    /// # Errors
    /// What is no such file, is damaged, or is compressed in a way that is not read here.
    pub fn open(path: &Path) -> Result<Self> {
        let store = Store::open(path).map_err(|error| Error::new("read", path.display(), error))?;
        Self::of(store, path.display().to_string())
    }

    /// The same from memory.
    ///
    /// # Errors
    /// As [`Saved::open`].
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::of(Store::Memory(bytes), "trace.dat".to_owned())
    }

    fn of(store: Store, path: String) -> Result<Self> {
        let mut input = Input::new(&store, &path);
        let mut content = read(&mut input)?;
        let Some(header) = content.header_page.take() else {
            return Err(Error::new("read", path, "it does not say how its pages are laid out"));
        };
        let mut formats = Formats::new(Layout::parse(&header, input.order)?);
        for text in std::mem::take(&mut content.formats) {
            // Events of a format that is not understood have no fields; they are events all the same.
            let _ = formats.add(&text);
        }
        Ok(Self { store: Arc::new(store), path, formats: Arc::new(formats), content })
    }

    /// What was recorded, the top instance first in files of version 6.
    pub fn buffers(&self) -> &[Buffer] {
        &self.content.buffers
    }

    /// The formats of its events.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// The functions of the kernel that was traced, as far as the file has them.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn symbols(&self) -> Result<Symbols> {
        let Some(Part { offset, size }) = self.content.symbols else { return Ok(Symbols::default()) };
        let wrong = |error| Error::new("read", &self.path, error);
        let mut bytes = Vec::new();
        let size = usize::try_from(size.min(input::MOST)).unwrap_or(usize::MAX);
        self.store.read(offset, size, &mut bytes).map_err(wrong)?;
        Symbols::read(bytes.as_slice()).map_err(wrong)
    }

    /// The events of a buffer from its beginning on.
    ///
    /// # Errors
    /// Its clock does not count nanoseconds.
    pub fn events(&self, buffer: &Buffer) -> Result<Events> {
        if let Some(clock) = OTHER_CLOCKS.into_iter().find(|clock| buffer.clock.as_deref() == Some(clock)) {
            let error =
                Error::new("read", &self.path, format!("its clock {clock} does not count nanoseconds"));
            return Err(error.hint("trace-cmd record -C mono"));
        }
        let size = self.formats.layout().size;
        let pages = |part: &Part| SavedPages::new(Arc::clone(&self.store), *part, size);
        let merge = Merge::new(buffer.cpus.iter().map(|(cpu, part)| (*cpu, pages(part))));
        let (formats, tasks) = (Arc::clone(&self.formats), self.content.tasks.clone());
        let mut events = Events { merge, formats, tasks };
        events.merge.refill(&events.formats)?;
        Ok(events)
    }
}

/// The events of a saved buffer, in order of time.
#[derive(Debug)]
pub struct Events {
    merge: Merge<SavedPages>,
    formats: Arc<Formats>,
    tasks: Tasks,
}

impl Events {
    /// The next one; none at the end.
    ///
    /// # Errors
    /// What the kernel answered when a page was read.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        self.merge.next(&self.formats, &mut self.tasks, Nanos(u64::MAX))
    }
}

/// Everything but the pages.
fn read(input: &mut Input<'_>) -> Result<Content> {
    if input.bytes(MAGIC.len() as u64).is_ok_and(|bytes| bytes != MAGIC) {
        return Err(input.wrong("this is not a file of trace-cmd"));
    }
    let version = input.text()?;
    input.order = match input.u8()? {
        0 => Order::Little,
        1 => Order::Big,
        other => return Err(input.wrong(format!("{other} is no order of bytes"))),
    };
    // Of user space and not of the ring buffer, whose own header says how long both are.
    let (_long, _page) = (input.u8()?, input.u32()?);
    match version.as_str() {
        "6" => strings::read(input),
        "7" => sections::read(input),
        other => {
            Err(input.wrong(format!("version {} is not read here, 6 and 7 are", other.escape_default())))
        }
    }
}

#[cfg(test)]
mod tests;
