//! Trials against what they promise: error rate, power, what writing costs, equal exposure, drift.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;

use crate::scripted::{Noise, Scripted, design};
use experiment::{Answer, Arm, Effect, Judged, Kind, rounds, trial};
use proptest::prelude::*;
use units::Nanos;

const REPETITIONS: u64 = 400;

fn tried(bench: &mut Scripted, seed: u64) -> Answer {
    trial(&design(1, seed), bench).unwrap().unwrap()
}

/// How often each verdict falls where the setting makes the tail `factor` times as long.
fn verdicts(spread: f64, factor: f64) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for seed in 0..REPETITIONS {
        let mut bench = Scripted::new(seed, spread, move |arm, _| if arm.has(0) { factor } else { 1.0 });
        *counts.entry(word(tried(&mut bench, seed).settings[0].verdict)).or_default() += 1;
    }
    counts
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Helps => "helps",
        Effect::Harms => "harms",
        Effect::NoneVisible => "none",
        Effect::Undecided => "undecided",
    }
}

fn share(counts: &BTreeMap<&str, u64>, words: &[&str]) -> f64 {
    let count: u64 = words.iter().filter_map(|word| counts.get(*word)).sum();
    count as f64 / REPETITIONS as f64
}

/// Whether `wrong` of `all` trials are more than 5 % by a one-sided test: so many or more have a probability below 5 %.
fn is_above_5_percent(wrong: u64, all: u64) -> bool {
    let mut exactly = 0.95_f64.powi(all as i32);
    let mut fewer = 0.0;
    for count in 0..wrong {
        fewer += exactly;
        exactly *= (all - count) as f64 / (count + 1) as f64 * 0.05 / 0.95;
    }
    1.0 - fewer < 0.05
}

/// In how many of so many trials of inert settings any is said to help or to harm.
fn wrong_trials(settings: usize, noise: Noise, repetitions: u64) -> u64 {
    let is_wrong = |seed| {
        let mut bench = Scripted::new(seed, 0.3, |_, _| 1.0).with(noise);
        let answer = trial(&design(settings, seed), &mut bench).unwrap().unwrap();
        answer.settings.iter().any(|tried| tried.verdict.is_difference())
    };
    (0..repetitions).filter(|&seed| is_wrong(seed)).count() as u64
}

#[test]
fn trials_of_inert_settings_have_a_false_verdict_in_at_most_5_percent() {
    for (settings, repetitions) in [(1, 400), (5, 150), (10, 80), (30, 40)] {
        for noise in [Noise::Independent, Noise::Autoregressive] {
            let wrong = wrong_trials(settings, noise, repetitions);
            assert!(
                !is_above_5_percent(wrong, repetitions),
                "{settings} {noise:?}: {wrong} of {repetitions}"
            );
        }
    }
}

#[test]
#[ignore = "long: 100,000 trials that are made up"]
fn trials_of_inert_settings_have_a_false_verdict_in_at_most_5_percent_under_any_noise() {
    for (settings, repetitions) in [(1, 8_000), (5, 4_000), (10, 2_000), (30, 1_000)] {
        for noise in Noise::ALL {
            let wrong = wrong_trials(settings, noise, repetitions);
            println!("{settings} settings, {noise:?}: {wrong} of {repetitions}");
            assert!(
                !is_above_5_percent(wrong, repetitions),
                "{settings} {noise:?}: {wrong} of {repetitions}"
            );
        }
    }
}

#[test]
fn the_test_for_5_percent_can_fail() {
    assert!(!is_above_5_percent(50, 1_000) && !is_above_5_percent(60, 1_000));
    assert!(is_above_5_percent(63, 1_000) && is_above_5_percent(5, 40));
}

#[test]
fn a_calm_bench_excludes_effects_that_matter_and_a_wild_one_cannot() {
    assert!(share(&verdicts(0.02, 1.0), &["none"]) > 0.99);
    assert!(share(&verdicts(1.0, 1.0), &["none"]) < 0.01);
}

#[test]
fn an_effect_that_matters_is_said_to_be_absent_in_at_most_5_percent() {
    for spread in [0.02, 0.1, 0.2] {
        for factor in [1.21, 1.0 / 1.21] {
            let verdicts = verdicts(spread, factor);
            let wrong = verdicts.get("none").copied().unwrap_or_default();
            assert!(!is_above_5_percent(wrong, REPETITIONS), "spread {spread}, {factor}: {verdicts:?}");
        }
    }
}

#[test]
fn what_doubles_or_halves_the_tail_is_found() {
    assert!(share(&verdicts(0.1, 2.0), &["harms"]) > 0.99);
    assert!(share(&verdicts(0.1, 0.5), &["helps"]) > 0.99);
    let small = verdicts(0.01, 1.1);
    assert!(share(&small, &["none"]) > 0.99, "below the smallest effect: {small:?}");
}

