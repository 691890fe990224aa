//! Types for what is measured and for whom: times, sizes, CPUs, priorities, seeds.
//!
//! Pure values. Nothing here reads a clock or a file. Each type parses what a user types, prints what a
//! user reads, and serialises as the plain number or kernel list that a program reads.
//!
//! ```
//! use units::{CpuList, Nanos, Seed};
//!
//! let limit: Nanos = "250us".parse().unwrap();
//! assert_eq!(limit, Nanos::from_micros(250));
//! let cpus: CpuList = "0-3,7".parse().unwrap();
//! assert_eq!((cpus.len(), cpus.to_string().as_str()), (5, "0-3,7"));
//! // What is random comes from one seed, each purpose from a stream of its own.
//! assert_eq!(Seed(1).stream("phases").next_u64(), Seed(1).stream("phases").next_u64());
//! ```

mod bytes;
mod cpus;
mod errno;
mod in_order;
mod kernel_version;
mod nanos;
mod policy;
mod seed;
mod total;

pub use bytes::{Bytes, ParseBytesError};
pub use cpus::{CpuId, CpuList, MAX_CPUS, ParseCpuListError};
pub use errno::{errno_in_words, without_errno};
pub use in_order::InOrder;
pub use kernel_version::{KernelVersion, NotAVersion};
pub use nanos::{Nanos, ParseNanosError};
pub use policy::{Policy, Priority, PriorityOutOfRange};
pub use seed::{Random, Seed};
pub use total::Total;
