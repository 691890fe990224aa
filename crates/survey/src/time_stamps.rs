//! The time-stamp counter of x86: what the CPU promises of it (arch/x86/include/asm/cpufeatures.h).

use record::Fact;

use super::processors::IDENTITY;
use crate::survey::{NamedFact, Survey, fact};
use crate::value::Reading;

pub(super) const FACTS: &[NamedFact] = &[fact(
    "tsc",
    "what the CPU promises of its time-stamp counter: constant, nonstop, reliable, adjustable; empty for no promise, absent without one",
    tsc,
)];

/// The kernel's numbers of features. They stand in the CPUs' modalias, so that /proc/cpuinfo need not be read.
const COUNTER: &str = "0004";
const PROMISES: [(&str, &str); 4] =
    [("0068", "constant"), ("0078", "nonstop"), ("0077", "reliable"), ("0121", "adjustable")];

/// From `cpu:type:x86,ven0000fam0006mod008E:feature:,0000,0001,...`.
fn promises(identity: &str) -> Fact<String> {
    let Some((_, features)) = identity.split_once("feature:") else { return Fact::Absent };
    let has = |number: &str| features.split(',').any(|feature| feature == number);
    let kept = PROMISES.iter().filter(|(number, _)| has(number)).map(|(_, name)| *name);
    if has(COUNTER) { Fact::Value(kept.collect::<Vec<_>>().join(" ")) } else { Fact::Absent }
}

fn tsc(survey: &Survey) -> Reading {
    let value = survey.root.read(IDENTITY).and_then(|identity| {
        if identity.starts_with("cpu:type:x86") { promises(&identity) } else { Fact::Absent }
    });
    Reading::new(value, &[IDENTITY])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_read_from_the_cpus_identity() {
        let reading = |features: &str| promises(&format!("cpu:type:x86,ven0000:feature:,{features},"));
        assert_eq!(reading("0000,0004,0068,0078,0121"), Fact::Value("constant nonstop adjustable".into()));
        assert_eq!(reading("0004"), Fact::Value(String::new()));
        assert_eq!(reading("0068"), Fact::Absent);
        assert_eq!(promises("of:NcpuT"), Fact::Absent);
    }
}
