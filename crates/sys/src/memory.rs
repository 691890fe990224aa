//! Keeping memory in place: mlockall(2), first touch of the stack.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Result;
use crate::error::Named;

/// Locks all present and future memory of this process. `ENOMEM` or `EPERM` where RLIMIT_MEMLOCK is too low.
pub fn lock_all() -> Result<()> {
    let limit = getrlimit(Resource::Memlock);
    // The hard limit is ours to use; without privilege the soft one may stand below it.
    let _ = setrlimit(Resource::Memlock, Rlimit { current: limit.maximum, maximum: limit.maximum });
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).named("mlockall")
}

/// Has threads that begin later allocate from the process's one heap. Left to itself, glibc gives each an arena of its own: 64 MiB of
/// addresses, which count as locked memory, and 132 KiB that are locked in. mallopt(3); of other C libraries nothing is asked.
pub fn keep_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes a number of the allocator's, under the allocator's lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Bytes of stack that [`touch_stack`] makes sure of.
pub const STACK_TOUCHED: usize = 24 * 1024;

/// Touches the pages of the stack below the caller, so that nothing faults there later even where memory could not
/// be locked.
#[inline(never)]
pub fn touch_stack() {
    let mut stack = [0_u8; STACK_TOUCHED];
    for place in (0..STACK_TOUCHED).step_by(512) {
        // SAFETY: within the array; volatile so that it is not optimised away.
        unsafe { std::ptr::write_volatile(&mut stack[place], 1) };
    }
}
