//! How hot the machine is.

use record::Fact;

use crate::SysRoot;

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
