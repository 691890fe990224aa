//! Whether CPUs are left in peace: what was counted on them against what is allowed, each with where it comes from and
//! what keeps it away.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use machine::activity::{Kind, Residue};
use serde::Serialize;
use units::Nanos;

mod origin;

pub use origin::{Origin, origin};

/// How many events a second are allowed on each CPU: of anything, and of what has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Of each thing without an allowance of its own.
    pub any: u64,
    /// By the name of a row or a thread.
    pub named: BTreeMap<String, u64>,
}

/// A part of an allowance: `3`, or `LOC=100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// What; everything where it is none.
    pub name: Option<String>,
    /// Events a second.
    pub events: u64,
}

/// A text that is no part of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseAllowedError;

impl fmt::Display for ParseAllowedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it must be events a second, as in 3, or those of a name, as in LOC=100")
    }
}

impl std::error::Error for ParseAllowedError {}

impl FromStr for Allowed {
    type Err = ParseAllowedError;

    fn from_str(text: &str) -> Result<Self, ParseAllowedError> {
        let (name, events) = match text.rsplit_once('=') {
            Some(("", _)) => return Err(ParseAllowedError),
            Some((name, events)) => (Some(name.to_owned()), events),
            None => (None, text),
        };
        Ok(Self { name, events: events.parse().map_err(|_| ParseAllowedError)? })
    }
}

impl FromIterator<Allowed> for Allowance {
    /// Of several for one thing the last counts.
    fn from_iter<I: IntoIterator<Item = Allowed>>(parts: I) -> Self {
        parts.into_iter().fold(Self::default(), |mut allowance, part| {
            match part.name {
                Some(name) => drop(allowance.named.insert(name, part.events)),
                None => allowance.any = part.events,
            }
            allowance
        })
    }
}

/// What was counted of one thing, and what is to be thought of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judged {
    /// What was counted.
    #[serde(flatten)]
    pub residue: Residue,
    /// Whether it is more than is allowed.
    pub over: bool,
    /// Where it comes from, what keeps it away.
    #[serde(flatten)]
    pub origin: Origin,
}

/// Judges what was counted in `time`. What the CPUs are for is never too much.
pub fn judge(residues: Vec<Residue>, time: Nanos, allowance: &Allowance) -> Vec<Judged> {
    let judge = |residue: Residue| {
        let allowed = allowance.named.get(&residue.name).unwrap_or(&allowance.any);
        let over = residue.kind != Kind::Resident && is_over(residue.events, time, *allowed);
        Judged { over, origin: origin(&residue), residue }
    };
    residues.into_iter().map(judge).collect()
}

/// Whether there were more than `allowed` events a second.
fn is_over(events: u64, time: Nanos, allowed: u64) -> bool {
    const SECOND: u128 = 1_000_000_000;
    u128::from(events) * SECOND > u128::from(allowed) * u128::from(time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::CpuId;

    fn residue(kind: Kind, name: &str, events: u64) -> Residue {
        let (name, words) = (name.to_owned(), String::new());
        Residue { cpu: CpuId(1), kind, name, words, events, time: Nanos::ZERO }
    }

    fn allowance(parts: &[&str]) -> Allowance {
        parts.iter().map(|part| part.parse::<Allowed>().unwrap()).collect()
    }

    #[test]
    fn an_allowance_is_a_rate_and_a_name_has_its_own() {
        let over = |parts: &[&str], events| {
            let judged =
                judge(vec![residue(Kind::Interrupt, "LOC", events)], Nanos::from_secs(10), &allowance(parts));
            judged[0].over
        };
        assert!(!over(&[], 0) && over(&[], 1));
        assert!(!over(&["1"], 10) && over(&["1"], 11));
        assert!(!over(&["LOC=250"], 2500) && over(&["LOC=250", "999999", "LOC=0"], 1));
        assert!(over(&["RES=250"], 1));
    }

    #[test]
    fn what_the_cpus_are_for_is_never_too_much() {
        let judged =
            judge(vec![residue(Kind::Resident, "robot", 1000)], Nanos::from_secs(1), &Allowance::default());
        assert!(!judged[0].over);
    }

    #[test]
    fn what_is_no_allowance_is_refused() {
        for text in ["", "-1", "LOC", "LOC=", "=3", "1.5", "LOC=x"] {
            assert!(text.parse::<Allowed>().is_err(), "{text}");
        }
        assert_eq!("a=b=3".parse::<Allowed>().unwrap().name.as_deref(), Some("a=b"));
    }
}
