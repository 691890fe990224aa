//! Privileges: where they come from, and how they are given up. capabilities(7).

use rustix::process::{Gid, Uid};
pub use rustix::thread::CapabilitySet;
use rustix::thread::{CapabilitySets, capabilities, set_capabilities};

use crate::error::Named;
use crate::{Errno, Result};

/// Whether this program's file gave it privileges that whoever started it does not have: file capabilities, or its
/// set-user-ID bit. getauxval(3), `AT_SECURE`.
pub fn comes_from_file() -> bool {
    // SAFETY: reads the auxiliary vector of this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Gives up every capability but `kept`, for this process of one thread and for all that it executes, root or not.
/// capset(2), prctl(2).
///
/// # Errors
/// What the kernel answered; then all are as they were, or fewer.
pub fn keep_only(kept: CapabilitySet) -> Result<()> {
    // Without CAP_SETPCAP it cannot be taken from the bounding set; then an ordinary user has none to win there.
    for capability in CapabilitySet::all().difference(kept).iter() {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let now = match capabilities(None) {
        // A kernel without users (CONFIG_MULTIUSER=n) has nothing to give up.
        Err(Errno::NOSYS) => return Ok(()),
        now => now.named("capget")?,
    };
    let sets = CapabilitySets {
        effective: now.effective & kept,
        permitted: now.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).named("capset")
}

/// Becomes another user for good, without supplementary groups; takes root. setgroups(2), setresgid(2), setresuid(2).
///
/// # Errors
/// What the kernel answered; then the process is to end, for some of it may be done.
pub fn become_user(user: u32, group: u32) -> Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    rustix::thread::set_thread_groups(&[]).named("setgroups")?;
    rustix::thread::set_thread_res_gid(group, group, group).named("setresgid")?;
    rustix::thread::set_thread_res_uid(user, user, user).named("setresuid")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capabilities are a thread's own, so that a test gives up none but its own.
    #[test]
    fn what_is_given_up_is_gone() {
        let now = std::thread::spawn(|| {
            keep_only(CapabilitySet::empty()).unwrap();
            capabilities(None).unwrap()
        });
        let now = now.join().unwrap();
        assert!(now.permitted.is_empty() && now.effective.is_empty() && now.inheritable.is_empty());
        assert!(!comes_from_file());
    }
}
