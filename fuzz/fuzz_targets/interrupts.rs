//! Any /proc/interrupts and affinities are answered: nothing is said to fire on a CPU set apart that is not one.
//!
//! The first line is the affinity of all interrupts, and the state of the first ones in debugfs; the rest is
//! /proc/interrupts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::Fact;
use survey::{Survey, Value, named_facts};
use sysroot::{SysRoot, Tree};
use units::CpuList;

fuzz_target!(|text: &str| {
    let (affinity, interrupts) = text.split_once('\n').unwrap_or(("0-3", text));
    let file = |path: String, text: &str| (path, text.as_bytes().to_vec());
    let lists = (0..64).flat_map(|number| {
        ["smp_affinity_list", "effective_affinity_list"]
            .map(|name| file(format!("/proc/irq/{number}/{name}"), affinity))
    });
    let states = (0..8).map(|number| file(format!("/sys/kernel/debug/irq/irqs/{number}"), affinity));
    let named = file("/proc/interrupts".into(), interrupts);
    let isolated: CpuList = "2-3".parse().expect("a list");
    let tree = Tree::whole(lists.chain(states).chain([named]));
    let survey = Survey::new(SysRoot::of(tree), isolated.clone());
    for fact in named_facts().filter(|fact| fact.name.starts_with("interrupts.")) {
        let reading = survey.read(fact.name);
        assert_eq!(survey.read(fact.name), reading);
        let Fact::Value(Value::List(items)) = reading.value else { continue };
        for item in items.iter().filter(|_| fact.name.ends_with("on-isolated")) {
            let cpus: CpuList = item.value.parse().expect("a list that was printed");
            assert!(!cpus.is_empty() && cpus.difference(&isolated).is_empty(), "{item:?}");
        }
    }
});
