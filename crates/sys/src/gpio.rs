//! GPIO lines by their character device: version 2 of its interface (Linux 5.10), version 1 where that is all there is
//! (Documentation/userspace-api/gpio/chardev.rst, include/uapi/linux/gpio.h).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, opcode};

use crate::error::Named;
use crate::ioctl::call;
use crate::{Errno, Error, Result};

/// `GPIO_MAX_NAME_SIZE`, with the zero at its end.
const NAME: usize = 32;
const LINES: usize = 64;
const ATTRIBUTES: usize = 10;

/// Flags of a line, version 2: `GPIO_V2_LINE_FLAG_*`.
mod flag {
    pub const USED: u64 = 1 << 0;
    pub const INPUT: u64 = 1 << 2;
    pub const OUTPUT: u64 = 1 << 3;
    pub const RISING: u64 = 1 << 4;
    pub const FALLING: u64 = 1 << 5;
}

/// `GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES`.
const OUTPUT_VALUES: u32 = 2;

/// Version 1: `GPIOHANDLE_REQUEST_*`, `GPIOLINE_FLAG_KERNEL`. Edges have the bits 0 and 1.
mod old {
    pub const INPUT: u32 = 1 << 0;
    pub const OUTPUT: u32 = 1 << 1;
    pub const USED: u32 = 1 << 0;
}

