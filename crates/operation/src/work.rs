//! What an operation is made of while it is measured: work that is done so many times, and partners in other threads.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use sys::schedule::set_affinity;
use units::{CpuId, CpuList};

/// Why an operation cannot be measured: what was tried, and what the kernel answered.
#[derive(Debug)]
pub struct Unable(pub String);

/// Of measuring.
pub type Result<T> = std::result::Result<T, Unable>;

/// An operation that is ready to be done.
pub trait Work {
    /// Does it `count` times.
    fn run(&mut self, count: u64) -> Result<()>;

    /// What must be there before `count` of them; it is not measured.
    fn prepare(&mut self, _count: u64) -> Result<()> {
        Ok(())
    }

    /// Takes away what they left; it is not measured.
    fn clear(&mut self) {}

    /// How many are done between one [`Work::prepare`] and the next, where it must not depend on how long a sample is; else as
    /// many as make looking at the clock cheap.
    fn batch(&self) -> Option<u64> {
        None
    }
}

/// Work that needs no preparation, done once each time.
impl<F: FnMut() -> Result<()>> Work for F {
    fn run(&mut self, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| self())
    }
}

/// What operations are built from: places to run at, names of their own.
#[derive(Debug)]
pub struct Kit {
    /// Where partners run.
    pub partner: CpuId,
    /// Whether the working directory is one for files, of this sample alone, or why it could not be made.
    pub directory: std::result::Result<(), String>,
    /// A name that nobody else has.
    pub name: String,
}

impl Kit {
    /// Where a file of this name is made: in the working directory, because whoever may write above it can put a link in the
    /// place of any longer path.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        self.directory.as_ref().map(|()| Path::new(".").join(name)).map_err(|why| Unable(why.clone()))
    }

    /// Starts a thread on the partner's CPU, and waits until it is there. It ends with the process.
    pub fn partner(&self, task: impl FnOnce() + Send + 'static) -> Result<()> {
        let cpu = self.partner;
        let (sender, receiver) = mpsc::channel();
        std::thread::Builder::new()
            .spawn(move || {
                let moved = set_affinity(0, &only(cpu));
                let is_there = moved.is_ok();
                let _ = sender.send(moved);
                if is_there {
                    task();
                }
            })
            .at("start a thread")?;
        let moved = receiver.recv().map_err(|_| Unable("the partner ended before it began".into()))?;
        moved.at(&format!("run on CPU {cpu}"))
    }
}

/// One CPU as a list.
pub fn only(cpu: CpuId) -> CpuList {
    let mut list = CpuList::default();
    list.insert(cpu);
    list
}

/// Says what failed.
pub trait At<T> {
    /// `operation` as in `connect to 127.0.0.1`.
    fn at(self, operation: &str) -> Result<T>;
}

impl<T, E: std::fmt::Display> At<T> for std::result::Result<T, E> {
    fn at(self, operation: &str) -> Result<T> {
        self.map_err(|error| Unable(format!("{operation}: {error}")))
    }
}
