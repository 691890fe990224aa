//! The timer: how late does a thread wake up that sleeps until a point in time?
//!
//! The measuring loop is [`engine::run`]; what wakes it is a [`source::Source`].

#[cfg(target_has_atomic = "64")]
mod dispatched;
pub mod engine;
#[cfg(target_arch = "x86_64")]
pub mod guest;
mod job;
pub mod source;

use record::{ClockName, Wake};
use sys::Errno;
use sys::clock::Clock;
use sys::shared::Word;
use sys::timer::{PosixTimer, TimerFd};
use units::CpuId;

use crate::board::Recorder;
use crate::clock::clock_of;
use crate::event_core;
use crate::job::{Place, Ready};
use crate::used::{Used, used_by};
pub use job::TimerJob;
use source::{
    Nanosleep, OutOfBand, PosixTimerSignals, Reservation, Settable, Source, SystemClocks, TimerFdReads,
};

/// A thread of the timer, prepared.
pub(crate) struct Thread<'a> {
    job: &'a TimerJob,
    /// Its place in the plan.
    index: usize,
    /// A latency in nanoseconds that stops all threads.
    stop_at: u64,
    waking: Waking,
}

/// What wakes a thread, made before the gate opens: what the kernel refuses then still has its errno.
enum Waking {
    Nanosleep(Nanosleep),
    Timerfd(TimerFdReads),
    PosixTimer(PosixTimerSignals),
    Deadline(Reservation),
    Evl(OutOfBand),
    /// A guest under KVM.
    #[cfg(target_arch = "x86_64")]
    Kvm(Box<guest::InGuest>),
    /// A core of the runtime.
    #[cfg(target_has_atomic = "64")]
    Dispatched(Box<dispatched::Dispatched>),
}

impl Waking {
    fn prepare(job: &TimerJob, place: Place) -> failure::Result<Self> {
        let cpu = place.cpu;
        let clock = clock_of(job.clock);
        let refused = |error| of_timer(error, cpu);
        Ok(match job.wake {
            Wake::Nanosleep => Self::Nanosleep(Nanosleep(clock)),
            Wake::Deadline => Self::Deadline(Reservation(clock)),
            Wake::Timerfd => {
                Self::Timerfd(TimerFdReads { timer: TimerFd::new(clock).map_err(refused)?, clock })
            }
            Wake::PosixTimer => {
                Self::PosixTimer(PosixTimerSignals { timer: PosixTimer::new(clock).map_err(refused)?, clock })
            }
            Wake::Evl => Self::Evl(attached(job, place)?),
            #[cfg(target_arch = "x86_64")]
            Wake::Kvm => Self::Kvm(Box::new(guest::InGuest::new()?)),
            #[cfg(not(target_arch = "x86_64"))]
            Wake::Kvm => return Err(event_core::refused("--wake kvm", event_core::NO_GUEST)),
            Wake::RuntimeSpin | Wake::RuntimePause | Wake::RuntimeBlock => Self::of_runtime(job.wake, clock)?,
        })
    }

    #[cfg(target_has_atomic = "64")]
    fn of_runtime(wake: Wake, clock: Clock) -> failure::Result<Self> {
        match event_core::hindrance(wake) {
            Some(why) => Err(event_core::refused(&format!("--wake {wake}"), why)),
            None => Ok(Self::Dispatched(Box::new(dispatched::Dispatched::new(wake, clock)?))),
        }
    }

    #[cfg(not(target_has_atomic = "64"))]
    fn of_runtime(wake: Wake, _: Clock) -> failure::Result<Self> {
        Err(event_core::refused(&format!("--wake {wake}"), event_core::NARROW))
    }
}

impl<'a> Thread<'a> {
    fn prepare(job: &'a TimerJob, place: Place) -> failure::Result<Self> {
        let waking = Waking::prepare(job, place)?;
        Ok(Self { job, index: place.index, stop_at: place.stop_at, waking })
    }
}

