//! Calls: how long the kernel's own calls take at worst. The loop is [`engine::run`]; what it makes is an [`engine::Call`].

mod alone;
mod device;
pub mod engine;
mod handover;
mod inversion;
mod job;
mod memory;
mod message;
mod partner;

use failure::Error;
use record::Wake;
use record::instrument::call::CallSetup;
use sys::clock::Clock;
use sys::shared::Word;
use units::CpuId;
use wakepath::{Waker, Way};

use crate::board::Recorder;
use crate::event_core;
use crate::job::{Place, Ready};
use crate::used::{Used, used_by};
use alone::{Device, FloatingPoint};
use engine::{Call, Task};
use handover::{Handover, Timed};
use inversion::Inversion;
pub use job::CallJob;
use memory::{Shootdown, Touch};
use partner::Standing;

/// A call that can be measured.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// By which users name it.
    pub name: &'static str,
    /// The calls, and what a value is.
    pub title: &'static str,
    /// Whether the threads can share a CPU.
    pub alone: bool,
    /// Whether another thread can be on another CPU.
    pub across: bool,
    make: Make,
}

/// What makes a call.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// A way to wait, by its name.
    Wait(&'static str),
    Condition,
    Lock {
        inherits: bool,
    },
    Touch {
        is_locked: bool,
    },
    Mprotect,
    Mmap,
    Device,
    /// The interrupt of a timer that says when it was due.
    DueInterrupt,
    /// The interrupt of a device that raises it when it is asked to, through UIO.
    Uio,
    /// The same to an object of the event machine.
    UioEvent,
    /// The same through VFIO.
    Vfio,
    FloatingPoint,
    /// A message through threads.
    Chain,
    /// A message through so many objects to a core of the event machine that waits so.
    Message {
        wake: Wake,
        stages: u8,
    },
}

const fn wait(name: &'static str, title: &'static str, across: bool) -> Known {
    Known { name, title, alone: true, across, make: Make::Wait(name) }
}

const fn message(name: &'static str, title: &'static str, wake: Wake, stages: u8) -> Known {
    // One that never sleeps has no CPU for the sender.
    let alone = matches!(wake, Wake::RuntimeBlock);
    Known { name, title, alone, across: true, make: Make::Message { wake, stages } }
}

/// All of them.
pub const CALLS: [Known; 31] = [
    wait("nanosleep", "clock_nanosleep: late by", false),
    wait("timerfd", "timerfd, read: late by", false),
    wait("posix-timer", "timer_create, sigwaitinfo: late by", false),
    wait("futex", "futex wake, as semaphores do: until the woken thread runs", true),
    Known {
        name: "condition",
        title: "condition variable, signalled: until the woken thread has the mutex",
        alone: true,
        across: true,
        make: Make::Condition,
    },
    wait("mqueue", "mq_send: until mq_receive returns", true),
    wait("signal", "tgkill: until a handler has run and a sleep has ended", true),
    wait("sigwait", "tgkill: until sigwaitinfo returns", true),
    wait("eventfd", "eventfd, write: until read returns", true),
    wait("epoll", "eventfd, write: until epoll_wait and read return", true),
    wait("pipe", "pipe, write: until read returns", true),
    wait("unix", "Unix datagram: until it is received", true),
    Known {
        name: "mutex",
        title: "mutex without inheritance, wanted by three: waited beyond the critical section",
        alone: true,
        across: true,
        make: Make::Lock { inherits: false },
    },
    Known {
        name: "pi-mutex",
        title: "mutex with PTHREAD_PRIO_INHERIT, wanted by three: waited beyond the critical section",
        alone: true,
        across: true,
        make: Make::Lock { inherits: true },
    },
    Known {
        name: CallSetup::FAULT,
        title: "first touch of a page that the kernel has to give",
        alone: true,
        across: false,
        make: Make::Touch { is_locked: false },
    },
    Known {
        name: "locked-page",
        title: "touch of a locked page",
        alone: true,
        across: false,
        make: Make::Touch { is_locked: true },
    },
    Known {
        name: "shootdown",
        title: "a neighbour thread's mprotect: longest gap of 100 us",
        alone: false,
        across: true,
        make: Make::Mprotect,
    },
    Known {
        name: "mapping",
        title: "a neighbour thread's mmap and munmap: longest gap of 100 us",
        alone: false,
        across: true,
        make: Make::Mmap,
    },
    Known {
        name: "device",
        title: "read of 64 bytes of /dev/zero",
        alone: true,
        across: false,
        make: Make::Device,
    },
    Known {
        name: "hpet",
        title: "interrupt of the high precision event timer, poll and read: late by",
        alone: true,
        across: false,
        make: Make::DueInterrupt,
    },
    Known {
        name: "uio",
        title: "interrupt of QEMU's device edu, through UIO: until read returns",
        alone: true,
        across: true,
        make: Make::Uio,
    },
    Known {
        name: "uio-event",
        title: "interrupt of QEMU's device edu, through UIO to a core of the runtime that sleeps: until its object has it",
        alone: true,
        across: true,
        make: Make::UioEvent,
    },
    Known {
        name: "vfio",
        title: "interrupt of QEMU's device edu, through VFIO: until read of its eventfd returns",
        alone: true,
        across: true,
        make: Make::Vfio,
    },
    Known {
        name: "fpu",
        title: "first floating-point operation after a sleep",
        alone: true,
        across: false,
        make: Make::FloatingPoint,
    },
    Known {
        name: "chain",
        title: "futexes, from thread to thread: until the third runs",
        alone: true,
        across: true,
        make: Make::Chain,
    },
    message(
        "runtime-block",
        "message to a core of the runtime that sleeps: until its object has it",
        Wake::RuntimeBlock,
        1,
    ),
    message(
        "runtime-pause",
        "message to a core of the runtime that pauses: until its object has it",
        Wake::RuntimePause,
        1,
    ),
    message(
        "runtime-spin",
        "message to a core of the runtime that spins: until its object has it",
        Wake::RuntimeSpin,
        1,
    ),
    message(
        "runtime-block-chain",
        "message to a core of the runtime that sleeps: until its third object has it",
        Wake::RuntimeBlock,
        message::STAGES,
    ),
    message(
        "runtime-pause-chain",
        "message to a core of the runtime that pauses: until its third object has it",
        Wake::RuntimePause,
        message::STAGES,
    ),
    message(
        "runtime-spin-chain",
        "message to a core of the runtime that spins: until its third object has it",
        Wake::RuntimeSpin,
        message::STAGES,
    ),
];

