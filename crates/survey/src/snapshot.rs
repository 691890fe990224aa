//! A snapshot: all that rules may ask of a machine, in one tree.

use std::collections::BTreeSet;

use record::Fact;
use sysroot::{SysRoot, Tree};
use units::CpuList;

use crate::{Survey, Value, named_facts};

/// What rules ask, a fact a line: generated from the rules, so that what takes a snapshot needs none of them.
const ASKED: &str = include_str!("asked.txt");

/// The facts that rules ask, by name.
pub fn asked() -> impl Iterator<Item = &'static str> {
    ASKED.lines()
}

/// Reads what every rule may ask, whichever CPUs are for real time, and gives back what was read.
pub fn snapshot(root: &SysRoot) -> Tree {
    let root = root.remembering();
    let names: BTreeSet<&str> = asked().chain(named_facts().map(|fact| fact.name)).collect();
    let none = Survey::new(root.clone(), CpuList::new());
    for isolated in [CpuList::new(), cpus(&none, "cpus.isolated"), cpus(&none, "cpus.online")] {
        let survey = Survey::new(root.clone(), isolated);
        names.iter().for_each(|name| drop(survey.read(name)));
    }
    root.remembered()
}

fn cpus(survey: &Survey, name: &str) -> CpuList {
    match survey.read(name).value {
        Fact::Value(Value::Cpus(cpus)) => cpus,
        _ => CpuList::new(),
    }
}
