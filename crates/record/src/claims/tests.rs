use super::*;
use crate::BlockMaxima;
use crate::verdict::Judgement;
use crate::verdict::tests::{header, scenario};
use units::Seed;

/// A pass of `count` activations, late in clusters of `times`, and one in `slow` times as late.
fn pass(seed: u64, count: usize, times: usize, of: impl Fn(usize, u64) -> u64) -> Scenario {
    let mut random = Seed(seed).stream("pass");
    let mut latencies = Vec::new();
    while latencies.len() < count {
        let value = random.below(1_000_000_000);
        let late = (-((value as f64 + 0.5) / 1e9).ln() * 20_000.0) as u64;
        let place = latencies.len();
        latencies.extend(std::iter::repeat_n(5_000 + of(place, late), times));
    }
    latencies.truncate(count);
    let mut scenario = scenario(&latencies);
    let size = count.div_ceil(2048).next_power_of_two();
    let maxima = latencies.chunks(size).filter_map(|block| block.iter().copied().max()).collect();
    scenario.series[0].maxima = BlockMaxima { activations: size as u64, maxima };
    scenario
}

fn record(scenarios: Vec<Scenario>) -> Record {
    Record {
        header: header(),
        ended: None,
        scenarios,
        explanations: vec![],
        warnings: vec![],
        judgement: Judgement::default(),
    }
}

fn plain(_: usize, late: u64) -> u64 {
    late
}

#[test]
fn clusters_count_once() {
    let alone = of(&record(vec![pass(1, 100_000, 1, plain)])).run;
    let ten = of(&record(vec![pass(1, 100_000, 10, plain)])).run;
    let (alone_worth, ten_worth) = (alone.effective.unwrap() as f64, ten.effective.unwrap() as f64);
    assert!((0.75e5..1e5).contains(&alone_worth), "{alone_worth}");
    assert!((0.07..0.13).contains(&(ten_worth / alone_worth)), "{ten_worth}");
    assert_eq!(alone.one_in, Some(alone.effective.unwrap() / 3));
    assert_eq!(alone.once_in, ten.once_in, "events per time do not depend on how large each is");
    assert_eq!(alone.once_in, Some(Nanos::from_micros(33_333_000)));
}

#[test]
fn missed_activations_are_no_independent_ones() {
    let mut stalled = pass(1, 20_000, 1, plain);
    let whole = of(&record(vec![stalled.clone()])).run.effective.unwrap();
    // Ten stalls of 500 periods: 5000 of the activations were missed.
    let series = &mut stalled.series[0];
    for stall in 0..10_usize {
        for missed in 1..=500_u64 {
            series.timer_mut().unwrap().missed.record(Nanos::from_millis(missed));
        }
        series.maxima.maxima.splice(stall * 130..stall * 130, (1..=31_u64).rev().map(|n| n * 16_000_000));
    }
    series.timer_mut().unwrap().expected += 5_000;
    let claims = of(&record(vec![stalled]));
    assert!(claims.run.effective.unwrap() < whole / 10, "{:?} of {whole}", claims.run);
}

#[test]
fn passes_of_a_repeated_run_count_together_and_each_shows_its_highest() {
    let passes: Vec<Scenario> = (0..20).map(|n| pass(n, 100, 1, plain)).collect();
    let highest: Vec<Nanos> = passes.iter().map(|pass| highest(&pass.series[0])).collect();
    let claims = of(&record(passes));
    assert_eq!((claims.series.len(), claims.series[0].activations), (1, 2_000));
    assert_eq!(claims.series[0].passes, highest);
    assert!(claims.sentence().starts_with("2000 activations, worth about 1"), "{}", claims.sentence());
    assert!(claims.run.once_in.is_some() && claims.run.one_in.is_none(), "{:?}", claims.run);
}

#[test]
fn a_run_that_was_not_alike_is_not_extrapolated_from() {
    let later = |place: usize, late: u64| if place > 25_000 { 2 * late } else { late };
    let claims = of(&record(vec![pass(3, 50_000, 1, later)]));
    assert_eq!(claims.run.refused, Some(Refused::NotAlike));
    assert_eq!((claims.run.once_in, claims.run.one_in), (None, None));
    assert!(
        claims.sentence().ends_with(" ones. CPU 0 changed during the run: rarer delays are not estimated.")
    );
}

