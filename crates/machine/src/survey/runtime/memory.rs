//! Where memory may be when it is wanted.

use super::{item, reading};
use crate::survey::facts::{NamedFact, fact};
use crate::survey::{Item, Reading, Survey, Value};

pub(super) const FACTS: &[NamedFact] =
    &[fact("swap.devices", "where memory is swapped to, each with its kind", swap)];

/// The swap areas in use (proc_swaps(5)).
fn swap(survey: &Survey) -> Reading {
    reading(survey.root.read("/proc/swaps").map(|text| Value::List(parse(&text))), "/proc/swaps")
}

/// `/dev/dm-1   partition   1000444   0   -2`, below a line of titles.
fn parse(text: &str) -> Vec<Item> {
    let parts = |line: &str| {
        let mut words = line.split_whitespace();
        Some(item(words.next()?, words.next()?))
    };
    text.lines().skip(1).filter_map(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use crate::fake::FakeTree;

    #[test]
    fn swap_areas_are_told() {
        const TITLES: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        let told =
            |text: &str| shown(&FakeTree::new(&[("/proc/swaps", text)]), Isolated::None, "swap.devices");
        assert_eq!(told(TITLES), "none");
        assert_eq!(
            told(&format!("{TITLES}/dev/dm-1      partition\t1000444\t\t0\t\t-2\n")),
            "/dev/dm-1: partition"
        );
        assert_eq!(shown(&FakeTree::empty(), Isolated::None, "swap.devices"), "absent");
    }
}
