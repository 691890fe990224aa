//! A real-time thread among others: wakes, spins, sleeps.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{Nanos, Priority};

use super::about::About;
use super::worker::{BuiltIn, Worker};

/// A `SCHED_FIFO` thread that sleeps and spins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// Its real-time priority: below the probe's.
    pub priority: Priority,
    /// How long it sleeps at most; drawn anew each time.
    #[serde(with = "crate::text")]
    pub pause: Nanos,
    /// How long it then spins.
    #[serde(with = "crate::text")]
    pub busy: Nanos,
}

impl BuiltIn for Crowd {
    /// A quarter of what it computes where nobody is in its way: it sleeps for half of `pause` on average.
    fn about(&self) -> About {
        let Self { priority, pause, busy } = self;
        let round = (pause.0 / 2).saturating_add(busy.0).max(1);
        let usual = busy.0.saturating_mul(1000) / round;
        let does = format!("SCHED_FIFO {priority}: sleeps up to {pause}, spins {busy}");
        About {
            real_time: true,
            floor_permille: u32::try_from(usual / 4).unwrap_or(u32::MAX),
            ..About::new("rt-crowd", "wake-ups", does)
        }
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        let Self { priority, pause, busy } = *self;
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
}
