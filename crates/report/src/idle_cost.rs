//! What the idle states cost: figures with them as they are, less those with them restricted, load by load.

use record::{CStates, Record, Unit};
use units::Nanos;

use crate::figures::{Figures, LATENCIES};
use crate::group::{Group, groups};

/// The cost under one load.
pub(crate) struct IdleCost {
    /// The load (and the period, where there are several).
    pub name: Vec<String>,
    /// One a row of [`LATENCIES`], in nanoseconds; none where one side has too few samples.
    pub differences: Vec<Option<i64>>,
}

/// The costs, for each load that was measured under both C-state policies.
pub(crate) fn costs(record: &Record) -> Vec<IdleCost> {
    let groups = groups(record);
    let restricted = |group: &Group<'_>| {
        let same = |other: &&Group<'_>| {
            other.key.cstates == CStates::Restrict
                && (&other.key.load, other.key.interval, &other.key.variant)
                    == (&group.key.load, group.key.interval, &group.key.variant)
        };
        groups.iter().find(same).map(Group::figures)
    };
    let cost = |group: &Group<'_>| {
        let (free, restricted) = (group.figures(), restricted(group)?);
        let mut name = group.head();
        // The last line of the head is the C-state policy.
        name.pop();
        Some(IdleCost { name, differences: differences(&free, &restricted) })
    };
    groups.iter().filter(|group| group.key.cstates == CStates::AsIs).filter_map(cost).collect()
}

fn differences(free: &Figures, restricted: &Figures) -> Vec<Option<i64>> {
    let difference = |one: Nanos, other: Nanos| (one.0 as i64).saturating_sub(other.0 as i64);
    LATENCIES.into_iter().map(|row| Some(difference(free.latency(row)?, restricted.latency(row)?))).collect()
}

/// `+12.3`, `-0.4`; `-` where there is none.
pub(crate) fn shown(difference: Option<i64>, unit: Unit) -> String {
    difference.map_or("-".into(), |difference| {
        let sign = if difference < 0 { "-" } else { "+" };
        format!("{sign}{}", unit.figure(Nanos(difference.unsigned_abs())))
    })
}
