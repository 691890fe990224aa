//! Verdicts of runs in which nothing was measured.

use record::instrument::call::{CallPlan, CallSeries, CallSetup, CallsLeftOut, ChosenCall};
use record::verdict::{Verdict, judge};
use record::{Effect, InstrumentPlan, Own, Record, RunPlan, Setup, WarningId};
use units::{CpuList, Nanos};

use crate::claims;

const INTERVAL: Nanos = Nanos::from_millis(1);

fn plan(calls: Vec<ChosenCall>, left_out: Vec<CallsLeftOut>) -> CallPlan {
    let partners = CpuList::default();
    CallPlan { calls, all: true, interval: INTERVAL, burst: Nanos::ZERO, partners, left_out }
}

/// A run with a limit of 1 s, of one call that was made so often.
fn run(latencies: &[u64]) -> Record {
    let mut record = claims::record(latencies);
    let call = ChosenCall { call: "futex".into(), across: false };
    record.header.plan = RunPlan {
        instrument: InstrumentPlan::Call(plan(vec![call], Vec::new())),
        loads: vec!["idle".into()],
        repeat: 1,
        cstates: vec![record::CStates::AsIs],
        limit: Some(Nanos::from_secs(1)),
        ..RunPlan::default()
    };
    let scenario = &mut record.scenarios[0];
    let (interval, burst, partners) = (INTERVAL, Nanos::ZERO, CpuList::default());
    let setup = CallSetup { call: "futex".into(), across: false, interval, burst, partners };
    scenario.head.planned.setup = Setup::Call(setup);
    scenario.series[0].own = Own::Call(CallSeries { began: Nanos(1), ..CallSeries::default() });
    scenario.warnings = scenario.head.planned.setup.warnings(scenario);
    record
}

#[test]
fn a_limit_is_not_met_by_calls_that_were_not_made() {
    let none = run(&[]);
    let warnings = &none.scenarios[0].warnings;
    assert_eq!((warnings[0].id, warnings[0].effect), (WarningId::NoCalls, Effect::Inconclusive));
    assert!(warnings[0].evidence.starts_with("futex: the thread of CPU 0"), "{}", warnings[0].evidence);
    let judged = judge(&none, &[]);
    assert_eq!(judged.verdict, Verdict::Inconclusive, "{judged:?}");
    assert!(judged.reasons.iter().any(|reason| reason.contains("no-calls")), "{judged:?}");
    assert_eq!(judge(&run(&[5_000]), &[]).verdict, Verdict::Pass);
}

#[test]
fn a_plan_without_calls_or_time_for_one_is_refused_with_the_reason() {
    let why = "there is one CPU".to_owned();
    let left_out = CallsLeftOut { calls: (0..8).map(|number| format!("call-{number}")).collect(), why };
    let none = plan(Vec::new(), vec![left_out]);
    let refused = InstrumentPlan::Call(none.clone()).check(&RunPlan::default()).unwrap_err();
    assert!(
        refused.message.contains("call-0, ") && refused.message.ends_with(" and 2 more: there is one CPU")
    );
    let warned = InstrumentPlan::Call(none).warnings();
    assert_eq!((warned.len(), warned[0].id, warned[0].effect), (1, WarningId::CallsLeftOut, Effect::Note));
    let one =
        InstrumentPlan::Call(plan(vec![ChosenCall { call: "futex".into(), across: false }], Vec::new()));
    let lasting = |duration| RunPlan { duration: Some(duration), ..RunPlan::default() };
    assert!(one.check(&lasting(INTERVAL)).is_err());
    assert!(one.check(&lasting(Nanos(INTERVAL.0 + 1))).is_ok());
}
