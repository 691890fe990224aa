//! How exact timers are, what they expire by, and the tick.

use record::{EventDevice, Fact, Timers};
use rustix::time::{ClockId, clock_getres};
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos};

use crate::configuration::built_in;

/// Where the devices are that interrupt the CPUs, one a CPU (kernel/time/clockevents.c).
const EVENTS: &str = "/sys/devices/system/clockevents";

/// Reads them. What only a system call says is unknown of a captured machine.
pub(super) fn timers(root: &SysRoot, command_line: &str) -> Timers {
    let resolution =
        |clock| if root.is_live() { Fact::Value(nanos(clock_getres(clock))) } else { Fact::Unsupported };
    Timers {
        resolution: resolution(ClockId::Monotonic),
        event_devices: event_devices(root),
        // The coarse clocks move on with the tick: their resolution is its length.
        tick: resolution(ClockId::MonotonicCoarse),
        tick_stops: tick_stops(root, command_line),
        evl_gravity: evl_gravity(root),
    }
}

fn nanos(time: rustix::time::Timespec) -> Nanos {
    Nanos((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}

fn event_devices(root: &SysRoot) -> Vec<EventDevice> {
    let mut devices: Vec<EventDevice> = Vec::new();
    for number in root.numbered(EVENTS, "clockevent") {
        let name = root.read(&format!("{EVENTS}/clockevent{number}/current_device"));
        let name = name.value().filter(|name| !name.is_empty()).cloned();
        let name = name.unwrap_or_else(|| "unknown".into());
        let cpu = CpuList::from_iter([CpuId(number)]);
        match devices.iter_mut().find(|device| device.name == name) {
            Some(device) => device.cpus = device.cpus.union(&cpu),
            None => devices.push(EventDevice { name, cpus: cpu }),
        }
    }
    devices
}

/// Nanoseconds for interrupts, threads of the kernel and of users: `0i 3000k 3000u` (kernel/evl/clock.c of a kernel with EVL).
fn evl_gravity(root: &SysRoot) -> Fact<Nanos> {
    let of_users = |text: &str| text.split_whitespace().find_map(|word| word.strip_suffix('u')?.parse().ok());
    root.read("/sys/devices/virtual/clock/monotonic/gravity").and_then(|text| match of_users(&text) {
        Some(gravity) => Fact::Value(Nanos(gravity)),
        None => Fact::Unsupported,
    })
}

/// CONFIG_NO_HZ_IDLE, CONFIG_NO_HZ_FULL and `nohz=` (Documentation/timers/no_hz.rst).
fn tick_stops(root: &SysRoot, command_line: &str) -> Fact<String> {
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    let off = words.filter_map(|word| word.strip_prefix("nohz=")).last().is_some_and(|mode| mode == "off");
    if off {
        return Fact::Value("never".into());
    }
    let full = root.cpu_list("/sys/devices/system/cpu/nohz_full");
    if let Some(cpus) = full.value().filter(|cpus| !cpus.is_empty()) {
        return Fact::Value(format!("when idle, and beside a single task on CPUs {}", cpus));
    }
    built_in(root, "NO_HZ_COMMON").map(|has| if has { "when idle" } else { "never" }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    #[test]
    fn the_gravity_of_users_is_the_one_that_is_marked_so() {
        let of = |text: &str| {
            let tree = FakeTree::new(&[("/sys/devices/virtual/clock/monotonic/gravity", text)]);
            evl_gravity(&tree.root)
        };
        assert_eq!(of("0i 3000k 4500u\n"), Fact::Value(Nanos(4_500)));
        assert_eq!(of("0i 3000k\n"), Fact::Unsupported);
        assert_eq!(of("none"), Fact::Unsupported);
        assert_eq!(evl_gravity(&FakeTree::empty().root), Fact::Absent);
    }

    #[test]
    fn the_clock_event_devices_are_those_of_the_cpus() {
        let file = |number: u32| format!("{EVENTS}/clockevent{number}/current_device");
        let tree = FakeTree::new(&[
            (&*file(0), "lapic-deadline\n"),
            (&*file(1), "lapic-deadline"),
            (&*file(2), "pit"),
        ]);
        let found = event_devices(&tree.root);
        let found: Vec<_> = found.iter().map(|device| (&*device.name, device.cpus.to_string())).collect();
        assert_eq!(found, [("lapic-deadline", "0-1".to_owned()), ("pit", "2".to_owned())]);
    }

    #[test]
    fn the_tick_stops_as_configuration_and_command_line_have_it() {
        let tree = FakeTree::new(&[("/proc/sys/kernel/osrelease", "6.1.0")]);
        assert!(matches!(tick_stops(&tree.root, "quiet"), Fact::Unreadable(_)), "no configuration");
        tree.write("/boot/config-6.1.0", "CONFIG_NO_HZ_COMMON=y\nCONFIG_HZ=250\n");
        assert_eq!(tick_stops(&tree.root, "quiet"), Fact::Value("when idle".into()));
        assert_eq!(tick_stops(&tree.root, "nohz=on nohz=off -- nohz=on"), Fact::Value("never".into()));
        tree.write("/sys/devices/system/cpu/nohz_full", "1-3\n");
        let full = "when idle, and beside a single task on CPUs 1-3";
        assert_eq!(tick_stops(&tree.root, ""), Fact::Value(full.into()));
        tree.write("/sys/devices/system/cpu/nohz_full", "");
        tree.write("/boot/config-6.1.0", "CONFIG_HZ_PERIODIC=y\n");
        assert_eq!(tick_stops(&tree.root, ""), Fact::Value("never".into()));
    }

    #[test]
    fn this_machine_has_a_tick_and_a_resolution() {
        let timers = timers(&SysRoot::live(), "");
        assert!(timers.tick.value().is_some_and(|tick| tick.0 > 0), "{timers:?}");
        assert!(timers.resolution.value().is_some_and(|resolution| resolution.0 > 0), "{timers:?}");
    }
}
