//! Work of the network that comes to CPUs for real time (Documentation/networking/scaling.rst).

use machine::ethtool::{self, Coalescing};
use record::Fact;

use crate::files;
use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, item, list, reading, unsupported};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "network.steered-to-isolated",
        "receive queues whose packets are handed to CPUs set apart",
        |survey| reaching_isolated(survey, "rx-", "rps_cpus"),
    ),
    fact(
        "network.sending-from-isolated",
        "transmit queues that CPUs set apart share with others",
        |survey| reaching_isolated(survey, "tx-", "xps_cpus"),
    ),
    fact(
        "network.surplus-queues",
        "devices with more receive queues than there are CPUs for everything else",
        queues,
    ),
    fact("network.coalescing", "devices that gather received packets before they interrupt", coalescing),
    fact("network.sleeping-links", "devices whose link sleeps between packets", sleeping_links),
];

const INTERFACES: &str = "/sys/class/net";

/// The names of an interface's queues of one direction: `rx-0`.
fn queues_of(survey: &Survey, interface: &str, direction: &str) -> Vec<String> {
    let names = survey.root.list(&format!("{INTERFACES}/{interface}/queues"));
    let names = names.value().cloned().unwrap_or_default();
    names.into_iter().filter(|name| name.starts_with(direction)).collect()
}

/// Queues of a direction whose mask in `file` names CPUs set apart. A device with one queue has no mask to send.
fn reaching_isolated(survey: &Survey, direction: &str, file: &str) -> Reading {
    let from = format!("{INTERFACES}/*/queues/{direction}*/{file}");
    if survey.isolated.is_empty() {
        return unsupported(&from);
    }
    let Fact::Value(interfaces) = survey.root.list(INTERFACES) else { return reading(Fact::Absent, &from) };
    let mut items = Vec::new();
    for interface in &interfaces {
        for queue in queues_of(survey, interface, direction) {
            let mask = files::cpus(&survey.root, &format!("{INTERFACES}/{interface}/queues/{queue}/{file}"));
            let reached = mask.value().map(|cpus| cpus.intersection(&survey.isolated)).unwrap_or_default();
            if !reached.is_empty() {
                items.push(item(format!("{interface} {queue}"), reached));
            }
        }
    }
    list(items, &from)
}

/// Devices with more receive queues than there are CPUs for everything else: some queue's interrupt has to fire on a
/// CPU for real time, or shares one.
fn queues(survey: &Survey) -> Reading {
    const FROM: &str = "/sys/class/net/*/queues";
    let housekeeping = survey.housekeeping().len();
    if survey.isolated.is_empty() || housekeeping == 0 {
        return unsupported(FROM);
    }
    let Fact::Value(interfaces) = survey.root.list(INTERFACES) else { return reading(Fact::Absent, FROM) };
    let with_device = interfaces
        .iter()
        .filter(|name| survey.root.list(&format!("{INTERFACES}/{name}/device")).value().is_some());
    let counted = with_device.map(|name| (name, queues_of(survey, name, "rx-").len()));
    let many = counted.filter(|(_, queues)| *queues > housekeeping);
    list(many.map(|(name, queues)| item(name, format!("{queues} receive queues"))).collect(), FROM)
}

/// Interfaces with a device whose link is up.
fn devices(survey: &Survey) -> Fact<Vec<String>> {
    let is_up = |name: &String| {
        let state = survey.root.read(&format!("{INTERFACES}/{name}/operstate"));
        let has_device = survey.root.list(&format!("{INTERFACES}/{name}/device")).value().is_some();
        has_device && state.value().is_none_or(|state| state != "down")
    };
    survey.root.list(INTERFACES).map(|names| names.into_iter().filter(is_up).collect())
}

/// One item a device for which `of` has words. What a driver does not support is nothing that delays.
fn of_devices(survey: &Survey, from: &str, of: impl Fn(&str) -> Fact<Option<String>>) -> Reading {
    let Fact::Value(names) = devices(survey) else { return reading(Fact::Absent, from) };
    let mut items = Vec::new();
    for name in &names {
        match of(name) {
            Fact::Value(Some(words)) => items.push(item(name, words)),
            Fact::Unreadable(errno) if errno != NOT_SUPPORTED => {
                return reading(Fact::Unreadable(errno), from);
            }
            // An older snapshot has no answer.
            Fact::Unsupported => return unsupported(from),
            Fact::Value(None) | Fact::Absent | Fact::Unreadable(_) => {}
        }
    }
    list(items, from)
}

