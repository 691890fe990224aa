//! Idle states: a limit on exit latencies for single CPUs, single states where a kernel has no such limit, and the
//! limit for all CPUs where it has neither (Documentation/admin-guide/pm/cpuidle.rst).

use record::Fact;
use survey::matching;
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use super::{Expansion, Target};

pub(super) const LIMIT: &str = "pm_qos_resume_latency_us";

/// No state with an exit latency above `limit` microseconds on the CPUs `real_time`.
pub(super) fn expand(root: &SysRoot, limit: &str, real_time: &CpuList) -> Expansion {
    let mut expansion = Expansion::default();
    let mut all_covered = true;
    for CpuId(cpu) in real_time.iter() {
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}");
        let own = format!("{directory}/power/{LIMIT}");
        if let Fact::Value(_) = root.read(&own) {
            expansion.change(root, Target::File(own), limit);
        } else {
            all_covered &= disable(root, &mut expansion, &directory, limit);
        }
    }
    if !all_covered {
        expansion.change(root, Target::LatencyLimit, limit);
    }
    expansion
}

/// Disables the states of a CPU that take longer to leave; false where it has states that cannot be disabled.
fn disable(root: &SysRoot, expansion: &mut Expansion, directory: &str, limit: &str) -> bool {
    let limit = limit.parse::<u64>().unwrap_or(0);
    let states = matching(root, &[format!("{directory}/cpuidle/state*")]).unwrap_or_default();
    let latency = |state: &String| root.number::<u64>(&format!("{state}/latency")).value().copied();
    let mut could = true;
    for state in states.iter().filter(|state| latency(state).is_some_and(|latency| latency > limit)) {
        let file = format!("{state}/disable");
        could &= root.read(&file).value().is_some();
        expansion.change(root, Target::File(file), "1");
    }
    could
}
