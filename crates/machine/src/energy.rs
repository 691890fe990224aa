//! What meters of the machine say of its energy: RAPL's zones (Documentation/power/powercap/powercap.rst), sensors of hwmon
//! (Documentation/hwmon/sysfs-interface.rst), batteries (Documentation/ABI/testing/sysfs-class-power).
//!
//! Only root reads RAPL since Linux 5.10: its figures tell what other programs compute.

use std::time::Duration;

use record::{Counted, CountedOn, Counters, Fact};
use sysroot::SysRoot;

const ZONES: &str = "/sys/class/powercap";
const CHIPS: &str = "/sys/class/hwmon";
const SUPPLIES: &str = "/sys/class/power_supply";

/// What is said where there is no meter at all.
const NOWHERE: &str = "powercap, hwmon, power_supply";

/// No zone takes more, in microjoules a microsecond, which are watts. A zone of 262 kJ has wrapped at most once in 8 minutes then;
/// how often in a longer time, two readings do not say.
const MOST_WATTS: u128 = 500;

/// One meter at one moment.
#[derive(Clone, Debug, PartialEq)]
struct Meter {
    /// The file, and what the kernel calls what it measures.
    source: String,
    kind: Kind,
    /// Microjoules, or microwatts.
    value: Fact<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// Grows, and begins again at 0 above the range, in microjoules.
    Wrapping { range: Fact<u64> },
    /// Grows.
    Growing,
    /// Falls while the battery is discharged, which it must be before and after.
    Falling { is_discharging: bool },
    /// Power at the moment.
    Power,
}

/// All meters at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meters(Vec<Meter>);

impl Meters {
    /// Reads all of them.
    pub(crate) fn take(root: &SysRoot) -> Self {
        Self([zones(root), sensors(root), batteries(root)].concat())
    }
}

/// Adds what each meter that was there at both times says of the time between; where there is none, that nothing is known.
pub(crate) fn between(before: &Meters, after: &Meters, over: Duration, counters: &mut Counters) {
    for earlier in &before.0 {
        let later = after.0.iter().find(|later| later.source == earlier.source);
        let (what, value) = match (&earlier.kind, later) {
            (Kind::Power, later) => (Counted::Power, later.map_or(Fact::Absent, |later| later.value.clone())),
            (_, Some(later)) => (Counted::Energy, used(earlier, later, over)),
            (_, None) => (Counted::Energy, Fact::Absent),
        };
        counters.add(what, &earlier.source, CountedOn::Machine, value);
    }
    if before.0.is_empty() && after.0.is_empty() {
        counters.add(Counted::Energy, NOWHERE, CountedOn::Machine, Fact::Absent);
    }
}

fn used(before: &Meter, after: &Meter, over: Duration) -> Fact<u64> {
    let (earlier, later) = match (&before.value, &after.value) {
        (Fact::Value(earlier), Fact::Value(later)) => (*earlier, *later),
        (Fact::Value(_), missing) | (missing, _) => return missing.clone(),
    };
    let used = match (&before.kind, &after.kind) {
        (Kind::Wrapping { range: Fact::Value(range) }, _) => wrapped(earlier, later, *range, over),
        // Without its range a zone may have wrapped unseen.
        (Kind::Wrapping { .. }, _) => None,
        (Kind::Falling { is_discharging: true }, Kind::Falling { is_discharging: true }) => {
            earlier.checked_sub(later)
        }
        (Kind::Falling { .. }, _) => None,
        _ => later.checked_sub(earlier),
    };
    used.map_or(Fact::Unsupported, Fact::Value)
}

fn wrapped(earlier: u64, later: u64, range: u64, over: Duration) -> Option<u64> {
    let may_wrap_twice = over.as_micros().saturating_mul(MOST_WATTS) > u128::from(range);
    if may_wrap_twice || earlier > range || later > range {
        return None;
    }
    later.checked_sub(earlier).or_else(|| (range - earlier).checked_add(later))
}

