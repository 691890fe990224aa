//! The program that probe and load are started from: each is a process of its own, of a program that knows how to be one.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use failure::{Error, Result};

static ENTERED: AtomicBool = AtomicBool::new(false);

/// To be called first in `main`, before any thread is started: a process that was started as a probe or as a load's
/// supervisor does its work here and ends. In any other it returns, and runs may start this program for both.
pub fn enter() {
    if let Some(code) = helper() {
        std::process::exit(code);
    }
    ENTERED.store(true, Ordering::Release);
}

/// Does what the first argument says, if it is one of ours.
fn helper() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        probe::process::ARGUMENT => {
            let descriptor = arguments.next()?.to_str()?.parse().ok()?;
            let descriptor = sys::process::inherited(descriptor).ok()?;
            Some(probe::process::main(descriptor.as_fd()))
        }
        load::SUPERVISOR_ARGUMENT => Some(i32::from(load::supervisor::main())),
        _ => None,
    }
}

/// The program: the one that was named, or this one if it called [`enter`].
///
/// # Errors
/// Neither: started all the same, this program would run its own `main` once more in place of a probe.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(path) => Ok(path.to_owned()),
        None if ENTERED.load(Ordering::Acquire) => Ok(probe::client::OWN_PROGRAM.into()),
        None => Err(Error::new(
            "there is no program to start the probe from",
            "call runner::enter() first in main, or name a worstcase binary: Means::program",
        )),
    }
}
