//! What wakes a measuring thread, and what tells it the time.

use sys::Errno;
use sys::clock::Clock;
use sys::shared::Word;
use sys::timer::{PosixTimer, TimerFd};
use units::Nanos;

/// The clock that activations are due on and the way to sleep on it. Real ones below; tests script their own.
pub trait Source {
    /// Whether periods begin when the kernel replenishes a reservation, so that the ideal times have to be found.
    const RESERVATION: bool = false;

    /// Sleeps until the clock reads `due`, or a little less: by a signal, because the clock was set, or because an
    /// earlier expiry was still unread. The run phase's one system call. An error means that there was no sleep:
    /// nothing that is measured after it is a wake-up.
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno>;

    /// The ideal times have moved: from now on one is due at `due`, and one each `interval` after it. For sources that
    /// keep a grid of their own.
    fn rearm(&mut self, due: u64, interval: u64) -> Result<(), Errno> {
        let _ = (due, interval);
        Ok(())
    }

    /// What the clock reads.
    fn now(&mut self) -> u64;

    /// The run phase begins.
    fn begin(&mut self) {}

    /// The run phase is over: notes in the thread's own words what only the source knows of it. How often the thread gave its CPU
    /// away without Linux counting it.
    fn end(&mut self, own: &[Word]) -> u64 {
        let _ = own;
        0
    }

    /// By how much the clock was set since the last call, `now` being its latest reading. Always 0 for a clock that
    /// cannot be set.
    fn stepped(&mut self, now: u64) -> i64 {
        let _ = now;
        0
    }
}

/// A sleep that a signal ended is slept on.
pub(super) fn slept(result: Result<(), Errno>) -> Result<(), Errno> {
    if result == Err(Errno::INTR) { Ok(()) } else { result }
}

/// `clock_nanosleep` to an absolute time.
pub struct Nanosleep(pub Clock);

impl Source for Nanosleep {
    #[inline]
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        slept(self.0.sleep_until(due))
    }

    #[inline]
    fn now(&mut self) -> u64 {
        self.0.now()
    }
}

/// Reads of a periodic timerfd.
pub struct TimerFdReads {
    /// Armed by [`Source::rearm`].
    pub timer: TimerFd,
    /// The timer's clock.
    pub clock: Clock,
}

impl Source for TimerFdReads {
    #[inline]
    fn sleep_until(&mut self, _: u64) -> Result<(), Errno> {
        // The kernel cancels a read when the clock is set: TFD_TIMER_CANCEL_ON_SET, timerfd_create(2).
        match self.timer.wait() {
            Err(Errno::CANCELED) => Ok(()),
            result => slept(result.map(drop)),
        }
    }

    fn rearm(&mut self, due: u64, interval: u64) -> Result<(), Errno> {
        self.timer.rearm(due, interval)
    }

    #[inline]
    fn now(&mut self) -> u64 {
        self.clock.now()
    }
}

/// Signals of a periodic POSIX timer.
pub struct PosixTimerSignals {
    /// Armed by [`Source::rearm`].
    pub timer: PosixTimer,
    /// The timer's clock.
    pub clock: Clock,
}

impl Source for PosixTimerSignals {
    #[inline]
    fn sleep_until(&mut self, _: u64) -> Result<(), Errno> {
        slept(self.timer.wait())
    }

    fn rearm(&mut self, due: u64, interval: u64) -> Result<(), Errno> {
        self.timer.rearm(due, interval)
    }

    #[inline]
    fn now(&mut self) -> u64 {
        self.clock.now()
    }
}

/// The periods of a `SCHED_DEADLINE` reservation: sched_yield(2) gives away what is left of one.
pub struct Reservation(pub Clock);

impl Source for Reservation {
    const RESERVATION: bool = true;

    #[inline]
    fn sleep_until(&mut self, _: u64) -> Result<(), Errno> {
        sys::schedule::give_way()
    }

    #[inline]
    fn now(&mut self) -> u64 {
        self.0.now()
    }
}

/// Sleeps of a thread of EVL, out of band.
pub struct OutOfBand {
    thread: sys::evl::Thread,
    /// By how much the core wakes threads before their time.
    gravity: u64,
    /// What the core had counted when the run phase began.
    before: Option<sys::evl::Counts>,
}

/// Own words of an [`OutOfBand`] thread: one more than its falls back in band; 0 where they are not known.
pub const SWITCHES: usize = 1;

