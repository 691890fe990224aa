//! What the first process of a system does: file systems, modules, names, the end of the machine.

use std::ffi::CString;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::mount::MountFlags;
use rustix::system::RebootCommand;

use crate::error::{Named, check};
use crate::{Errno, Error, Result};

/// Mounts a file system of `kind` on `target`; `source` is a device or a name that is shown, `options` are the file
/// system's own. mount(2).
pub fn mount(source: &str, target: &Path, kind: &str, options: &str) -> Result<()> {
    let options = CString::new(options).map_err(|_| Error::new("mount", Errno::INVAL))?;
    rustix::mount::mount(source, target, kind, MountFlags::empty(), options.as_c_str())
        .on("mount", format_args!("{kind} on {}", target.display()))
}

/// Loads the kernel module in `file`. finit_module(2).
///
/// # Errors
/// `ENOEXEC` for another kernel's module, `ENOENT` where a symbol is missing that another module brings, `EEXIST`
/// where it is loaded already.
pub fn load_module(file: impl AsFd, name: &str, parameters: &str) -> Result<()> {
    let parameters = CString::new(parameters).map_err(|_| Error::new("finit_module", Errno::INVAL))?;
    rustix::system::finit_module(file, &parameters, 0).on("finit_module", name)
}

/// Names this machine. sethostname(2).
pub fn set_host_name(name: &str) -> Result<()> {
    rustix::system::sethostname(name.as_bytes()).on("sethostname", name)
}

/// Writes everything to the disks and switches the machine off; returns only where that fails. sync(2), reboot(2).
pub fn power_off() -> Error {
    rustix::fs::sync();
    let failed = rustix::system::reboot(RebootCommand::PowerOff).named("reboot");
    failed.err().unwrap_or_else(|| Error::new("reboot", Errno::IO))
}

/// Swaps memory to a partition or a file with that priority, 0 to 32767; without one, after all others. swapon(2).
///
/// # Errors
/// `EINVAL` where it was not made by mkswap, `EBUSY` where it is in use.
pub fn swap_on(path: &str, priority: Option<u16>) -> Result<()> {
    let file = CString::new(path).map_err(|_| Error::new("swapon", Errno::INVAL))?;
    // SWAP_FLAG_PREFER of include/linux/swap.h; the lower bits are the priority.
    const PREFER: i32 = 0x8000;
    let flags = priority.map_or(0, |priority| PREFER | i32::from(priority & 0x7fff));
    // SAFETY: the text ends with a zero and is only read.
    check(unsafe { libc::swapon(file.as_ptr(), flags) }, "swapon", path).map(drop)
}

/// Brings back what was swapped there, and swaps nothing more. swapoff(2).
///
/// # Errors
/// `ENOMEM` where memory does not suffice, `EINVAL` where nothing is swapped there.
pub fn swap_off(path: &str) -> Result<()> {
    let file = CString::new(path).map_err(|_| Error::new("swapoff", Errno::INVAL))?;
    // SAFETY: as above.
    check(unsafe { libc::swapoff(file.as_ptr()) }, "swapoff", path).map(drop)
}

/// Kills every process but this one and the kernel's. kill(2) with -1: for the first process of a system only.
pub fn kill_all_others() -> Result<()> {
    if !rustix::process::getpid().is_init() {
        return Err(Error { call: "kill", on: "everything, as process 1 only".into(), errno: Errno::PERM });
    }
    // SAFETY: integers only.
    let killed = check(unsafe { libc::kill(-1, libc::SIGKILL) }, "kill", "all others").map(drop);
    killed.or_else(|error| if error.errno == Errno::SRCH { Ok(()) } else { Err(error) })
}