#[test]
fn too_few_activations_say_nothing_beyond_the_run() {
    let claims = of(&record(vec![pass(1, 60, 1, plain)]));
    assert_eq!(
        claims.run,
        Extrapolation { refused: Some(Refused::NotEstimated), ..Extrapolation::default() }
    );
    assert_eq!(claims.sentence(), "60 activations: too few to see more than what happened in this run.");
    let few = of(&record(vec![pass(1, 99, 1, plain)])).run;
    assert_eq!(few.refused, Some(Refused::TooFew), "{few:?}");
}

#[test]
fn a_pass_that_failed_or_lost_figures_takes_the_claim_away() {
    let mut failed = pass(1, 5_000, 1, plain);
    failed.end = ScenarioEnd::Failed("the probe".into());
    assert_eq!(of(&record(vec![failed])).run.refused, Some(Refused::Incomplete));
    let mut waiting = pass(1, 5_000, 1, plain);
    waiting.series[0].censored = Some(crate::Sample { latency: Nanos(1), due: Nanos(0), activation: 0 });
    assert_eq!(of(&record(vec![waiting])).run.refused, Some(Refused::Incomplete));
    let mut unaccounted = pass(1, 5_000, 1, plain);
    unaccounted.series[0].timer_mut().unwrap().expected += 1;
    assert_eq!(of(&record(vec![unaccounted])).run.refused, Some(Refused::Incomplete));
}

#[test]
fn one_series_without_a_claim_leaves_the_run_without_one() {
    let mut other = pass(2, 60, 1, plain);
    other.head.planned.load = "cpu".into();
    let claims = of(&record(vec![pass(1, 5_000, 1, plain), other]));
    assert!(claims.series[0].says.once_in.is_some());
    assert_eq!((claims.run.once_in, claims.run.refused), (None, Some(Refused::NotEstimated)));
    assert_eq!(claims.fewest(), 60);
}

#[test]
fn seconds_stand_in_where_an_older_record_has_no_blocks() {
    let mut old = pass(1, 200_000, 1, plain);
    let maxima = std::mem::take(&mut old.series[0].maxima);
    for (second, maxima) in (0..).zip(maxima.maxima.chunks(8)) {
        let mut block = crate::Block::default();
        maxima.iter().for_each(|&maximum| block.observed.add(maximum, 1));
        old.series[0].timeline.push(second, block);
    }
    let claims = of(&record(vec![old]));
    assert!(claims.run.effective.is_some_and(|worth| worth > 100_000), "{:?}", claims.run);
}

#[test]
fn the_advised_length_is_three_times_the_odds_over_theta() {
    let claim = Claim { extremal_index: Some(0.1), interval: Nanos::from_millis(1), ..Claim::default() };
    assert_eq!(claim.run_length(1_000_000), Some((30_000_000, Nanos::from_secs(30_000))));
    assert_eq!(
        claim.run_length(100),
        Some((LEAST_FOR_RATE, Nanos::from_secs(60))),
        "never too short for any rate"
    );
    assert_eq!(Claim::default().run_length(1_000), None);
}

#[test]
fn what_is_about_right_does_not_look_exact() {
    assert_eq!([0, 7, 99, 1_234, 98_765].map(text::rounded), [0, 7, 99, 1_200, 99_000]);
}

#[test]
fn activations_of_several_periods_are_said_with_the_fewest_and_the_most() {
    let mut claims = of(&record(vec![pass(0, 100, 1, plain)]));
    let mut other = claims.series[0].clone();
    other.cpu = Some(units::CpuId(1));
    claims.series.push(other.clone());
    assert!(claims.sentence().starts_with("100 activations per CPU and load"), "{}", claims.sentence());
    other.interval = other.interval.saturating_mul(10);
    other.activations = 10;
    claims.series.push(other);
    let sentence = claims.sentence();
    assert!(sentence.starts_with("10 to 100 activations per CPU, load and period"), "{sentence}");
}
