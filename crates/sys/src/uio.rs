//! Interrupts of a PCI device in user space: the driver uio_pci_generic (Documentation/driver-api/uio-howto.rst), with the device of QEMU
//! that raises an interrupt when it is asked to (`edu`, docs/specs/edu.rst of QEMU).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::Named;
use crate::{Errno, Error, Result};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Vendor and device, as sysfs has them.
const EDU: [(&str, &str); 2] = [("vendor", "0x1234"), ("device", "0x11e8")];

/// Registers of `edu`, in words of 32 bits.
mod register {
    /// Bits of what was raised.
    pub const STATUS: usize = 0x24 / 4;
    /// Raises.
    pub const RAISE: usize = 0x60 / 4;
    /// Takes back.
    pub const ACKNOWLEDGE: usize = 0x64 / 4;
}

/// The upper byte of the command register in the configuration space; "interrupt disable" is its bit 2 (PCI Local Bus Specification 3.0,
/// 6.2.2).
const COMMAND: u64 = 5;
const DISABLED: u8 = 1 << 2;

/// QEMU's `edu` behind uio_pci_generic.
#[derive(Debug)]
pub struct Edu {
    interrupts: OwnedFd,
    switch: Switch,
}

/// What lets its next interrupt come.
#[derive(Debug)]
pub struct Switch {
    configuration: OwnedFd,
    registers: Registers,
}

/// Its registers, mapped.
#[derive(Clone, Copy, Debug)]
pub struct Registers(*mut u32);

// SAFETY: registers of a device: each access is volatile, and threads that share them write different ones.
unsafe impl Send for Registers {}

impl Registers {
    /// Bytes that are mapped.
    pub(crate) const LENGTH: usize = 4096;

    /// Of a mapping that stays as long as the process.
    pub(crate) fn at(start: *mut u32) -> Self {
        Self(start)
    }

    fn read(self, number: usize) -> u32 {
        // SAFETY: within the mapping, which is as long as the process.
        unsafe { self.0.add(number).read_volatile() }
    }

    fn write(self, number: usize, value: u32) {
        // SAFETY: within the mapping, which is as long as the process.
        unsafe { self.0.add(number).write_volatile(value) }
    }

    /// Takes back what was raised.
    pub(crate) fn acknowledge(self) {
        self.write(register::ACKNOWLEDGE, self.read(register::STATUS));
    }

    /// Raises its interrupt.
    pub fn raise(self) {
        self.write(register::RAISE, 1);
    }
}

/// Whether there is one, with its driver.
pub fn is_there() -> bool {
    find().is_some()
}

impl Edu {
    /// Finds one, and lets its interrupts come.
    ///
    /// # Errors
    /// `ENODEV` where there is none, or the driver has none; `EACCES` or `EPERM` without privileges.
    pub fn open() -> Result<Self> {
        let device = find().ok_or_else(|| Error {
            call: "find",
            on: "a device `edu` that uio_pci_generic has".into(),
            errno: Errno::NODEV,
        })?;
        let name = first(&device.join("uio"))?;
        let open = |path: PathBuf, flags: OFlags| {
            rustix::fs::open(&path, flags | OFlags::CLOEXEC, Mode::empty()).on("open", path.display())
        };
        let resource = open(device.join("resource0"), OFlags::RDWR | OFlags::SYNC)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice, of a device's registers, which are accessed volatile.
        let registers = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), Registers::LENGTH, rights, MapFlags::SHARED, &resource, 0)
        };
        let edu = Self {
            interrupts: open(Path::new("/dev").join(name), OFlags::RDWR)?,
            switch: Switch {
                configuration: open(device.join("config"), OFlags::RDWR)?,
                registers: Registers::at(registers.on("mmap", device.display())?.cast()),
            },
        };
        Ok(edu)
    }

    /// What raises it.
    pub fn registers(&self) -> Registers {
        self.switch.registers
    }

    /// What is read, and what has to be asked for the next interrupt before each read.
    pub fn into_parts(self) -> (OwnedFd, Switch) {
        (self.interrupts, self.switch)
    }

    /// As [`Switch::enable`].
    ///
    /// # Errors
    /// As there.
    pub fn enable(&self) -> std::result::Result<(), Errno> {
        self.switch.enable()
    }

    /// Waits for an interrupt.
    ///
    /// # Errors
    /// What read(2) answered.
    pub fn wait(&self) -> std::result::Result<(), Errno> {
        rustix::io::read(&self.interrupts, &mut [0; 4]).map(drop)
    }
}

fn find() -> Option<PathBuf> {
    devices().into_iter().find(|device| device.join("uio").is_dir())
}

impl Switch {
    /// Takes back what was raised and lets the next interrupt come: the driver disables interrupts at each.
    ///
    /// # Errors
    /// What the configuration space answered.
    pub fn enable(&self) -> std::result::Result<(), Errno> {
        self.registers.acknowledge();
        let mut command = [0];
        rustix::io::pread(&self.configuration, &mut command, COMMAND)?;
        rustix::io::pwrite(&self.configuration, &[command[0] & !DISABLED], COMMAND).map(drop)
    }
}

/// Those of the machine.
pub(crate) fn devices() -> Vec<PathBuf> {
    let all = std::fs::read_dir(DEVICES).into_iter().flatten().flatten().map(|entry| entry.path());
    let says = |device: &Path, (name, wanted): (&str, &str)| {
        std::fs::read_to_string(device.join(name)).is_ok_and(|text| text.trim() == wanted)
    };
    all.filter(|device| EDU.iter().all(|pair| says(device, *pair))).collect()
}

/// The name of the first thing in a directory.
fn first(directory: &Path) -> Result<std::ffi::OsString> {
    let found = std::fs::read_dir(directory).ok().and_then(|mut entries| entries.next()?.ok());
    let gone = || Error { call: "read", on: directory.display().to_string(), errno: Errno::NODEV };
    found.map(|entry| entry.file_name()).ok_or_else(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_device_says_so() {
        if let Err(error) = Edu::open() {
            assert!(error.to_string().contains("edu") || error.errno != Errno::NODEV, "{error}");
        }
    }
}
