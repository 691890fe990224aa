//! The CPUs: what they are, how they are divided, how they are clocked and how they sleep.

use std::collections::BTreeMap;

use record::{Cpus, Fact, Governor, IdleState};
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use crate::tasks::allowed_cpus;

/// Below here are the kernel's files about CPUs (Documentation/ABI/testing/sysfs-devices-system-cpu).
pub const CPUS: &str = "/sys/devices/system/cpu";

/// The file `name` about `cpu`.
pub fn cpu_file(cpu: CpuId, name: &str) -> String {
    format!("{CPUS}/cpu{cpu}/{name}")
}

/// The CPUs online; from /proc/stat where sysfs is missing.
pub fn online(root: &SysRoot) -> CpuList {
    match root.cpu_list(&format!("{CPUS}/online")) {
        Fact::Value(online) => online,
        _ => crate::cpu_times::cpu_times(root)
            .value()
            .map(|times| times.keys().copied().collect())
            .unwrap_or_default(),
    }
}

/// How the CPUs are divided.
pub(super) fn cpus(root: &SysRoot) -> Cpus {
    let list = |name: &str| root.cpu_list(&format!("{CPUS}/{name}"));
    let online = online(root);
    let status = root.read("/proc/self/status");
    Cpus {
        allowed: status
            .value()
            .and_then(|text| allowed_cpus(text))
            .map_or(online.clone(), |cpus| if online.is_empty() { cpus } else { cpus.intersection(&online) }),
        isolated: list("isolated"),
        nohz_full: list("nohz_full"),
        smt_active: root.number::<u8>(&format!("{CPUS}/smt/active")).map(|active| active != 0),
        online,
    }
}

/// What names an x86 CPU to modules: `cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0001` (from 3.14 on).
const IDENTITY: &str = "/sys/devices/system/cpu/modalias";

/// The text of /proc/cpuinfo where reading it disturbs nobody: on x86 it interrupts every CPU that is not idle to learn
/// its frequency (arch/x86/kernel/cpu/aperfmperf.c, 4.13 to 5.17). x86 kernels with an identity in sysfs are therefore
/// not asked, which leaves those before 3.14, captured trees, and other architectures, where the text is static.
pub fn harmless_cpuinfo(root: &SysRoot) -> Fact<String> {
    if x86_identity(root).is_some() { Fact::Unsupported } else { root.read("/proc/cpuinfo") }
}

/// The identity of an x86 CPU.
pub(crate) fn x86_identity(root: &SysRoot) -> Option<String> {
    root.read(IDENTITY).value().filter(|identity| identity.starts_with("cpu:type:x86,")).cloned()
}

/// Whether an identity has a feature: 32 times its word plus its bit (arch/x86/include/asm/cpufeatures.h).
pub(crate) fn has_feature(identity: &str, feature: u32) -> bool {
    let number = format!("{feature:04X}");
    identity.split_once(":feature:").is_some_and(|(_, list)| list.split(',').any(|other| other == number))
}

/// The value of the first `key : value` line of /proc/cpuinfo with this key.
pub fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    pairs
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

/// What the CPU calls itself, else what the device tree calls the board, else the names that PowerPC, RISC-V and
/// old ARM kernels print.
pub(super) fn model(root: &SysRoot) -> Fact<String> {
    let cpuinfo = root.read("/proc/cpuinfo");
    let text = cpuinfo.value().map_or("", String::as_str);
    let named = |keys: &[&str]| keys.iter().find_map(|key| cpuinfo_value(text, key)).map(str::to_owned);
    let board = || root.read("/proc/device-tree/model").value().cloned();
    match named(&["model name"])
        .or_else(board)
        .or_else(|| named(&["cpu", "cpu model", "uarch", "Hardware", "machine"]))
    {
        Some(name) => Fact::Value(name),
        None => cpuinfo.and_then(|_| Fact::Unsupported),
    }
}

