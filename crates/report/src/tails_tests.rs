//! Intervals of columns with several CPUs, against latencies whose truth is known.

// What `record/tests/claims.rs` needs beside this is not used here.
#[allow(dead_code)]
#[path = "../../record/tests/integration/families/mod.rs"]
mod families;

use super::*;
use families::{FAMILIES, Family, sequence};

const COUNT: usize = 60_000;

/// Two CPUs: each for itself, or late at the same moments.
fn tail(family: Family, seed: u64, at_once: bool) -> Tail {
    let cpu = |seed| sequence(&family.draw(COUNT, seed));
    let first = cpu(seed);
    let second = if at_once { first.clone() } else { cpu(seed + 1_000_000) };
    Tail::of_cpus(&[first, second], 2)
}

/// In how many runs an interval of p99.9 and one of the ratio of two runs is given, and in how many it is wrong.
fn tally(family: Family, at_once: bool, runs: u64) -> [(u64, u64); 2] {
    let (truth, mut quantiles, mut ratios) = (family.quantile(0.001), (0, 0), (0, 0));
    for seed in 0..runs {
        let (one, other) = (tail(family, seed, at_once), tail(family, seed + 2_000_000, at_once));
        if let Some(interval) = one.quantile {
            let below = interval.high.is_none_or(|high| truth <= high.0 + 1_000);
            quantiles.0 += 1;
            quantiles.1 += u64::from(interval.low.0 > truth || !below);
        }
        if let Some(ratio) = other.against(&one) {
            ratios.0 += 1;
            ratios.1 += u64::from(ratio.interval.0 > 1.0 || ratio.interval.1 < 1.0);
        }
    }
    [quantiles, ratios]
}

/// At most 7 % of what is given is wrong, or what chance makes of that: two standard deviations.
fn holds(runs: u64) {
    for family in FAMILIES {
        for at_once in [false, true] {
            let tallies = tally(family, at_once, runs);
            for (given, wrong) in tallies {
                let given = given as f64;
                let most = 0.07 * given + 2.0 * (0.07 * 0.93 * given).sqrt();
                assert!(wrong as f64 <= most.max(1.0), "{family:?}, {at_once}: {tallies:?}");
            }
        }
    }
}

/// What was not measured, or too shortly to tell, has not changed.
#[test]
fn why_there_is_no_ratio_is_what_is_so() {
    let cpu = |values: &[u64]| Tail::of_cpus(&[sequence(values)], 1);
    let steady = || Family::draw(FAMILIES[0], COUNT, 1);
    let whole = cpu(&steady());
    assert_eq!(Tail::of_cpus(&[], 1).hindrance(&whole), "not measured in both");
    assert_eq!(cpu(&steady()[..60]).hindrance(&whole), "too few block maxima");
    let mut risen = steady();
    let late = risen.split_off(COUNT / 2);
    risen.extend(late.iter().map(|value| value * 50));
    let risen = cpu(&risen);
    assert_eq!(risen.hindrance(&whole), "latencies changed during a run");
    assert!(risen.against(&whole).is_none());
}

#[test]
fn intervals_of_several_cpus_hold_in_families_whose_truth_is_known() {
    holds(5);
}

#[test]
#[ignore = "long: some minutes of simulation"]
fn intervals_of_several_cpus_hold_in_three_hundred_runs_of_each_family() {
    holds(300);
}
