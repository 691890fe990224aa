//! Operations: what the kernel does for programs, and what each takes.
//!
//! [`operations`] is the catalogue, a file of [`family`] for each kind. A sample of one is taken in a process of its own
//! ([`process`]), so that its memory is laid out anew each time and nothing is left when it ends; [`measure`] takes all of
//! them in rounds, each round in an order of its own.
//!
//! ```
//! use operation::Operation;
//!
//! let pipe = Operation::find("pipe-ping-pong").unwrap();
//! println!("{}: {}, in {}, as {} measures it", pipe.family(), pipe.title, pipe.unit, pipe.source);
//! assert!(operation::family::families().any(|family| family == pipe.family()));
//! ```

pub mod client;
pub mod family;
pub mod measure;
pub mod process;
mod work;

pub use family::{Operation, operations};
pub use work::Kit;
