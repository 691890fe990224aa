//! Where memory may be when it is wanted.

use machine::swaps::{self, Swap};

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, item, reading};

pub(super) const FACTS: &[NamedFact] =
    &[fact("swap.devices", "where memory is swapped to, each with its kind", swap)];

/// The swap areas in use.
fn swap(survey: &Survey) -> Reading {
    let items = |all: Vec<Swap>| all.into_iter().map(|swap| item(swap.path, swap.kind)).collect();
    reading(swaps::swaps(&survey.root).map(|all| Value::List(items(all))), swaps::PATH)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    #[test]
    fn swap_areas_are_reported() {
        const TITLES: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        let reading =
            |text: &str| shown(&FakeTree::new(&[("/proc/swaps", text)]), Isolated::None, "swap.devices");
        assert_eq!(reading(TITLES), "none");
        assert_eq!(
            reading(&format!("{TITLES}/dev/dm-1      partition\t1000444\t\t0\t\t-2\n")),
            "/dev/dm-1: partition"
        );
        assert_eq!(shown(&FakeTree::empty(), Isolated::None, "swap.devices"), "absent");
    }
}
