//! Namespaces: processes that see only each other and end with the first of them. namespaces(7).

use std::fs::File;

use crate::error::check;
use crate::{Errno, Error, Result};

/// The process namespace that this process's children were born into before [`separate`].
#[derive(Debug)]
pub struct Former(File);

/// Gives this process a mount namespace and an IPC namespace of its own, and its children a process namespace: the
/// first child is its init, and when that ends, the kernel kills all the others; System V memory, semaphores and
/// message queues that they leave behind go too. Mounts made here stay here. unshare(2), mount(2).
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`; `EINVAL` where the kernel has no such namespaces.
pub fn separate() -> Result<Former> {
    let file = "/proc/self/ns/pid";
    let former = File::open(file).map_err(|error| Error {
        call: "open",
        on: file.into(),
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    })?;
    let spaces = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    // SAFETY: changes what this process sees; no memory is touched.
    check(unsafe { libc::unshare(spaces) }, "unshare", "")?;
    let former = Former(former);
    if let Err(error) = mount(c"none", c"/", None, libc::MS_REC | libc::MS_SLAVE) {
        former.restore()?;
        return Err(error);
    }
    Ok(former)
}

impl Former {
    /// Lets children be born into the former process namespace again. setns(2).
    pub fn restore(self) -> Result<()> {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open as long as `self`.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWPID) }, "setns", "").map(drop)
    }
}

/// Mounts a /proc that shows this process's namespace alone. Only after [`separate`], in the first child. mount(2).
pub fn mount_proc() -> Result<()> {
    mount(c"proc", c"/proc", Some(c"proc"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

fn mount(
    source: &std::ffi::CStr,
    target: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
) -> Result<()> {
    let kind = kind.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
    // SAFETY: every pointer is null or to a text that ends in a zero byte.
    let result = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) };
    check(result, "mount", target.to_string_lossy()).map(drop)
}
