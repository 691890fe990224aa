//! The limit on exit latencies of idle states, which the kernel holds for as long as somebody has a file open
//! (Documentation/power/pm_qos_interface.rst).

use record::Fact;
use sysroot::{SysRoot, parsed};

/// The device whose open file is a request.
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

/// Who may open the device for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Bits of stat(2).
    pub mode: u32,
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
}

/// Where a snapshot has it: `600 0 0`.
const PERMISSION: &str = "/worstcase/permission/dev/cpu_dma_latency";

/// The device's permission.
pub fn permission(root: &SysRoot) -> Fact<Permission> {
    let asked = || {
        let found = rustix::fs::stat(PATH).map_err(std::io::Error::from);
        let text =
            found.map(|found| format!("{:o} {} {}\n", found.st_mode & 0o777, found.st_uid, found.st_gid));
        sysroot::fact(text.map(String::into_bytes))
    };
    let read = || if root.is_live() { asked() } else { root.beginning(PERMISSION, 64) };
    root.bytes_or(PERMISSION, read).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let mut words = text.split_whitespace();
        let mode = words.next().and_then(|word| u32::from_str_radix(word, 8).ok());
        let numbers: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
        parsed(match (mode, numbers.as_slice()) {
            (Some(mode), [user, group]) => Ok(Permission { mode, user: *user, group: *group }),
            _ => Err(()),
        })
    })
}

impl Permission {
    /// Whether a process of this user and these groups may write.
    pub fn allows(self, user: u32, groups: &[u32]) -> bool {
        let shift = match () {
            () if user == self.user => 6,
            () if groups.contains(&self.group) => 3,
            () => 0,
        };
        self.mode >> shift & 0o2 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_class_that_fits_decides() {
        let device = |mode| Permission { mode, user: 0, group: 44 };
        assert!(device(0o600).allows(0, &[]));
        assert!(!device(0o600).allows(1000, &[44]));
        assert!(device(0o660).allows(1000, &[100, 44]));
        assert!(!device(0o660).allows(1000, &[100]));
        assert!(device(0o666).allows(1000, &[]));
        assert!(!device(0o606).allows(1000, &[44]));
    }
}
