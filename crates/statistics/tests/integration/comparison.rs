//! The comparison of two arms against what it promises: symmetry, scale, its error rate, its power.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use proptest::prelude::*;
use statistics::{
    Comparison, LEAST_APART, LEAST_RUNS, TooFew, Value, Verdict, compare, compare_among, compare_apart,
    runs_needed,
};
use units::{Random, Seed};

const ROUNDS: u32 = 4_000;

fn exact(figures: &[u64]) -> Vec<Value> {
    figures.iter().map(|&figure| Value::exact(figure)).collect()
}

fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Tails of different kinds, from 10 us upwards.
fn pareto(random: &mut Random) -> f64 {
    1e4 / (1.0 - unit(random))
}

/// Sum of twelve uniforms: close enough to normal, on a log scale.
fn log_normal(random: &mut Random) -> f64 {
    let normal: f64 = (0..12).map(|_| unit(random)).sum::<f64>() - 6.0;
    1e4 * (0.6 * normal).exp()
}

/// A chaotic system: mostly 50 us, now and then 230 us, as was seen of a plain kernel under hackbench.
fn bimodal(random: &mut Random) -> f64 {
    if unit(random) < 0.25 { 230e3 + 5e3 * unit(random) } else { 50e3 + 12e3 * unit(random) }
}

fn arm(runs: usize, ratio: f64, random: &mut Random, draw: fn(&mut Random) -> f64) -> Vec<Value> {
    (0..runs).map(|_| Value::exact((draw(random) * ratio) as u64)).collect()
}

