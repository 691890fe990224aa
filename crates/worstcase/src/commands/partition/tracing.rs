//! The trace that `verify --trace` takes beside the counts.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use machine::activity::Tally;
use sys::signal::Signals;
use trace::Counting;
use trace::counted::Traced;
use units::CpuList;

use crate::output;
use failure::Result;

/// How often the trace is read, so that the kernel's room for it does not run out.
const READ: Duration = Duration::from_millis(50);

/// A trace, or why there is none.
#[derive(Default)]
pub struct Tracing {
    counting: Option<Counting>,
    refused: Option<String>,
    dropped: u64,
}

impl Tracing {
    /// Begins one.
    pub fn begin(cpus: &CpuList) -> Self {
        match Counting::begin(cpus) {
            Ok(counting) => Self { counting: Some(counting), ..Self::default() },
            Err(why) => Self { refused: Some(why), ..Self::default() },
        }
    }

    /// Leaves out what has happened so far.
    pub fn forget(&mut self) {
        if let Some(counting) = &mut self.counting {
            counting.forget();
        }
    }

    /// Takes away what killed commands have left, and says so.
    pub fn clear() {
        for (directory, removed) in trace::live::clear() {
            let left = format!("{directory} was left by a command that was killed");
            match removed {
                Ok(()) => output::words(&format!("{left}: taken away")),
                Err(errno) => output::warning(&format!("{left}: {errno}")),
            }
        }
    }

    /// Waits for `time`, and adds what happens meanwhile; true as soon as somebody ends it.
    pub fn follow(&mut self, signals: &Signals, time: Duration, tally: &mut Tally) -> Result<bool> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let wait = if self.counting.is_some() { left.min(READ) } else { left };
            let is_over = sys::signal::wait_readable(&[signals.as_fd()], wait)?[0];
            if let Some(counting) = &mut self.counting {
                counting.count(tally);
            }
            if is_over || Instant::now() >= end {
                return Ok(is_over);
            }
        }
    }

    /// Ends it, and adds what the kernel has counted itself.
    pub fn end(&mut self, tally: &mut Tally) {
        if let Some(counting) = &mut self.counting {
            self.dropped += counting.count_histogram(tally);
        }
    }

    /// What could not be counted, in words.
    pub fn missing(&self) -> Vec<String> {
        const BOUND: &str = "what is counted by tracing is a lower bound";
        let refused = self.refused.iter().map(|why| format!("system calls: {why}"));
        let Some(counting) = &self.counting else { return refused.collect() };
        let lost = counting.lost();
        let lost = (!lost.is_empty()).then(|| format!("the trace lost {lost}: {BOUND}"));
        let dropped = (self.dropped > 0)
            .then(|| format!("{} system calls had no room in the kernel's histogram", self.dropped));
        let failed = counting.failed().map(|why| format!("the rest of the trace: {why}"));
        refused.chain(lost).chain(dropped).chain(failed).collect()
    }

    /// What is counted, and cannot be named by this kernel.
    pub fn unnamed(&self) -> Vec<String> {
        let lacking = self.counting.as_ref().map(Counting::lacking).unwrap_or_default();
        let words = |traced: &&Traced| match traced.since {
            "" => format!("no event {}", traced.event),
            since => format!("no event {} ({since})", traced.event),
        };
        lacking.iter().map(words).collect()
    }
}
