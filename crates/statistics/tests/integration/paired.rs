//! Comparison within rounds against what it promises: error rate, coverage, power, and what drifts.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use proptest::prelude::*;
use statistics::{POWER, Paired, Value, holm, rounds_needed};
use units::{Random, Seed};

fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| unit(random)).sum::<f64>() - 6.0
}

/// Mostly near one, now and then five times as much: a chaotic system.
fn bimodal(random: &mut Random) -> f64 {
    if unit(random) < 0.25 { 1.6 + 0.05 * unit(random) } else { 0.2 * unit(random) }
}

fn pareto(random: &mut Random) -> f64 {
    -(1.0 - unit(random)).ln()
}

/// Rounds whose second figure is `ratio` times the first; each round has a level of its own, and the second figure of a
/// round, in time, is `drift` times as great as the first.
fn rounds(
    count: usize,
    ratio: f64,
    drift: f64,
    spread: f64,
    draw: fn(&mut Random) -> f64,
    random: &mut Random,
) -> Vec<(Value, Value)> {
    let figure = |log: f64| Value::exact((1e6 * log.exp()) as u64);
    (0..count)
        .map(|round| {
            let level = 3.0 * normal(random) + drift * round as f64;
            let (first, second) = (spread * draw(random), spread * draw(random) + ratio.ln());
            let late = if random.below(2) == 0 { (drift, 0.0) } else { (0.0, drift) };
            (figure(level + first + late.0), figure(level + second + late.1))
        })
        .collect()
}

const REPETITIONS: u32 = 4_000;

/// The share of repetitions in which `is_so`.
fn share(mut is_so: impl FnMut(&mut Random) -> bool) -> f64 {
    let mut random = Seed(11).stream("rounds");
    f64::from((0..REPETITIONS).map(|_| u32::from(is_so(&mut random))).sum::<u32>()) / f64::from(REPETITIONS)
}

#[test]
fn equal_arms_differ_as_rarely_as_the_confidence_says_whatever_drifts() {
    for (count, nominal) in [(6, 2.0 / 64.0), (8, 10.0 / 256.0), (11, 0.0420)] {
        for draw in [normal, bimodal, pareto] {
            for drift in [0.0, 0.3] {
                let wrong = share(|random| {
                    Paired::of(&rounds(count, 1.0, drift, 0.3, draw, random)).unwrap().probability() <= 0.05
                });
                // Three standard deviations of a share of 4000 are at most 1.0 %.
                assert!((wrong - nominal).abs() < 0.01, "{count} rounds, drift {drift}: {wrong}, {nominal}");
            }
        }
    }
}

#[test]
fn the_interval_holds_the_ratio_that_was_put_in() {
    for draw in [normal, bimodal, pareto] {
        for (count, confidence) in [(6, 0.95), (10, 0.95), (12, 0.999)] {
            let missed = share(|random| {
                let paired = Paired::of(&rounds(count, 1.7, 0.2, 0.3, draw, random)).unwrap();
                let interval = paired.interval(confidence).unwrap();
                interval.low > 1.7 || interval.high < 1.7
            });
            let allowed = 1.0 - confidence;
            assert!(missed < allowed + 3.0 * (allowed / f64::from(REPETITIONS)).sqrt(), "{count}: {missed}");
        }
    }
}

#[test]
fn the_effect_with_80_percent_power_is_found_in_80_percent() {
    // The scale comes from one experiment, the effect is put into another: what a reader of the figure would do.
    for (count, confidence) in [(6, 0.95), (8, 0.95), (11, 1.0 - 0.05 / 30.0), (20, 0.95)] {
        let found = |draw| {
            share(|random| {
                let before = Paired::of(&rounds(count, 1.0, 0.0, 0.2, draw, random)).unwrap();
                let ratio = before.power(confidence).unwrap().detectable(POWER);
                let after = Paired::of(&rounds(count, ratio, 0.0, 0.2, draw, random)).unwrap();
                after.interval(confidence).unwrap().low > 1.0
            })
        };
        let share = [normal, pareto, bimodal].map(found);
        println!("{count} rounds: {share:?} found with normal, exponential and bimodal noise");
        assert!((share[0] - POWER).abs() < 0.05 && share[1] > 0.7, "{count}: {share:?}");
        // Two modes: a spread that was seen without the rare one is too small.
        assert!(share[2] > 0.5, "{count}: {share:?}");
    }
}