/// Of an event, in both versions.
const ROSE: u32 = 1;
const FELL: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct ChipInfo {
    name: [u8; NAME],
    label: [u8; NAME],
    lines: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    id: u32,
    padding: u32,
    value: u64,
    mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Config {
    flags: u64,
    count: u32,
    padding: [u32; 5],
    attributes: [Attribute; ATTRIBUTES],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    offsets: [u32; LINES],
    consumer: [u8; NAME],
    config: Config,
    lines: u32,
    event_buffer: u32,
    padding: [u32; 5],
    fd: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct LineInfo2 {
    name: [u8; NAME],
    consumer: [u8; NAME],
    offset: u32,
    count: u32,
    flags: u64,
    attributes: [[u64; 2]; ATTRIBUTES],
    padding: [u32; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Values {
    bits: u64,
    mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct LineInfo1 {
    offset: u32,
    flags: u32,
    name: [u8; NAME],
    consumer: [u8; NAME],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct HandleRequest {
    offsets: [u32; LINES],
    flags: u32,
    values: [u8; LINES],
    consumer: [u8; NAME],
    lines: u32,
    fd: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct EventRequest {
    offset: u32,
    handle_flags: u32,
    event_flags: u32,
    consumer: [u8; NAME],
    fd: i32,
}

/// Bytes of an event, of version 2 and 1.
const EVENT2: usize = 48;
const EVENT1: usize = 16;

const fn request<T>(number: u8) -> Opcode {
    opcode::read_write::<T>(0xb4, number)
}

/// Which edge of a line wakes who waits. Both cannot be asked for: the kernel then tells them apart by the line's level when its
/// thread runs, and takes the fall of an answer that is low for some microseconds for a second rise (`edge_irq_thread` in
/// drivers/gpio/gpiolib-cdev.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// From low to high.
    Rising,
    /// From high to low.
    Falling,
}

impl Edge {
    /// The one that rises, or the other.
    pub fn rising(rises: bool) -> Self {
        if rises { Self::Rising } else { Self::Falling }
    }
}

/// An edge, as the kernel saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When its interrupt was served, in nanoseconds of `CLOCK_MONOTONIC` (before Linux 5.7: of `CLOCK_REALTIME`).
    pub stamp: u64,
    /// Whether the line rose.
    pub rose: bool,
    /// Its number on this line, from 1: a gap shows events that nobody read in time. None in version 1.
    pub number: Option<u32>,
}

/// What the kernel says of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineInfo {
    /// Its name, often that of the pin; empty where it has none.
    pub name: String,
    /// Who uses it; empty where nobody does, or nobody says.
    pub consumer: String,
    /// Whether it is taken.
    pub is_used: bool,
}

/// A chip.
#[derive(Debug)]
pub struct Chip {
    fd: OwnedFd,
    path: String,
    /// The kernel's label of it.
    pub label: String,
    /// How many lines it has.
    pub lines: u32,
}

/// A line whose edges are read.
#[derive(Debug)]
pub struct Input {
    fd: OwnedFd,
    is_old: bool,
}

/// A line that is driven.
#[derive(Debug)]
pub struct Output {
    fd: OwnedFd,
    is_old: bool,
}

impl Chip {
    /// The chip of that device file.
    pub fn open(path: &str) -> Result<Self> {
        let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).on("open", path)?;
        // SAFETY: plain data, for which zeroes are valid.
        let mut info: ChipInfo = unsafe { std::mem::zeroed() };
        let number = opcode::read::<ChipInfo>(0xb4, 0x01);
        call(&fd, number, &mut info, "GPIO_GET_CHIPINFO_IOCTL", path)?;
        Ok(Self { fd, path: path.into(), label: text(&info.label), lines: info.lines })
    }

    /// What the kernel says of line `offset`.
    pub fn line(&self, offset: u32) -> Result<LineInfo> {
        // SAFETY: plain data, for which zeroes are valid.
        let mut info: LineInfo2 = unsafe { std::mem::zeroed() };
        info.offset = offset;
        let on = self.named(offset);
        match call(&self.fd, request::<LineInfo2>(0x05), &mut info, "GPIO_V2_GET_LINEINFO_IOCTL", &on) {
            Ok(()) => {
                let is_used = info.flags & flag::USED != 0;
                return Ok(LineInfo { name: text(&info.name), consumer: text(&info.consumer), is_used });
            }
            Err(error) if !is_unknown(error.errno) || offset >= self.lines => return Err(error),
            Err(_) => {}
        }
        // SAFETY: as above.
        let mut info: LineInfo1 = unsafe { std::mem::zeroed() };
        info.offset = offset;
        call(&self.fd, request::<LineInfo1>(0x02), &mut info, "GPIO_GET_LINEINFO_IOCTL", &on)?;
        let is_used = info.flags & old::USED != 0;
        Ok(LineInfo { name: text(&info.name), consumer: text(&info.consumer), is_used })
    }

    /// Takes line `offset` as an input of which one edge is queued: the kernel keeps `queue` of them (0: 16; version 1 always 16).
    /// The interrupt bears the name `consumer`.
    pub fn input(&self, offset: u32, edge: Edge, queue: u32, consumer: &str) -> Result<Input> {
        let mut asked = self.request(offset, consumer);
        asked.config.flags = flag::INPUT | edge_flag(edge);
        asked.event_buffer = queue;
        let on = self.named(offset);
        match call(&self.fd, request::<Request>(0x07), &mut asked, "GPIO_V2_GET_LINE_IOCTL", &on) {
            Ok(()) => return Input::new(owned(asked.fd), false),
            Err(error) if !is_unknown(error.errno) => return Err(error),
            Err(_) => {}
        }
        let mut asked = EventRequest {
            offset,
            handle_flags: old::INPUT,
            event_flags: (edge_flag(edge) >> 4) as u32,
            consumer: padded(consumer),
            fd: -1,
        };
        call(&self.fd, request::<EventRequest>(0x04), &mut asked, "GPIO_GET_LINEEVENT_IOCTL", &on)?;
        Input::new(owned(asked.fd), true)
    }

    /// Takes line `offset` as an output that begins `high` or low.
    pub fn output(&self, offset: u32, high: bool, consumer: &str) -> Result<Output> {
        let mut asked = self.request(offset, consumer);
        asked.config.flags = flag::OUTPUT;
        asked.config.count = 1;
        asked.config.attributes[0] = Attribute { id: OUTPUT_VALUES, padding: 0, value: high.into(), mask: 1 };
        let on = self.named(offset);
        match call(&self.fd, request::<Request>(0x07), &mut asked, "GPIO_V2_GET_LINE_IOCTL", &on) {
            Ok(()) => return Ok(Output { fd: owned(asked.fd), is_old: false }),
            Err(error) if !is_unknown(error.errno) => return Err(error),
            Err(_) => {}
        }
        // SAFETY: plain data, for which zeroes are valid.
        let mut asked: HandleRequest = unsafe { std::mem::zeroed() };
        asked.offsets[0] = offset;
        (asked.flags, asked.values[0], asked.lines) = (old::OUTPUT, high.into(), 1);
        asked.consumer = padded(consumer);
        call(&self.fd, request::<HandleRequest>(0x03), &mut asked, "GPIO_GET_LINEHANDLE_IOCTL", &on)?;
        Ok(Output { fd: owned(asked.fd), is_old: true })
    }

    fn request(&self, offset: u32, consumer: &str) -> Request {
        // SAFETY: plain data, for which zeroes are valid.
        let mut asked: Request = unsafe { std::mem::zeroed() };
        asked.offsets[0] = offset;
        asked.lines = 1;
        asked.consumer = padded(consumer);
        asked
    }

    fn named(&self, offset: u32) -> String {
        format!("line {offset} of {}", self.path)
    }
}

impl Input {
    fn new(fd: OwnedFd, is_old: bool) -> Result<Self> {
        rustix::fs::fcntl_setfl(&fd, OFlags::NONBLOCK).named("F_SETFL")?;
        Ok(Self { fd, is_old })
    }

    /// The oldest edge that was not read; none where there is none. It does not wait.
    #[inline]
    pub fn read(&self) -> std::result::Result<Option<Event>, Errno> {
        let mut bytes = [0; EVENT2];
        let size = if self.is_old { EVENT1 } else { EVENT2 };
        match rustix::io::read(&self.fd, &mut bytes[..size]) {
            Ok(got) if got == size => Ok(event(&bytes[..size])),
            // The chip is gone.
            Ok(_) => Err(Errno::NODEV),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Waits until there is an edge to read, for `nanos` at most; whether there is one.
    #[inline]
    pub fn wait(&self, nanos: u64) -> std::result::Result<bool, Errno> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let timeout =
            Timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ };
        poll(&mut fds, Some(&timeout))?;
        let seen = fds[0].revents();
        // The chip is gone: read(2) says so, or nothing ever comes.
        let is_gone = seen.intersects(PollFlags::ERR | PollFlags::HUP) && !seen.contains(PollFlags::IN);
        if is_gone { Err(Errno::NODEV) } else { Ok(!seen.is_empty()) }
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Output {
    /// Drives the line.
    #[inline]
    pub fn set(&self, high: bool) -> std::result::Result<(), Errno> {
        let mut bytes = [0_u8; LINES];
        bytes[0] = high.into();
        let mut values = Values { bits: high.into(), mask: 1 };
        let fd = self.fd.as_raw_fd();
        // SAFETY: a filled structure of the size that the number names, which outlives the call.
        let result = unsafe {
            if self.is_old {
                libc::ioctl(fd, request::<[u8; LINES]>(0x09) as _, bytes.as_mut_ptr())
            } else {
                libc::ioctl(fd, request::<Values>(0x0f) as _, &raw mut values)
            }
        };
        if result == -1 { Err(Error::last("", "").errno) } else { Ok(()) }
    }
}

/// What an event of either version says; none where it is no edge.
fn event(bytes: &[u8]) -> Option<Event> {
    let stamp = bytes.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)?;
    let word = |place: usize| {
        let bytes = bytes.get(place..place + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let rose = match word(8)? {
        ROSE => true,
        FELL => false,
        _ => return None,
    };
    Some(Event { stamp, rose, number: word(20) })
}

fn edge_flag(edge: Edge) -> u64 {
    match edge {
        Edge::Rising => flag::RISING,
        Edge::Falling => flag::FALLING,
    }
}

/// What kernels answer to a number that they do not know: before 5.10 EINVAL.
fn is_unknown(errno: Errno) -> bool {
    matches!(errno, Errno::NOTTY | Errno::INVAL)
}

fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel made the descriptor for the caller just now.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A name with zeroes behind it, one at least.
fn padded(name: &str) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    bytes[..NAME - 1].iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte);
    bytes
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that stand in the kernel's numbers (include/uapi/linux/gpio.h).
    #[test]
    fn structures_are_as_large_as_the_kernels() {
        let sizes = [
            (size_of::<ChipInfo>(), 68),
            (size_of::<Attribute>(), 24),
            (size_of::<Config>(), 272),
            (size_of::<Request>(), 592),
            (size_of::<LineInfo2>(), 256),
            (size_of::<Values>(), 16),
            (size_of::<LineInfo1>(), 72),
            (size_of::<HandleRequest>(), 364),
            (size_of::<EventRequest>(), 48),
        ];
        assert!(sizes.iter().all(|(own, kernel)| own == kernel), "{sizes:?}");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(request::<Request>(0x07), 0xc250_b407);
            assert_eq!(request::<Values>(0x0f), 0xc010_b40f);
        }
    }

    #[test]
    fn events_of_both_versions_are_read() {
        let mut bytes = [0; EVENT2];
        bytes[..8].copy_from_slice(&5_u64.to_ne_bytes());
        bytes[8..12].copy_from_slice(&FELL.to_ne_bytes());
        bytes[20..24].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(event(&bytes), Some(Event { stamp: 5, rose: false, number: Some(7) }));
        assert_eq!(event(&bytes[..EVENT1]), Some(Event { stamp: 5, rose: false, number: None }));
        bytes[8] = 9;
        assert_eq!(event(&bytes), None);
        assert_eq!(event(&bytes[..4]), None);
    }

    #[test]
    fn a_file_that_is_no_chip_is_an_error_that_names_it() {
        let error = Chip::open("/dev/null").unwrap_err();
        assert!(error.to_string().contains("/dev/null"), "{error}");
        assert!(Chip::open("/nonexistent/gpiochip0").is_err());
    }

    #[test]
    fn long_names_are_cut_and_end() {
        let name = padded(&"x".repeat(40));
        assert_eq!(text(&name).len(), NAME - 1);
        assert_eq!(text(b"pin"), "pin");
    }
}
