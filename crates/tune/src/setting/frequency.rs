//! Clocks: a governor that keeps the highest, or limits that are equal (Documentation/admin-guide/pm/cpufreq.rst).

use survey::matching;
use sysroot::SysRoot;
use units::CpuList;

use super::file::concerns;
use super::{Expansion, Step, Target};

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

/// The lowest clock before the highest, so that it is below at every moment; the other way round where it is raised
/// above what the highest was. The kernel refuses or clamps a lowest clock above the highest.
pub(crate) fn order_limits(steps: &mut [Step]) {
    const NAMES: [&str; 2] = ["/scaling_min_freq", "/scaling_max_freq"];
    let place = |steps: &[Step], policy: &str, name: &str| {
        steps.iter().position(
            |step| matches!(&step.target, Target::File(path) if path.strip_suffix(name) == Some(policy)),
        )
    };
    let policies: Vec<String> = steps
        .iter()
        .filter_map(|step| match &step.target {
            Target::File(path) => path.strip_suffix(NAMES[0]).map(str::to_owned),
            _ => None,
        })
        .collect();
    for policy in policies {
        let (Some(lowest), Some(highest)) =
            (place(steps, &policy, NAMES[0]), place(steps, &policy, NAMES[1]))
        else {
            continue;
        };
        let clock = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
        let is_raised = clock(&steps[lowest].new) > clock(&steps[highest].old);
        if is_raised != (highest < lowest) {
            steps.swap(lowest, highest);
        }
    }
}
