//! Interrupts of devices: of one that says when each was due, and of one that raises them when it is asked to.

use failure::Error;
#[cfg(target_has_atomic = "64")]
use record::Wake;
use sys::Errno;
use sys::hpet::Hpet;
#[cfg(target_has_atomic = "64")]
use sys::schedule;
use sys::{uio, vfio};
use wakepath::{Ends, Wait};

use super::engine::Call;
#[cfg(target_has_atomic = "64")]
use super::partner;
use crate::event_core;

/// Interrupts in a second, and what the kernel lets everybody have (`dev.hpet.max-user-freq`).
const FREQUENCY: u32 = 1000;
const FREQUENCY_OF_ALL: u32 = 64;

/// The high precision event timer: how late a read returns after its interrupt was due.
pub(super) struct DueInterrupt(Hpet);

impl DueInterrupt {
    pub fn begin() -> Result<Self, Error> {
        let slower = |error: sys::Error| match error.errno {
            Errno::ACCESS => Hpet::open(FREQUENCY_OF_ALL),
            _ => Err(error),
        };
        let taken = |error: sys::Error| {
            let hint = match error.errno {
                Errno::BUSY => "another program, or another measuring thread, has it: --cpus with one CPU",
                Errno::ACCESS | Errno::PERM => "run as root",
                _ => "",
            };
            Error::new(&error, hint).caused_by(error)
        };
        Hpet::open(FREQUENCY).or_else(slower).map(Self).map_err(taken)
    }
}

impl Call for DueInterrupt {
    fn once(&mut self) -> Result<u64, Errno> {
        self.0.wait()
    }
}

/// What waits for QEMU's `edu`.
struct ThroughUio(uio::Edu);

impl Wait for ThroughUio {
    fn wait(&mut self) -> Result<(), Error> {
        let failed = |errno: Errno| Error::new(format!("wait for an interrupt through UIO: {errno}"), "");
        self.0.enable().and_then(|()| self.0.wait()).map_err(failed)
    }
}

/// The same by an event.
struct ThroughVfio(vfio::Edu);

impl Wait for ThroughVfio {
    fn wait(&mut self) -> Result<(), Error> {
        self.0.acknowledge();
        self.0.wait().map_err(|errno| Error::new(format!("wait for an interrupt through VFIO: {errno}"), ""))
    }
}

/// Both ends of an interrupt of QEMU's `edu`.
pub(super) fn through_uio() -> Result<Ends, Error> {
    let edu = uio::Edu::open()?;
    let registers = edu.registers();
    Ok((Box::new(ThroughUio(edu)), Box::new(move || registers.raise())))
}

/// The same to an object of the event machine, whose core is the measuring thread and sleeps.
#[cfg(target_has_atomic = "64")]
pub(super) fn through_source() -> Result<Ends, Error> {
    let edu = uio::Edu::open()?;
    let registers = edu.registers();
    let (from, switch) = edu.into_parts();
    // One below the core, so that the core runs as soon as it has the event.
    let mut below = partner::scheduling_below(1)?;
    let before = move || {
        let failed = |error: sys::Error| std::io::Error::from_raw_os_error(error.number());
        below.take().map_or(Ok(()), |below| schedule::set(below).map_err(failed))?;
        switch.enable().map_err(std::io::Error::from)
    };
    let core = event_core::EventCore::of_source(Wake::RuntimeBlock, from, 4, before)?;
    Ok((Box::new(core), Box::new(move || registers.raise())))
}

/// The same to a core of the event machine, which this CPU cannot run.
#[cfg(not(target_has_atomic = "64"))]
pub(super) fn through_source() -> Result<Ends, Error> {
    Err(event_core::refused("--calls uio-event", event_core::NARROW))
}

/// The same by an event.
pub(super) fn through_vfio() -> Result<Ends, Error> {
    let edu = vfio::Edu::open()?;
    let registers = edu.registers();
    Ok((Box::new(ThroughVfio(edu)), Box::new(move || registers.raise())))
}