impl OutOfBand {
    /// The calling thread is one of EVL's from now on.
    pub fn attach(name: &std::ffi::CStr, gravity: Nanos) -> sys::Result<Self> {
        Ok(Self { thread: sys::evl::Thread::attach(name)?, gravity: gravity.0, before: None })
    }
}

/// What [`OutOfBand`] noted; none where the thread did not come to the end.
pub fn in_band_switches(own: &[Word]) -> Option<u64> {
    own.first()?.get().checked_sub(1)
}

impl Source for OutOfBand {
    #[inline]
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        // The timer expires at `due`, as it does for other threads: a part of the way from there would be hidden otherwise.
        slept(self.thread.sleep_until(due.saturating_add(self.gravity)))
    }

    #[inline]
    fn now(&mut self) -> u64 {
        Clock::Monotonic.now()
    }

    fn begin(&mut self) {
        self.before = self.thread.counts().ok();
    }

    fn end(&mut self, own: &[Word]) -> u64 {
        let Some((before, after)) = self.before.zip(self.thread.counts().ok()) else { return 0 };
        let since = |before: u32, after: u32| u64::from(after.wrapping_sub(before));
        if let Some(word) = own.first() {
            word.set(since(before.in_band_switches, after.in_band_switches) + 1);
        }
        since(before.context_switches, after.context_switches)
    }
}

/// Reads a clock that can be set, and one that cannot: the second tells when the first was.
pub trait ClockPair {
    /// The clock that activations are due on.
    fn now(&mut self) -> u64;
    /// A clock that nobody can set.
    fn reference(&mut self) -> u64;
}

/// `CLOCK_REALTIME` or `CLOCK_TAI` beside `CLOCK_MONOTONIC`.
pub struct SystemClocks(pub Clock);

impl ClockPair for SystemClocks {
    #[inline]
    fn now(&mut self) -> u64 {
        self.0.now()
    }

    #[inline]
    fn reference(&mut self) -> u64 {
        Clock::Monotonic.now()
    }
}

/// A source on a clock that can be set while the thread sleeps. A step differs from a late wake-up by the offset to a
/// clock that cannot be set.
pub struct Settable<S, C> {
    source: S,
    clocks: C,
    offset: i64,
    last: u64,
}

impl<S: Source, C: ClockPair> Settable<S, C> {
    /// A difference of offsets below this is drift of the two readings, not a step: 50 us.
    const LEAST_STEP: i64 = 50_000;

    /// Watches `clocks` around `source`.
    pub fn new(source: S, mut clocks: C) -> Self {
        let (offset, last, _) = offset_of(&mut clocks);
        Self { source, clocks, offset, last }
    }
}

/// The settable clock minus the other, the other's reading, and how uncertain the difference is: the shortest of a few
/// readings of one between two of the other, because the thread can lose the CPU in between.
fn offset_of(clocks: &mut impl ClockPair) -> (i64, u64, i64) {
    const TRIES: u32 = 3;
    const SURE: u64 = 2_000;
    let mut best = (0, 0, i64::MAX);
    for _ in 0..TRIES {
        let before = clocks.reference();
        let now = clocks.now();
        let after = clocks.reference();
        let width = after.saturating_sub(before);
        if (width as i64) < best.2 {
            best = (now.wrapping_sub(before + width / 2) as i64, after, width as i64);
        }
        if width <= SURE {
            break;
        }
    }
    best
}

impl<S: Source, C: ClockPair> Source for Settable<S, C> {
    const RESERVATION: bool = S::RESERVATION;

    #[inline]
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        self.source.sleep_until(due)
    }

    fn rearm(&mut self, due: u64, interval: u64) -> Result<(), Errno> {
        self.source.rearm(due, interval)
    }

    #[inline]
    fn now(&mut self) -> u64 {
        self.clocks.now()
    }

    fn begin(&mut self) {
        self.source.begin();
    }

    fn end(&mut self, own: &[Word]) -> u64 {
        self.source.end(own)
    }

    fn stepped(&mut self, _: u64) -> i64 {
        let (offset, reference, uncertainty) = offset_of(&mut self.clocks);
        let step = offset.wrapping_sub(self.offset);
        // The kernel slews by at most 500 ppm, adjtimex(2); twice that is not a step.
        let slew = (reference.saturating_sub(self.last) / 1_000) as i64;
        (self.offset, self.last) = (offset, reference);
        if step.saturating_abs() > Self::LEAST_STEP + slew + uncertainty { step } else { 0 }
    }
}
