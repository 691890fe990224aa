//! Wake paths: which threads of the kernel stand between an event and the real-time thread that waits for it, found by
//! experiment.
//!
//! A thread that waits at priority 80 is woken while another one of a lower priority computes on the same CPU (the **hog**). A
//! kernel that wakes the waiter itself lets it run at once. One that leaves the wake-up to a thread of its own lets the waiter
//! wait until that thread gets the CPU: until the hog is done, if the hog's priority is not below the thread's. So the lowest
//! priority at which a hog delays a [`Way`] of waiting is the priority of what the wake-up passes through.
//!
//! Why it matters: on PREEMPT_RT a timerfd expires in `ktimers/N` at `SCHED_FIFO` 1
//! (Documentation/core-api/real-time/differences.rst), so that any real-time thread of the same CPU delays it, however urgent
//! the thread that waits. A lock that a less urgent thread holds is such a thing too, unless priorities are inherited.
//!
//! ```no_run
//! use units::CpuId;
//! use wakepath::{BURST, Way, trials};
//!
//! # fn main() -> failure::Result<()> {
//! let timerfd = Way::find("timerfd").unwrap();
//! let trials = trials(timerfd, CpuId(1), (80, 40), BURST)?; // the waiter's priority, and the hog's
//! println!("held up: {:?}, at worst {}", trials.are_held_up(), trials.worst());
//! # Ok(())
//! # }
//! ```

mod audit;
mod holder;
mod program;
mod trial;
mod wait;
mod way;

pub use audit::{Plan, audit};
pub use program::watch;
pub use record::wake_path::Waker;
pub use trial::{BURST, TRIALS, Trials, trials};
pub use wait::Wait;
pub use way::{Ends, Trigger, WAYS, Way};