#[test]
fn an_effect_is_found_beside_a_drift_that_is_larger() {
    let mut found = 0;
    for seed in 0..200 {
        let script = |arm: &Arm, _| if arm.has(0) { 1.5 } else { 1.0 };
        let mut bench = Scripted::new(seed, 0.05, script).with(Noise::Drift);
        let asked = experiment::Design { blocks: 10, ..design(1, seed) };
        let answer = trial(&asked, &mut bench).unwrap().unwrap();
        found += u32::from(answer.settings[0].verdict == Effect::Harms);
    }
    assert!(found >= 198, "{found} of 200");
}

#[test]
fn a_setting_is_not_blamed_for_what_writing_costs() {
    for settings in [1, 3] {
        let (mut wrong, mut noticed) = (0, 0);
        for seed in 0..300 {
            let writes = |arm: &Arm, _| if *arm == Arm::off() { 1.0 } else { 1.5 };
            let answer =
                trial(&design(settings, seed), &mut Scripted::new(seed, 0.3, writes)).unwrap().unwrap();
            wrong += u64::from(answer.settings.iter().any(|tried| tried.verdict.is_difference()));
            noticed += u64::from(answer.control[0].effect == Some(Effect::Harms));
        }
        assert!(!is_above_5_percent(wrong, 300), "{settings}: {wrong} of 300");
        assert!(noticed > 90, "the cost is said where it is seen: {noticed} of 300");
    }
}

#[test]
fn the_effect_that_is_named_is_found_in_80_percent_of_fresh_trials() {
    let (mut found, mut rounds_found, mut rounds) = (0, 0, 0);
    for seed in 0..500 {
        let inert = tried(&mut Scripted::new(seed, 0.2, |_, _| 1.0), seed);
        let Judged { detectable, rounds_for_smallest_effect, .. } = inert.settings[0].measures[0];
        let acts = move |arm: &Arm, _: usize| if arm.has(0) { detectable } else { 1.0 };
        let fresh = tried(&mut Scripted::new(seed + 10_000, 0.2, acts), seed);
        found += u32::from(fresh.settings[0].measures[0].interval[0] > 1.0);
        // As many rounds as it names find 20 %.
        let Some(blocks) = rounds_for_smallest_effect.filter(|rounds| *rounds < 100) else { continue };
        let acts = |arm: &Arm, _: usize| if arm.has(0) { 1.2 } else { 1.0 };
        let asked = experiment::Design { blocks, ..design(1, seed) };
        let fresh = trial(&asked, &mut Scripted::new(seed + 20_000, 0.2, acts)).unwrap().unwrap();
        rounds += 1;
        rounds_found += u32::from(fresh.settings[0].measures[0].interval[0] > 1.0);
    }
    let shares = (f64::from(found) / 500.0, f64::from(rounds_found) / f64::from(rounds));
    assert!((0.74..0.88).contains(&shares.0), "{shares:?}");
    assert!((0.74..0.95).contains(&shares.1), "{shares:?}");
}

#[test]
fn a_control_arm_that_differs_is_said_and_settings_are_compared_with_it() {
    let mut bench = Scripted::new(1, 0.02, |arm, _| match arm {
        arm if *arm == Arm::off() => 1.0,
        arm if arm.has(0) => 1.5,
        _ => 3.0,
    });
    let answer = tried(&mut bench, 1);
    assert_eq!(answer.control[0].effect, Some(Effect::Harms));
    assert_eq!(answer.settings[0].verdict, Effect::Helps);
    assert!((answer.settings[0].measures[0].ratio - 0.5).abs() < 0.05);
}

#[test]
fn every_measure_is_shown_and_the_one_that_was_asked_for_decides() {
    for (name, kind) in Kind::NAMES {
        let mut bench = Scripted::new(3, 0.02, |arm, _| if arm.has(0) { 0.05 } else { 1.0 });
        let asked = experiment::Design {
            measure: name.parse().unwrap(),
            threshold: Some(Nanos(20_000)),
            ..design(1, 3)
        };
        let answer = trial(&asked, &mut bench).unwrap().unwrap();
        let measures = &answer.settings[0].measures;
        assert_eq!(measures[0].measure.kind(), kind);
        assert_eq!(measures.len(), 3);
        assert!(measures.iter().all(|judged| judged.interval[1] < 1.0), "{measures:#?}");
        let effects: Vec<_> = measures.iter().map(|judged| judged.effect).collect();
        assert_eq!(effects, [Some(Effect::Helps), None, None]);
        let exceedances = measures.iter().find(|judged| judged.measure.kind() == Kind::Exceedances).unwrap();
        assert_eq!((exceedances.before, exceedances.after), (5.0, 0.0));
        assert_eq!(answer.threshold, Nanos(20_000));
    }
    assert!("p100".parse::<Kind>().is_err());
}

