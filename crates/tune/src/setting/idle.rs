//! Idle states: a limit on exit latencies for single CPUs, single states where a kernel has no such limit, and the
//! limit for all CPUs where it has neither (Documentation/admin-guide/pm/cpuidle.rst).

use std::fmt;

use control::Kernel;
use machine::latency_request;
use record::Fact;
use rustix::io::Errno;
use survey::matching;
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use super::{Expansion, Form, Kind, Phase, Target};

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

/// The limit on exit latencies for all CPUs: the lowest of all requests.
pub(super) struct LatencyLimit;

impl fmt::Display for LatencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(latency_request::PATH)
    }
}

impl Kind for LatencyLimit {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        latency_request::in_effect(root).map(|limit| limit.to_string())
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        let limit = value.parse::<u32>().map_err(|_| Errno::INVAL)?;
        let is_none = i64::from(limit) >= latency_request::NO_LIMIT;
        kernel.limit_latency((!is_none).then_some(limit))
    }

    fn form(&self, _text: &str) -> Form {
        Form::Lowest
    }

    fn phase(&self) -> Phase {
        Phase::Latency
    }

    /// A lower limit of somebody else is as good.
    fn holds(&self, now: &str, ours: &str) -> bool {
        self.form(now).change(now, ours).is_none()
    }

    fn released(&self) -> Option<String> {
        Some(latency_request::NO_LIMIT.to_string())
    }

    fn effect(&self) -> Option<&'static str> {
        Some("keeps all CPUs out of deeper idle states: power and heat")
    }
}
