//! The calling thread as the one core of an event machine, which waits for an event that its objects pass on.

#[cfg(target_has_atomic = "64")]
mod machine;

#[cfg(target_has_atomic = "64")]
pub use machine::{EventCore, Sender};
use record::Wake;

/// What a CPU without them says.
pub const NARROW: &str = "this CPU has no atomic operations on 64 bits";

/// What one says that worstcase's guest has no program for.
pub const NO_GUEST: &str = "worstcase's guest is a program for x86-64";

/// Why this CPU cannot wait so, if it cannot.
pub fn hindrance(wake: Wake) -> Option<&'static str> {
    #[cfg(target_has_atomic = "64")]
    let (can_run, can_pause) = (true, runtime::can_pause());
    #[cfg(not(target_has_atomic = "64"))]
    let (can_run, can_pause) = (false, false);
    match wake {
        Wake::RuntimeSpin | Wake::RuntimePause | Wake::RuntimeBlock if !can_run => Some(NARROW),
        Wake::RuntimePause if !can_pause => {
            Some("this CPU has no instruction to pause by (tpause, wfet; wfe with the kernel's event stream)")
        }
        Wake::Kvm if !cfg!(target_arch = "x86_64") => Some(NO_GUEST),
        _ => None,
    }
}

/// The error where `option` asks for what `why` says that this CPU cannot do.
pub fn refused(option: &str, why: &str) -> failure::Error {
    failure::Error::new(
        format!("{option}: {why}"),
        "the kernel wakes on any CPU: --wake nanosleep, --calls futex",
    )
}
