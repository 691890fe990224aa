//! Priority inversion, made: a thread of low priority has a lock, the measuring thread wants it, and a thread of a priority
//! between theirs computes meanwhile.
//!
//! A value is how long the measuring thread waited, less what was left of the critical section. With inheritance that is what
//! the hand-over takes, whatever the thread in the middle does; without, its burst is in it.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use failure::Error;
use sys::clock::{Clock, thread_cpu_time};
use sys::mutex::Mutex;
use sys::schedule::thread_id;
use sys::{Errno, futex};
use units::{CpuId, Nanos};

use super::engine::Call;
use super::partner::{Partner, Standing};

/// CPU time of a critical section, in nanoseconds.
const SECTION: u32 = 50_000;
/// The measuring thread waits no longer for the low one to be in its section, in nanoseconds: threads between them compute.
const PATIENCE: u64 = 1_000_000_000;

struct Shared {
    mutex: Mutex,
    /// Whether the low thread is in its critical section.
    is_inside: AtomicU32,
    /// CPU time that it has used there, in nanoseconds. The measuring thread may read it in the midst of a write: one word of
    /// every CPU.
    used: AtomicU32,
}

/// The threads of one lock.
pub(super) struct Inversion {
    shared: Arc<Shared>,
    own: i32,
    middle: Option<Partner>,
    low: Partner,
}

impl Inversion {
    /// For a lock that `inherits` or does not, with a thread in the middle that computes for `burst`; none without.
    pub fn begin(inherits: bool, burst: Nanos, cpu: Option<CpuId>) -> Result<Self, Error> {
        let (is_inside, used) = (AtomicU32::new(0), AtomicU32::new(0));
        let shared = Arc::new(Shared { mutex: Mutex::new(inherits), is_inside, used });
        let compute = move || {
            let end = Clock::Monotonic.now() + burst.0;
            while Clock::Monotonic.now() < end {}
        };
        let middle = (burst > Nanos::ZERO)
            .then(|| Partner::start("middle", Standing { cpu, below: 1, is_ordinary: false }, compute))
            .transpose()?;
        let theirs = shared.clone();
        let low =
            Partner::start("low", Standing { cpu, below: 2, is_ordinary: false }, move || theirs.section())?;
        Ok(Self { shared, own: thread_id(), middle, low })
    }
}

impl Shared {
    /// The critical section of the low thread.
    fn section(&self) {
        let Ok(_held) = self.mutex.lock(thread_id()) else { return };
        let began = thread_cpu_time();
        self.used.store(0, SeqCst);
        self.is_inside.store(1, SeqCst);
        futex::wake(&self.is_inside);
        loop {
            let used = u32::try_from(thread_cpu_time().saturating_sub(began)).unwrap_or(u32::MAX);
            self.used.store(used, SeqCst);
            if used >= SECTION {
                return;
            }
        }
    }
}

impl Call for Inversion {
    fn once(&mut self) -> Result<u64, Errno> {
        let (shared, clock) = (&*self.shared, Clock::Monotonic);
        shared.is_inside.store(0, SeqCst);
        self.low.orders.give();
        let until = clock.now() + PATIENCE;
        while shared.is_inside.load(SeqCst) == 0 {
            if clock.now() >= until {
                return Err(Errno::TIMEDOUT);
            }
            futex::wait(&shared.is_inside, 0, PATIENCE);
        }
        self.middle.iter().for_each(|middle| middle.orders.give());
        let (left, wanted) = (SECTION.saturating_sub(shared.used.load(SeqCst)), clock.now());
        let held = shared.mutex.lock(self.own).map_err(|error| error.errno)?;
        let waited = clock.now().saturating_sub(wanted);
        drop(held);
        Ok(waited.saturating_sub(u64::from(left)))
    }
}

#[cfg(test)]
mod tests {
    use sys::schedule::{Scheduling, set, set_affinity};
    use units::{CpuList, Policy, Priority};

    use super::*;

    /// The median of values on one CPU, at priorities below 80; none where these are refused.
    fn median(inherits: bool, burst: Nanos) -> Option<u64> {
        let measure = move || {
            set_affinity(0, &CpuList::from_iter([CpuId(0)])).ok()?;
            set(Scheduling::new(Policy::Fifo, Priority::try_from(80).ok())).ok()?;
            let mut inversion = Inversion::begin(inherits, burst, Some(CpuId(0))).ok()?;
            let mut values: Vec<u64> = (0..31)
                .map(|_| {
                    let value = inversion.once().unwrap();
                    // The burst of the thread in the middle ends.
                    let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + 1_000_000 + burst.0);
                    value
                })
                .collect();
            values.sort_unstable();
            Some(values[15])
        };
        std::thread::spawn(measure).join().unwrap()
    }

    #[test]
    fn without_inheritance_the_wait_grows_with_the_burst_in_the_middle_and_with_it_does_not() {
        let bursts = [Nanos::ZERO, Nanos::from_millis(2), Nanos::from_millis(8)];
        let Some(plain) = bursts.map(|burst| median(false, burst)).into_iter().collect::<Option<Vec<_>>>()
        else {
            return eprintln!("skipped: no real-time priority");
        };
        let inherited: Vec<_> = bursts.iter().filter_map(|burst| median(true, *burst)).collect();
        // What was left of the burst when the lock was wanted is all of it: it runs only once the thread sleeps.
        for (burst, waited) in bursts.iter().zip(&plain).skip(1) {
            assert!(*waited >= burst.0 * 9 / 10, "plain: {plain:?} beside bursts of {bursts:?}");
        }
        // The least burst is far above what a hand-over takes, and no median has it.
        assert!(inherited.iter().all(|waited| *waited < bursts[1].0 / 2), "with inheritance: {inherited:?}");
        assert!(plain[0] < bursts[1].0 / 2, "without a burst: {plain:?}");
    }
}
