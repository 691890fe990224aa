//! A run: scenarios one after the other on one machine, recorded as they happen.
//!
//! [`division`] decides which CPUs are measured, loaded, kept for ourselves; [`partition`] finds those set apart by name. [`session`] holds what lasts a whole run,
//! [`outputs`] all that it writes. [`course`] goes through the scenarios in their order; [`scenario`] measures one;
//! [`recorder`] takes figures from the probe's board while it runs, [`noise`] the kernel's counters beside gaps; [`display`] is what the user sees meanwhile;
//! [`lab`] is what a guest of the lab is told.

pub mod course;
pub mod display;
pub mod division;
pub mod ending;
pub mod exposure;
pub mod lab;
mod noise;
pub mod outputs;
pub mod partition;
mod recorder;
mod samples_file;
mod scenario;
pub mod session;
pub mod watch;
