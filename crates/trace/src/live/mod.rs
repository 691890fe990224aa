//! An instance of the kernel's trace for as long as events are wanted: made, read while it is written, taken away.
//!
//! An instance (`instances/NAME`) has buffers, clock and events of its own, so that whoever else traces is not disturbed
//! and does not disturb. The top instance is never touched.

mod keeper;
mod pipe;
mod place;
mod ring;
mod stats;

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

use control::Directory;
use record::Fact;
use sys::clock::Clock;
use sysroot::SysRoot;
use units::{Bytes, CpuId, CpuList, Nanos};

pub use place::{clear, place};
pub use ring::Spooled;
pub use stats::Stats;

use crate::error::{Error, Result};
use crate::event::Item;
use crate::format::Formats;
use crate::merge::Merge;
use crate::page::Layout;
use crate::{Order, Tasks};
use keeper::Keeper;
use pipe::Pipe;
use ring::Ring;

/// The clock that threads can read too: `CLOCK_MONOTONIC`.
const CLOCK: &str = "mono";

/// Events that need not be enabled, because the tracers write them by themselves.
const INTERNAL: [&str; 6] = ["print", "bprint", "bputs", "raw_data", "kernel_stack", "user_stack"];

/// In which form events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the kernel records them. Functions are addresses: their names need /proc/kallsyms.
    Binary,
    /// As the kernel prints them: slower, and functions have names.
    Text,
}

/// An instance of our own. It is taken away when this is dropped.
pub struct Instance {
    /// Dropped before the directory, which the kernel does not remove while somebody reads it.
    reader: Reader,
    directory: Directory,
    /// After the directory: it then has nothing to do.
    _keeper: Option<Keeper>,
    root: SysRoot,
    top: &'static str,
    formats: Formats,
    tasks: Tasks,
}

enum Reader {
    None,
    Rings(Merge<Ring>),
    Pipe(Pipe),
}

impl Instance {
    /// Makes one, with the clock `mono` and a buffer of so many bytes for each CPU, or as large as the kernel makes it.
    ///
    /// # Errors
    /// What cannot be done here: there is no tracefs, or the kernel refuses.
    pub fn make(buffer: Option<Bytes>) -> Result<Self> {
        Self::make_with(buffer, || {})
    }

