//! Every statistical claim that is printed, against latencies whose truth is known. A claim made at 95 % may fail in at
//! most 7 % of the runs in which it is made; how often it is made is printed with `--nocapture`.
//!
//! The short versions have fixed seeds and few runs, and allow what chance allows; the long ones are exact.
#![allow(clippy::print_stdout)]

mod families;

use families::{FAMILIES, Family, histogram, maxima, sequence};
use record::claims::{self, LEAST_FOR_RATE};
use record::{
    BlockMaxima, CStates, Evidence, Header, LoadEvidence, Machine, Record, RunPlan, SCHEMA_VERSION, Scenario,
    ScenarioEnd, ScenarioHead, Series, Tool, time::UtcTime, verdict::Judgement,
};
use statistics::{Stationarity, extreme, interval_of};
use units::{CpuId, Nanos};

/// The share of claims that may fail.
const MAY_FAIL: f64 = 0.07;

/// How many runs made a claim, and in how many of these it was wrong.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    runs: usize,
    made: usize,
    wrong: usize,
}

impl Tally {
    fn count(&mut self, right: Option<bool>) {
        self.runs += 1;
        self.made += usize::from(right.is_some());
        self.wrong += usize::from(right == Some(false));
    }

    /// What is wrong too often. Few runs may fail more often by chance: by two standard deviations.
    fn check(&self, what: &str, family: Family) -> Option<String> {
        let made = self.made as f64;
        let allowed = MAY_FAIL * made + 2.0 * (made * MAY_FAIL * (1.0 - MAY_FAIL)).sqrt();
        let wrong = 100.0 * self.wrong as f64 / made.max(1.0);
        let share = 100 * self.made / self.runs;
        println!("{what:<30} {:<28} made in {share:>3} %, wrong in {wrong:>4.1} %", format!("{family:?}"));
        let limit = if self.runs >= 1_000 { MAY_FAIL * made } else { allowed };
        // A handful of claims is judged by the runs: a share of five is no share.
        let few = self.made * 5 < self.runs;
        let limit = if few { limit.max(MAY_FAIL * self.runs as f64) } else { limit };
        (self.wrong as f64 > limit).then(|| format!("{what}, {family:?}: {self:?}"))
    }
}

/// A record as a run would leave it.
fn record(latencies: &[u64]) -> Record {
    let head = ScenarioHead {
        load: "idle".into(),
        interval: Nanos::from_millis(1),
        cstates: CStates::AsIs,
        repeat: 1,
        started: UtcTime(0),
        offset: Nanos(0),
        cpus: vec![Some(CpuId(0))],
        phases: vec![Nanos(0)],
        sweeps: vec![],
    };
    let (activations, maxima) = maxima(latencies);
    let series = Series {
        cpu: Some(CpuId(0)),
        expected: latencies.len() as u64,
        observed: histogram(latencies),
        maxima: BlockMaxima { activations, maxima },
        ..Series::default()
    };
    let scenario = Scenario {
        head,
        end: ScenarioEnd::Complete,
        length: Nanos::from_millis(latencies.len() as u64),
        series: vec![series],
        load: LoadEvidence::default(),
        evidence: Evidence::default(),
        warnings: vec![],
    };
    let header = Header {
        schema_version: SCHEMA_VERSION,
        tool: Tool { version: "0".into(), build: "test".into() },
        command_line: vec![],
        note: None,
        started: UtcTime(0),
        machine: Machine::default(),
        plan: RunPlan::default(),
        held: vec![],
    };
    Record {
        header,
        ended: None,
        scenarios: vec![scenario],
        warnings: vec![],
        judgement: Judgement::default(),
    }
}

