//! The way to a peer, and the clocks: real ones here, tests script their own.

use sys::Errno;
use sys::clock::Clock;
use wire::{Answer, Link};

/// What a thread sends on, waits by and reads the time from. All times are nanoseconds of `CLOCK_MONOTONIC`, but for the
/// kernel's stamps.
pub trait Line {
    /// Sleeps until the clock reads `due`, or a little less where a signal came.
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno>;

    /// What the clock reads.
    fn now(&mut self) -> u64;

    /// `CLOCK_REALTIME`, which the kernel stamps by, against this clock.
    fn offset(&mut self) -> Offset;

    /// Sends the next frame; its number, from 0.
    fn send(&mut self) -> Result<u64, Errno>;

    /// The next answer: one that is there, or one that comes until the clock reads `until`.
    fn receive(&mut self, until: u64) -> Result<Option<Answer>, Errno>;

    /// The next note of when a frame was given to the driver: its number, and the stamp.
    fn noted(&mut self) -> Option<(u64, u64)>;
}

/// How far two clocks lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, in nanoseconds.
    pub nanos: i64,
    /// How uncertain that is: the time that reading both took.
    pub width: u64,
}

/// A link, and the machine's clocks.
pub struct Network {
    link: Link,
    spins: bool,
}

impl Network {
    /// `spins` where the thread stays awake while it waits for answers.
    pub fn new(link: Link, spins: bool) -> Self {
        Self { link, spins }
    }
}

impl Line for Network {
    #[inline]
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        match Clock::Monotonic.sleep_until(due) {
            Err(Errno::INTR) => Ok(()),
            result => result,
        }
    }

    #[inline]
    fn now(&mut self) -> u64 {
        Clock::Monotonic.now()
    }

    /// The narrowest of a few readings: the thread can lose the CPU in between.
    #[inline]
    fn offset(&mut self) -> Offset {
        const TRIES: u32 = 3;
        const SURE: u64 = 1_000;
        let mut best = Offset { nanos: 0, width: u64::MAX };
        for _ in 0..TRIES {
            let before = Clock::Monotonic.now();
            let stamp = Clock::Realtime.now();
            let width = Clock::Monotonic.now().saturating_sub(before);
            if width < best.width {
                best = Offset { nanos: stamp.wrapping_sub(before + width / 2) as i64, width };
            }
            if width <= SURE {
                break;
            }
        }
        best
    }

    #[inline]
    fn send(&mut self) -> Result<u64, Errno> {
        self.link.send()
    }

    #[inline]
    fn receive(&mut self, until: u64) -> Result<Option<Answer>, Errno> {
        loop {
            if let Some(answer) = self.link.receive()? {
                return Ok(Some(answer));
            }
            let left = until.saturating_sub(Clock::Monotonic.now());
            if left == 0 {
                return Ok(None);
            }
            if !self.spins {
                self.link.wait(left)?;
            }
        }
    }

    #[inline]
    fn noted(&mut self) -> Option<(u64, u64)> {
        self.link.noted()
    }
}
