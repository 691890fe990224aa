use proptest::prelude::*;
use sysroot::FakeTree;

use super::*;
use crate::Heat;

/// The counters of the first CPU of a tree.
fn snapshot(tree: &FakeTree) -> Snapshot {
    Snapshot::take(&tree.root, &"0".parse().unwrap())
}

const CPU: &str = "/sys/devices/system/cpu/cpu0";

/// An msr device file that holds a count at 0x34.
fn msr(smis: u32) -> Vec<u8> {
    let mut bytes = vec![0; 0x34];
    bytes.extend(u64::from(smis).to_ne_bytes());
    bytes
}

#[test]
fn counters_give_their_increase() {
    let tree = FakeTree::empty();
    tree.write("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: fpu\n");
    tree.write(&format!("{CPU}/cpuidle/state0/name"), "POLL");
    let state = |smis: u32, throttles: u64, time: u64, steal: u64, online: &str| {
        tree.write("/dev/cpu/0/msr", msr(smis));
        tree.write(&format!("{CPU}/thermal_throttle/core_throttle_count"), throttles.to_string());
        tree.write(&format!("{CPU}/thermal_throttle/package_throttle_count"), throttles.to_string());
        tree.write(&format!("{CPU}/cpuidle/state0/time"), time.to_string());
        tree.write(&format!("{CPU}/cpuidle/state0/usage"), (time / 10).to_string());
        tree.write("/proc/stat", format!("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 {steal} 0 0\n"));
        tree.write("/sys/devices/system/cpu/online", online);
        snapshot(&tree)
    };
    let before = state(u32::MAX, 10, 1000, 5, "0-1");
    let evidence = evidence_between(&before, &state(2, 13, 3000, 9, "0"));
    let cpu = &evidence.cpus[0];
    assert_eq!(cpu.smis, Fact::Value(3));
    assert_eq!(cpu.thermal_throttles, Fact::Value(6));
    assert_eq!(cpu.idle[0].time, Nanos::from_millis(2));
    assert_eq!(cpu.idle[0].entries, 200);
    assert_eq!(cpu.steal, Fact::Value(from_ticks(4)));
    assert_eq!(evidence.online_changed, Some("0".parse().unwrap()));
    assert_eq!(evidence.suspends, Fact::Absent);
    assert_eq!(cpu.governor, Fact::Absent);
}

#[test]
fn a_counter_that_began_anew_counts_from_zero() {
    assert_eq!(increase(10, 12), 2);
    assert_eq!(increase(10, 3), 3);
}

#[test]
fn a_guest_does_not_see_the_hosts_smis() {
    let intel = "vendor_id\t: GenuineIntel\nflags\t: fpu hypervisor\n";
    assert!(!counts_smis(intel));
    assert!(counts_smis(&intel.replace("hypervisor", "vme")));
    assert!(!counts_smis("vendor_id\t: AuthenticAMD\nflags\t: fpu\n"));
}

#[test]
fn clock_source_temperature_and_suspends_are_compared() {
    let tree = FakeTree::empty();
    let state = |source: &str, temperature: i64, suspends: u64| {
        tree.write(CLOCK_SOURCE, source);
        tree.write("/sys/class/thermal/thermal_zone0/temp", temperature.to_string());
        tree.write("/sys/class/thermal/thermal_zone1/temp", "-274000");
        tree.write("/sys/power/suspend_stats/success", suspends.to_string());
        snapshot(&tree)
    };
    let before = state("tsc", 61_000, 1);
    let evidence = evidence_between(&before, &state("hpet", 58_500, 3));
    assert_eq!(evidence.clock_source_changed, Some("hpet".into()));
    assert_eq!(evidence.temperature_millidegrees, Fact::Value(61_000));
    assert_eq!(evidence.suspends, Fact::Value(2));
    assert_eq!(evidence_between(&before, &before).clock_source_changed, None);
}

#[test]
fn sensors_that_are_not_the_cpus_are_left_out() {
    let tree = FakeTree::empty();
    assert_eq!(temperature(&tree.root), Fact::Absent);
    tree.write("/sys/class/hwmon/hwmon0/name", "nct6775\n");
    tree.write("/sys/class/hwmon/hwmon0/temp1_input", "127000\n");
    tree.write("/sys/class/hwmon/hwmon1/device/name", "coretemp\n");
    tree.write("/sys/class/hwmon/hwmon1/device/temp2_input", "45000\n");
    assert_eq!(temperature(&tree.root), Fact::Value(45_000));
}

#[test]
fn a_cpu_that_is_being_cooled_is_named() {
    let tree = FakeTree::empty();
    let device = |number: u32, kind: &str, state: &str| {
        let directory = format!("/sys/class/thermal/cooling_device{number}");
        tree.write(&format!("{directory}/type"), kind);
        tree.write(&format!("{directory}/cur_state"), state);
        tree.write(&format!("{directory}/max_state"), "5");
    };
    device(0, "cpufreq-cpu0", "2\n");
    device(1, "pwm-fan", "3\n");
    device(2, "intel_powerclamp", "-1\n");
    device(3, "thermal-cpufreq-1", "0\n");
    let heat = Heat::read(&tree.root, &"0".parse().unwrap());
    assert_eq!(heat.cooling, ["cpufreq-cpu0 at 2 of 5"]);
    assert_eq!((heat.temperature, heat.throttles), (Fact::Absent, Fact::Absent));
}

#[test]
fn a_kernel_without_steal_time_does_not_say_zero() {
    let tree = FakeTree::empty();
    tree.write("/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
    let only = snapshot(&tree);
    assert_eq!(evidence_between(&only, &only).cpus[0].steal, Fact::Unsupported);
}

#[test]
fn the_debugfs_form_of_suspends_parses() {
    assert_eq!(suspends_of_debugfs("success: 17\nfail: 0\nfailed_freeze: 0\n"), Some(17));
    assert_eq!(suspends_of_debugfs("fail: 0"), None);
}

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(text in "(success:)?[0-9 ]{0,20}|.{0,60}") {
        let _ = suspends_of_debugfs(&text);
    }
}
