//! Memory nodes (Documentation/ABI/stable/sysfs-devices-node), and which the CPUs for real time are on.

use record::Fact;
use units::{CpuId, CpuList};

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("nodes", "how many memory nodes are online", count),
    fact("nodes.isolated", "the memory nodes that CPUs for real time are on, each with those CPUs", isolated),
    fact("nodes.isolated.count", "how many memory nodes CPUs for real time are on", isolated_count),
];

const NODES: &str = "/sys/devices/system/node";

/// Numbers of nodes are printed as CPU lists are.
fn online(survey: &Survey) -> Fact<CpuList> {
    survey.root.cpu_list(&format!("{NODES}/online"))
}

fn count(survey: &Survey) -> Reading {
    let count = online(survey).map(|nodes| nodes.iter().count() as i64);
    Reading::new(count, &[&format!("{NODES}/online")])
}

/// Each node with those of its CPUs that are for real time.
fn of_isolated(survey: &Survey) -> Fact<Vec<Item>> {
    if survey.isolated.is_empty() {
        return Fact::Unsupported;
    }
    online(survey).and_then(|nodes| {
        let mut items = Vec::new();
        for CpuId(node) in nodes.iter() {
            let cpus = match survey.root.cpu_list(&format!("{NODES}/node{node}/cpulist")) {
                Fact::Value(cpus) => cpus.intersection(&survey.isolated),
                other => return other.map(|_| Vec::new()),
            };
            if !cpus.is_empty() {
                items.push(Item { name: format!("node {node}"), value: cpus.to_string() });
            }
        }
        Fact::Value(items)
    })
}

fn isolated(survey: &Survey) -> Reading {
    Reading::new(of_isolated(survey), &[&format!("{NODES}/node*/cpulist")])
}

fn isolated_count(survey: &Survey) -> Reading {
    let count = of_isolated(survey).map(|nodes| nodes.len() as i64);
    Reading::new(count, &[&format!("{NODES}/node*/cpulist")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    #[test]
    fn nodes_of_isolated_cpus_are_named() {
        let tree = FakeTree::new(&[
            ("/sys/devices/system/node/online", "0-1"),
            ("/sys/devices/system/node/node0/cpulist", "0-3"),
            ("/sys/devices/system/node/node1/cpulist", "4-7"),
        ]);
        let reading = |isolated: &str, name: &str| {
            Survey::new(tree.root.clone(), isolated.parse().unwrap()).read(name).value.to_string()
        };
        assert_eq!(reading("3-4", "nodes.isolated"), "node 0: 3, node 1: 4");
        assert_eq!((reading("2-3", "nodes.isolated.count"), reading("", "nodes")), ("1".into(), "2".into()));
        assert_eq!(reading("", "nodes.isolated"), "unknown");
    }
}
