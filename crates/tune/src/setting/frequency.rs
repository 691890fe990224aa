//! Clocks: a governor that keeps the highest, or limits that are equal (Documentation/admin-guide/pm/cpufreq.rst).

use machine::SysRoot;
use machine::survey::matching;
use units::CpuList;

use super::file::concerns;
use super::{Expansion, Target};

pub(super) const GOVERNOR: &str = "scaling_governor";

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq/policy*";

/// The governor for each policy of the CPUs `real_time`. Where the kernel has no such governor, the lowest clock is
/// made as high as the highest one.
pub(super) fn expand(root: &SysRoot, governor: &str, real_time: &CpuList) -> Expansion {
    let mut expansion = Expansion::default();
    let policies = matching(root, &[POLICIES.to_owned()]).unwrap_or_default();
    let own: Vec<&String> =
        policies.iter().filter(|policy| concerns(root, &format!("{policy}/x"), real_time)).collect();
    if own.is_empty() {
        expansion.refuse(POLICIES, "the kernel does not set clocks here");
    }
    for policy in own {
        let available = root.read(&format!("{policy}/scaling_available_governors"));
        let has = available.value().is_none_or(|names| names.split_whitespace().any(|name| name == governor));
        if has {
            expansion.change(root, Target::File(format!("{policy}/{GOVERNOR}")), governor);
        } else if let Some(highest) = root.read(&format!("{policy}/scaling_max_freq")).value() {
            expansion.change(root, Target::File(format!("{policy}/scaling_min_freq")), highest);
        }
    }
    expansion
}
