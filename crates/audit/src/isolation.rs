//! Whether CPUs are left in peace: what was counted on them against what is allowed, each with where it comes from and
//! what keeps it away.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use machine::activity::{Kind, Residue};
use serde::Serialize;
use units::Nanos;

mod origin;

pub use origin::{Origin, known_as, origin, origins};

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

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}={}", self.events),
            None => self.events.fmt(f),
        }
    }
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
    pub origin: &'static Origin,
}

/// Judges what was counted in `time`. What the CPUs are for is never too much.
pub fn judge(residues: Vec<Residue>, time: Nanos, allowance: &Allowance) -> Vec<Judged> {
    let residents: Vec<String> =
        residues.iter().filter(|one| one.kind == Kind::PinnedThread).map(|one| one.words.clone()).collect();
    let is_theirs = |residue: &Residue| match residue.kind {
        Kind::PinnedThread => true,
        Kind::SystemCall | Kind::Passing => {
            residue.words.split(' ').next().is_some_and(|tid| residents.iter().any(|own| own == tid))
        }
        _ => false,
    };
    let judge = |residue: Residue| {
        let allowed = allowance.named.get(&residue.name).unwrap_or(&allowance.any);
        let over = !is_theirs(&residue) && is_over(events(&residue), time, *allowed);
        Judged { over, origin: origin(&residue), residue }
    };
    residues.into_iter().map(judge).collect()
}

/// How often something came. A thread that keeps the CPU has few slices and long ones: each millisecond of them counts.
fn events(residue: &Residue) -> u64 {
    const MILLISECOND: u64 = 1_000_000;
    residue.events.max(residue.time.0 / MILLISECOND)
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
    fn a_thread_that_keeps_the_cpu_is_too_much_however_few_its_slices_are() {
        let over = |time| {
            let residue = Residue { time, ..residue(Kind::UnpinnedThread, "spinner", 1) };
            judge(vec![residue], Nanos::from_secs(3), &allowance(&["1"]))[0].over
        };
        assert!(!over(Nanos::from_millis(3)) && over(Nanos::from_millis(1348)));
    }

    #[test]
    fn what_the_cpus_are_for_is_never_too_much() {
        let judged = judge(
            vec![residue(Kind::PinnedThread, "robot", 1000)],
            Nanos::from_secs(1),
            &Allowance::default(),
        );
        assert!(!judged[0].over);
    }

    #[test]
    fn system_calls_are_too_much_unless_those_make_them_for_whom_the_cpus_are() {
        let of = |kind, words: &str| Residue { words: words.to_owned(), ..residue(kind, "robot", 1000) };
        let call = of(Kind::SystemCall, "70 call 1");
        let over = |residues| {
            let judged = judge(residues, Nanos::from_secs(1), &Allowance::default());
            judged.iter().filter(|judged| judged.over).count()
        };
        assert_eq!(over(vec![call.clone(), of(Kind::PinnedThread, "70")]), 0);
        assert_eq!(over(vec![call, of(Kind::PinnedThread, "7")]), 1);
    }

    #[test]
    fn what_is_no_allowance_is_refused() {
        for text in ["", "-1", "LOC", "LOC=", "=3", "1.5", "LOC=x"] {
            assert!(text.parse::<Allowed>().is_err(), "{text}");
        }
        assert_eq!("a=b=3".parse::<Allowed>().unwrap().name.as_deref(), Some("a=b"));
    }
}
