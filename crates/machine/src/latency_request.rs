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
