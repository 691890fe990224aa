//! The time that a core reads in its loop: a counter of the CPU, without a system call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock in ns since it was made. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// Ticks of the CPU's counter since `base`, times `multiplier` / 2^32.
    Counter { base: u64, multiplier: u64 },
    /// CLOCK_MONOTONIC through the vDSO, where the CPU has no counter that user space may read.
    Library(Instant),
    /// What a test says.
    Simulated(Arc<AtomicU64>),
}

/// How long the counter is compared with CLOCK_MONOTONIC: 50 ns of reading error are 2.5 ppm of it.
const CALIBRATION: Duration = Duration::from_millis(20);

impl Clock {
    /// The CPU's counter, its rate compared once with CLOCK_MONOTONIC.
    pub fn of_this_machine() -> Self {
        let Some((first, start)) = counter().map(|ticks| (ticks, Instant::now())) else {
            return Self { source: Source::Library(Instant::now()) };
        };
        while start.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        let (ticks, nanos) = (counter().unwrap_or(first) - first, start.elapsed().as_nanos());
        if ticks == 0 {
            return Self { source: Source::Library(Instant::now()) };
        }
        let multiplier = ((nanos << 32) / u128::from(ticks)) as u64;
        Self { source: Source::Counter { base: first, multiplier } }
    }

    /// A clock that stands until [`Clock::advance`] moves it.
    pub fn simulated() -> Self {
        Self { source: Source::Simulated(Arc::default()) }
    }

    /// ns since the clock was made.
    #[inline]
    pub fn now(&self) -> u64 {
        match &self.source {
            Source::Counter { base, multiplier } => {
                // Counters of two cores may differ by a few ticks: before the base is at the base.
                let ticks = counter().unwrap_or_default().saturating_sub(*base);
                ((u128::from(ticks) * u128::from(*multiplier)) >> 32) as u64
            }
            Source::Library(start) => start.elapsed().as_nanos() as u64,
            Source::Simulated(time) => time.load(Ordering::Relaxed),
        }
    }

    /// Moves a simulated clock; another one goes by itself.
    pub fn advance(&self, nanos: u64) {
        if let Source::Simulated(time) = &self.source {
            time.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Whether only [`Clock::advance`] moves it.
    pub fn is_simulated(&self) -> bool {
        matches!(self.source, Source::Simulated(_))
    }

    /// What a process beside this one makes the same clock of: its kind, the counter's value at 0, and the multiplier.
    pub(crate) fn parts(&self) -> (u64, u64, u64) {
        match &self.source {
            Source::Counter { base, multiplier } => (Self::COUNTER, *base, *multiplier),
            Source::Library(_) | Source::Simulated(_) => (0, 0, 0),
        }
    }

    const COUNTER: u64 = 1;

    /// The clock that [`Clock::parts`] are of, where it is a counter; else one that shows another time.
    pub(crate) fn of_parts(kind: u64, base: u64, multiplier: u64) -> Self {
        let is_counter = kind == Self::COUNTER && multiplier > 0 && counter().is_some();
        let source =
            if is_counter { Source::Counter { base, multiplier } } else { Source::Library(Instant::now()) };
        Self { source }
    }

    /// The counter's value at `nanos`, for instructions that wait for it; none where the clock is no counter.
    pub fn counter_at(&self, nanos: u64) -> Option<u64> {
        let Source::Counter { base, multiplier } = &self.source else { return None };
        Some(base + ((u128::from(nanos) << 32) / u128::from(*multiplier)) as u64)
    }

    /// Ticks of the counter in a second, where the clock is one.
    pub fn frequency(&self) -> Option<f64> {
        let Source::Counter { multiplier, .. } = &self.source else { return None };
        Some(1e9 * f64::from(2.0_f32).powi(32) / *multiplier as f64)
    }
}

/// The time-stamp counter: it ticks at one rate in all states of CPUs that say so (`constant_tsc`, `nonstop_tsc`).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn counter() -> Option<u64> {
    // SAFETY: RDTSC reads a register; Linux allows it to programs unless prctl(PR_SET_TSC) took it away.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

/// The virtual counter of the generic timer.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub fn counter() -> Option<u64> {
    let ticks: u64;
    // SAFETY: reads a register that Linux lets programs read (its vDSO does so); touches no memory.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    Some(ticks)
}

/// No counter is known for this CPU.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_stands_until_it_is_moved() {
        let clock = Clock::simulated();
        let other = clock.clone();
        clock.advance(5);
        assert_eq!((other.now(), clock.is_simulated(), clock.counter_at(7)), (5, true, None));
    }

    #[test]
    fn the_counter_never_goes_back_and_keeps_pace_with_the_library() {
        let clock = Clock::of_this_machine();
        let (first, start) = (clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (nanos, elapsed) = (clock.now() - first, start.elapsed().as_nanos() as u64);
        assert!(clock.now() >= first + nanos);
        // Within a tenth: both were read apart, and this thread may have waited between them.
        assert!(nanos.abs_diff(elapsed) < elapsed / 10 + 5_000_000, "{nanos} against {elapsed}");
    }
}