/// The rate per activation, and events in time, of runs of `count` activations.
fn rates(count: usize, runs: u64) {
    let mut failures = Vec::new();
    for family in FAMILIES {
        let (mut rate, mut events) = (Tally::default(), Tally::default());
        let events_above = events_above(family, count, runs);
        for seed in 0..runs {
            let latencies = family.draw(count, seed);
            let highest = latencies.iter().copied().max().unwrap_or_default();
            let said = claims::of(&record(&latencies)).run;
            rate.count(said.one_in.map(|odds| family.share_above(highest) <= 1.0 / odds as f64));
            let once_in = said.once_in.map(|time| time.as_secs_f64() * 1e3);
            events.count(once_in.map(|activations| events_above(highest) <= 1.001 / activations));
        }
        failures.extend(rate.check(&format!("rate, {count}"), family));
        failures.extend(events.check(&format!("events, {count}"), family));
        if family == Family::Independent {
            assert!(events.made * 10 >= events.runs * 9);
            assert!((count as u64) < LEAST_FOR_RATE || rate.made * 10 >= rate.runs * 9);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Clusters an activation above a latency; where there is no closed form, from how often as many other runs stayed
/// below it.
fn events_above(family: Family, count: usize, runs: u64) -> impl Fn(u64) -> f64 {
    let pool = if family.events_above(0).is_some() { 0 } else { runs.max(200) };
    let highest = |seed: u64| family.draw(count, 1_000_000 + seed).into_iter().max().unwrap_or_default();
    let mut pool: Vec<u64> = (0..pool).map(highest).collect();
    pool.sort_unstable();
    move |latency| {
        family.events_above(latency).unwrap_or_else(|| {
            let below = pool.partition_point(|&highest| highest <= latency) as f64 + 0.5;
            -(below / (pool.len() as f64 + 0.5)).ln() / count as f64
        })
    }
}

/// Both ends of the intervals of p99 and p99.9.
fn quantiles(count: usize, runs: u64) {
    let mut failures = Vec::new();
    for family in FAMILIES {
        for share in [0.99, 0.999] {
            let (truth, mut tally) = (family.quantile(1.0 - share), Tally::default());
            for seed in 0..runs {
                let latencies = sequence(&family.draw(count, seed));
                let alike = Stationarity::of(&latencies).is_some_and(|tests| tests.probability() >= 0.05);
                let interval = interval_of(&latencies, share).filter(|_| alike);
                // An interval without an upper end says half as much and cannot be wrong there.
                let whole = interval.filter(|interval| interval.high.is_some());
                tally.count(whole.map(|interval| {
                    let high = interval.high.unwrap_or_default();
                    (interval.low.0..=high.0 + 1_000).contains(&truth)
                }));
            }
            failures.extend(tally.check(&format!("p{}, {count}", share * 100.0), family));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Levels for ten times the run, where they are not refused.
fn levels(families: &[Family], count: usize, runs: u64) {
    let mut failures = Vec::new();
    for &family in families {
        let mut tally = Tally::default();
        for seed in 0..runs {
            let latencies = sequence(&family.draw(count, seed));
            let exposure = 10.0 * count as f64;
            let estimate = extreme::estimate(&latencies, exposure).ok();
            tally.count(estimate.map(|estimate| {
                let high = estimate.interval.1.unwrap_or(f64::INFINITY);
                let events = |latency: f64| family.events_above(latency.max(0.0) as u64);
                // Exceeded once in the exposure: the interval's lower end more often, its upper end less often.
                let above = events(estimate.interval.0).is_none_or(|events| events * exposure >= 1.0);
                let below = high.is_infinite() || events(high).is_none_or(|events| events * exposure <= 1.0);
                above && below
            }));
        }
        failures.extend(tally.check(&format!("level, {count}"), family));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Block maxima of two runs of the same family: their ratio is 1.
fn ratios(count: usize, runs: u64) {
    let mut failures = Vec::new();
    for family in FAMILIES.into_iter().filter(|family| !matches!(family, Family::Drift(_))) {
        let mut tally = Tally::default();
        for seed in 0..runs {
            let [first, second] = [seed, seed + 1_000_000].map(|seed| sequence(&family.draw(count, seed)));
            let alike = |run| Stationarity::of(run).is_some_and(|tests| tests.probability() >= 0.05);
            let ratio = second.against(&first).filter(|_| alike(&first) && alike(&second));
            tally.count(ratio.map(|ratio| ratio.interval.0 <= 1.0 && ratio.interval.1 >= 1.0));
        }
        failures.extend(tally.check(&format!("ratio, {count}"), family));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn runs_of_one_family_are_not_told_apart() {
    ratios(10_000, 60);
}

#[test]
fn rates_hold_in_families_whose_truth_is_known() {
    rates(10_000, 40);
    rates(60_000, 25);
}

#[test]
fn intervals_of_quantiles_hold_in_families_whose_truth_is_known() {
    quantiles(60_000, 20);
}

#[test]
fn levels_hold_in_families_whose_truth_is_known() {
    let families =
        [Family::Independent, Family::Autoregressive(0.9), Family::Clusters(5), Family::Drift(1.0)];
    levels(&families, 60_000, 15);
    levels(&[Family::Episodes { alike: false }, Family::Episodes { alike: true }], 60_000, 15);
}

#[test]
#[ignore = "long: ten minutes of simulation"]
fn rates_hold_in_two_thousand_runs_of_each_family() {
    for count in [2_000, 10_000, 60_000, 200_000] {
        rates(count, if count > 100_000 { 1_000 } else { 2_000 });
    }
}

#[test]
#[ignore = "long: some minutes of simulation"]
fn intervals_and_levels_hold_in_a_thousand_runs_of_each_family() {
    quantiles(60_000, 1_000);
    quantiles(200_000, 1_000);
    levels(&FAMILIES, 60_000, 1_000);
    levels(&FAMILIES, 200_000, 300);
    ratios(10_000, 1_000);
}