/// The frequency governor of a CPU.
pub(crate) fn governor(root: &SysRoot, cpu: CpuId) -> Fact<String> {
    root.read(&cpu_file(cpu, "cpufreq/scaling_governor"))
}

/// Governors by name, each with its CPUs; empty without cpufreq.
pub(super) fn governors(root: &SysRoot, online: &CpuList) -> Vec<Governor> {
    let mut governors: BTreeMap<String, CpuList> = BTreeMap::new();
    for cpu in online.iter() {
        if let Fact::Value(name) = governor(root, cpu) {
            governors.entry(name).or_default().insert(cpu);
        }
    }
    governors.into_iter().map(|(name, cpus)| Governor { name, cpus }).collect()
}

/// The directories of a CPU's idle states, shallow to deep (Documentation/admin-guide/pm/cpuidle.rst).
pub(crate) fn idle_directories(root: &SysRoot, cpu: CpuId) -> Vec<String> {
    let directory = cpu_file(cpu, "cpuidle");
    let states = root.numbered(&directory, "state");
    states.into_iter().map(|state| format!("{directory}/state{state}")).collect()
}

/// A CPU's idle states; empty without cpuidle.
pub(super) fn idle_states(root: &SysRoot, cpu: CpuId) -> Vec<IdleState> {
    let state = |directory: &String| {
        Some(IdleState {
            name: root.read(&format!("{directory}/name")).value()?.clone(),
            latency_us: *root.number(&format!("{directory}/latency")).value()?,
            disabled: root
                .number::<u64>(&format!("{directory}/disable"))
                .value()
                .is_some_and(|flags| *flags != 0),
        })
    };
    idle_directories(root, cpu).iter().filter_map(state).collect()
}

/// Whether idle states can be restricted: whether a CPU has states of cpuidle. None where that cannot be known.
pub(super) fn has_idle_states(root: &SysRoot) -> Option<bool> {
    let cpus = cpus(root).online;
    if cpus.iter().any(|cpu| !idle_directories(root, cpu).is_empty()) {
        return Some(true);
    }
    let driver = root.read("/sys/devices/system/cpu/cpuidle/current_driver");
    match driver {
        Fact::Value(driver) if driver.trim() == "none" => Some(false),
        // Without CONFIG_CPU_IDLE there is no such directory, where sysfs can be read at all.
        Fact::Absent if root.read("/sys/devices/system/cpu/online").value().is_some() => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sysroot::FakeTree;

    #[test]
    fn idle_states_that_cannot_be_seen_are_not_taken_for_none() {
        const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-1");
        const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
        const STATE: (&str, &str) = ("/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL");
        let of = |files: &[(&str, &str)]| has_idle_states(&FakeTree::new(files).root);
        assert_eq!(of(&[ONLINE, (DRIVER, "intel_idle\n"), STATE]), Some(true));
        assert_eq!(of(&[ONLINE, (DRIVER, "none\n")]), Some(false));
        assert_eq!(of(&[ONLINE]), Some(false), "no cpuidle in this kernel");
        assert_eq!(of(&[ONLINE, (DRIVER, "intel_idle\n")]), None, "a driver, and no states to be seen");
        assert_eq!(of(&[]), None, "no sysfs");
    }

    #[test]
    fn keys_of_cpuinfo_match_whole() {
        let text = "processor\t: 0\nmodel\t\t: 158\nmodel name\t: Intel(R) Core(TM): i7\nempty\t:\n";
        assert_eq!(cpuinfo_value(text, "model name"), Some("Intel(R) Core(TM): i7"));
        assert_eq!(cpuinfo_value(text, "model"), Some("158"));
        assert_eq!(cpuinfo_value(text, "name"), None);
        assert_eq!(cpuinfo_value(text, "empty"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([a-z ]{0,4}:?[a-z]{0,4}\n?){0,4}|.{0,40}") {
            let _ = cpuinfo_value(&text, "a");
        }
    }
}
