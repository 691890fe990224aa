//! Interrupts of a PCI device as events of user space: VFIO (Documentation/driver-api/vfio.rst, include/uapi/linux/vfio.h), with QEMU's
//! `edu`, as in [`crate::uio`].

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::EventfdFlags;
use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Named, check};
use crate::uio::{self, Registers};
use crate::{Errno, Error, Result};

const CONTAINER: &str = "/dev/vfio/vfio";
/// The driver's name.
const DRIVER: &str = "vfio-pci";

/// `_IO(';', 100 + n)`.
const fn number(n: u64) -> u64 {
    0x3b64 + n
}

const SET_IOMMU: u64 = number(2);
const GROUP_SET_CONTAINER: u64 = number(4);
const GROUP_GET_DEVICE_FD: u64 = number(6);
const DEVICE_GET_REGION_INFO: u64 = number(8);
const DEVICE_SET_IRQS: u64 = number(10);
/// `VFIO_TYPE1_IOMMU`.
const TYPE1: usize = 1;
/// `VFIO_PCI_BAR0_REGION_INDEX`, `VFIO_PCI_CONFIG_REGION_INDEX`, `VFIO_PCI_MSI_IRQ_INDEX`.
const BAR0: u32 = 0;
const CONFIGURATION: u32 = 7;
const MSI: u32 = 1;
/// `VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER`.
const BY_EVENTFD: u32 = 1 << 2 | 1 << 5;
/// The command register in the configuration space, and its bits for memory and for bus mastering: an MSI is a write of the device.
const COMMAND: u64 = 4;
const MEMORY_AND_MASTER: u8 = 1 << 1 | 1 << 2;

/// `struct vfio_region_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    size_of_self: u32,
    flags: u32,
    index: u32,
    capabilities: u32,
    size: u64,
    offset: u64,
}

/// `struct vfio_irq_set` with one descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
struct Interrupts {
    size_of_self: u32,
    flags: u32,
    index: u32,
    start: u32,
    count: u32,
    descriptor: i32,
}

/// QEMU's `edu` behind vfio-pci: its message-signalled interrupt is an eventfd.
#[derive(Debug)]
pub struct Edu {
    event: OwnedFd,
    registers: Registers,
    device: OwnedFd,
    /// They are closed after it.
    _group: OwnedFd,
    _container: OwnedFd,
}

/// Whether there is one, with its driver.
pub fn is_there() -> bool {
    find().is_some()
}

fn find() -> Option<PathBuf> {
    let driver = |device: &Path| Some(std::fs::read_link(device.join("driver")).ok()?.file_name()? == DRIVER);
    uio::devices().into_iter().find(|device| driver(device) == Some(true))
}

impl Edu {
    /// Finds one, and lets its interrupts come.
    ///
    /// # Errors
    /// `ENODEV` where there is none, or the driver has none; `EACCES` or `EPERM` without privileges or where an IOMMU cannot keep
    /// interrupts of devices apart; `EBUSY` where another program has it.
    pub fn open() -> Result<Self> {
        let gone = |on: &str| Error { call: "find", on: on.to_owned(), errno: Errno::NODEV };
        let device = find().ok_or_else(|| gone("a device `edu` that vfio-pci has"))?;
        let group = std::fs::read_link(device.join("iommu_group")).ok();
        let group =
            group.as_deref().and_then(Path::file_name).ok_or_else(|| gone("the device's IOMMU group"))?;
        let open = |path: &Path| {
            rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).on("open", path.display())
        };
        let container = open(Path::new(CONTAINER))?;
        let group = open(&Path::new("/dev/vfio").join(group))?;
        let own = container.as_raw_fd();
        control(&group, "VFIO_GROUP_SET_CONTAINER", GROUP_SET_CONTAINER, &raw const own as usize)?;
        control(&container, "VFIO_SET_IOMMU", SET_IOMMU, TYPE1)?;
        let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned() + "\0";
        let made = control(&group, "VFIO_GROUP_GET_DEVICE_FD", GROUP_GET_DEVICE_FD, name.as_ptr() as usize)?;
        // SAFETY: the kernel made the descriptor for this process just now.
        let device = unsafe { OwnedFd::from_raw_fd(made) };
        let registers = map(&device)?;
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).named("eventfd")?;
        let edu = Self { event, registers, device, _group: group, _container: container };
        edu.master()?;
        edu.signal()?;
        Ok(edu)
    }

    fn master(&self) -> Result<()> {
        let place = region(&self.device, CONFIGURATION)?.offset + COMMAND;
        let mut command = [0];
        rustix::io::pread(&self.device, &mut command, place).named("pread of the configuration space")?;
        let command = [command[0] | MEMORY_AND_MASTER];
        rustix::io::pwrite(&self.device, &command, place).named("pwrite of the configuration space").map(drop)
    }

    fn signal(&self) -> Result<()> {
        let wanted = Interrupts {
            size_of_self: size_of::<Interrupts>() as u32,
            flags: BY_EVENTFD,
            index: MSI,
            start: 0,
            count: 1,
            descriptor: self.event.as_raw_fd(),
        };
        control(&self.device, "VFIO_DEVICE_SET_IRQS", DEVICE_SET_IRQS, &raw const wanted as usize).map(drop)
    }

    /// What raises its interrupt.
    pub fn registers(&self) -> Registers {
        self.registers
    }

    /// Takes back what was raised.
    pub fn acknowledge(&self) {
        self.registers.acknowledge();
    }

    /// Waits for an interrupt.
    ///
    /// # Errors
    /// What read(2) answered.
    pub fn wait(&self) -> std::result::Result<(), Errno> {
        rustix::io::read(&self.event, &mut [0; 8]).map(drop)
    }
}

/// Maps the device's registers.
fn map(device: &OwnedFd) -> Result<Registers> {
    let offset = region(device, BAR0)?.offset;
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, of a device's registers, which are accessed volatile.
    let mapped = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), Registers::LENGTH, rights, MapFlags::SHARED, device, offset)
    };
    Ok(Registers::at(mapped.named("mmap of the device's registers")?.cast()))
}

fn region(device: &OwnedFd, index: u32) -> Result<Region> {
    let mut region = Region { size_of_self: size_of::<Region>() as u32, index, ..Region::default() };
    let argument = &raw mut region as usize;
    control(device, "VFIO_DEVICE_GET_REGION_INFO", DEVICE_GET_REGION_INFO, argument)?;
    Ok(region)
}

fn control(file: &OwnedFd, name: &'static str, number: u64, argument: usize) -> Result<libc::c_int> {
    // SAFETY: an ioctl of VFIO with a number, or with a structure that outlives the call and whose length it has.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number as _, argument) };
    check(result, name, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_device_says_so() {
        if !is_there() {
            let error = Edu::open().unwrap_err();
            assert!(error.errno == Errno::NODEV && error.to_string().contains("edu"), "{error}");
        }
    }

    #[test]
    fn structures_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<Region>(), size_of::<Interrupts>()), (32, 24));
        assert_eq!((number(0), DEVICE_SET_IRQS), (0x3b64, 0x3b6e));
    }
}
