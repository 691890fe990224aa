//! A real-time thread among others: wakes, spins, sleeps.

use std::time::Duration;

use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{Nanos, Priority};

use super::Worker;

/// Sleeps for up to `pause`, then spins for `busy`, under `SCHED_FIFO` at `priority`.
pub(super) fn run(worker: &mut Worker<'_>, priority: Priority, pause: Nanos, busy: Nanos) -> String {
    if let Err(error) = schedule::set(Scheduling::Fifo(priority)) {
        return format!("{error}: needs CAP_SYS_NICE, or RLIMIT_RTPRIO of {priority} at least");
    }
    worker.started();
    loop {
        std::thread::sleep(Duration::from_nanos(1 + worker.random.below(pause.0)));
        let until = Clock::Monotonic.now() + busy.0;
        while Clock::Monotonic.now() < until {
            std::hint::spin_loop();
        }
        worker.counter(0).add(1);
    }
}
