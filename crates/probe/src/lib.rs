//! Instruments: what measures in a scenario.
//!
//! They run in a process of their own ([`process`]), so that it alone is locked in memory and can be put into a
//! partition; its threads write to a [`board`] of shared words, which the parent reads through [`client`]. What its threads
//! do is a [`Job`]: [`timer`] for how late they wake up, [`noise`] for how long the CPU is taken from them, [`response`] for how long
//! until frames are answered, [`gpio`] for how long until edges of a GPIO line are, [`call`] for how long calls of the kernel take.
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use probe::{Probe, ProbeError, ProbePlan};
//!
//! /// Measures for a second. This program is started again as the probe, which `runner::enter` in its `main` makes of it.
//! fn measure(plan: ProbePlan) -> Result<(), ProbeError> {
//!     let mut probe = Probe::start(Path::new("/proc/self/exe"), plan)?; // its threads are prepared, and wait
//!     probe.go();
//!     std::thread::sleep(Duration::from_secs(1));
//!     probe.stop();
//!     let evidence = probe.finish(Duration::from_secs(5))?;
//!     for (thread, view) in evidence.iter().zip(probe.views()) {
//!         println!("{:?} {:?}: {:?}", thread.policy, thread.affinity, view.summary().maximum());
//!     }
//!     Ok(())
//! }
//! ```

pub mod board;
pub mod call;
pub mod client;
mod clock;
mod early;
pub mod event_core;
pub mod gpio;
mod job;
mod jobs;
mod keeper;
mod limits;
pub mod maxima;
pub mod noise;
mod part;
pub mod plan;
pub mod process;
pub mod response;
pub mod timer;
mod used;

pub use call::CallJob;
pub use client::{Probe, ProbeError};
pub use early::NO_SLEEP;
pub use gpio::GpioJob;
pub use job::Span;
pub use noise::NoiseJob;
pub use plan::ProbePlan;
pub use response::ResponseJob;
pub use timer::{TimerJob, engine, source};

// To add an instrument: a module beside `timer` whose job is an `OwnJob`, and its line here.
jobs::jobs! {
    Timer, TimerJob;
    Noise, NoiseJob;
    Response, ResponseJob;
    Gpio, GpioJob;
    Call, CallJob;
}