#[test]
fn the_chance_that_more_rounds_exclude_an_effect_is_the_one_that_is_said() {
    for (few, many, ratio) in [(8, 8, 1.2), (8, 16, 1.2), (8, 30, 1.2), (6, 12, 1.5)] {
        let (mut said, mut repetitions) = (0.0, 0.0);
        let excluded = share(|random| {
            let before = Paired::of(&rounds(few, 1.0, 0.0, 0.15, normal, random)).unwrap();
            let confidence = statistics::confidence_of(many, 0.95).unwrap();
            said += before.power(0.95).unwrap().chance(ratio, f64::from(many) / few as f64, confidence);
            repetitions += 1.0;
            let after = Paired::of(&rounds(many as usize, 1.0, 0.0, 0.15, normal, random)).unwrap();
            after.interval(0.95).unwrap().high < ratio
        });
        // It allows for the scatter of the spread that was seen: it says too little rather than too much.
        let said = said / repetitions;
        assert!(said < excluded + 0.05 && said > excluded - 0.2, "{few} {many}: {said} {excluded}");
    }
}

#[test]
fn a_drift_that_hides_an_effect_from_unpaired_arms_hides_nothing_within_rounds() {
    let found = |is_found: fn(&[(Value, Value)]) -> bool| {
        share(|random| is_found(&rounds(10, 1.5, 0.05, 0.05, normal, random)))
    };
    assert!(found(|rounds| Paired::of(rounds).unwrap().probability() <= 0.05) > 0.99);
    let unpaired = found(|rounds| {
        let (first, second): (Vec<Value>, Vec<Value>) = rounds.iter().copied().unzip();
        statistics::compare(&first, &second).unwrap().interval.0 > 1.0
    });
    assert!(unpaired < 0.5, "{unpaired}");
}

#[test]
fn so_many_rounds_are_needed_as_the_strongest_answer_takes() {
    assert_eq!([1, 2, 3, 5, 10, 30].map(rounds_needed), [6, 7, 7, 8, 9, 11]);
    for comparisons in 1..=64 {
        let confidence = 1.0 - 0.05 / comparisons as f64;
        let all_agree = |count: u32| {
            let rounds = vec![(Value::exact(100), Value::exact(200)); count as usize];
            Paired::of(&rounds).unwrap().interval(confidence).map(|interval| interval.low)
        };
        let needed = rounds_needed(comparisons);
        let low = all_agree(needed).unwrap();
        assert!((low - 2.0).abs() < 1e-9, "{comparisons} comparisons, {needed} rounds: {low}");
        assert_eq!(all_agree(needed - 1), None, "{comparisons}");
    }
}

#[test]
fn holm_steps_down_and_stops_at_the_first_that_fails() {
    let errors = |probabilities: &[f64]| -> Vec<f64> {
        holm(probabilities).iter().map(|confidence| ((1.0 - confidence) * 1e6).round() / 1e6).collect()
    };
    assert_eq!(errors(&[0.04]), [0.05]);
    assert_eq!(errors(&[0.01, 0.5, 0.02, 0.001]), [0.016667, 0.05, 0.025, 0.0125]);
    // 0.026 fails at 0.025, so 0.03 is not judged at 0.05 though it is the last.
    assert_eq!(errors(&[0.03, 0.026, 0.001]), [0.025, 0.025, 0.016667]);
    assert!(holm(&[]).is_empty());
}

proptest! {
    #[test]
    fn test_and_interval_agree(
        figures in proptest::collection::vec((1_u64..1 << 30, 0_u64..1 << 16, 1_u64..1 << 30), 6..16),
        comparisons in 1_usize..4,
    ) {
        let rounds: Vec<(Value, Value)> =
            figures.iter().map(|&(first, width, second)| (Value::between(first, first + width), Value::exact(second))).collect();
        let paired = Paired::of(&rounds).unwrap();
        let confidence = 1.0 - 0.05 / comparisons as f64;
        if let Some(interval) = paired.interval(confidence) {
            let differs = interval.low > 1.0 || interval.high < 1.0;
            prop_assert_eq!(differs, paired.probability() <= 1.0 - confidence + 1e-9);
            prop_assert!(interval.low <= paired.ratio() * (1.0 + 1e-9) && paired.ratio() <= interval.high * (1.0 + 1e-9));
            prop_assert!(interval.confidence >= confidence - 1e-9);
        }
    }

    #[test]
    fn turned_round_everything_is_its_reciprocal(
        figures in proptest::collection::vec((1_u64..1 << 30, 1_u64..1 << 30), 6..16),
    ) {
        let of = |turned: bool| {
            let rounds: Vec<(Value, Value)> = figures
                .iter()
                .map(|&(a, b)| if turned { (Value::exact(b), Value::exact(a)) } else { (Value::exact(a), Value::exact(b)) })
                .collect();
            Paired::of(&rounds).unwrap()
        };
        let (there, back) = (of(false), of(true));
        let near = |a: f64, b: f64| (a.ln() - b.ln()).abs() < 1e-9;
        prop_assert!(near(there.ratio(), 1.0 / back.ratio()));
        prop_assert!((there.probability() - back.probability()).abs() < 1e-12);
        let (one, other) = (there.interval(0.95).unwrap(), back.interval(0.95).unwrap());
        prop_assert!(near(one.low, 1.0 / other.high) && near(one.high, 1.0 / other.low));
    }
}
