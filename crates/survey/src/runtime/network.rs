//! Work of the network that comes to CPUs for real time (Documentation/networking/scaling.rst).

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
    fn only_devices_have_surplus_queues() {
        let reading = |cpus| shown(&machine(), Isolated::Cpus(cpus), "network.surplus-queues");
        assert_eq!(reading("2-3"), "eth0: 3 receive queues");
        assert_eq!(reading("3"), "none");
    }
}
