//! How hot the machine is, and whether it slows its CPUs down for that.

use record::Fact;
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use crate::facts::processors::cpu_file;

/// What heat does to the machine at one moment. Cheap enough to be read once a second, with the caution that
/// [`temperature`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// The highest temperature, in thousandths of a degree Celsius.
    pub temperature: Fact<i64>,
    /// Throttling events since boot, summed over the CPUs asked for (Intel).
    pub throttles: Fact<u64>,
    /// Cooling devices that slow down CPUs now, as in `cpufreq-cpu0 at 2 of 5`.
    pub cooling: Vec<String>,
}

impl Heat {
    /// Reads it.
    pub fn read(root: &SysRoot, cpus: &CpuList) -> Self {
        let throttles = cpus.iter().map(|cpu| throttles(root, cpu)).reduce(sum).unwrap_or(Fact::Absent);
        Self { temperature: temperature(root), throttles, cooling: cooling(root) }
    }
}

/// Throttling events of a CPU's core and package since boot (arch/x86, Intel only).
pub(crate) fn throttles(root: &SysRoot, cpu: CpuId) -> Fact<u64> {
    let count = |name| root.number::<u64>(&cpu_file(cpu, &format!("thermal_throttle/{name}_throttle_count")));
    match (count("core"), count("package")) {
        (core, Fact::Absent) => core,
        (core, package) => sum(core, package),
    }
}

fn sum(one: Fact<u64>, other: Fact<u64>) -> Fact<u64> {
    one.and_then(|one| other.map(|other| one.saturating_add(other)))
}

/// How the types of cooling devices begin that take time or frequency from CPUs (drivers/thermal, drivers/acpi).
const CPU_COOLERS: [&str; 6] =
    ["cpufreq-", "thermal-cpufreq-", "cpuidle-", "thermal-idle-", "Processor", "intel_powerclamp"];

/// CPU cooling devices in action: the only sign of throttling on most ARM boards.
fn cooling(root: &SysRoot) -> Vec<String> {
    let class = "/sys/class/thermal";
    let device = |number: u32| {
        let directory = format!("{class}/cooling_device{number}");
        let kind = root.read(&format!("{directory}/type")).value()?.clone();
        let state: i64 = *root.number(&format!("{directory}/cur_state")).value()?;
        let most = root.read(&format!("{directory}/max_state"));
        let active = state > 0 && CPU_COOLERS.iter().any(|cooler| kind.starts_with(cooler));
        active.then(|| format!("{kind} at {state} of {most}"))
    };
    root.numbered(class, "cooling_device").into_iter().filter_map(device).collect()
}

/// hwmon drivers whose sensors are in the CPU or the chip around it. Others are left out: a board's sensor chip
/// reports inputs that nothing is wired to.
const CPU_SENSORS: [&str; 8] = [
    "coretemp",
    "k8temp",
    "k10temp",
    "zenpower",
    "via_cputemp",
    "cpu_thermal",
    "soc_thermal",
    "scpi_sensors",
];

/// What can be a temperature, in thousandths of a degree Celsius; sensors without power read far outside.
const PLAUSIBLE: std::ops::RangeInclusive<i64> = -55_000..=150_000;

/// The highest temperature of all thermal zones and CPU sensors, in thousandths of a degree Celsius
/// (Documentation/driver-api/thermal/sysfs-api.rst, Documentation/hwmon/sysfs-interface.rst).
///
/// Some zones run firmware when they are read: not a thing to do often beside a measurement.
pub fn temperature(root: &SysRoot) -> Fact<i64> {
    let readings: Vec<Fact<i64>> = sensors(root).iter().map(|path| root.number(path)).collect();
    let highest = readings.iter().filter_map(Fact::value).filter(|reading| PLAUSIBLE.contains(reading)).max();
    match highest {
        Some(highest) => Fact::Value(*highest),
        None => readings.into_iter().find(|fact| matches!(fact, Fact::Unreadable(_))).unwrap_or(Fact::Absent),
    }
}

/// The files that give one temperature each.
fn sensors(root: &SysRoot) -> Vec<String> {
    let zones = "/sys/class/thermal";
    let zones = root
        .numbered(zones, "thermal_zone")
        .into_iter()
        .map(|zone| format!("{zones}/thermal_zone{zone}/temp"));
    let chips = "/sys/class/hwmon";
    let chips = root.numbered(chips, "hwmon").into_iter().map(|chip| format!("{chips}/hwmon{chip}"));
    zones.chain(chips.flat_map(|chip| inputs(root, &chip))).collect()
}

/// The inputs of one hwmon chip, none if it is not about the CPU. Before 3.15 they stand below `device`.
fn inputs(root: &SysRoot, chip: &str) -> Vec<String> {
    let of_cpu = |directory: &String| {
        root.read(&format!("{directory}/name"))
            .value()
            .is_some_and(|name| CPU_SENSORS.contains(&name.as_str()))
    };
    let Some(directory) = [chip.to_owned(), format!("{chip}/device")].into_iter().find(of_cpu) else {
        return Vec::new();
    };
    let names = root.list(&directory).value().cloned().unwrap_or_default();
    let inputs = names.into_iter().filter(|name| name.starts_with("temp") && name.ends_with("_input"));
    inputs.map(|name| format!("{directory}/{name}")).collect()
}
