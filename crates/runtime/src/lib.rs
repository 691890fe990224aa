//! An event machine for cores that the kernel was kept off, with a worst-case contract.
//!
//! A [`Machine`] has cores, which run objects: [`Object::receive`] is called with an [`Event`] of one of the object's queues,
//! runs to its end, and sends other events. Queues have one of 8 strict levels and a kind that says what may run at once
//! ([`Kind`]). An event is owned: one that was sent cannot be touched any more, and one that is dropped is free again.
//!
//! A queue may have a [`Contract`]: how often events come, how long one runs, by when it must be done. The machine computes
//! the bound that follows, refuses what does not fit, refuses senders that send more, and reports each event that ran longer
//! or was late ([`Machine::table`], [`Machine::reports`]). `docs/runtime.md` has a guide, the semantics, the proof and limits.
//!
//! ```
//! use runtime::{Config, Contract, Event, Here, Kind, Limits, Machine, QueueId, QueueSpec};
//!
//! let (machine, mut cores) = Machine::new(Config::default())?;
//! let pool = machine.pool(16, 64)?;
//! let double = machine.object("double", |here: &Here<'_>, mut event: Event, to: QueueId| {
//!     event.set_word(0, 2 * event.word(0));
//!     if event.word(0) < 100 {
//!         here.send(event, to).ok(); // an event that was sent is gone: the compiler sees to it
//!     }
//! })?;
//! // At most one event each 10 us, 5 at once; each runs 1 us at most; all are done within 50 us.
//! let contract = Contract { distance: 10_000, burst: 8, budget: 1_000, deadline: 50_000 };
//! let queue = machine.queue(&QueueSpec::new("doubles", Kind::Atomic).contract(contract), Some(double))?;
//! machine.start(double)?;
//!
//! let mut event = machine.allocate(pool, 64)?;
//! event.set_word(0, 1);
//! machine.send(event, queue).map_err(|refused| refused.error)?;
//! let outcome = cores[0].dispatch(Limits { idle_rounds: 10, ..Limits::default() });
//! assert_eq!(outcome.events, 7);
//! assert!(machine.bound_of(queue).is_some_and(|bound| bound.response <= 50_000));
//! machine.end();
//! # Ok::<(), runtime::Error>(())
//! ```
//!
//! It needs atomics of 64 bits, which 32-bit PowerPC and MIPS do not have: a lock in their stead would let one core wait for
//! another. There is nothing in this crate for such CPUs.
#![cfg(target_has_atomic = "64")]
#![allow(unsafe_code)]

/// The guide's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/runtime.md")]
struct Guide;

pub mod breakage;
mod clock;
pub mod conformance;
pub mod contract;
mod cores;
mod dispatch;
mod event;
mod failure;
mod group;
mod heap;
mod helper;
mod here;
mod light;
mod local;
mod machine;
mod model;
mod noted;
mod object;
mod order;
pub mod published;
mod queue;
mod ring;
mod source;
mod state;
mod switch;
mod sync;
mod timeout;
mod timer;
mod wait;

pub use clock::{Clock, counter};
pub use contract::{Contract, Overheads};
pub use cores::{Cores, Guarded, Place, Without};
pub use dispatch::{Dispatcher, Limits, Outcome, PARCELS};
pub use event::Event;
pub use failure::{Failure, Handled, Refused, Scope};
pub use group::{NOTIFICATIONS, Notification};
pub use light::Mailbox;
pub use local::with_here;
pub use model::*;
pub use object::Exclusive;
pub use source::{Source, SourceFigures, SourceSpec};
pub use state::threads::{LEAST_STACK, Light, LightId, SemaphoreId};
pub use state::{CALLBACKS, Here, Machine, Object, State, Visit};
pub use timeout::{TimeoutFigures, TimeoutSpec};
pub use wait::can_pause;
