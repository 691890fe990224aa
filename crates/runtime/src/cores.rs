//! Threads that are the cores: one pinned FIFO thread each, its memory locked, and what the kernel did to it all the same.

use std::thread::JoinHandle;

use units::{CpuId, CpuList, Priority};

use crate::dispatch::Dispatcher;
use crate::model::{Error, Wait};
use crate::state::Machine;

/// Where a core runs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The CPU that its thread is pinned to; none leaves it to the kernel.
    pub cpu: Option<CpuId>,
    /// Its SCHED_FIFO priority; none leaves it SCHED_OTHER.
    pub priority: Option<Priority>,
    /// How it waits.
    pub wait: Wait,
}

/// What a core's thread could not have, and why: it runs without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without(pub Vec<String>);

/// What the kernel did to a core's thread between its first and its last event. Interrupts and system calls that neither
/// fault nor sleep are not in it: those take a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Page faults.
    pub faults: u64,
    /// Times that it slept, by a system call of its own or of an object.
    pub slept: u64,
    /// Times that another thread took its CPU.
    pub preempted: u64,
}

/// A machine's cores as threads.
pub struct Cores {
    machine: Machine,
    threads: Vec<JoinHandle<(Without, Guarded)>>,
}

impl Cores {
    /// Starts one thread for each dispatcher, in their order. What they cannot have is in what [`Cores::end`] returns.
    pub fn start(machine: &Machine, dispatchers: Vec<Dispatcher>, places: &[Place]) -> Result<Self, Error> {
        if places.len() != dispatchers.len() {
            return Err(Error::NoSuchCore);
        }
        let mut without = Vec::new();
        if let Err(error) = sys::memory::lock_all() {
            without.push(format!("locked memory: {error}"));
        }
        let start = |(mut dispatcher, place): (Dispatcher, &Place)| {
            let (place, mut without) = (*place, Without(without.clone()));
            std::thread::spawn(move || {
                without.0.extend(set_up(&place));
                dispatcher.set_wait(place.wait);
                sys::memory::touch_stack();
                let before = sys::usage::thread();
                dispatcher.dispatch_to_the_end();
                let used = sys::usage::thread() - before;
                let faults = used.minor_faults + used.major_faults;
                (without, Guarded { faults, slept: used.voluntary, preempted: used.involuntary })
            })
        };
        let threads = dispatchers.into_iter().zip(places).map(start).collect();
        Ok(Self { machine: machine.clone(), threads })
    }

    /// Ends the machine and its threads: for each core what it went without, and what the kernel did to it.
    pub fn end(self) -> Vec<(Without, Guarded)> {
        self.machine.end();
        self.threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    }
}

fn set_up(place: &Place) -> Vec<String> {
    let mut without = Vec::new();
    if let Some(cpu) = place.cpu {
        let pinned = sys::schedule::set_affinity(0, &CpuList::from_iter([cpu]));
        without.extend(pinned.err().map(|error| format!("CPU {cpu}: {error}")));
    }
    if let Some(priority) = place.priority {
        let set = sys::schedule::set(sys::schedule::Scheduling::Fifo(priority));
        without.extend(set.err().map(|error| format!("SCHED_FIFO {priority}: {error}")));
    }
    if place.wait == Wait::Pause && !crate::wait::can_pause() {
        without.push(
            "tpause, wfet, wfe: this CPU or kernel has none that ends by itself, and the core spins"
                .to_owned(),
        );
    }
    without
}
