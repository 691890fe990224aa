//! A real-time thread among others: wakes, spins, sleeps.

use std::time::Duration;

use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{Nanos, Priority};

use super::{About, Worker};

/// A quarter of what it computes where nobody is in its way: it sleeps for half of `pause` on average.
pub(super) fn about(priority: Priority, pause: Nanos, busy: Nanos) -> About {
    let round = (pause.0 / 2).saturating_add(busy.0).max(1);
    let usual = busy.0.saturating_mul(1000) / round;
    let does = format!("SCHED_FIFO {priority}: sleeps up to {pause}, spins {busy}");
    About {
        real_time: true,
        floor_permille: u32::try_from(usual / 4).unwrap_or(u32::MAX),
        ..About::new("rt-crowd", "wake-ups", does)
    }
}

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
        worker.count(1);
    }
}
