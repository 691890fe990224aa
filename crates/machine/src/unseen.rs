//! What a guest in instruction time cannot show of a setting, by what the setting acts through.
//!
//! A guest's clock counts instructions. A setting that acts through something which takes time on a machine and no
//! instruction in the guest has no effect there, and "no effect visible" says nothing of any machine.

use crate::command_line;

/// What settings act through that a guest in instruction time has not.
struct Class {
    /// Names of kernel parameters, or how they begin where they end in `.` or `*`; paths of files, likewise.
    names: &'static [&'static str],
    /// What the guest cannot show, and what it still can.
    note: &'static str,
}

const CLASSES: [Class; 6] = [
    Class {
        names: &[
            "processor.max_cstate",
            "intel_idle.",
            "cpuidle.",
            "cpuidle_haltpoll.",
            "haltpoll.",
            "idle",
            "nohlt",
            "hlt",
            "/sys/devices/system/cpu/cpu*/cpuidle/*",
            "/sys/module/intel_idle/*",
            "/sys/module/processor/parameters/max_cstate",
        ],
        note: "instruction time has no idle states: leaving one costs nothing here, only the path to it is counted",
    },
    Class {
        names: &[
            "mitigations",
            "gather_data_sampling",
            "indirect_target_selection",
            "kpti",
            "l1d_flush",
            "l1tf",
            "mds",
            "mmio_stale_data",
            "nopti",
            "nospec_store_bypass_disable",
            "nospectre_bhb",
            "nospectre_v1",
            "nospectre_v2",
            "pti",
            "reg_file_data_sampling",
            "retbleed",
            "spec_rstack_overflow",
            "spec_store_bypass_disable",
            "spectre_bhi",
            "spectre_v2",
            "spectre_v2_user",
            "srbds",
            "ssbd",
            "tsa",
            "tsx",
            "tsx_async_abort",
            "kvm.nx_huge_pages",
            "kvm-intel.vmentry_l1d_flush",
        ],
        note: "the emulated CPU has few of the faults that mitigations are for, and their flushes and barriers cost one \
               instruction each: only the length of the path is counted",
    },
    Class {
        names: &[
            "default_hugepagesz",
            "hugepages",
            "hugepagesz",
            "hugetlb_cma",
            "nopcid",
            "numa",
            "numa_balancing",
            "numa_zonelist_order",
            "rdt",
            "transparent_hugepage",
            "/sys/kernel/mm/transparent_hugepage/*",
            "/proc/sys/kernel/numa_balancing",
            "/proc/sys/vm/nr_hugepages",
            "/proc/sys/vm/zone_reclaim_mode",
            "/sys/fs/resctrl/*",
        ],
        note: "instruction time has no caches, TLBs or memory nodes: misses cost nothing here, only the path is counted",
    },
    Class {
        names: &[
            "irqaffinity",
            "isolcpus",
            "kthread_cpus",
            "maxcpus",
            "nohz_full",
            "nosmp",
            "nosmt",
            "nr_cpus",
            "possible_cpus",
            "rcu_nocb_poll",
            "rcu_nocbs",
            "rcutree.nohz_full_patience_delay",
            "rcutree.rcu_nocb_gp_stride",
            "skew_tick",
            "workqueue.unbound_cpus",
            "workqueue.default_affinity_scope",
            "/proc/irq/*",
            "/sys/devices/system/cpu/smt/*",
            "/sys/devices/system/cpu/cpu*/online",
            "/sys/devices/virtual/workqueue/*",
            "/sys/bus/workqueue/*",
            "/sys/class/net/*",
        ],
        note: "a guest in instruction time has one CPU: nothing can be moved to another, and nobody disturbs it from there",
    },
    Class {
        names: &[
            "amd_pstate",
            "cpufreq.",
            "intel_pstate",
            "processor.ignore_ppc",
            "processor.ignore_tpc",
            "/sys/devices/system/cpu/cpufreq/*",
            "/sys/devices/system/cpu/cpu*/cpufreq/*",
            "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
            "/sys/devices/system/cpu/intel_pstate/*",
            "/sys/devices/system/cpu/amd_pstate/*",
        ],
        note: "instruction time has no frequencies: every instruction takes the same time",
    },
    Class {
        names: &[
            "amd_iommu",
            "clocksource",
            "hpet",
            "intel_iommu",
            "iommu",
            "mce",
            "nmi_watchdog",
            "pci",
            "pcie_aspm",
            "tsc",
            "usbcore.",
            "nvme_core.",
            "nvme.",
            "/sys/module/pcie_aspm/*",
            "/sys/block/*",
            "/sys/bus/pci/*",
            "/proc/sys/kernel/nmi_watchdog",
        ],
        note: "the emulated machine has other devices, firmware and timers than yours, and they take no time of their own",
    },
];

/// What a guest in instruction time cannot show of `setting`: a kernel parameter (`idle=poll`), or a file with its value.
/// None where it acts through instructions alone, as far as is known.
pub fn note(setting: &str) -> Option<&'static str> {
    let name = if setting.starts_with('/') {
        setting.split_once('=').map_or(setting, |(path, _)| path).to_owned()
    } else {
        command_line::words(setting).next().map(|(_, word)| word.name.replace('-', "_")).unwrap_or_default()
    };
    let found = CLASSES.iter().find(|class| class.names.iter().any(|pattern| matches(pattern, &name)));
    found.map(|class| class.note)
}

/// Whether a name is that of the table, where `*` stands for any text and a dot at the end for all that follows.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { pattern.replace('-', "_") };
    let (pattern, open) = match pattern.strip_suffix('.') {
        Some(_) => (pattern.clone(), true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = "";
    let mut has_star = false;
    for part in parts {
        has_star = true;
        let Some(at) = rest.find(part) else { return false };
        (rest, last) = (&rest[at + part.len()..], part);
    }
    rest.is_empty() || open || (has_star && last.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_act_through_what_is_not_modelled_have_a_note() {
        for (setting, word) in [
            ("processor.max_cstate=1", "idle states"),
            ("intel_idle.max_cstate=0", "idle states"),
            ("idle=poll", "idle states"),
            ("mitigations=off", "mitigations"),
            ("spectre-v2=off", "mitigations"),
            ("isolcpus=managed_irq,1", "one CPU"),
            ("nohz_full=1", "one CPU"),
            ("transparent_hugepage=never", "caches"),
            ("intel_pstate=disable", "frequencies"),
            ("pcie_aspm=off", "devices"),
            ("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor=performance", "frequencies"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state1/disable=1", "idle states"),
            ("/proc/irq/default_smp_affinity=1", "one CPU"),
            ("/sys/kernel/mm/transparent_hugepage/enabled=never", "caches"),
        ] {
            assert!(note(setting).is_some_and(|note| note.contains(word)), "{setting}: {:?}", note(setting));
        }
    }

    #[test]
    fn settings_that_act_through_the_path_have_none() {
        for setting in [
            "threadirqs",
            "preempt=full",
            "idlex=1",
            "processor.other=1",
            "ftrace=function",
            "dyndbg=\"file a.c +p\"",
            "/proc/sys/vm/stat_interval=10",
            "/sys/kernel/debug/sched/preempt=full",
            "rn-swap",
        ] {
            assert_eq!(note(setting), None, "{setting}");
        }
    }
}
