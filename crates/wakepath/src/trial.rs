//! Wake-ups of one way beside a hog of one priority.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use failure::{Error, Result};
use sys::clock::Clock;
use sys::futex;
use sys::schedule::{set_affinity, set_policy};
use sys::shared::Word;
use units::{CpuId, CpuList, Nanos, Policy};

use crate::way::{Trigger, Way};

/// How long a hog computes around each wake-up: it begins half a millisecond before it.
pub const BURST: Nanos = Nanos(3_000_000);
/// How many wake-ups there are beside a hog.
pub const TRIALS: usize = 9;

/// How long before a wake-up the hog has the CPU.
const AHEAD: u64 = 500_000;
/// From the end of one trial to the next wake-up: the CPU is idle for most of it.
const PAUSE: u64 = 2_000_000;
/// No hog waits longer for its next order, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;

/// Lateness of the wake-ups beside a hog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trials {
    /// One each, in nanoseconds.
    pub late: Vec<u64>,
    /// How long the hog computed.
    pub burst: Nanos,
}

impl Trials {
    /// The latest.
    pub fn worst(&self) -> Nanos {
        Nanos(self.late.iter().copied().max().unwrap_or(0))
    }

    /// Whether the hog held the wake-ups up: most of them, or next to none. None where it is neither: others disturbed it.
    pub fn are_held_up(&self) -> Option<bool> {
        // For most of what was left of the burst.
        let limit = self.burst.0.saturating_sub(AHEAD) / 2;
        let held = self.late.iter().filter(|late| **late > limit).count();
        match held * 3 {
            few if few <= self.late.len() => Some(false),
            most if most >= self.late.len() * 2 => Some(true),
            _ => None,
        }
    }
}

/// What the two threads share.
#[derive(Default)]
struct Orders {
    /// Raised with each order.
    number: AtomicU32,
    /// When the next wake-up is due; 0 at the end.
    due: Word,
}

/// Measures `way` on `cpu` at the priorities of the thread that waits and of the hog, which computes for `burst` each time, a
/// millisecond or more. The calling thread becomes neither.
///
/// # Errors
/// Where real-time priorities are refused, or a call of the way fails.
pub fn trials(way: Way, cpu: CpuId, (priority, hog): (u32, u32), burst: Nanos) -> Result<Trials> {
    let orders = Orders::default();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            real_time(cpu, priority)?;
            let (mut wait, trigger) = way.begin()?;
            std::thread::scope(|inner| {
                let hog = inner.spawn(|| {
                    real_time(cpu, hog)?;
                    compute(&orders, burst, trigger);
                    Ok(())
                });
                let result = measure(&orders, burst, wait.as_mut());
                orders.give(0);
                let hogged = hog.join().unwrap_or_else(|_| Err(Error::new("the hog failed", "")));
                hogged.and(result)
            })
        });
        waiter.join().unwrap_or_else(|_| Err(Error::new("the waiting thread failed", "")))
    })
}

fn real_time(cpu: CpuId, priority: u32) -> Result<()> {
    let mut only = CpuList::default();
    only.insert(cpu);
    set_affinity(0, &only)?;
    let hint = "run as root, or allow it: setcap cap_sys_nice+ep worstcase";
    set_policy(0, Policy::Fifo, priority).map_err(|error| Error::new(error, hint))
}

impl Orders {
    fn give(&self, due: u64) {
        self.due.publish(due);
        self.number.fetch_add(1, SeqCst);
        futex::wake(&self.number);
    }
}

/// The thread that waits. It sleeps by clock_nanosleep between trials, which no hog holds up.
fn measure(orders: &Orders, burst: Nanos, wait: &mut dyn crate::wait::Wait) -> Result<Trials> {
    let clock = Clock::Monotonic;
    let mut late = Vec::with_capacity(TRIALS);
    let slept =
        |until| clock.sleep_until(until).map_err(|errno| Error::new(format!("clock_nanosleep: {errno}"), ""));
    // The first is not counted: memory is touched, descriptors are used for the first time.
    for _ in 0..=TRIALS {
        let due = clock.now() + PAUSE + AHEAD;
        wait.arm(due)?;
        orders.give(due);
        wait.wait()?;
        late.push(clock.now().saturating_sub(due));
        slept(due + burst.0)?;
    }
    late.remove(0);
    Ok(Trials { late, burst })
}

/// The hog: has the CPU from [`AHEAD`] before each wake-up, triggers it, and computes on to the end of its burst.
fn compute(orders: &Orders, burst: Nanos, trigger: Trigger) {
    let clock = Clock::Monotonic;
    let mut known = 0;
    loop {
        let until = clock.now() + PATIENCE;
        while orders.number.load(SeqCst) == known && clock.now() < until {
            futex::wait(&orders.number, known, PATIENCE);
        }
        known = orders.number.load(SeqCst);
        let due = orders.due.observe();
        if due == 0 || clock.now() >= until || clock.sleep_until(due - AHEAD).is_err() {
            return;
        }
        while clock.now() < due {}
        trigger();
        while clock.now() < due - AHEAD + burst.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_held_up_where_most_of_them_are() {
        let judged = |held: usize| {
            let limit = (BURST.0 - AHEAD) / 2;
            let late = (0..TRIALS).map(|at| if at < held { limit + 1 } else { limit }).collect();
            Trials { late, burst: BURST }.are_held_up()
        };
        assert_eq!(
            [judged(0), judged(3), judged(4), judged(5), judged(6), judged(9)],
            [Some(false), Some(false), None, None, Some(true), Some(true)]
        );
    }
}
