//! Requests to the kernel through shared rings, one at a time and waited for: io_uring_setup(2), io_uring_enter(2).

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringOp, IoringTimeoutFlags,
    io_uring_cqe, io_uring_enter, io_uring_params, io_uring_ptr, io_uring_setup, io_uring_sqe,
    op_flags_union,
};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::Named;
use crate::{Errno, Error, Result};

/// Requests that a ring has room for: one is under way at a time.
const ENTRIES: u32 = 1;

/// What a read takes at a time: the counter of an eventfd.
const LENGTH: usize = size_of::<u64>();

/// A pair of rings for one request at a time.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    rings: Shared,
    requests: Shared,
    places: Places,
    /// Where a read goes: not on a stack, which may be gone when the kernel writes.
    buffer: Option<Box<[u8; LENGTH]>>,
    is_under_way: bool,
}

/// Where in the rings things lie, in bytes from their beginning.
#[derive(Debug)]
struct Places {
    taken: usize,
    given: usize,
    mask: u32,
    order: usize,
    answered: usize,
    done: usize,
    done_mask: u32,
    answers: usize,
}

impl Ring {
    /// Makes the rings. `ENOSYS` before Linux 5.4 or without them, `EPERM` where `kernel.io_uring_disabled` or a filter of
    /// system calls forbids them.
    pub fn new() -> Result<Self> {
        let mut params = io_uring_params::default();
        // SAFETY: no flag is set that gives a meaning to a field of `params`.
        let fd = unsafe { io_uring_setup(ENTRIES, &mut params) }.named("io_uring_setup")?;
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP) {
            return Err(Error::new("io_uring_setup", Errno::NOSYS));
        }
        let (sent, answers) = (&params.sq_off, &params.cq_off);
        let orders = sent.array as usize + params.sq_entries as usize * size_of::<u32>();
        let ends = answers.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let rings = Shared::map(&fd, orders.max(ends), IORING_OFF_SQ_RING)?;
        let length = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let requests = Shared::map(&fd, length, IORING_OFF_SQES)?;
        let places = Places {
            taken: sent.head as usize,
            given: sent.tail as usize,
            mask: rings.word(sent.ring_mask as usize).load(Relaxed),
            order: sent.array as usize,
            answered: answers.tail as usize,
            done: answers.head as usize,
            done_mask: rings.word(answers.ring_mask as usize).load(Relaxed),
            answers: answers.cqes as usize,
        };
        Ok(Self { fd, rings, requests, places, buffer: Some(Box::default()), is_under_way: false })
    }

    /// Sleeps until the monotonic clock reads `due` nanoseconds: `IORING_OP_TIMEOUT`.
    pub fn sleep_until(&mut self, due: u64) -> std::result::Result<(), Errno> {
        // Two 64-bit numbers on every architecture: __kernel_timespec. The kernel copies them when it takes the request.
        let time = [due / 1_000_000_000, due % 1_000_000_000];
        let mut request = request(IoringOp::Timeout, -1, time.as_ptr().cast_mut().cast());
        request.len.len = 1;
        request.op_flags = op_flags_union { timeout_flags: IoringTimeoutFlags::ABS };
        match self.wait_for(request) {
            Ok(_) | Err(Errno::TIME) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Waits until `from` can be read, and reads its counter: `IORING_OP_READ`. `EINVAL` before Linux 5.6.
    pub fn read(&mut self, from: impl AsFd) -> std::result::Result<u64, Errno> {
        let Some(buffer) = &mut self.buffer else { return Err(Errno::BUSY) };
        let mut request = request(IoringOp::Read, from.as_fd().as_raw_fd(), buffer.as_mut_ptr().cast());
        request.len.len = LENGTH as u32;
        self.wait_for(request)?;
        Ok(self.buffer.as_ref().map_or(0, |buffer| u64::from_ne_bytes(**buffer)))
    }

    /// Gives the kernel a request, and sleeps until its answer is there.
    fn wait_for(&mut self, request: io_uring_sqe) -> std::result::Result<u32, Errno> {
        // An earlier one whose wait failed still has the buffer.
        if self.is_under_way {
            return Err(Errno::BUSY);
        }
        let Places { taken, given, mask, order, .. } = self.places;
        let end = self.rings.word(given).load(Relaxed);
        let slot = end & mask;
        // SAFETY: the ring has `mask + 1` entries, and the kernel reads none that is not given to it below.
        unsafe { self.requests.at::<io_uring_sqe>(slot as usize * size_of::<io_uring_sqe>()).write(request) };
        self.rings.word(order + slot as usize * size_of::<u32>()).store(slot, Relaxed);
        let end = end.wrapping_add(1);
        self.rings.word(given).store(end, Release);
        self.is_under_way = true;
        loop {
            if let Some(answer) = self.answer() {
                self.is_under_way = false;
                return u32::try_from(answer).map_err(|_| Errno::from_raw_os_error(answer.saturating_neg()));
            }
            let left = end.wrapping_sub(self.rings.word(taken).load(Acquire));
            // SAFETY: what the request points to lives until it is answered: the time until it is taken, which is before
            // this returns, and the buffer as long as it is under way.
            match unsafe { io_uring_enter(&self.fd, left, 1, IoringEnterFlags::GETEVENTS) } {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// What the kernel answered, if it has.
    fn answer(&self) -> Option<i32> {
        let Places { answered, done, done_mask, answers, .. } = self.places;
        let first = self.rings.word(done).load(Relaxed);
        if first == self.rings.word(answered).load(Acquire) {
            return None;
        }
        let slot = (first & done_mask) as usize;
        // SAFETY: the ring has `done_mask + 1` entries, and the kernel has filled this one.
        let answer =
            unsafe { (*self.rings.at::<io_uring_cqe>(answers + slot * size_of::<io_uring_cqe>())).res };
        self.rings.word(done).store(first.wrapping_add(1), Release);
        Some(answer)
    }
}

fn request(operation: IoringOp, fd: RawFd, address: *mut std::ffi::c_void) -> io_uring_sqe {
    let mut request = io_uring_sqe { opcode: operation, fd, ..io_uring_sqe::default() };
    request.addr_or_splice_off_in.addr = io_uring_ptr::new(address);
    request
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel cancels what is under way after the rings are closed, not at once.
        if self.is_under_way {
            self.buffer.take().map(Box::leak);
        }
    }
}

/// Memory that the kernel shares.
#[derive(Debug)]
struct Shared {
    start: *mut u8,
    length: usize,
}

impl Shared {
    fn map(fd: &OwnedFd, length: usize, offset: u64) -> Result<Self> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap(null_mut(), length, prot, flags, fd, offset) };
        Ok(Self { start: start.on("mmap", "the rings of io_uring")?.cast(), length })
    }

    /// What lies at a place that the kernel has named.
    fn at<T>(&self, offset: usize) -> *mut T {
        assert!(offset + size_of::<T>() <= self.length, "the kernel's rings end before {offset}");
        // SAFETY: within the mapping, as was checked.
        unsafe { self.start.add(offset) }.cast()
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: four aligned bytes of the mapping, which the kernel reads and writes at the same time.
        unsafe { AtomicU32::from_ptr(self.at(offset)) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    /// None where the kernel has no rings, or lets nobody use them.
    fn ring() -> Option<Ring> {
        match Ring::new() {
            Ok(ring) => Some(ring),
            Err(error) if matches!(error.errno, Errno::NOSYS | Errno::PERM) => {
                println!("skipped: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_sleep_ends_at_its_time_and_not_before() {
        let Some(mut ring) = ring() else { return };
        for _ in 0..3 {
            let due = Clock::Monotonic.now() + 2_000_000;
            ring.sleep_until(due).unwrap();
            assert!(Clock::Monotonic.now() >= due);
        }
    }

    #[test]
    fn a_read_waits_for_what_is_written_and_an_error_is_the_kernels() {
        let Some(mut ring) = ring() else { return };
        let counter = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                rustix::io::write(&counter, &7_u64.to_ne_bytes()).unwrap();
            });
            assert_eq!(ring.read(&counter), Ok(7));
        });
        let (_, only_written) = rustix::pipe::pipe().unwrap();
        assert_eq!(ring.read(&only_written), Err(Errno::BADF));
        assert_eq!(ring.sleep_until(0), Ok(()));
    }
}
