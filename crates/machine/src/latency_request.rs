//! A limit on wake-up latency that the kernel holds for as long as a file is open: no CPU may use an idle state with
//! a longer exit latency (Documentation/power/pm_qos_interface.rst).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use record::Fact;
use rustix::io::Errno;
use sysroot::{SysRoot, fact, parsed};

use crate::Error;

/// The device whose open file is the request.
pub const PATH: &str = "/dev/cpu_dma_latency";

/// What the device says when nobody asks for a limit, in microseconds.
pub const NO_LIMIT: i64 = 2_000_000_000;

/// The limit in effect in microseconds, the lowest of all requests, [`NO_LIMIT`] for none: 4 bytes in the machine's byte
/// order (kernel/power/qos.c). Opening the file for reading adds a request without a limit and so changes nothing.
pub fn in_effect(root: &SysRoot) -> Fact<i64> {
    let read = || root.bytes_at::<4>(PATH, 0).map(|bytes| bytes.to_vec());
    root.bytes_or(PATH, read).and_then(|bytes| {
        let bytes = <[u8; 4]>::try_from(bytes.as_slice());
        parsed(bytes.map(|bytes| i64::from(i32::from_ne_bytes(bytes))))
    })
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
    pub fn hold(microseconds: u32) -> Result<Self, Error> {
        Self::hold_in(&SysRoot::live(), microseconds)
    }

    fn hold_in(root: &SysRoot, microseconds: u32) -> Result<Self, Error> {
        let failed = |operation| move |error: io::Error| failure(operation, &error);
        let mut file =
            OpenOptions::new().read(true).write(true).open(root.path(PATH)).map_err(failed("open"))?;
        let limit = i32::try_from(microseconds).unwrap_or(i32::MAX);
        file.write_all(&limit.to_ne_bytes()).map_err(failed("write"))?;
        Ok(Self { file })
    }

    /// The limit in effect in microseconds, the lowest of all requests, [`NO_LIMIT`] for none.
    pub fn effective(&self) -> Fact<i64> {
        let mut bytes = [0; 4];
        fact(self.file.read_exact_at(&mut bytes, 0)).map(|()| i64::from(i32::from_ne_bytes(bytes)))
    }
}

fn failure(operation: &'static str, error: &io::Error) -> Error {
    let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let hint = match errno {
        Errno::ACCESS | Errno::PERM => "run as root, or give this user read and write access to the device",
        Errno::NOENT => {
            "this kernel has no such device, or /dev does not show it: restrict the idle states at boot"
        }
        _ => "measure with the idle states as they are",
    };
    Error { operation, path: PATH.to_owned(), errno, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    #[test]
    fn a_request_holds_until_it_is_dropped() {
        let request = match LatencyRequest::hold(7) {
            Ok(request) => request,
            Err(error) => return skipped(&error),
        };
        assert!(
            request.effective().value().is_some_and(|effective| *effective <= 7),
            "{:?}",
            request.effective()
        );
        let tighter = LatencyRequest::hold(3).unwrap();
        assert!(
            request.effective().value().is_some_and(|effective| *effective <= 3),
            "{:?}",
            request.effective()
        );
        assert_eq!(open_requests(), 2);
        drop((request, tighter));
        assert_eq!(open_requests(), 0);
    }

    /// How often this process has the device open.
    fn open_requests() -> usize {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        links.filter(|link| link == std::path::Path::new(PATH)).count()
    }

    #[allow(clippy::print_stderr)]
    fn skipped(error: &Error) {
        eprintln!("skipped: {error}");
    }

    #[test]
    fn four_bytes_are_written_in_the_machines_order() {
        let tree = FakeTree::new(&[(PATH, NO_LIMIT.to_string())]);
        let request = LatencyRequest::hold_in(&tree.root, 20).unwrap();
        assert_eq!(request.effective(), Fact::Value(20));
        assert_eq!(tree.root.bytes_at(PATH, 0), Fact::Value(20_i32.to_ne_bytes()));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let error = LatencyRequest::hold_in(&SysRoot::at("/no/such/tree"), 0).unwrap_err();
        assert_eq!((error.operation, error.errno), ("open", Errno::NOENT));
        assert!(error.to_string().starts_with("cannot open /dev/cpu_dma_latency: "), "{error}");
        assert!(error.hint.contains("no such device"));
    }
}
