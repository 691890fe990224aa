//! Whether the probe had the CPUs to itself that it was to have.

use crate::WarningId as Id;
use crate::{Header, Partition, Warning};

/// A probe that was to be in a partition, or was in one of its own accord, and had no CPUs to itself.
pub(super) fn of_probe(header: &Header, was: Option<&Partition>) -> Option<Warning> {
    let asked = header.plan.partition.as_ref();
    let evidence = match (asked, was) {
        (_, Some(was)) if !was.is_valid() => format!("{}: {}", was.group, was.state),
        (Some(asked), None) => format!("{} was asked for, and the probe was in none", asked.group),
        (Some(asked), Some(was)) if asked.group != was.group => {
            format!("{} was asked for, and the probe was in {}", asked.group, was.group)
        }
        _ => return None,
    };
    let cure = "make it again: worstcase partition undo, then create; did a CPU go offline?";
    Some(Warning::inconclusive(Id::PartitionInvalid, evidence, cure))
}

#[cfg(test)]
mod tests {
    use super::super::of_scenario;
    use super::*;
    use crate::Effect;
    use crate::verdict::tests::{header, scenario};

    #[test]
    fn a_probe_outside_its_partition_or_in_an_invalid_one_is_not_what_was_asked_for() {
        let of = |group: &str, state: &str| {
            let (group, state) = (group.to_owned(), state.to_owned());
            Partition { group, state, cpus: "0".parse().unwrap() }
        };
        let (mut header, mut scenario) = (header(), scenario(&[5_000]));
        let mut found = |asked: Option<Partition>, was: Option<Partition>| {
            (header.plan.partition, scenario.evidence.partition) = (asked, was);
            let warnings = of_scenario(&header, &scenario);
            warnings.iter().map(|warning| (warning.id, warning.effect)).collect::<Vec<_>>()
        };
        let (valid, lost) = (of("/a", "isolated"), of("/a", "isolated invalid (why)"));
        let warning = [(Id::PartitionInvalid, Effect::Inconclusive)];
        assert_eq!(found(Some(valid.clone()), Some(valid.clone())), []);
        assert_eq!(found(None, Some(valid.clone())), []);
        assert_eq!(found(Some(valid.clone()), None), warning);
        assert_eq!(found(Some(valid.clone()), Some(of("/b", "isolated"))), warning);
        assert_eq!(found(Some(valid), Some(lost.clone())), warning);
        assert_eq!(found(None, Some(lost)), warning);
    }
}