/// How often each verdict falls where the second arm's figures are `ratio` times as great.
fn verdicts(runs: usize, ratio: f64, draw: fn(&mut Random) -> f64) -> (f64, f64) {
    let mut random = Seed(20_261_122).stream("arms");
    let (mut higher, mut lower) = (0_u32, 0_u32);
    for _ in 0..ROUNDS {
        let (first, second) = (arm(runs, 1.0, &mut random, draw), arm(runs, ratio, &mut random, draw));
        match compare(&first, &second).unwrap().verdict {
            Verdict::Higher => higher += 1,
            Verdict::Lower => lower += 1,
            Verdict::NoDifference => {}
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(ROUNDS);
    (share(higher), share(lower))
}

#[test]
fn where_nothing_differs_a_difference_is_seen_as_rarely_as_the_confidence_says() {
    for draw in [pareto, log_normal, bimodal] {
        for (runs, nominal) in [(5, 8.0 / 252.0), (8, 0.0499)] {
            let (higher, lower) = verdicts(runs, 1.0, draw);
            // Three standard deviations of a share of 4000 rounds are at most 1.1 %.
            assert!(
                (higher + lower - nominal).abs() < 0.011,
                "{runs} runs: {higher} {lower}, nominal {nominal}"
            );
            assert!((higher - lower).abs() < 0.011, "{higher} {lower}");
        }
    }
}

#[test]
fn what_was_put_in_is_found() {
    let (higher, lower) = verdicts(5, 10.0, log_normal);
    assert!(higher > 0.99 && lower == 0.0, "{higher} {lower}");
    let (higher, lower) = verdicts(5, 0.1, bimodal);
    assert!(lower > 0.99 && higher == 0.0, "{higher} {lower}");
    let (higher, _) = verdicts(10, 3.0, log_normal);
    assert!(higher > 0.9, "{higher}");
}

#[test]
fn the_interval_holds_the_ratio_that_was_put_in() {
    let mut random = Seed(7).stream("coverage");
    let mut held = 0;
    for _ in 0..ROUNDS {
        let (first, second) = (arm(5, 1.0, &mut random, pareto), arm(5, 4.0, &mut random, pareto));
        let Comparison { interval, .. } = compare(&first, &second).unwrap();
        held += u32::from(interval.0 <= 4.0 && 4.0 <= interval.1);
    }
    let share = f64::from(held) / f64::from(ROUNDS);
    assert!((share - (1.0 - 8.0 / 252.0)).abs() < 0.011, "{share}");
}

#[test]
fn the_effect_with_80_percent_power_is_found_in_80_percent() {
    let mut random = Seed(3).stream("detectable");
    for runs in [5, 8, 15] {
        let mut found = 0;
        for _ in 0..ROUNDS {
            // The scale comes from one pair of arms, the effect is put into another.
            let mut arm = |ratio| arm(runs, ratio, &mut random, log_normal);
            let seen = compare(&arm(1.0), &arm(1.0)).unwrap();
            found += u32::from(compare(&arm(1.0), &arm(seen.detectable)).unwrap().verdict == Verdict::Higher);
        }
        let share = f64::from(found) / f64::from(ROUNDS);
        assert!((share - statistics::POWER).abs() < 0.05, "{runs} runs: {share}");
    }
}

#[test]
fn many_comparisons_share_one_error() {
    let (comparisons, mut random) = (6, Seed(5).stream("many"));
    let mut wrong = 0;
    for _ in 0..ROUNDS {
        let good = arm(5, 1.0, &mut random, log_normal);
        let differs = (0..comparisons).any(|_| {
            let other = arm(5, 1.0, &mut random, log_normal);
            compare_among(&good, &other, comparisons).unwrap().verdict != Verdict::NoDifference
        });
        wrong += u32::from(differs);
    }
    let share = f64::from(wrong) / f64::from(ROUNDS);
    assert!(share < 0.05, "{share}");
}

#[test]
fn more_comparisons_take_more_runs() {
    assert_eq!([1, 6, 7, 23, 24].map(runs_needed), [5, 5, 6, 6, 7]);
    let five = exact(&[1, 2, 3, 4, 5]);
    assert_eq!(compare_among(&five, &five, 7), Err(TooFew { runs: 5, needed: 6 }));
}

#[test]
fn fewer_than_five_runs_are_not_compared() {
    let five = exact(&[1, 2, 3, 4, 5]);
    assert_eq!(compare(&five, &five[..4]), Err(TooFew { runs: 4, needed: 5 }));
    assert_eq!(compare(&[], &five), Err(TooFew { runs: 0, needed: 5 }));
    assert!(compare(&five[..LEAST_RUNS], &five).is_ok());
}

#[test]
fn equal_arms_do_not_differ_and_cells_widen_the_interval() {
    let same = exact(&[4_300; 5]);
    let compared = compare(&same, &same).unwrap();
    assert_eq!(
        (compared.ratio, compared.interval, compared.verdict),
        (1.0, (1.0, 1.0), Verdict::NoDifference)
    );
    assert_eq!(compared.detectable, 1.0);
    // Neighbouring cells: the figures may be equal to a nanosecond.
    let cells = [(4_300, 4_399), (4_400, 4_499)].map(|(low, high)| vec![Value::between(low, high); 5]);
    let compared = compare(&cells[0], &cells[1]).unwrap();
    assert!(compared.interval.0 < 1.001 && compared.interval.1 > 1.04, "{compared:?}");
}

proptest! {
    #[test]
    fn turned_round_everything_is_its_reciprocal(
        first in proptest::collection::vec(1_u64..1 << 40, 5..12),
        second in proptest::collection::vec(1_u64..1 << 40, 5..12),
    ) {
        let (first, second) = (exact(&first), exact(&second));
        let (there, back) = (compare(&first, &second).unwrap(), compare(&second, &first).unwrap());
        let near = |a: f64, b: f64| (a.ln() - b.ln()).abs() < 1e-9;
        prop_assert!(near(there.ratio, 1.0 / back.ratio));
        prop_assert!(near(there.interval.0, 1.0 / back.interval.1) && near(there.interval.1, 1.0 / back.interval.0));
        prop_assert!(near(there.detectable, back.detectable));
        let turned = match back.verdict {
            Verdict::Higher => Verdict::Lower,
            Verdict::Lower => Verdict::Higher,
            Verdict::NoDifference => Verdict::NoDifference,
        };
        prop_assert_eq!(there.verdict, turned);
    }

    #[test]
    fn the_unit_does_not_matter_and_neither_does_the_order(
        first in proptest::collection::vec(1_u64..1 << 40, 5..12),
        second in proptest::collection::vec(1_u64..1 << 40, 5..12),
        factor in 1_u64..1 << 20,
    ) {
        let scaled = |figures: &[u64]| exact(&figures.iter().rev().map(|n| n * factor).collect::<Vec<_>>());
        let plain = compare(&exact(&first), &exact(&second)).unwrap();
        let other = compare(&scaled(&first), &scaled(&second)).unwrap();
        let near = |a: f64, b: f64| (a.ln() - b.ln()).abs() < 1e-9;
        prop_assert!(near(plain.ratio, other.ratio) && near(plain.detectable, other.detectable));
        prop_assert!(near(plain.interval.0, other.interval.0) && near(plain.interval.1, other.interval.1));
    }

    #[test]
    fn the_ratio_lies_in_its_interval(
        first in proptest::collection::vec((1_u64..1 << 40, 0_u64..1 << 20), 5..9),
        second in proptest::collection::vec((1_u64..1 << 40, 0_u64..1 << 20), 5..9),
    ) {
        let cells = |arm: &[(u64, u64)]| arm.iter().map(|(low, width)| Value::between(*low, low + width)).collect::<Vec<_>>();
        let compared = compare(&cells(&first), &cells(&second)).unwrap();
        prop_assert!(compared.interval.0 <= compared.ratio + 1e-9 && compared.ratio <= compared.interval.1 + 1e-9);
        prop_assert!(compared.detectable >= 1.0 && compared.confidence >= 0.95);
    }
}

/// Runs of one stretch of time share what the next stretch has otherwise.
#[test]
fn stretches_that_differ_as_runs_do_are_called_different_once_in_twenty_at_most() {
    const PAIRS: usize = 4_000;
    let mut draws = Seed(26).stream("apart");
    let mut normal = || (0..12).map(|_| draws.below(1_000_001) as f64 / 1e6).sum::<f64>() - 6.0;
    let mut stretch = || {
        let own = normal();
        [(); 7].map(|()| Value::exact((1e6 * (0.1 * (own + normal())).exp()) as u64))
    };
    let pairs: Vec<_> = (0..PAIRS).map(|_| (stretch(), stretch())).collect();
    let count = |of: &dyn Fn(&[Value], &[Value]) -> Verdict| {
        pairs.iter().filter(|(first, second)| of(first, second) != Verdict::NoDifference).count()
    };
    let apart = count(&|first, second| compare_apart(first, second, 1).unwrap().verdict);
    assert!((PAIRS / 40..PAIRS / 16).contains(&apart), "{apart} of {PAIRS}");
    let as_draws = count(&|first, second| compare(first, second).unwrap().verdict);
    assert!(as_draws > PAIRS / 4, "{as_draws} of {PAIRS}");
}

#[test]
fn fewer_runs_of_a_stretch_say_less_and_two_say_nothing() {
    // About the same spread in the first three as in all.
    let figures = [100, 106, 100, 106, 100, 106, 100].map(Value::exact);
    let width = |runs: usize| {
        let found = compare_apart(&figures[..runs], &figures[..runs], 40).unwrap();
        found.interval.1 / found.interval.0
    };
    assert!(width(3) > width(4) && width(4) > width(7));
    assert_eq!(compare_apart(&figures[..2], &figures, 1), Err(TooFew { runs: 2, needed: LEAST_APART }));
    let thrice = figures.map(|value| Value::exact(3 * value.figure() as u64));
    let found = compare_apart(&figures, &thrice, 40).unwrap();
    assert_eq!(found.verdict, Verdict::Higher);
    assert!((found.ratio - 3.0).abs() < 1e-9 && found.confidence > 0.998, "{found:?}");
}
