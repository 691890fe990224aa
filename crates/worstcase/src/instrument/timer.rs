//! The options of the timer.

use clap::Args;
use failure::Error;
use record::instrument::timer::TimerPlan;
use record::{ClockName, InstrumentPlan, Phase, Wake};
use units::Nanos;

use super::{Common, Options};
use crate::headings::METHOD;
use crate::lengths::length;

/// How threads are woken, and when.
#[derive(Args, Clone, Debug)]
pub struct TimerOptions {
    /// What wakes the threads: nanosleep, timerfd, posix-timer, deadline, evl (a thread of EVL, out of band), kvm (and
    /// then the interrupt of a guest); or a core of the runtime, without the kernel: runtime-spin, runtime-pause, runtime-block
    #[arg(long, default_value = "nanosleep", help_heading = METHOD)]
    pub wake: Wake,

    /// Run time per period of a deadline reservation [default: a fifth of the interval]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = length, help_heading = METHOD)]
    runtime: Option<Nanos>,

    /// Clock that activations are due on: monotonic, realtime, tai
    #[arg(long, default_value = "monotonic", help_heading = METHOD)]
    clock: ClockName,

    /// Where in the period each CPU's activations lie: sweep (slowly past every phase of the kernel's tick, one lap a
    /// minute), random, staggered, aligned [default: sweep; random for measure up to 10 s, presets and --wake deadline]
    #[arg(long, help_heading = METHOD)]
    phase: Option<Phase>,

    /// Has the kernel measure beside (timerlat): how late the interrupt of a timer is, and a thread that it wakes
    #[arg(long, help_heading = METHOD)]
    contexts: bool,
}

impl Options for TimerOptions {
    fn given(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("--wake", self.wake != Wake::default()),
            ("--runtime", self.runtime.is_some()),
            ("--clock", self.clock != ClockName::default()),
            ("--phase", self.phase.is_some()),
            ("--contexts", self.contexts),
        ]
    }

    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error> {
        if self.runtime.is_some() && self.wake != Wake::Deadline {
            let message = format!("--runtime is about a reservation, not --wake {}", self.wake);
            return Err(Error::new(message, "leave it out, or reserve: --wake deadline"));
        }
        Ok(InstrumentPlan::Timer(TimerPlan {
            intervals: common.intervals.all(),
            wake: self.wake,
            runtime: (self.wake == Wake::Deadline).then_some(self.runtime).flatten(),
            clock: self.clock,
            phase: self.phase(common.fits_sweep)?,
            contexts: self.contexts,
        }))
    }
}

impl TimerOptions {
    /// The phase: what was asked for, else a sweep where one `fits`. A reservation's periods begin where the kernel wants.
    fn phase(&self, fits: bool) -> Result<Phase, Error> {
        if self.wake != Wake::Deadline {
            return Ok(self.phase.unwrap_or(if fits { Phase::Sweep } else { Phase::Random }));
        }
        match self.phase {
            Some(Phase::Sweep) => Err(Error::new(
                "--phase sweep cannot be had with --wake deadline",
                "the kernel places the periods of a reservation: leave --phase out",
            )),
            phase => Ok(phase.unwrap_or_default()),
        }
    }
}
