//! What stands still during a run: the header of a record.

pub mod consoles;
pub mod kernel;
pub mod place;
pub mod processors;
pub mod throttling;
mod timers;
pub mod virtualization;

use record::{Fact, Machine};
use sysroot::{SysRoot, parsed};
use units::Bytes;

use crate::latency_request;

/// Reads the machine. What is not there or cannot be read says so in its field.
pub fn machine(root: &SysRoot) -> Machine {
    let names = kernel::names(root);
    let command_line = root.read("/proc/cmdline");
    let cpus = processors::cpus(root);
    let preemption = kernel::preemption(root, &names, command_line.value().map_or("", String::as_str));
    Machine {
        terminal: None,
        lab: None,
        host: names.host,
        architecture: names.architecture,
        cpu_model: processors::model(root),
        memory: memory(root),
        virtualization: virtualization::virtualization(root),
        xen: virtualization::xen(root),
        clock_source: root.read(CLOCK_SOURCE),
        governors: processors::governors(root, &cpus.online),
        idle_states: cpus.online.first().map(|cpu| processors::idle_states(root, cpu)).unwrap_or_default(),
        dma_latency_us: latency_request::in_effect(root),
        throttling: throttling::throttling(root, &names.release),
        consoles: consoles::consoles(root),
        console_log_level: consoles::log_level(root),
        load_average_hundredths: root
            .read("/proc/loadavg")
            .and_then(|text| parsed(load_average(&text).ok_or(()))),
        place: place::place(root),
        timers: timers::timers(root, command_line.value().map_or("", String::as_str)),
        kernel: record::Kernel { preemption, release: names.release, version: names.version, command_line },
        cpus,
    }
}

/// Whether idle states can be restricted; none where that cannot be known.
pub fn has_idle_states(root: &SysRoot) -> Option<bool> {
    processors::has_idle_states(root)
}

/// What the kernel takes from real-time threads, read anew.
pub fn throttling_now(root: &SysRoot) -> record::Throttling {
    throttling::throttling(root, &kernel::names(root).release)
}

/// Where the clock source's name stands (Documentation/timers/timekeeping.rst).
pub(crate) const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// MemTotal of /proc/meminfo, which the kernel counts in units of 1024 bytes.
fn memory(root: &SysRoot) -> Fact<Bytes> {
    root.read("/proc/meminfo").and_then(|text| parsed(total_memory(&text).ok_or(())))
}

fn total_memory(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kibibytes.checked_mul(1024).map(Bytes)
}

/// The first figure of /proc/loadavg, `0.43 0.25 0.14 1/88 10621`, in hundredths.
fn load_average(text: &str) -> Option<u32> {
    let (whole, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    whole
        .parse::<u32>()
        .ok()?
        .checked_mul(100)?
        .checked_add(hundredths.parse::<u32>().ok().filter(|n| *n < 100)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_and_load_parse() {
        assert_eq!(total_memory("MemTotal:       24684096 kB\nMemFree: 1 kB"), Some(Bytes(24_684_096 << 10)));
        assert_eq!(total_memory("MemFree: 1 kB"), None);
        assert_eq!(load_average("12.07 0.25 0.14 1/88 10621"), Some(1207));
        assert_eq!(load_average("12"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(MemTotal:)?[0-9. kB\n]{0,40}|.{0,40}") {
            let _ = (total_memory(&text), load_average(&text));
        }
    }
}
