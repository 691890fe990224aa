//! The limit on exit latencies of idle states, which the kernel holds for as long as somebody has a file open
//! (Documentation/power/pm_qos_interface.rst).

use record::Fact;
use sysroot::SysRoot;

/// The device whose open file is a request.
pub const PATH: &str = "/dev/cpu_dma_latency";

/// What the device says when nobody asks for a limit, in microseconds.
pub const NO_LIMIT: i64 = 2_000_000_000;

/// The limit in effect in microseconds, the lowest of all requests, [`NO_LIMIT`] for none.
pub fn in_effect(root: &SysRoot) -> Fact<i64> {
    crate::facts::dma_latency(root)
}