#[test]
fn several_settings_are_each_tried_against_the_same_blocks() {
    let mut bench = Scripted::new(5, 0.02, |arm, _| if arm.has(1) { 0.5 } else { 1.0 });
    let answer = trial(&design(3, 5), &mut bench).unwrap().unwrap();
    let verdicts: Vec<_> = answer.settings.iter().map(|tried| tried.verdict).collect();
    assert_eq!(verdicts, [Effect::NoneVisible, Effect::Helps, Effect::NoneVisible]);
    assert_eq!(bench.seen.len(), 8 * 5);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_measured() {
    let mut bench = Scripted::new(0, 0.1, |_, _| 1.0);
    let fine = design(1, 0);
    for wrong in [
        design(0, 0),
        design(65, 0),
        experiment::Design { blocks: 5, ..fine.clone() },
        experiment::Design { blocks: 10, ..design(30, 0) },
        experiment::Design { smallest_effect: 0.0, ..fine.clone() },
        experiment::Design { smallest_effect: f64::NAN, ..fine.clone() },
    ] {
        assert!(trial(&wrong, &mut bench).is_err(), "{wrong:?}");
    }
    assert!(bench.seen.is_empty());
}

#[test]
fn blocks_that_are_not_equally_exposed_are_not_compared() {
    struct Uneven(Scripted);
    impl experiment::Bench for Uneven {
        fn measure(
            &mut self,
            blocks: &[experiment::Block],
        ) -> Result<Option<Vec<experiment::Figures>>, experiment::Error> {
            let mut all = Vec::new();
            for block in blocks {
                self.0.samples = if block.arm == Arm::off() { 200 } else { 100 };
                all.extend(self.0.measure(std::slice::from_ref(block))?.unwrap());
            }
            Ok(Some(all))
        }
    }
    let error = trial(&design(1, 0), &mut Uneven(Scripted::new(0, 0.1, |_, _| 1.0))).unwrap_err();
    assert!(error.message.contains("not equally exposed"), "{error}");
}

#[test]
fn a_trial_that_is_stopped_concludes_nothing() {
    let mut bench = Scripted::new(0, 0.1, |_, _| 1.0);
    bench.stop = Some(7);
    assert_eq!(trial(&design(1, 0), &mut bench), Ok(None));
}

proptest! {
    #[test]
    fn every_round_has_every_arm_once_and_orders_are_drawn(seed in any::<u64>(), settings in 1_usize..6, blocks in 6_u32..30) {
        let design = experiment::Design { blocks, ..design(settings, seed) };
        let arms: Vec<Arm> = [Arm::off(), Arm::Control].into_iter().chain((0..settings).map(Arm::only)).collect();
        let planned = rounds(&design, 1, 0, blocks, &arms);
        prop_assert_eq!(&planned, &rounds(&design, 1, 0, blocks, &arms));
        for round in planned.chunks(arms.len()) {
            let mut there: Vec<Arm> = round.iter().map(|block| block.arm.clone()).collect();
            there.sort();
            let mut wanted = arms.clone();
            wanted.sort();
            prop_assert_eq!(there, wanted);
            prop_assert!(round.iter().all(|block| block.seed == round[0].seed && block.round == round[0].round));
        }
    }
}

#[test]
fn off_comes_before_on_as_often_as_after_it() {
    let (mut before, mut all) = (0, 0);
    for seed in 0..400 {
        let planned = rounds(&design(1, seed), 1, 0, 5, &[Arm::off(), Arm::only(0)]);
        before += planned.chunks(2).filter(|pair| pair[0].arm == Arm::off()).count();
        all += planned.len() / 2;
    }
    let share = before as f64 / all as f64;
    assert!((share - 0.5).abs() < 0.034, "{share}: three standard deviations of 2000 pairs");
}

/// A file of an experiment may be somebody else's, and its page is made by going through all of its blocks.
#[test]
fn an_experiment_without_an_end_is_refused() {
    let asked = design(1, 1);
    assert!(asked.check(1).is_ok());
    for (blocks, most_blocks) in [(u32::MAX, None), (asked.blocks, Some(u32::MAX))] {
        let error = experiment::Design { blocks, most_blocks, ..asked.clone() }.check(1).unwrap_err();
        assert!(error.message.contains("too many"), "{error:?}");
    }
}
