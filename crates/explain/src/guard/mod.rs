//! What took the CPU from the threads of a runtime's cores, by name and length, and what each ran then.
//!
//! [`Takings`] plays the trace back for threads that should never leave user space: system calls, page faults, interrupts,
//! softirqs and other threads, each from the stamp of its entry to that of its exit, without what came on top of it.
//! [`Charges`] lays them over what the cores ran. Nothing here reads a file or a clock.

mod charges;
mod takings;

pub use charges::{Activation, Charges, Excess, Limits, Longest, Owner, Row};
pub use takings::{Taking, Takings, What};
