//! Types for what is measured and for whom: times, sizes, CPUs, priorities, seeds.
//!
//! Pure values. Nothing here reads a clock or a file. Each type parses what a user types, prints what a
//! user reads, and serialises as the plain number or kernel list that a program reads.

mod bytes;
mod cpus;
mod kernel_version;
mod nanos;
mod policy;
mod seed;

pub use bytes::{Bytes, ParseBytesError};
pub use cpus::{CpuId, CpuList, MAX_CPUS, ParseCpuListError};
pub use kernel_version::{KernelVersion, NotAVersion};
pub use nanos::{Nanos, ParseNanosError};
pub use policy::{Policy, Priority, PriorityOutOfRange};
pub use seed::{Random, Seed};
