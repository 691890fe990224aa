//! A run: scenarios one after the other on one machine, recorded as they happen.
//!
//! [`division`] decides which CPUs are measured, loaded, kept for ourselves. [`session`] holds what lasts a whole run
//! (plan, journal, samples file, signals). [`scenario`] measures one scenario; [`recorder`] takes figures from the
//! probe's board into journal and record while it runs; [`display`] is what the user sees meanwhile.

pub mod display;
pub mod division;
pub mod recorder;
pub mod scenario;
pub mod session;