impl Known {
    /// The one of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        CALLS.iter().find(|call| call.name == name)
    }

    /// Why this CPU cannot make it, if it cannot.
    pub fn hindrance(&self) -> Option<&'static str> {
        match self.make {
            Make::Message { wake, .. } => event_core::hindrance(wake),
            Make::DueInterrupt => {
                (!sys::hpet::is_there()).then_some("there is no /dev/hpet: it takes CONFIG_HPET and such a timer; guests of `lab run --device hpet` have one")
            }
            Make::Uio | Make::UioEvent => (!sys::uio::is_there()).then_some(
                "there is no device edu that uio_pci_generic has: guests of `lab run --device edu-uio` have one",
            ),
            Make::Vfio => (!sys::vfio::is_there()).then_some(
                "there is no device edu that vfio-pci has: guests of `lab run --device edu-vfio` have one",
            ),
            _ => None,
        }
    }

    /// Whether each thread that makes it takes a device, of which there are few: it is made where it is named.
    pub fn takes_a_device(&self) -> bool {
        matches!(self.make, Make::DueInterrupt | Make::Uio | Make::UioEvent | Make::Vfio)
    }

    /// Prepares it for the calling thread, whose partners run on `cpu`.
    fn begin(&self, setup: &CallSetup, cpu: Option<CpuId>) -> Result<Box<dyn Call>, Error> {
        if let Some(why) = self.hindrance().filter(|_| self.takes_a_device()) {
            return Err(Error::new(format!("--calls {}: {why}", self.name), ""));
        }
        // On another CPU a partner of the same priority does not have to wait for the woken thread.
        let standing = Standing { cpu, below: u8::from(!setup.across), is_ordinary: false };
        // On PREEMPT_RT a handler is a thread, which one of higher priority would keep from running.
        let raises = Standing { is_ordinary: true, ..standing };
        Ok(match self.make {
            Make::Wait(name) => {
                let way = Way::find(name).ok_or_else(|| unknown(name))?;
                match way.waker {
                    Waker::Clock => Box::new(Timed(way.begin()?.0)),
                    _ => Box::new(Handover::begin(way.begin()?, standing)?),
                }
            }
            Make::Condition => Box::new(Handover::begin(handover::condition(), standing)?),
            Make::Lock { inherits } => Box::new(Inversion::begin(inherits, setup.burst, cpu)?),
            Make::Touch { is_locked } => Box::new(Touch::begin(is_locked)?),
            Make::Mprotect => Box::new(Shootdown::by_rights(standing)?),
            Make::Mmap => Box::new(Shootdown::by_mapping(standing)?),
            Make::Device => Box::new(Device::begin()?),
            Make::DueInterrupt => Box::new(device::DueInterrupt::begin()?),
            Make::Uio => Box::new(Handover::begin(device::through_uio()?, raises)?),
            Make::UioEvent => Box::new(Handover::begin(device::through_source()?, raises)?),
            Make::Vfio => Box::new(Handover::begin(device::through_vfio()?, raises)?),
            Make::FloatingPoint => Box::new(FloatingPoint::begin()),
            Make::Chain => Box::new(Handover::begin(message::through_threads()?, standing)?),
            Make::Message { wake, stages } => {
                let ends = message::to_core(self.name, wake, stages)?;
                Box::new(Handover::begin(ends, standing)?)
            }
        })
    }
}

