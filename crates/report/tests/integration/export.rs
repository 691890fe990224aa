//! Figures in the forms of other programs.

use std::sync::LazyLock;

use proptest::prelude::*;
use record::verdict::Verdict;
use record::{Record, ScenarioEnd};
use report::export;
use units::Nanos;

use crate::forms::{counted, harness_passes, points};
use crate::mend as insta;
use crate::sample::Spec;

fn two(limit: u64) -> Record {
    let mut record =
        Spec { loads: vec!["idle", "io"], limit: Some(Nanos::from_micros(limit)), ..Spec::default() }
            .record();
    record.judgement = record::verdict::judge(&record, &[]);
    record
}

#[test]
fn figures_as_values_separated_by_commas() {
    insta::assert_snapshot!(export::csv(&two(40)), @r"
    load,interval_ns,setup,cstates,cpu,unit,minimum,average,p50,p99,p99_9,p99_99,maximum,maximum_is_bound,samples,missed,late,over_limit,marks
    idle,1000000,,as-is,all,ns,1471,2643,2499,4899,7499,22399,31208,false,20000,0,0,0,
    idle,1000000,,as-is,0,ns,1514,2651,2399,4999,7799,22399,29624,false,10000,0,0,0,
    idle,1000000,,as-is,1,ns,1471,2635,2499,4899,6699,17599,31208,false,10000,0,0,0,
    io,1000000,,as-is,all,ns,1492,2707,2499,5399,7899,33799,47235,false,20000,0,0,1,
    io,1000000,,as-is,0,ns,1496,2708,2499,5299,8299,12399,36957,false,10000,0,0,0,
    io,1000000,,as-is,1,ns,1492,2705,2499,5499,7599,33799,47235,false,10000,0,0,1,
    ");
}

#[test]
fn figures_as_a_table_for_a_merge_request() {
    insta::assert_snapshot!(export::markdown(&two(40)), @r"
    | load | median, us | p99, us | p99.9, us | max, us | samples | missed |
    |:--|--:|--:|--:|--:|--:|--:|
    | idle | 2.5 | 4.9 | 7.5 | 31.2 | 20000 | 0 |
    | io | 2.5 | 5.4 | 7.9 | 47.2 | 20000 | 0 |

    FAIL: 47.2 us on CPU 1 under io is above the limit of 40us; in doubt: measured CPUs are not isolated (not-isolated); 40000 samples in all
    ");
}

#[test]
fn results_for_a_build_server() {
    insta::assert_snapshot!(export::junit(&two(40)), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="worstcase bench" tests="5" failures="2" errors="0" skipped="0">
      <testsuite name="testbench" tests="5" failures="2" errors="0" skipped="0">
        <testcase classname="worstcase.bench" name="idle 1ms as-is CPU 0"><system-out>median 2399, p99.9 7799, maximum 29624 ns; samples 10000, missed 0</system-out></testcase>
        <testcase classname="worstcase.bench" name="idle 1ms as-is CPU 1"><system-out>median 2499, p99.9 6699, maximum 31208 ns; samples 10000, missed 0</system-out></testcase>
        <testcase classname="worstcase.bench" name="io 1ms as-is CPU 0"><system-out>median 2499, p99.9 8299, maximum 36957 ns; samples 10000, missed 0</system-out></testcase>
        <testcase classname="worstcase.bench" name="io 1ms as-is CPU 1"><failure type="limit" message="maximum 47235 ns above the limit of 40000"/><system-out>median 2499, p99.9 7599, maximum 47235 ns; samples 10000, missed 0</system-out></testcase>
        <testcase classname="worstcase.bench" name="run"><failure type="limit" message="47.2 us on CPU 1 under io is above the limit of 40us; in doubt: measured CPUs are not isolated (not-isolated)"/><system-out>verdict of the whole run: fail: 47.2 us on CPU 1 under io is above the limit of 40us; in doubt: measured CPUs are not isolated (not-isolated)</system-out></testcase>
      </testsuite>
    </testsuites>
    "#);
    insta::assert_snapshot!(export::lava(&two(40)), @r"
    <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=idle-1ms-as-is-CPU-0 RESULT=pass UNITS=ns MEASUREMENT=29624>
    <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=idle-1ms-as-is-CPU-1 RESULT=pass UNITS=ns MEASUREMENT=31208>
    <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=io-1ms-as-is-CPU-0 RESULT=pass UNITS=ns MEASUREMENT=36957>
    <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=io-1ms-as-is-CPU-1 RESULT=fail UNITS=ns MEASUREMENT=47235>
    <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=run RESULT=fail>
    ");
}

/// A build fails in JUnit exactly where the exit code is the one for failed, and passes in each form exactly where it is 0.
fn agree(record: &Record) {
    let code = record.judgement.verdict.exit_code();
    let (junit, tap, lava) = (export::junit(record), export::tap(record), export::lava(record));
    let [tests, failures, errors, skipped] = counted(&junit);
    assert_eq!(failures > 0, code == 1, "{junit}");
    assert_eq!(failures + errors == 0, code == 0, "{junit}");
    assert_eq!(harness_passes(&tap), code == 0, "{tap}");
    let results: Vec<&str> =
        lava.lines().filter_map(|line| line.split_once(" RESULT=")?.1.split([' ', '>']).next()).collect();
    assert_eq!(results.iter().all(|result| matches!(*result, "pass" | "skip")), code == 0, "{lava}");
    let count = |wanted: &str| results.iter().filter(|result| **result == wanted).count();
    let passed = tests - failures - errors - skipped;
    assert_eq!(
        [count("pass"), count("fail"), count("unknown"), count("skip")],
        [passed, failures, errors, skipped]
    );
    let points = points(&tap);
    let ok = points.iter().filter(|point| point.ok && point.directive.is_empty()).count();
    assert_eq!((points.len(), ok), (tests, passed), "{tap}");
    assert_eq!(export::line(record).lines().count(), 1);
}

#[test]
fn every_form_passes_where_the_verdict_does_and_nowhere_else() {
    for verdict in [Verdict::Measured, Verdict::Pass, Verdict::Inconclusive, Verdict::Error, Verdict::Fail] {
        let mut record = two(1_000_000);
        record.judgement.verdict = verdict;
        agree(&record);
    }
    let mut record = two(1_000_000);
    record.scenarios[1].end = ScenarioEnd::Interrupted;
    record.judgement = record::verdict::judge(&record, &[]);
    agree(&record);
    assert!(export::tap(&record).contains("not ok 3 - io"), "{}", export::tap(&record));
}

#[test]
fn printed_json_is_the_record_with_its_figures() {
    let record = two(40);
    let text = export::json(&record);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    let worst = record.worst().unwrap().0;
    let figures = value["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 2 * 3, "all CPUs, and each of two, under each load");
    assert_eq!(figures.iter().filter_map(|row| row["maximum"].as_u64()).max(), Some(worst.0));
}

proptest! {
    #[test]
    fn no_name_breaks_a_form(load in any::<String>()) {
        static RECORD: LazyLock<Record> = LazyLock::new(|| two(40));
        let mut record = RECORD.clone();
        record.scenarios[0].head.planned.load = load.clone();
        let junit = export::junit(&record);
        prop_assert_eq!(junit.matches("<testcase").count(), 5);
        prop_assert_eq!(export::lava(&record).lines().count(), 5);
        prop_assert_eq!(export::csv(&record).lines().count(), 7);
        prop_assert_eq!(export::tap(&record).lines().filter(|line| line.contains("ok ")).count() >= 5, true);
        prop_assert!(!export::markdown(&record).chars().any(|c| c.is_control() && c != '\n'));
    }
}

fn any_end() -> impl Strategy<Value = ScenarioEnd> {
    use ScenarioEnd::{Complete, CutOff, FailSafe, Failed, Interrupted, StopAt, TooHot};
    let ends = [Complete, Interrupted, StopAt, TooHot, FailSafe, CutOff, Failed("<gone> & away".into())];
    proptest::sample::select(ends.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Records as `bench` and `measure` make them, judged as they are, and with any verdict, also one that another program wrote.
    #[test]
    fn forms_agree_with_the_exit_code(
        limit in proptest::option::of(0_u64..60),
        ends in (any_end(), any_end()),
        name in any::<String>(),
        silent in proptest::option::of(0_usize..2),
        in_wall_time in any::<bool>(),
        losses in proptest::collection::vec(any::<String>(), 0..2),
        other in proptest::option::of(0_usize..5),
    ) {
        static RECORD: LazyLock<Record> = LazyLock::new(|| {
            let duration = Nanos::from_millis(200);
            Spec { loads: vec!["idle", "io"], duration, ..Spec::default() }.record()
        });
        let mut record = RECORD.clone();
        record.header.plan.limit = limit.map(Nanos::from_micros);
        record.scenarios[0].end = ends.0;
        record.scenarios[1].end = ends.1;
        record.scenarios[1].head.planned.load = name;
        if let Some(index) = silent {
            record.scenarios[index].series.truncate(1);
        }
        if in_wall_time {
            record = crate::sample::in_lab(record, record::LabTime::Wall);
        }
        record.judgement = record::verdict::judge(&record, &losses);
        agree(&record);
        if let Some(index) = other {
            let verdicts = [Verdict::Measured, Verdict::Pass, Verdict::Inconclusive, Verdict::Error, Verdict::Fail];
            record.judgement.verdict = verdicts[index];
            agree(&record);
        }
    }
}

#[test]
fn a_record_of_nothing_passes_in_no_form() {
    let mut record = two(40);
    record.scenarios.clear();
    record.judgement = record::verdict::judge(&record, &[]);
    agree(&record);
    assert!(record.judgement.verdict.exit_code() != 0);
}

/// Calls of the kernel have no period: their rows and test cases are distinguished by the call.
#[test]
fn rows_of_calls_are_distinguished_by_the_call() {
    let mut record = two(40);
    let call = |name: &str| {
        record::Setup::Call(record::instrument::call::CallSetup {
            call: name.to_owned(),
            across: false,
            interval: Nanos::from_millis(1),
            burst: Nanos::ZERO,
            partners: units::CpuList::new(),
        })
    };
    for (scenario, name) in record.scenarios.iter_mut().zip(["eventfd", "pi-mutex"]) {
        scenario.head.planned.load = "idle".into();
        scenario.head.planned.setup = call(name);
    }
    let names: Vec<String> = export::tap(&record)
        .lines()
        .filter_map(|line| line.split_once(" - "))
        .map(|(_, name)| name.to_owned())
        .collect();
    assert!(names.iter().any(|name| name.starts_with("idle eventfd ")), "{names:?}");
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    assert!(export::csv(&record).contains("\nidle,,pi-mutex,"));
}
