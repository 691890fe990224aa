//! The way to a peer, and the clocks: real ones here, tests script their own.

use sys::Errno;
use sys::clock::Clock;
use sys::net::Stamp;
use sys::net::card::CardClock;
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

    /// The network card's clock against this one, where the card stamps.
    fn card(&mut self) -> Option<Offset>;

    /// Sends the next frame; its number, from 0.
    fn send(&mut self) -> Result<u64, Errno>;

    /// The next answer: one that is there, or one that comes until the clock reads `until`.
    fn receive(&mut self, until: u64) -> Result<Option<Answer>, Errno>;

    /// The next note of when a frame was sent: its number, and a stamp.
    fn noted(&mut self) -> Option<(u64, Stamp)>;
}

/// How far two clocks lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The other one minus `CLOCK_MONOTONIC`, in nanoseconds.
    pub nanos: i64,
    /// How uncertain that is: the time that reading both took.
    pub width: u64,
}

/// A link, and the machine's clocks.
pub struct Network {
    link: Link,
    card: Option<CardClock>,
    spins: bool,
}

impl Network {
    /// `card` is the clock by which the network card stamps; `spins` where the thread stays awake while it waits for answers.
    pub fn new(link: Link, card: Option<CardClock>, spins: bool) -> Self {
        Self { link, card, spins }
    }
}

/// The narrowest of a few readings of another clock: the thread can lose the CPU in between. None where it cannot be read.
#[inline]
fn offset_of(mut read: impl FnMut() -> Option<u64>, sure: u64) -> Option<Offset> {
    const TRIES: u32 = 3;
    let mut best = Offset { nanos: 0, width: u64::MAX };
    for _ in 0..TRIES {
        let before = Clock::Monotonic.now();
        let stamp = read()?;
        let width = Clock::Monotonic.now().saturating_sub(before);
        if width < best.width {
            best = Offset { nanos: stamp.wrapping_sub(before + width / 2) as i64, width };
        }
        if width <= sure {
            break;
        }
    }
    Some(best)
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

    #[inline]
    fn offset(&mut self) -> Offset {
        const SURE: u64 = 1_000;
        offset_of(|| Some(Clock::Realtime.now()), SURE).unwrap_or(Offset { nanos: 0, width: u64::MAX })
    }

    /// A card is read over its bus: on PCI for a microsecond or two, over the lines to a PHY for many more.
    #[inline]
    fn card(&mut self) -> Option<Offset> {
        const SURE: u64 = 5_000;
        let card = self.card.as_ref()?;
        offset_of(|| card.now().ok(), SURE)
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
    fn noted(&mut self) -> Option<(u64, Stamp)> {
        self.link.noted()
    }
}