fn unknown(name: &str) -> Error {
    Error::new(format!("there is no call `{name}`"), "worstcase measure --probe call --calls all")
}

/// A thread of the instrument.
struct Thread<'a> {
    job: &'a CallJob,
    call: Box<dyn Call>,
    stop_at: u64,
}

impl<'a> Thread<'a> {
    fn prepare(job: &'a CallJob, place: Place) -> Result<Self, Error> {
        let setup = &job.setup;
        let known = Known::find(&setup.call).ok_or_else(|| unknown(&setup.call))?;
        let other = || setup.partners.iter().find(|cpu| Some(*cpu) != place.cpu);
        let cpu = if setup.across { Some(other().ok_or_else(no_second)?) } else { place.cpu };
        Ok(Self { job, call: known.begin(setup, cpu)?, stop_at: place.stop_at })
    }
}

fn no_second() -> Error {
    Error::new("there is no second CPU for the other thread", "name one with --partners")
}

impl Ready for Thread<'_> {
    fn measure(
        mut self: Box<Self>,
        start: u64,
        board: &[Word],
        recorder: &mut Recorder<'_>,
        _: &[Word],
    ) -> Used {
        let (job, call) = (self.job, self.call.as_mut());
        let mut task = Task {
            origin: start,
            until: job.span.warm_until(start),
            interval: job.setup.interval.0.max(1),
            stop_at: self.stop_at,
        };
        engine::warm_up(call, &task, board, recorder);
        task.origin = Clock::Monotonic.now().max(task.until);
        task.until = job.span.until(task.origin);
        recorder.started(&record::Grid::fixed(task.origin, 1));
        used_by(|| engine::run(call, &task, board, recorder))
    }
}

#[cfg(test)]
mod tests {
    use units::{CpuList, Nanos};

    use super::*;

    fn setup(call: &str, across: bool) -> CallSetup {
        let partners = sys::schedule::affinity(0).unwrap_or_default();
        CallSetup {
            call: call.into(),
            across,
            interval: Nanos::from_millis(1),
            burst: Nanos(100_000),
            partners,
        }
    }

    #[test]
    fn every_call_can_be_made_on_one_cpu_and_across_two() {
        let cpus: CpuList = sys::schedule::affinity(0).unwrap();
        for known in CALLS.into_iter().filter(|known| known.hindrance().is_none()) {
            for across in [false, true].into_iter().filter(|across| !across || cpus.len() > 1) {
                if !(if across { known.across } else { known.alone }) {
                    continue;
                }
                let cpu = cpus.iter().nth(usize::from(across));
                let made = std::thread::spawn(move || {
                    let mut call = known.begin(&setup(known.name, across), cpu).unwrap();
                    (0..3).map(|_| call.once().unwrap()).max()
                });
                assert!(
                    made.join().unwrap().is_some_and(|took| took > 0 || known.name.contains("mutex")),
                    "{known:?}"
                );
            }
        }
    }

    #[test]
    fn a_page_that_the_kernel_has_to_give_is_a_fault_and_a_locked_one_is_none() {
        let faults = |is_locked| {
            let mut touch = Touch::begin(is_locked).unwrap();
            let before = sys::usage::thread();
            (0..20).for_each(|_| assert!(touch.once().is_ok()));
            (sys::usage::thread() - before).minor_faults
        };
        assert!(faults(false) >= 20);
        assert!(faults(true) < 20);
    }

    #[test]
    fn a_device_that_is_not_there_is_named_with_where_there_is_one() {
        for known in CALLS.into_iter().filter(|known| known.takes_a_device() && known.hindrance().is_some()) {
            let error = known.begin(&setup(known.name, false), None).err().unwrap();
            let is_whole = error.message.contains(known.name) && error.message.contains("lab run --device");
            assert!(is_whole, "{}", error.message);
        }
    }

    #[test]
    fn names_are_unique() {
        for known in CALLS {
            assert_eq!(CALLS.iter().filter(|other| other.name == known.name).count(), 1, "{known:?}");
            assert!(known.alone || known.across, "{known:?} can be made nowhere");
        }
    }
}
