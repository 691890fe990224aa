//! An instance of the kernel's trace for as long as something is counted: made, told what to keep, taken away.

use machine::activity::traced::{EVENTS, Traced};
use machine::{SysRoot, tracing};
use rustix::io::Errno;
use units::CpuList;

use crate::error::in_words;
use crate::hand::{Hand, Live};

/// An instance of our own; it is taken away when this is dropped.
pub struct Instance {
    hand: Live,
    directory: String,
    pipe: Option<tracing::Pipe>,
    lacking: Vec<&'static Traced>,
    counted: Option<String>,
}

impl Instance {
    /// Begins to trace what happens on `cpus`.
    ///
    /// # Errors
    /// Why that cannot be done here, in words.
    pub fn begin(cpus: &CpuList) -> Result<Self, String> {
        let mut hand = Live::new("");
        let place = tracing::place(&hand.root())?;
        let directory = format!("{place}/instances/{}{}", tracing::OWN, std::process::id());
        hand.make_group(&directory).map_err(|errno| refused("make", &directory, errno))?;
        let mut instance = Self { hand, directory, pipe: None, lacking: Vec::new(), counted: None };
        let pipe = tracing::Pipe::open(&instance.directory);
        instance.pipe =
            Some(pipe.map_err(|error| format!("open {}/trace_pipe: {error}", instance.directory))?);
        instance.arm(cpus)?;
        Ok(instance)
    }

    fn arm(&mut self, cpus: &CpuList) -> Result<(), String> {
        for traced in &EVENTS {
            if !traced.is_there(&self.hand.root(), &self.directory) {
                self.lacking.push(traced);
                continue;
            }
            let event = format!("{}/events/{}", self.directory, traced.event);
            if self.is_counted_by_the_kernel(traced, &event, cpus) {
                continue;
            }
            if let Some(filter) = traced.filter(cpus) {
                self.write(&format!("{event}/filter"), &filter)?;
            }
            self.write(&format!("{event}/enable"), "1")?;
        }
        Ok(())
    }

    /// Not every kernel can: then each event is told.
    fn is_counted_by_the_kernel(&mut self, traced: &Traced, event: &str, cpus: &CpuList) -> bool {
        let Some(histogram) = traced.histogram(cpus) else { return false };
        let is_counted = self.hand.write_file(&format!("{event}/trigger"), &histogram).is_ok();
        self.counted = is_counted.then(|| format!("{event}/hist"));
        is_counted
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), String> {
        self.hand.write_file(path, value).map_err(|errno| refused("write", path, errno))
    }

    /// Events that this kernel does not have.
    pub fn lacking(&self) -> &[&'static Traced] {
        &self.lacking
    }

    /// What the kernel has counted itself, since the beginning.
    pub fn counted(&self) -> String {
        let counted = self.counted.as_ref().map(|path| self.hand.root().read(path));
        counted.and_then(|text| text.value().cloned()).unwrap_or_default()
    }

    /// What has happened since.
    pub fn lines(&mut self) -> String {
        self.pipe.as_mut().map(tracing::Pipe::lines).unwrap_or_default()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The kernel does not take away what somebody reads.
        self.pipe = None;
        let _ = self.hand.remove_group(&self.directory);
    }
}

fn refused(what: &str, path: &str, errno: Errno) -> String {
    format!("{what} {path}: {}", in_words(errno.raw_os_error()))
}

/// Takes away instances whose process has been killed; each with what the kernel answered.
pub fn clear() -> Vec<(String, Result<(), Errno>)> {
    let mut hand = Live::new("");
    let is_dead = |(_, process): &(String, i32)| !is_running(&hand.root(), *process);
    let left: Vec<_> = tracing::instances(&hand.root()).into_iter().filter(is_dead).collect();
    left.into_iter()
        .map(|(directory, _)| {
            let removed = hand.remove_group(&directory);
            (directory, removed)
        })
        .collect()
}

fn is_running(root: &SysRoot, process: i32) -> bool {
    machine::tasks::task(root, process, process).is_some()
}
