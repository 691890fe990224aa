//! Memory mapped for its own sake: taken from the kernel page by page and given back, without an allocator in between.

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use crate::Result;
use crate::error::Named;

/// Anonymous private memory; it has no pages until they are touched. mmap(2), given back by munmap(2).
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes. `ENOMEM` above the limit of the address space (RLIMIT_AS) or without memory.
    pub fn new(length: usize) -> Result<Self> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, prot, flags) };
        Ok(Self { start: start.on("mmap", format_args!("{length} bytes"))?.cast(), length })
    }

    /// Lets its pages be taken away, where all memory is locked. munlock(2).
    pub fn unlock(&self) -> Result<()> {
        // SAFETY: the mapping is ours.
        unsafe { rustix::mm::munlock(self.start.cast(), self.length) }.named("munlock")
    }

    /// Gives its pages back: the next touch finds none. madvise(2), `MADV_DONTNEED`; `EINVAL` where they are locked.
    pub fn forget(&mut self) -> Result<()> {
        // SAFETY: the mapping is ours, and its bytes are read by nobody.
        unsafe { rustix::mm::madvise(self.start.cast(), self.length, Advice::LinuxDontNeed) }.named("madvise")
    }

    /// Has each page be one of the smallest: a kernel that gives huge pages to whoever asks for much would give 512 at once.
    /// madvise(2), `MADV_NOHUGEPAGE`; `EINVAL` where the kernel has no huge pages.
    pub fn refuse_huge_pages(&self) -> Result<()> {
        // SAFETY: the mapping is ours, and its bytes stay as they are.
        unsafe { rustix::mm::madvise(self.start.cast(), self.length, Advice::LinuxNoHugepage) }
            .named("madvise")
    }

    /// Takes the right to write to it, or gives it. mprotect(2). A touch without the right ends the process.
    pub fn protect(&mut self, writable: bool) -> Result<()> {
        let flags = if writable { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::READ };
        // SAFETY: the mapping is ours, and nothing borrows from it.
        unsafe { rustix::mm::mprotect(self.start.cast(), self.length, flags) }.named("mprotect")
    }

    /// Writes a byte at every multiple of `stride` and returns how many.
    pub fn touch(&mut self, stride: usize) -> u64 {
        let places = (0..self.length).step_by(stride.max(1));
        places
            .map(|place| {
                // SAFETY: within the mapping; volatile so that it is not optimised away.
                unsafe { std::ptr::write_volatile(self.start.add(place), b'Z') };
                1
            })
            .sum()
    }
}

// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Mapping {}

/// Bytes of a page.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_a_mapping_faults_once_a_page() {
        let page = rustix::param::page_size();
        let before = crate::usage::thread();
        let mut mapping = Mapping::new(64 * page).unwrap();
        assert_eq!(mapping.touch(page), 64);
        assert!((crate::usage::thread() - before).minor_faults >= 1);
    }

    #[test]
    fn pages_are_small_where_huge_ones_are_refused() {
        let (page, huge) = (rustix::param::page_size(), 8 << 20);
        let mut mapping = Mapping::new(huge).unwrap();
        if mapping.refuse_huge_pages().is_err() {
            return;
        }
        let before = crate::usage::thread();
        mapping.touch(page);
        let faults = (crate::usage::thread() - before).minor_faults;
        assert!(faults >= (huge / page) as u64, "{faults} faults");
    }

    #[test]
    fn nothing_is_mapped_that_cannot_be() {
        assert_eq!(Mapping::new(0).unwrap_err().errno, crate::Errno::INVAL);
        assert_eq!(Mapping::new(isize::MAX as usize).unwrap_err().errno, crate::Errno::NOMEM);
    }
}
