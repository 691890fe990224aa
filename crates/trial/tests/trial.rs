//! Trials against what they promise: error rate, power, the control arm, equal exposure, drift.
#![allow(clippy::unwrap_used)]

mod scripted;

use std::collections::BTreeMap;

use proptest::prelude::*;
use scripted::{Scripted, design};
use trial::{Answer, Arm, Effect, Kind, rounds, trial};
use units::Nanos;

const REPETITIONS: u64 = 1_000;

fn tried(bench: &mut Scripted, seed: u64) -> Answer {
    trial(&design(1, seed), bench).unwrap().unwrap()
}

/// How often each verdict falls where the setting makes the tail `factor` times as long.
fn verdicts(spread: f64, factor: f64) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for seed in 0..REPETITIONS {
        let mut bench = Scripted::new(seed, spread, move |arm, _| if arm.has(0) { factor } else { 1.0 });
        let verdict = tried(&mut bench, seed).settings[0].verdict;
        let word = verdict.map_or("inconclusive".to_owned(), |effect| effect.to_string());
        *counts.entry(word).or_default() += 1;
    }
    counts
}

fn share(counts: &BTreeMap<String, u64>, words: &[&str]) -> f64 {
    let count: u64 = words.iter().filter_map(|word| counts.get(*word)).sum();
    count as f64 / REPETITIONS as f64
}

#[test]
fn where_nothing_acts_helps_and_harms_are_as_rare_as_the_confidence_says() {
    for spread in [0.02, 0.3, 1.0] {
        let counts = verdicts(spread, 1.0);
        let wrong = share(&counts, &["helps", "harms"]);
        // 8 in 252 by the method; three standard deviations of a share of 1000 repetitions are 1.7 %.
        assert!(wrong < 0.049, "spread {spread}: {counts:?}");
    }
    assert!(share(&verdicts(0.02, 1.0), &["no effect visible"]) > 0.99, "a calm bench can tell");
    assert!(share(&verdicts(1.0, 1.0), &["no effect visible"]) < 0.01, "a wild one cannot");
}

#[test]
fn what_doubles_or_halves_the_tail_is_found() {
    assert!(share(&verdicts(0.1, 2.0), &["harms"]) > 0.9);
    assert!(share(&verdicts(0.1, 0.5), &["helps"]) > 0.9);
    let small = verdicts(0.01, 1.1);
    assert!(share(&small, &["no effect visible"]) > 0.99, "below the smallest effect: {small:?}");
}

#[test]
fn a_drift_falls_on_all_arms_alike() {
    let mut wrong = 0;
    for seed in 0..REPETITIONS {
        // Each block is 5 % later than the one before: a factor of two from the first to the last.
        let mut bench = Scripted::new(seed, 0.05, |_, block| 1.05_f64.powi(block as i32));
        let verdict = tried(&mut bench, seed).settings[0].verdict;
        wrong += u64::from(verdict.is_some_and(Effect::is_difference));
    }
    assert!(wrong as f64 / (REPETITIONS as f64) < 0.049, "{wrong}");
}

#[test]
fn a_control_arm_that_differs_leaves_nothing_concluded() {
    let mut bench = Scripted::new(1, 0.02, |arm, _| match arm {
        Arm::Control => 3.0,
        arm if arm.has(0) => 0.2,
        _ => 1.0,
    });
    let answer = tried(&mut bench, 1);
    assert_eq!(answer.control[0].effect, Effect::Harms);
    assert_eq!(answer.settings[0].verdict, None);
    assert_eq!(
        answer.settings[0].measures[0].effect,
        Effect::Helps,
        "what was measured is told all the same"
    );
}

#[test]
fn every_measure_is_told_and_the_one_that_was_asked_for_decides() {
    for (name, kind) in Kind::NAMES {
        let mut bench = Scripted::new(3, 0.02, |arm, _| if arm.has(0) { 0.05 } else { 1.0 });
        let asked =
            trial::Design { measure: name.parse().unwrap(), threshold: Some(Nanos(20_000)), ..design(1, 3) };
        let answer = trial(&asked, &mut bench).unwrap().unwrap();
        let measures = &answer.settings[0].measures;
        assert_eq!(measures[0].measure.kind(), kind);
        assert_eq!(measures.len(), 3);
        assert!(measures.iter().all(|judged| judged.effect == Effect::Helps), "{measures:#?}");
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
    let verdicts: Vec<_> = answer.settings.iter().map(|tried| tried.verdict.unwrap()).collect();
    assert_eq!(verdicts, [Effect::NoneVisible, Effect::Helps, Effect::NoneVisible]);
    assert_eq!(bench.seen.len(), 5 * 5);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_measured() {
    let mut bench = Scripted::new(0, 0.1, |_, _| 1.0);
    let fine = design(1, 0);
    for wrong in [
        design(0, 0),
        design(65, 0),
        trial::Design { blocks: 4, ..fine.clone() },
        trial::Design { smallest_effect: 0.0, ..fine.clone() },
        trial::Design { smallest_effect: f64::NAN, ..fine.clone() },
    ] {
        assert!(trial(&wrong, &mut bench).is_err(), "{wrong:?}");
    }
    assert!(bench.seen.is_empty());
}

#[test]
fn blocks_that_are_not_equally_exposed_are_not_compared() {
    struct Uneven(Scripted);
    impl trial::Bench for Uneven {
        fn measure(&mut self, blocks: &[trial::Block]) -> Result<Option<Vec<trial::Figures>>, trial::Error> {
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
fn who_is_told_to_stop_concludes_nothing() {
    let mut bench = Scripted::new(0, 0.1, |_, _| 1.0);
    bench.stop = Some(7);
    assert_eq!(trial(&design(1, 0), &mut bench), Ok(None));
}

proptest! {
    #[test]
    fn every_round_has_every_arm_once_and_orders_are_drawn(seed in any::<u64>(), settings in 1_usize..6, blocks in 5_u32..30) {
        let design = trial::Design { blocks, ..design(settings, seed) };
        let arms: Vec<Arm> = [Arm::off(), Arm::Control].into_iter().chain((0..settings).map(Arm::only)).collect();
        let planned = rounds(&design, 1, 0, &arms);
        prop_assert_eq!(&planned, &rounds(&design, 1, 0, &arms));
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
        let planned = rounds(&design(1, seed), 1, 0, &[Arm::off(), Arm::only(0)]);
        before += planned.chunks(2).filter(|pair| pair[0].arm == Arm::off()).count();
        all += planned.len() / 2;
    }
    let share = before as f64 / all as f64;
    assert!((share - 0.5).abs() < 0.034, "{share}: three standard deviations of 2000 pairs");
}
