//! Timed events of the kernel's trace (Documentation/trace/ftrace.rst, events.rst, ring-buffer-design.rst).
//!
//! An [`Event`] has a time, a CPU, a task and fields with types. It comes from one of three places:
//!
//! - [`live`]: an instance of tracefs that this process made, read as binary pages (or as text) while it is written;
//! - [`text`]: lines of `trace` or `trace_pipe`;
//! - [`saved`]: a `trace.dat` of trace-cmd.
//!
//! [`tracer`] has the kernel's own measuring tracers write into such an instance.
//!
//! ```text
//! pages of CPU 0 ─ page ─┐
//! pages of CPU 1 ─ page ─┤ merge ─> Item::Event, Item::Lost, in order of time
//! pages of CPU n ─ page ─┘   │
//!        format (fields by the kernel's own description), tasks (names by id)
//! ```
//!
//! Events that were lost are items of the stream, at their place in it. Whoever consumes a stream decides what a gap
//! means for its figures; a gap is never nothing. Nothing is judged here.
//!
//! Bytes that come from elsewhere are never trusted: what does not fit ends its page, as [`Cause::Damaged`].
//!
//! ```
//! use trace::{Item, text};
//!
//! let line = "  app-4711  [001] d..2.  12.345678: sched_waking: comm=app pid=4712 prio=19 target_cpu=001";
//! let Some(Item::Event(event)) = text::parse(line) else { panic!("not an event") };
//! assert_eq!((event.name(), event.time.0, event.signed("pid")), ("sched_waking", 12_345_678_000, Some(4712)));
//! let Some(Item::Lost(lost)) = text::parse("CPU:1 [LOST 45 EVENTS]") else { panic!("nothing lost") };
//! assert_eq!(lost.events, Some(45));
//! ```

mod bytes;
pub mod counted;
mod counting;
mod error;
mod event;
pub mod format;
pub mod live;
#[cfg(test)]
mod made_up;
mod merge;
pub mod page;
pub mod saved;
mod symbols;
mod tasks;
pub mod text;
mod text_details;
pub mod tracer;
mod value;

pub use bytes::Order;
pub use counting::Counting;
pub use error::{Error, Result};
pub use event::{Cause, Event, Item, Losses, Lost};
pub use merge::{Merge, Pages};
pub use symbols::Symbols;
pub use tasks::Tasks;
pub use value::Value;
