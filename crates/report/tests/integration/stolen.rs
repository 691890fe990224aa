//! What a host took of a virtual machine, set apart in the blocks of a trial.

use experiment::Figures;
use experiment::stolen::{SetApart, without_steal};
use histogram::Histogram;
use record::verdict::Verdict;
use record::{Cause, Certainty, Class, Explanation, Hit, Record, Tracing, Warning, WarningId};
use units::{CpuId, Nanos};

use crate::sample::Spec;

const MILLISECOND: u64 = 1_000_000;

/// As late as that, so much of it by the host.
fn hit(activation: u64, latency: u64, stolen: u64, certainty: Certainty) -> Hit {
    let cause = |class, length, certainty| Cause {
        class,
        culprit: String::new(),
        length: Nanos(length),
        certainty,
        witness: String::new(),
    };
    Hit {
        cpu: CpuId(0),
        tid: 9,
        activation,
        due: Nanos(activation * MILLISECOND),
        latency: Nanos(latency),
        pieces: Vec::new(),
        causes: vec![
            cause(Class::Host, stolen, certainty),
            cause(Class::Usual, latency - stolen, Certainty::Sure),
        ],
        waking_stack: Vec::new(),
        switch_stack: Vec::new(),
        events: Vec::new(),
        left_out: 0,
    }
}

/// One CPU at a period of 1 ms, whose traced repetition had 2000 wake-ups of 10 us, these, and what they missed.
fn block(hits: Vec<Hit>) -> Record {
    let mut record = Spec { loads: vec!["idle"], cpus: 1, ..Spec::default() }.record();
    let mut scenario = record.scenarios[0].clone();
    let series = &mut scenario.series[0];
    (series.observed, series.worst) = (Histogram::default(), Vec::new());
    (0..2_000).for_each(|_| series.observed.record(Nanos(10_000)));
    let mut missed = Histogram::default();
    for hit in &hits {
        series.observed.record(hit.latency);
        (1..=hit.latency.0 / MILLISECOND)
            .for_each(|step| missed.record(Nanos(hit.latency.0 - step * MILLISECOND)));
    }
    let due = series.observed.summary().count + missed.summary().count;
    *series.account_mut().unwrap().0 = due;
    *series.account_mut().unwrap().1 = missed;
    let tracing = Tracing { blind: 3, ..Tracing::default() };
    record.explanations = vec![Explanation { of: 0, scenario, tracing, hits, overview: Default::default() }];
    record
}

#[test]
fn what_was_surely_the_hosts_is_set_apart_with_what_it_made_miss_and_counted() {
    let stolen = hit(500, 27_300_000, 27_200_000, Certainty::Sure);
    let record = block(vec![stolen, hit(900, 400_000, 399_000, Certainty::Sure)]);
    let judged = without_steal(record).unwrap();
    let apart = SetApart { due: 2_029, wake_ups: 2, missed: 27, longest: Nanos(27_300_000), blind: 3 };
    assert_eq!(SetApart::of(&judged), apart);
    let figures = Figures::without_judgement(&judged).unwrap();
    assert_eq!((figures.latencies.summary().count, figures.set_apart), (2_000, 29));
    // The end of the cell of 10 us: the exact maximum was another.
    assert_eq!(figures.latencies.quantile(0.999), Some(Nanos(10_099)));
    assert_eq!(figures.maxima, [Nanos(10_099)]);
}

#[test]
fn what_is_not_proven_to_be_the_hosts_is_judged_as_it_is() {
    let late = 5 * MILLISECOND;
    let hits = vec![
        hit(100, late, late - 1_000, Certainty::Likely),
        hit(200, late, late * 89 / 100, Certainty::Sure),
        hit(300, late, 0, Certainty::Sure),
    ];
    let judged = without_steal(block(hits)).unwrap();
    assert_eq!(SetApart::of(&judged), SetApart { due: 2_018, blind: 3, ..SetApart::default() });
    let figures = Figures::without_judgement(&judged).unwrap();
    assert_eq!((figures.latencies.summary().count, figures.set_apart), (2_018, 0));
    assert_eq!(figures.latencies.at_least(Nanos(late)), 3);
}

#[test]
fn a_repetition_that_was_not_measured_as_planned_is_no_block() {
    let of = |record: Record| {
        Figures::of(&without_steal(record).unwrap()).map(drop).map_err(|error| error.message)
    };
    let mut record = block(Vec::new());
    record.judgement.verdict = Verdict::Measured;
    assert_eq!(of(record.clone()), Ok(()));
    let mut idle = record.clone();
    let warnings = &mut idle.explanations[0].scenario.warnings;
    warnings.push(Warning::inconclusive(WarningId::LoadIdle, "the load did no work", ""));
    let message = of(idle).unwrap_err();
    assert!(message.contains("a load did no work (load-idle)"), "{message}");
    record.judgement.verdict = Verdict::Error;
    assert!(of(record).is_err(), "and what was wrong with the first stays wrong");
}

#[test]
fn a_block_whose_trace_is_not_whole_or_contradicts_its_latencies_is_an_error() {
    let stolen = || hit(500, 27_300_000, 27_200_000, Certainty::Sure);
    let with = |change: fn(&mut Record)| {
        let mut record = block(vec![stolen()]);
        change(&mut record);
        without_steal(record).map(drop).map_err(|error| error.message)
    };
    assert_eq!(with(|_| {}), Ok(()));
    for change in [
        |record: &mut Record| record.explanations.clear(),
        |record: &mut Record| record.explanations[0].tracing.failure = Some("no room".into()),
        |record: &mut Record| record.explanations[0].hits[0].latency = Nanos(28_500_000),
        |record: &mut Record| record.explanations[0].hits[0].latency = Nanos(27_300_000 - MILLISECOND),
    ] {
        let message = with(change).unwrap_err();
        assert!(message.starts_with("what the host took of a block is not known: "), "{message}");
    }
}
