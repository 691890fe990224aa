//! The trace that `verify --trace` takes beside the counts.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use machine::activity::Tally;
use sys::signal::Signals;
use tune::trace::{self, Instance};
use units::CpuList;

use crate::error::Result;
use crate::output;

/// How often the trace is read, so that the kernel's room for it does not run out.
const READ: Duration = Duration::from_millis(50);

/// A trace, or why there is none.
#[derive(Default)]
pub struct Tracing {
    instance: Option<Instance>,
    refused: Option<String>,
    lost: u64,
}

impl Tracing {
    /// Begins one.
    pub fn begin(cpus: &CpuList) -> Self {
        match Instance::begin(cpus) {
            Ok(instance) => Self { instance: Some(instance), ..Self::default() },
            Err(why) => Self { refused: Some(why), ..Self::default() },
        }
    }

    /// Leaves out what has happened so far.
    pub fn forget(&mut self) {
        self.instance.as_mut().map(Instance::lines);
    }

    /// Takes away what killed commands have left, and says so.
    pub fn clear() {
        for (directory, removed) in trace::clear() {
            output::words(&match removed {
                Ok(()) => format!("{directory} was left by a command that was killed: taken away"),
                Err(errno) => format!("warning: {directory} was left by a command that was killed: {errno}"),
            });
        }
    }

    /// Waits for `time`, and adds what happens meanwhile; true as soon as somebody ends it.
    pub fn follow(&mut self, signals: &Signals, time: Duration, tally: &mut Tally) -> Result<bool> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let wait = if self.instance.is_some() { left.min(READ) } else { left };
            let is_over = sys::signal::wait_readable(&[signals.as_fd()], wait)?[0];
            if let Some(instance) = &mut self.instance {
                self.lost += tally.add_trace(&instance.lines());
            }
            if is_over || Instant::now() >= end {
                return Ok(is_over);
            }
        }
    }

    /// Ends it, and adds what the kernel has counted itself.
    pub fn end(&mut self, tally: &mut Tally) {
        if let Some(instance) = &mut self.instance {
            self.lost += tally.add_histogram(&instance.counted());
        }
    }

    /// What could not be counted, in words.
    pub fn missing(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|why| format!("system calls: {why}"));
        let lost = (self.lost > 0).then(|| {
            format!(
                "{} events of the trace came too fast and are lost: more system calls than are told",
                self.lost
            )
        });
        refused.chain(lost).collect()
    }

    /// What is counted, and cannot be named by this kernel.
    pub fn unnamed(&self) -> Vec<String> {
        let lacking = self.instance.as_ref().map(Instance::lacking).unwrap_or_default();
        let told = |traced: &&machine::activity::traced::Traced| match traced.since {
            "" => format!("no event {}", traced.event),
            since => format!("no event {} ({since})", traced.event),
        };
        lacking.iter().map(told).collect()
    }
}
