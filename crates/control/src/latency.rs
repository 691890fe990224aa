//! A limit on wake-up latency that the kernel holds for as long as a file is open: no CPU may use an idle state with
//! a longer exit latency (Documentation/power/pm_qos_interface.rst).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

/// The device whose open file is the request.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// A request that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {DEVICE}: {}", io::Error::from_raw_os_error(.errno.raw_os_error()))]
pub struct Error {
    /// What was tried: `open`, `write`.
    pub operation: &'static str,
    /// What the kernel answered.
    pub errno: Errno,
    /// What to do about it.
    pub hint: &'static str,
}

/// A request that is being held. Dropping it, or the end of the process by whatever means, takes it back; a child
/// that was forked meanwhile holds it too, until it executes a program or ends.
#[derive(Debug)]
pub struct LatencyRequest {
    file: File,
}

impl LatencyRequest {
    /// Asks for idle states with an exit latency of at most `microseconds`: 0 leaves only polling.
    ///
    /// The value goes as 4 bytes in the machine's order, because fewer bytes are refused and other lengths are read
    /// as hexadecimal text. Whether the kernel obeys is for [`LatencyRequest::effective`] to say.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn hold(microseconds: u32) -> Result<Self, Error> {
        Self::hold_in(&SysRoot::live(), microseconds)
    }

    fn hold_in(root: &SysRoot, microseconds: u32) -> Result<Self, Error> {
        let failed = |operation| move |error: io::Error| failure(operation, &error);
        let mut file =
            OpenOptions::new().read(true).write(true).open(root.path(DEVICE)).map_err(failed("open"))?;
        let limit = i32::try_from(microseconds).unwrap_or(i32::MAX);
        file.write_all(&limit.to_ne_bytes()).map_err(failed("write"))?;
        Ok(Self { file })
    }

    /// The limit in effect in microseconds, the lowest of all requests.
    pub fn effective(&self) -> Fact<i64> {
        let mut bytes = [0; 4];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Fact::Value(i64::from(i32::from_ne_bytes(bytes))),
            Err(error) => Fact::Unreadable(errno(&error).raw_os_error()),
        }
    }
}

/// Who keeps a limit on exit latencies in effect: the kernel ends it with the process that has the device open.
pub trait KeepLatency: fmt::Debug {
    /// Keeps the limit in the place of the one before; none ends it.
    ///
    /// # Errors
    /// What the kernel answered.
    fn limit(&mut self, microseconds: Option<u32>) -> Result<(), Errno>;
}

/// This process.
impl KeepLatency for Option<LatencyRequest> {
    fn limit(&mut self, microseconds: Option<u32>) -> Result<(), Errno> {
        *self = microseconds.map(LatencyRequest::hold).transpose().map_err(|error| error.errno)?;
        Ok(())
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn failure(operation: &'static str, error: &io::Error) -> Error {
    let errno = errno(error);
    let hint = match errno {
        Errno::ACCESS | Errno::PERM => "run as root, or give this user read and write access to the device",
        Errno::NOENT => {
            "this kernel has no such device, or /dev does not show it: restrict the idle states at boot"
        }
        _ => "measure with the idle states as they are",
    };
    Error { operation, errno, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, Live};

    #[test]
    fn a_request_holds_until_it_is_dropped() {
        let request = match LatencyRequest::hold(7) {
            Ok(request) => request,
            Err(error) => return skipped(&error),
        };
        let is_at_most = |request: &LatencyRequest, limit: i64| {
            let effective = request.effective();
            assert!(effective.value().is_some_and(|effective| *effective <= limit), "{effective:?}");
        };
        is_at_most(&request, 7);
        let tighter = LatencyRequest::hold(3).unwrap();
        is_at_most(&request, 3);
        let mut kernel = Live::default();
        kernel.limit_latency(Some(5)).unwrap();
        assert_eq!(open_requests(), 3);
        kernel.limit_latency(None).unwrap();
        assert_eq!(open_requests(), 2);
        drop((request, tighter));
        assert_eq!(open_requests(), 0);
    }

    /// How often this process has the device open.
    fn open_requests() -> usize {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        links.filter(|link| link == std::path::Path::new(DEVICE)).count()
    }

    #[allow(clippy::print_stderr)]
    fn skipped(error: &Error) {
        eprintln!("skipped: {error}");
    }

    #[test]
    fn four_bytes_are_written_in_the_machines_order() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join(DEVICE.trim_start_matches('/'));
        std::fs::create_dir_all(device.parent().unwrap()).unwrap();
        std::fs::write(&device, "2000000000").unwrap();
        let request = LatencyRequest::hold_in(&SysRoot::at(directory.path()), 20).unwrap();
        assert_eq!(request.effective(), Fact::Value(20));
        assert_eq!(std::fs::read(&device).unwrap()[..4], 20_i32.to_ne_bytes());
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let error = LatencyRequest::hold_in(&SysRoot::at("/no/such/tree"), 0).unwrap_err();
        assert_eq!((error.operation, error.errno), ("open", Errno::NOENT));
        assert!(error.to_string().starts_with("cannot open /dev/cpu_dma_latency: "), "{error}");
        assert!(error.hint.contains("no such device"));
    }
}
