//! Searches for the smallest set that suffices, on machines that are made up.
#![allow(clippy::unwrap_used)]

mod scripted;

use scripted::{Scripted, design};
use trial::{Arm, Doubt, Effect, Found, Outcome, search};

fn searched(count: usize, seed: u64, spread: f64, script: impl Fn(&Arm, usize) -> f64 + 'static) -> Found {
    search(&design(count, seed), &mut Scripted::new(seed, spread, script)).unwrap().unwrap()
}

fn kept(found: &Found) -> Vec<&str> {
    found.kept.iter().map(|kept| kept.setting.as_str()).collect()
}

#[test]
fn the_settings_that_act_are_left_each_with_its_price() {
    let script = |arm: &Arm, _| {
        let of = |setting, factor| if arm.has(setting) { factor } else { 1.0 };
        of(1, 0.25) * of(3, 0.5)
    };
    let found = searched(5, 1, 0.02, script);
    assert_eq!(found.outcome, Outcome::Sufficient, "{found:#?}");
    assert_eq!(kept(&found), ["setting-2", "setting-4"]);
    let prices: Vec<f64> = found.kept.iter().map(|kept| kept.price.ratio.round()).collect();
    assert_eq!(prices, [4.0, 2.0]);
    assert_eq!(found.steps.iter().filter(|step| step.dropped).count(), 3);
    assert_eq!(found.against_off.unwrap().effect, Effect::Helps);
}

#[test]
fn of_two_that_do_the_same_one_is_left() {
    let script = |arm: &Arm, _| if arm.has(0) || arm.has(2) { 0.1 } else { 1.0 };
    let found = searched(3, 2, 0.02, script);
    assert_eq!((found.outcome, kept(&found)), (Outcome::Sufficient, vec!["setting-3"]));
}

#[test]
fn what_only_acts_together_is_left_together() {
    let script = |arm: &Arm, _| if arm.has(0) && arm.has(1) { 0.1 } else { 1.0 };
    assert_eq!(kept(&searched(3, 3, 0.02, script)), ["setting-1", "setting-2"]);
}

#[test]
fn small_losses_do_not_add_up() {
    // Each setting is worth 12 %: less than matters, but any two of them are more.
    let script = |arm: &Arm, _| {
        let on = (0..4).filter(|&setting| arm.has(setting)).count() as i32;
        1.12_f64.powi(4 - on)
    };
    let found = searched(4, 4, 0.001, script);
    assert_eq!(found.outcome, Outcome::Sufficient, "{found:#?}");
    assert_eq!(found.kept.len(), 3, "the second one left out would be seen against all: {found:#?}");
}

#[test]
fn where_all_together_do_not_help_nothing_is_searched() {
    let found = searched(3, 5, 0.02, |_, _| 1.0);
    assert_eq!((found.outcome, found.steps.len()), (Outcome::NothingHelps, 0));
    let harmful = searched(3, 5, 0.02, |arm, _| if arm.has(1) { 3.0 } else { 1.0 });
    assert_eq!(harmful.outcome, Outcome::NothingHelps);
}

#[test]
fn chance_and_spread_leave_it_open() {
    let control = searched(2, 6, 0.02, |arm, _| if *arm == Arm::Control { 2.0 } else { 1.0 });
    assert_eq!(control.outcome, Outcome::Inconclusive(Doubt::Control));
    let spread = searched(2, 6, 1.0, |arm, _| if arm.has(0) { 0.9 } else { 1.0 });
    assert_eq!(spread.outcome, Outcome::Inconclusive(Doubt::Spread));
}

#[test]
fn what_does_not_hold_in_fresh_blocks_is_not_called_sufficient() {
    // 15 blocks of the first phase and 10 of each of two steps: after that nothing helps any more.
    let found = searched(2, 7, 0.02, |arm, block| if block < 35 && arm.has(0) { 0.2 } else { 1.0 });
    assert_eq!(found.outcome, Outcome::Inconclusive(Doubt::Unconfirmed), "{found:#?}");
}

#[test]
fn fresh_blocks_have_seeds_that_no_other_block_had() {
    let mut bench = Scripted::new(8, 0.02, |arm: &Arm, _| if arm.has(0) { 0.2 } else { 1.0 });
    search(&design(2, 100), &mut bench).unwrap().unwrap();
    let last = bench.seen.iter().map(|block| block.phase).max().unwrap();
    let seeds = |confirming: bool| {
        let blocks = bench.seen.iter().filter(move |block| (block.phase == last) == confirming);
        blocks.map(|block| block.seed.0).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(seeds(false), (100..105).collect());
    assert_eq!(seeds(true), (105..110).collect());
}

#[test]
fn who_is_told_to_stop_finds_nothing() {
    for stop in [3, 20, 36] {
        let mut bench = Scripted::new(9, 0.02, |arm: &Arm, _| if arm.has(0) { 0.2 } else { 1.0 });
        bench.stop = Some(stop);
        assert_eq!(search(&design(2, 9), &mut bench), Ok(None), "{stop}");
    }
}
