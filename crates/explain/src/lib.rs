//! Why a wake-up was late.
//!
//! The kernel's events of the CPUs concerned ([`Event`], made of a trace by [`Event::of`]) are played back; at each event the time
//! from `due` to the wake-up is cut, and each piece belongs to a stage of the wake-up and to what the CPU did in it
//! ([`account`]). By construction the pieces sum to the latency to the nanosecond. What the pieces come to is a
//! [`record::Cause`]: sure where events bound it, likely where a stack or what is usual says so, else unknown.
//!
//! ```text
//! events of all CPUs ─ Window ─ stages ┐
//!                    └ playback ───────┴─ pieces ─ causes
//! ```
//!
//! Nothing here reads a file or a clock. Any stream of events is answered: events that are missing make pieces unknown,
//! never somebody's.
//!
//! ```
//! use explain::{Event, WakeUps};
//! use trace::{Item, Symbols, text};
//!
//! let lines = [
//!     "<idle>-0 [001] d.h4. 12.000100: sched_waking: comm=app pid=4711 prio=19 target_cpu=001",
//!     "<idle>-0 [001] d..2. 12.000250: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
//!      prev_state=R ==> next_comm=app next_pid=4711 next_prio=19",
//! ];
//! let mut wake_ups = WakeUps::default();
//! let late = lines.iter().find_map(|line| {
//!     let Some(Item::Event(event)) = text::parse(line) else { return None };
//!     wake_ups.see(&Event::of(&event, &Symbols::default()), |_, name| name == "app")
//! });
//! assert_eq!(late.unwrap().latency().0, 150_000);
//! ```

mod account;
mod cause;
pub mod cures;
mod event;
pub mod guard;
mod overview;
mod places;
mod playback;
mod stack;
mod stages;
mod steal;
mod summary;
mod wake_up;
mod window;

pub use account::Account;
pub use event::{EVENTS, Event, Frame, Kind, Optional, Task};
pub use overview::Watching;
pub use stages::{Stages, Usual};
pub use summary::{CauseTotal, Totals, totals};
pub use wake_up::{WakeUp, WakeUps};
pub use window::Window;

/// Takes a late wake-up apart. `usual` is what its stages usually take, if that is known.
#[must_use]
pub fn account(window: &Window, usual: Option<&Usual>) -> Account {
    let mut account = account::pieces(window);
    judge(window, &mut account, usual);
    account
}

/// Finds anew what the pieces of an account of `window` come to, given what is usual now.
pub fn judge(window: &Window, account: &mut Account, usual: Option<&Usual>) {
    account.causes = cause::causes(window, account, usual);
}
