//! Children that live for nothing but being born: what fork, vfork and exec take.

use std::ffi::{CStr, c_void};

use rustix::process::Pid;

use crate::error::check;
use crate::process::{Ended, wait};
use crate::{Errno, Error, Result};

/// What a child that shares memory with its parent may use of the stack, in bytes.
const STACK: usize = 64 << 10;

/// Forks a child that ends at once, and waits for it. fork(2), wait4(2).
///
/// # Errors
/// Those of fork(2).
pub fn fork_and_wait() -> Result<()> {
    // SAFETY: the child makes one system call, which does not return; it touches no lock.
    match unsafe { libc::fork() } {
        0 => unsafe { libc::_exit(0) },
        child => ended(child),
    }
}

/// What becomes of children that are born without a copy of the memory.
pub struct Nursery {
    stack: Vec<u128>,
}

impl Default for Nursery {
    fn default() -> Self {
        Self { stack: vec![0; STACK / size_of::<u128>()] }
    }
}

impl Nursery {
    /// Starts a child in this process's memory, which ends at once, while the parent waits: what vfork(2) does.
    ///
    /// # Errors
    /// Those of clone(2).
    pub fn vfork_and_wait(&mut self) -> Result<()> {
        extern "C" fn end(_: *mut c_void) -> libc::c_int {
            0
        }
        self.start(end, std::ptr::null_mut())
    }

    /// Starts a child that executes `program` with one argument and no environment, and waits for its end. execve(2).
    ///
    /// # Errors
    /// Those of clone(2); `ENOEXEC` where the program could not be executed or did not end with status 0.
    pub fn execute_and_wait(&mut self, program: &CStr, argument: &CStr) -> Result<()> {
        extern "C" fn execute(arguments: *mut c_void) -> libc::c_int {
            // SAFETY: the parent's array of three pointers; it waits until the child has left its memory.
            unsafe {
                let arguments = arguments.cast::<*const libc::c_char>();
                let none = [std::ptr::null::<libc::c_char>()];
                libc::execve(*arguments, arguments, none.as_ptr());
            }
            127
        }
        let mut arguments = [program.as_ptr(), argument.as_ptr(), std::ptr::null()];
        self.start(execute, arguments.as_mut_ptr().cast())
    }

    fn start(
        &mut self,
        child: extern "C" fn(*mut c_void) -> libc::c_int,
        argument: *mut c_void,
    ) -> Result<()> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has this stack for itself, and the parent sleeps until it has executed or ended.
        let child = unsafe {
            let top = self.stack.as_mut_ptr().add(self.stack.len());
            libc::clone(child, top.cast(), flags, argument)
        };
        ended(child)
    }
}

fn ended(child: libc::pid_t) -> Result<()> {
    check(child, "fork", "")?;
    let child = Pid::from_raw(child).ok_or_else(|| Error::new("fork", Errno::INVAL))?;
    match wait(child)?.ended {
        Ended::Exited(0) => Ok(()),
        _ => Err(Error::new("execve", Errno::NOEXEC)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_born_and_gone() {
        let mut nursery = Nursery::default();
        fork_and_wait().unwrap();
        nursery.vfork_and_wait().unwrap();
        nursery.execute_and_wait(c"/bin/sh", c"/dev/null").unwrap();
        let failed = nursery.execute_and_wait(c"/nowhere", c"").unwrap_err();
        assert_eq!((failed.call, failed.errno), ("execve", Errno::NOEXEC));
    }
}
