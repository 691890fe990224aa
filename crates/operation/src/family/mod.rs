//! The catalogue: a file for each family of operations. A new operation is an entry in one of them; a new family is a
//! file and its line in [`FAMILIES`].

mod calls;
mod files;
mod futexes;
mod memory;
mod pipes;
mod processes;
mod processor;
mod queues;
mod signals;
mod sockets;

use record::cost::Place;

use crate::work::{Kit, Result, Work};

/// Where it was found out that this operation matters, as the catalogue names it.
pub const SOURCE_LMBENCH: &str = "lmbench lat_*";
/// As above.
pub const SOURCE_PERF: &str = "perf bench";
/// As above.
pub const SOURCE_STRESS_NG: &str = "stress-ng";
/// As above.
pub const SOURCE_NETPERF: &str = "netperf";

/// The families, in the order of the tables.
const FAMILIES: [(&str, &[Operation]); 10] = [
    ("processor", processor::OPERATIONS),
    ("calls", calls::OPERATIONS),
    ("signals", signals::OPERATIONS),
    ("pipes", pipes::OPERATIONS),
    ("queues", queues::OPERATIONS),
    ("futexes", futexes::OPERATIONS),
    ("sockets", sockets::OPERATIONS),
    ("memory", memory::OPERATIONS),
    ("processes", processes::OPERATIONS),
    ("files", files::OPERATIONS),
];

/// An operation of the catalogue.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Its name, by which users ask for it.
    pub name: &'static str,
    /// As people read it.
    pub title: &'static str,
    /// What one is.
    pub unit: &'static str,
    /// The bytes that one moves; 0 where it is not about bytes.
    pub bytes: u64,
    /// Where it can be measured.
    pub places: &'static [Place],
    /// Which tool measures the same, as far as one does.
    pub source: &'static str,
    /// What in a program it stands for.
    pub stands_for: &'static str,
    /// Makes it ready.
    pub begin: fn(&Kit) -> Result<Box<dyn Work>>,
}

/// Without a partner.
const ALONE: &[Place] = &[Place::OneCpu];
/// With a partner, on the same CPU and on another.
const BOTH: &[Place] = &[Place::OneCpu, Place::TwoCpus];

impl Operation {
    /// The family it stands in.
    pub fn family(&self) -> &'static str {
        let of = |(_, operations): &&(&str, &[Self])| operations.iter().any(|one| one.name == self.name);
        FAMILIES.iter().find(of).map_or("", |(family, _)| family)
    }

    /// The operation of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        operations().find(|operation| operation.name == name)
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All operations, family by family.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().flat_map(|(_, operations)| operations.iter())
}

/// The families by name.
pub fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(family, _)| *family)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_entry_says_what_it_is() {
        let names: Vec<&str> = operations().map(|one| one.name).collect();
        for operation in operations() {
            assert_eq!(names.iter().filter(|name| **name == operation.name).count(), 1, "{operation:?}");
            let texts = [operation.title, operation.unit, operation.source, operation.stands_for];
            assert!(texts.iter().all(|text| !text.is_empty()), "{operation:?}");
            assert!(!operation.family().is_empty() && !operation.places.is_empty(), "{operation:?}");
            assert!(families().all(|family| family != operation.name), "{operation:?} is a family too");
        }
    }
}