fn zones(root: &SysRoot) -> Vec<Meter> {
    let names = root.list(ZONES).value().cloned().unwrap_or_default();
    let zones = names.into_iter().filter(|name| name.contains("rapl:"));
    let mut zones: Vec<String> = zones.collect();
    zones.sort_unstable();
    let meter = |zone: String| {
        let path = format!("{ZONES}/{zone}");
        let range = root.number(&format!("{path}/max_energy_range_uj"));
        meter(root, &path, "energy_uj", "name", Kind::Wrapping { range })
    };
    zones.into_iter().filter_map(meter).collect()
}

fn sensors(root: &SysRoot) -> Vec<Meter> {
    let chips = root.numbered(CHIPS, "hwmon").into_iter().map(|chip| format!("{CHIPS}/hwmon{chip}"));
    let of_chip = |chip: String| {
        let mut names = root.list(&chip).value().cloned().unwrap_or_default();
        names.sort_unstable();
        let is_input = |name: &String, kind: &str| name.starts_with(kind) && name.ends_with("_input");
        let read = |name: &String| match () {
            () if is_input(name, "energy") => meter(root, &chip, name, "name", Kind::Growing),
            () if is_input(name, "power") => meter(root, &chip, name, "name", Kind::Power),
            () => None,
        };
        names.iter().filter_map(read).collect::<Vec<_>>()
    };
    chips.flat_map(of_chip).collect()
}

/// Batteries that count energy, in microwatt-hours, and what they give at the moment.
fn batteries(root: &SysRoot) -> Vec<Meter> {
    let mut names = root.list(SUPPLIES).value().cloned().unwrap_or_default();
    names.sort_unstable();
    let of_supply = |name: String| {
        let path = format!("{SUPPLIES}/{name}");
        let says = |file: &str, word: &str| {
            root.read(&format!("{path}/{file}")).value().is_some_and(|text| text.trim() == word)
        };
        if !says("type", "Battery") {
            return Vec::new();
        }
        let kind = Kind::Falling { is_discharging: says("status", "Discharging") };
        let energy = meter(root, &path, "energy_now", "type", kind).map(|meter| Meter {
            value: meter.value.map(|microwatt_hours| microwatt_hours.saturating_mul(3_600)),
            ..meter
        });
        energy.into_iter().chain(meter(root, &path, "power_now", "type", Kind::Power)).collect()
    };
    names.into_iter().flat_map(of_supply).collect()
}