const NOT_SUPPORTED: i32 = rustix::io::Errno::OPNOTSUPP.raw_os_error();

/// Devices that gather received packets before they interrupt.
fn coalescing(survey: &Survey) -> Reading {
    of_devices(survey, "ethtool -c", |name| {
        ethtool::coalescing(&survey.root, name).map(|found| match found {
            Coalescing { adaptive: true, microseconds } => {
                Some(format!("adaptive-rx on, rx-usecs {microseconds}"))
            }
            Coalescing { microseconds: 0, .. } => None,
            Coalescing { microseconds, .. } => Some(format!("rx-usecs {microseconds}")),
        })
    })
}

/// Devices whose link sleeps between packets.
fn sleeping_links(survey: &Survey) -> Reading {
    of_devices(survey, "ethtool --show-eee", |name| {
        let sleeps = ethtool::sleeps_between_packets(&survey.root, name);
        sleeps.map(|sleeps| sleeps.then(|| "EEE active".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    fn machine() -> FakeTree {
        let tree = FakeTree::new(&[
            ("/sys/devices/system/cpu/online", "0-3"),
            ("/sys/class/net/eth0/device/vendor", "0x8086"),
            ("/sys/class/net/veth1/queues/rx-0/rps_cpus", "0"),
        ]);
        for (queue, mask) in [("rx-0", "f"), ("rx-1", "3"), ("rx-2", "00000000,00000008"), ("tx-0", "f")] {
            tree.write(&format!("/sys/class/net/eth0/queues/{queue}/rps_cpus"), mask);
        }
        tree.write("/sys/class/net/eth0/queues/tx-0/xps_cpus", "6");
        tree
    }

    #[test]
    fn queues_that_send_are_reported_too() {
        let reading = |isolated| shown(&machine(), isolated, "network.sending-from-isolated");
        assert_eq!(reading(Isolated::Cpus("2-3")), "eth0 tx-0: 2");
        assert_eq!(reading(Isolated::Cpus("3")), "none");
    }

    #[test]
    fn steering_to_cpus_set_apart_is_reported_by_queue() {
        let reading = |isolated| shown(&machine(), isolated, "network.steered-to-isolated");
        assert_eq!(reading(Isolated::Cpus("2-3")), "eth0 rx-0: 2-3, eth0 rx-2: 3");
        assert_eq!(reading(Isolated::None), "unknown");
    }

    #[test]
    fn what_drivers_say_is_read_from_where_a_snapshot_has_it() {
        let tree = machine();
        tree.write("/worstcase/ethtool/eth0/coalesce", "adaptive-rx on\nrx-usecs 3\n");
        tree.write("/worstcase/ethtool/eth0/eee", "active\n");
        let reading = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(reading("network.coalescing"), "eth0: adaptive-rx on, rx-usecs 3");
        assert_eq!(reading("network.sleeping-links"), "eth0: EEE active");
        tree.write("/worstcase/ethtool/eth0/coalesce", "adaptive-rx off\nrx-usecs 0\n");
        tree.write("/worstcase/ethtool/eth0/eee", "not active\n");
        assert_eq!(reading("network.coalescing"), "none");
        assert_eq!(reading("network.sleeping-links"), "none");
        tree.write("/sys/class/net/eth0/operstate", "down");
        tree.write("/worstcase/ethtool/eth0/eee", "active\n");
        assert_eq!(reading("network.sleeping-links"), "none");
    }

    #[test]
    fn only_devices_have_surplus_queues() {
        let reading = |cpus| shown(&machine(), Isolated::Cpus(cpus), "network.surplus-queues");
        assert_eq!(reading("2-3"), "eth0: 3 receive queues");
        assert_eq!(reading("3"), "none");
    }
}