    /// As [`Instance::make`]; `then` is called by a child when the instance is gone, however this process ended. It is not called
    /// where this process has several threads.
    pub(crate) fn make_with(buffer: Option<Bytes>, then: impl FnOnce()) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let root = SysRoot::live();
        let top = place(&root)?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = format!("{top}/instances/{}{}-{number}", place::OWN, std::process::id());
        let tasks = Tasks::live(&root, format!("{top}/saved_cmdlines"));
        let formats = Formats::new(layout(&root, top)?);
        // First: this process may be killed as soon as there is an instance.
        let keeper = Keeper::start(&path, then);
        let made = Directory::make(path.clone());
        let directory = made.map_err(|errno| {
            Error::new("make", path, std::io::Error::from(errno)).hint(place::hint_on_making(errno, top))
        })?;
        let mut instance =
            Self { reader: Reader::None, directory, _keeper: keeper, root, top, formats, tasks };
        instance.set_up(buffer)?;
        Ok(instance)
    }

    fn set_up(&mut self, buffer: Option<Bytes>) -> Result<()> {
        self.formats = Formats::new(layout(&self.root, self.directory.path())?);
        self.write("trace_clock", CLOCK)?;
        let clocks = self.read("trace_clock");
        if !clocks.value().is_some_and(|clocks| clocks.contains(&format!("[{CLOCK}]"))) {
            let reason = format!("it reads {clocks} after {CLOCK} was written to it");
            return Err(Error::new("set", self.directory.file("trace_clock"), reason));
        }
        if let Some(size) = buffer {
            self.write("buffer_size_kb", &size.0.div_ceil(1024).to_string())?;
        }
        for name in INTERNAL {
            if let Fact::Value(text) = self.root.read(&format!("{}/events/ftrace/{name}/format", self.top)) {
                self.formats.add(&text)?;
            }
        }
        Ok(())
    }

    /// Where it is.
    pub fn directory(&self) -> &str {
        self.directory.path()
    }

    /// Reads one of its files.
    pub fn read(&self, file: &str) -> Fact<String> {
        self.directory.read(file)
    }

    /// Writes one of its files: a trigger, `tracing_on`, `trace_marker`.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn write(&mut self, file: &str, value: &str) -> Result<()> {
        let written = self.directory.write(file, value);
        written.map_err(|errno| Error::new("write", self.directory.file(file), std::io::Error::from(errno)))
    }

    /// Whether the kernel has an event, `system/name`.
    pub fn has(&self, event: &str) -> bool {
        self.read(&format!("events/{event}/enable")) != Fact::Absent
    }

    /// Has an event recorded, `system/name`, where a filter lets it through.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn enable(&mut self, event: &str, filter: Option<&str>) -> Result<()> {
        let path = format!("events/{event}/format");
        match self.read(&path) {
            Fact::Value(text) => self.formats.add(&text)?,
            fact => return Err(Error::new("read", self.directory.file(&path), fact)),
        }
        if let Some(filter) = filter {
            self.write(&format!("events/{event}/filter"), filter)?;
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Has all events of a system recorded whose names begin so, where a filter lets them through. The filter is set once for the
    /// system: set for each of 350 system calls, it would wait for a grace period of RCU each time.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn enable_all(&mut self, system: &str, beginning: &str, filter: &str) -> Result<()> {
        let directory = self.directory.file(&format!("events/{system}"));
        let names = match self.root.directories(&directory) {
            Fact::Value(names) => names,
            fact => return Err(Error::new("list", directory, fact.map(|_| ""))),
        };
        self.write(&format!("events/{system}/filter"), filter)?;
        let wanted = names.iter().filter(|name| name.starts_with(beginning));
        wanted.map(|name| format!("{system}/{name}")).try_for_each(|event| self.enable(&event, None))
    }

    /// Has the events of a tracer shown, which the kernel records while that tracer runs.
    ///
    /// # Errors
    /// The kernel has no such event.
    pub(crate) fn add_format(&mut self, event: &str) -> Result<()> {
        let path = format!("{}/events/ftrace/{event}/format", self.top);
        match self.root.read(&path) {
            Fact::Value(text) => self.formats.add(&text),
            fact => Err(Error::new("read", path, fact)),
        }
    }

    /// The formats of the events that are enabled.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Looks for names of threads no more: samples need none.
    pub fn leave_names_out(&mut self) {
        self.tasks.look_for_none();
    }

    /// Begins to read in this form. What is read is gone, and there is one form at a time.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn open(&mut self, form: Form) -> Result<()> {
        self.reader = Reader::None;
        self.reader = match form {
            Form::Text => Reader::Pipe(Pipe::open(&self.root, self.directory())?),
            Form::Binary => {
                let size = self.formats.layout().size;
                let open = |cpu| Ok((cpu, Ring::open(&self.root, self.directory(), cpu, size)?));
                let rings = self.cpus().into_iter().map(open).collect::<Result<Vec<_>>>()?;
                Reader::Rings(Merge::new(rings))
            }
        };
        Ok(())
    }

    /// The CPUs that have a buffer: all that may ever be there.
    pub fn cpus(&self) -> Vec<CpuId> {
        let names = self.root.directories(&self.directory.file("per_cpu"));
        let number = |name: &String| name.strip_prefix("cpu")?.parse().ok().map(CpuId);
        let mut cpus: Vec<CpuId> = names.value().into_iter().flatten().filter_map(number).collect();
        cpus.sort_unstable();
        cpus
    }

    /// The CPUs that had no buffer when they were read last, in [`Form::Binary`]: they were not online since the instance was made.
    pub fn without_buffer(&self) -> CpuList {
        let Reader::Rings(rings) = &self.reader else { return CpuList::new() };
        rings.sources().filter(|(_, ring)| !ring.has_buffer()).map(|(cpu, _)| cpu).collect()
    }

    /// Shows what has been recorded up to now, in order of time; nothing is waited for. One that was being recorded
    /// when this was called last may come first, with a time before what was shown then.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn each(&mut self, see: &mut dyn FnMut(&Item<'_>)) -> Result<()> {
        self.each_before(Nanos(u64::MAX), see)
    }

    /// As [`Instance::each`], and nothing that was recorded at `until` or later, on `CLOCK_MONOTONIC`. As text all is shown.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn each_before(&mut self, until: Nanos, see: &mut dyn FnMut(&Item<'_>)) -> Result<()> {
        match &mut self.reader {
            Reader::None => {}
            Reader::Pipe(pipe) => pipe.each(see)?,
            Reader::Rings(rings) => {
                self.tasks.begin();
                // What is recorded while this reads may stand in one CPU's pages, and in another's only later.
                let now = Nanos(Clock::Monotonic.now()).min(until);
                rings.refill(&self.formats)?;
                while let Some(item) = rings.next(&self.formats, &mut self.tasks, now)? {
                    see(&item);
                }
            }
        }
        Ok(())
    }

    /// What the kernel counts of a CPU's buffer.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn stats(&self, cpu: CpuId) -> Result<Stats> {
        let path = format!("per_cpu/cpu{cpu}/stats");
        let text = self.read(&path);
        let stats = text.value().and_then(|text| Stats::parse(text));
        stats.ok_or_else(|| Error::new("read", self.directory.file(&path), "it has no counts of lost events"))
    }

    /// Moves the pages that a CPU has into a file, whole ones without a copy through this process. What was moved is
    /// not shown by [`Instance::each`].
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn spool(&self, cpu: CpuId, file: &File) -> Result<Spooled> {
        Ring::open(&self.root, self.directory(), cpu, self.formats.layout().size)?.spool(file)
    }
}

fn layout(root: &SysRoot, directory: &str) -> Result<Layout> {
    let path = format!("{directory}/events/header_page");
    match root.read(&path) {
        Fact::Value(text) => Layout::parse(&text, Order::native()),
        fact => {
            let hint = match fact {
                Fact::Absent => "the kernel has no events to trace: it needs CONFIG_EVENT_TRACING",
                _ => "",
            };
            Err(Error::new("read", path, fact).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    #[test]
    fn a_kernel_without_events_is_known_by_its_missing_page_header() {
        let root = SysRoot::of(Tree::whole([("/t/current_tracer".to_owned(), b"nop".to_vec())]));
        let error = layout(&root, "/t").unwrap_err();
        assert_eq!(error.path, "/t/events/header_page");
        assert!(error.hint.contains("CONFIG_EVENT_TRACING"), "{}", error.hint);
    }
}