/// None where there is no such file.
fn meter(root: &SysRoot, directory: &str, file: &str, name: &str, kind: Kind) -> Option<Meter> {
    let path = format!("{directory}/{file}");
    let value = root.number(&path);
    let name = root.read(&format!("{directory}/{name}"));
    let name = name.value().map_or(String::new(), |name| format!(", {}", name.trim()));
    (value != Fact::Absent).then(|| Meter { source: format!("{path}{name}"), kind, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sysroot::FakeTree;

    use super::*;

    const ZONE: &str = "/sys/class/powercap/intel-rapl:0";
    const SECOND: Duration = Duration::from_secs(1);

    /// A laptop: package and core of RAPL as Linux 6.1 shows them, a board's sensor, a battery that is discharged.
    fn laptop(package: u64, status: &str, battery: u64) -> FakeTree {
        let tree = FakeTree::empty();
        tree.write(&format!("{ZONE}/name"), "package-0\n");
        tree.write(&format!("{ZONE}/energy_uj"), format!("{package}\n"));
        tree.write(&format!("{ZONE}/max_energy_range_uj"), "262143328850\n");
        tree.write("/sys/class/powercap/intel-rapl:0:0/name", "core\n");
        tree.write("/sys/class/powercap/intel-rapl:0:0/energy_uj", "77\n");
        tree.write("/sys/class/powercap/intel-rapl/enabled", "1\n");
        tree.write("/sys/class/hwmon/hwmon3/name", "ina2xx\n");
        tree.write("/sys/class/hwmon/hwmon3/power1_input", "2500000\n");
        tree.write("/sys/class/hwmon/hwmon3/energy1_input", format!("{package}\n"));
        tree.write("/sys/class/power_supply/BAT0/type", "Battery\n");
        tree.write("/sys/class/power_supply/BAT0/status", format!("{status}\n"));
        tree.write("/sys/class/power_supply/BAT0/energy_now", format!("{battery}\n"));
        tree.write("/sys/class/power_supply/AC/type", "Mains\n");
        tree
    }

    fn said(before: &FakeTree, after: &FakeTree, over: Duration) -> Vec<(Counted, String, Fact<u64>)> {
        let mut counters = Counters::default();
        between(&Meters::take(&before.root), &Meters::take(&after.root), over, &mut counters);
        let row = |counter: record::Counter| (counter.what, counter.source, counter.counts[0].added.clone());
        counters.counters.into_iter().map(row).collect()
    }

    fn of(said: &[(Counted, String, Fact<u64>)], source: &str) -> Fact<u64> {
        let found = said.iter().find(|(_, known, _)| known.contains(source));
        found.unwrap_or_else(|| panic!("{source}: {said:?}")).2.clone()
    }

    #[test]
    fn each_meter_says_what_was_used_in_its_unit() {
        let said = said(
            &laptop(1_000_000, "Discharging", 50_000),
            &laptop(13_000_000, "Discharging", 49_990),
            SECOND,
        );
        assert_eq!(of(&said, "intel-rapl:0/energy_uj, package-0"), Fact::Value(12_000_000));
        assert_eq!(of(&said, "hwmon3/energy1_input, ina2xx"), Fact::Value(12_000_000));
        assert_eq!(of(&said, "hwmon3/power1_input"), Fact::Value(2_500_000));
        assert_eq!(of(&said, "BAT0/energy_now"), Fact::Value(36_000), "10 uWh");
        assert_eq!(said.len(), 5, "{said:?}");
    }

    #[test]
    fn a_zone_that_wraps_goes_on_and_one_that_may_have_wrapped_twice_is_unknown() {
        let (before, after) = (laptop(262_143_000_000, "Full", 1), laptop(671_150, "Full", 1));
        assert_eq!(of(&said(&before, &after, SECOND), "package-0"), Fact::Value(1_000_000));
        let long = Duration::from_secs(600);
        assert_eq!(of(&said(&before, &after, long), "package-0"), Fact::Unsupported);
        assert_eq!(of(&said(&after, &before, long), "package-0"), Fact::Unsupported);
        assert_eq!(of(&said(&before, &after, SECOND), "energy1_input"), Fact::Unsupported, "it has no range");
        assert_eq!(of(&said(&before, &after, SECOND), ", core"), Fact::Unsupported, "its range is not known");
    }

    #[test]
    fn a_meter_that_cannot_be_read_or_goes_is_unknown() {
        // As since Linux 5.10 for all but root: a file that is there, and EACCES.
        let denied = Meter { source: ZONE.into(), kind: Kind::Growing, value: Fact::Unreadable(13) };
        assert_eq!(used(&denied, &denied, SECOND), Fact::Unreadable(13));
        let (before, empty) = (laptop(1, "Discharging", 9), FakeTree::empty());
        let said = said(&before, &empty, SECOND);
        assert!(said.len() == 5 && said.iter().all(|(_, _, value)| *value == Fact::Absent), "{said:?}");
    }

    #[test]
    fn a_battery_that_is_charged_says_nothing_of_what_was_used() {
        let known = said(&laptop(1, "Charging", 9), &laptop(2, "Charging", 8), SECOND);
        assert_eq!(of(&known, "BAT0"), Fact::Unsupported);
        let plugged = said(&laptop(1, "Discharging", 9), &laptop(2, "Charging", 8), SECOND);
        assert_eq!(of(&plugged, "BAT0"), Fact::Unsupported);
    }

    #[test]
    fn a_machine_without_meters_says_so() {
        let empty = FakeTree::empty();
        assert_eq!(said(&empty, &empty, SECOND), [(Counted::Energy, NOWHERE.to_owned(), Fact::Absent)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_text_is_answered_without_a_panic(text in "[0-9]{1,22}\n|.{0,20}", range in "[0-9]{1,22}|.{0,5}") {
            let tree = laptop(1, "Discharging", 9);
            for file in ["energy_uj", "name"] {
                tree.write(&format!("{ZONE}/{file}"), &text);
            }
            tree.write(&format!("{ZONE}/max_energy_range_uj"), &range);
            tree.write("/sys/class/power_supply/BAT0/energy_now", &text);
            let other = laptop(5, "Discharging", 3);
            said(&tree, &other, SECOND);
            said(&other, &tree, SECOND);
        }
    }
}