impl Ready for Thread<'_> {
    fn measure(
        self: Box<Self>,
        start: u64,
        board: &[Word],
        recorder: &mut Recorder<'_>,
        own: &[Word],
    ) -> Used {
        let Self { job, index, stop_at, waking } = *self;
        let to = Measurement { job, index, stop_at, start, own };
        match waking {
            Waking::Nanosleep(source) => to.measure_on(source, board, recorder),
            Waking::Timerfd(source) => to.measure_on(source, board, recorder),
            Waking::PosixTimer(source) => to.measure_on(source, board, recorder),
            Waking::Deadline(source) => to.measure_on(source, board, recorder),
            Waking::Evl(source) => to.measure_on(source, board, recorder),
            #[cfg(target_arch = "x86_64")]
            Waking::Kvm(source) => to.measure_on(*source, board, recorder),
            #[cfg(target_has_atomic = "64")]
            Waking::Dispatched(source) => to.measure_on(*source, board, recorder),
        }
    }
}

/// What the loop needs to know, whatever wakes it.
struct Measurement<'a> {
    job: &'a TimerJob,
    index: usize,
    stop_at: u64,
    start: u64,
    own: &'a [Word],
}

impl Measurement<'_> {
    fn measure_on(self, source: impl Source, board: &[Word], recorder: &mut Recorder<'_>) -> Used {
        match self.job.clock {
            ClockName::Monotonic => self.measure_with(source, board, recorder),
            settable => {
                let clocks = SystemClocks(clock_of(settable));
                self.measure_with(Settable::new(source, clocks), board, recorder)
            }
        }
    }

    fn measure_with(self, mut source: impl Source, board: &[Word], recorder: &mut Recorder<'_>) -> Used {
        let Self { job, index, stop_at, start, own } = self;
        let warm_up = job.warm_up(index, start, stop_at);
        let origin = engine::warm_up(&mut source, &warm_up, board, recorder);
        let task = job.task(index, origin, stop_at);
        recorder.started(&task.grid);
        let mut uncounted = 0;
        let mut used = used_by(|| {
            source.begin();
            engine::run(&mut source, &task, board, recorder);
            uncounted = source.end(own);
        });
        used.usage.voluntary = used.usage.voluntary.saturating_add(uncounted);
        used
    }
}

/// The calling thread as one of EVL's.
fn attached(job: &TimerJob, place: Place) -> failure::Result<OutOfBand> {
    let name = std::ffi::CString::new(format!("worstcase-{}-{}", std::process::id(), place.index));
    let attached = OutOfBand::attach(&name.unwrap_or_default(), job.gravity.unwrap_or_default());
    let source = attached.map_err(|error| {
        let hint = match error.errno {
            Errno::NOENT => {
                "this kernel has no EVL (CONFIG_EVL of linux-evl): --wake nanosleep measures without it"
            }
            Errno::NOEXEC => {
                "worstcase speaks the interface of libevl 0.47: the latmus that came with this kernel's libevl measures it"
            }
            Errno::NXIO => "EVL is stopped: evl start",
            Errno::INVAL => "--cpus: EVL runs threads on those of /sys/devices/virtual/evl/control/cpus",
            Errno::ACCESS | Errno::PERM => "attaching to EVL takes root",
            _ => "the kernel's log may say more: dmesg | grep -i evl",
        };
        failed(error, place.cpu, hint)
    })?;
    // Without it a part of each latency would be hidden, and nobody knows how much.
    job.gravity.map(|_| source).ok_or_else(|| {
        let message = "EVL lets timers expire before their time, and it is not known by how much";
        failure::Error::new(message, "mount sysfs: /sys/devices/virtual/clock/monotonic/gravity says it")
    })
}

fn of_timer(error: sys::Error, cpu: Option<CpuId>) -> failure::Error {
    failed(error, cpu, "choose another way to be woken: --wake nanosleep needs no timer of its own")
}

fn failed(error: sys::Error, cpu: Option<CpuId>, hint: &str) -> failure::Error {
    let place = cpu.map_or(String::new(), |cpu| format!("CPU {cpu}: "));
    failure::Error::new(format!("{place}{error}"), hint).caused_by(error)
}
