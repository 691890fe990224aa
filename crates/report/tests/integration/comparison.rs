//! Records side by side, and which may stand there.

use crate::mend as insta;
use crate::sample::{self, Spec, failed, in_lab, plain};
use record::{CStates, Fact, LabTime, Record, ScenarioEnd, StressorEvidence};
use report::compare;
use units::Nanos;

#[test]
fn four_kernels_side_by_side() {
    let run = |(seed, median)| Spec { seed, median, loads: vec!["idle", "full"], ..Spec::default() }.record();
    let mut records: Vec<_> = [(1, 12_000), (2, 4_400), (3, 3_300)].map(run).to_vec();
    records[1].header.machine.kernel.release = "6.18.0-release".into();
    insta::assert_snapshot!(compare::compare(&records, &[], &plain()), @r"
    A  testbench, Linux 6.18.0-rt3, 2026-11-21T21:12:01Z: made up for tests: nothing
       here was measured
    B  testbench, Linux 6.18.0-release, 2026-11-21T21:12:01Z: made up for tests:
       nothing here was measured
    C  testbench, Linux 6.18.0-rt3, 2026-11-21T21:12:01Z: made up for tests: nothing
       here was measured

    Comparable: loads, periods, lengths, priorities, CPUs and the rest of the plans
    agree.
    What differs:
      A / B: kernel: 6.18.0-rt3 / 6.18.0-release

    B's block maxima against A's: shorter under idle (0.36 x, 0.30 to 0.40), full
      (0.45 x, 0.35 to 0.65).
    C's block maxima against A's: shorter under idle (0.28 x, 0.25 to 0.34), full
      (0.29 x, 0.25 to 0.35).

    max, us      idle    full
    A           156.0  5970.0
    B            55.6   534.1
    C            33.5   172.9

    p99.9, us    idle    full
    A            37.4    80.9
    B            12.7    33.8
    C            11.8    21.8

    avg, us      idle    full
    A            13.2    15.5
    B             4.8     5.6
    C             3.6     4.2

    min, us      idle    full
    A             7.4     7.5
    B             2.6     2.5
    C             1.9     1.9

    block max / A    idle    full
    B              0.36 x  0.45 x
    B at least     0.30 x  0.35 x
    B at most      0.40 x  0.65 x
    C              0.28 x  0.29 x
    C at least     0.25 x  0.25 x
    C at most      0.34 x  0.35 x

    One run is one draw. Intervals (95 %) and block maxima say how sure a figure is
    within its run; from run to run it can move further. To tell two set-ups apart,
    measure each several times: worstcase tune trial.
    A block maximum is the highest latency of one of the equal stretches that a run
    is cut into. Their ratio is that of a stretch to a stretch: the highest
    latencies of whole runs can have another one.
    ");
}

#[test]
fn records_that_may_not_be_compared_say_so_first_and_why() {
    let left = failed();
    let mut right = Spec { limit: Some(Nanos::from_micros(100)), ..Spec::default() }.record();
    right.header.plan.priority = units::Priority::try_from(80).ok();
    let text = compare::compare(&[left, right], &[], &plain());
    let (objections, tables) = text.split_once("max, us").unwrap();
    assert!(objections.contains("NOT COMPARABLE"));
    assert!(!text.contains("block max / A"), "no ratio of what may not be compared: {text}");
    assert!(objections.contains("priority: 98 / 80") && objections.contains("loads: cpu, full, idle, io / "));
    assert!(tables.contains("hdd"));
}

fn noise() -> record::InstrumentPlan {
    let (threshold, window, spin) = (Nanos::from_micros(1), Nanos::from_millis(100), Nanos::from_millis(90));
    record::InstrumentPlan::Noise(record::instrument::noise::NoiseSetup { threshold, window, spin })
}

#[test]
fn every_condition_of_the_plan_forbids_a_comparison() {
    type Change = fn(&mut Record);
    let changes: &[(&str, Change)] = &[
        ("instrument", |r| r.header.plan.instrument = noise()),
        ("period", |r| r.header.plan.timer_mut().unwrap().intervals = vec![Nanos::from_micros(100)]),
        ("length of a scenario", |r| r.header.plan.duration = Some(Nanos::from_secs(11))),
        ("length of a scenario", |r| r.header.plan.samples = Some(100_000)),
        ("repetitions", |r| r.header.plan.repeat = 2),
        ("policy", |r| r.header.plan.policy = Some(units::Policy::Rr)),
        ("priority", |r| r.header.plan.priority = None),
        ("C-state policy", |r| r.header.plan.cstates = vec![CStates::Restrict]),
        ("clock", |r| r.header.plan.timer_mut().unwrap().clock = record::ClockName::Tai),
        ("wake-up", |r| r.header.plan.timer_mut().unwrap().wake = record::Wake::Timerfd),
        ("warm-up", |r| r.header.plan.warm_up = Nanos::ZERO),
        ("phase", |r| r.header.plan.timer_mut().unwrap().phase = record::Phase::Aligned),
        ("CPUs measured", |r| r.header.plan.cpus = sample::cpu_list(1)),
        ("CPUs of the loads", |r| r.header.plan.load_cpus = sample::cpu_list(1)),
        ("ended early", |r| r.scenarios[1].end = ScenarioEnd::CutOff),
        ("load cpu", |r| r.scenarios[1].load.stressors[0].workers = 7),
        ("load cpu", |r| {
            r.scenarios[1].load.stressors.push(StressorEvidence { name: "x".into(), ..Default::default() })
        }),
    ];
    let left = failed();
    assert_eq!(compare::differences(&left, &left), []);
    for (what, change) in changes {
        let mut right = left.clone();
        change(&mut right);
        let differences = compare::differences(&left, &right);
        assert!(
            differences.iter().any(|d| d.what == *what && d.weight == compare::Weight::Forbids),
            "{what}: {differences:?}"
        );
    }
}

#[test]
fn runs_that_met_other_phases_of_the_tick_are_distinguished() {
    let met = |first| record::TickPhases {
        tick: Nanos::from_millis(4),
        first: Nanos(first),
        spacing: Nanos::from_millis(1),
        swept: false,
        covered_permille: 4,
    };
    let run = |first| {
        let mut record = Spec { loads: vec!["idle", "cpu"], cpus: 1, ..Spec::default() }.record();
        let series = record.scenarios.iter_mut().flat_map(|scenario| &mut scenario.series);
        series.for_each(|series| series.timer_mut().unwrap().tick_phases = Fact::Value(met(first)));
        record
    };
    assert_eq!(compare::differences(&run(3_213_000), &run(213_400)), []);
    let differences = compare::differences(&run(213_000), &run(870_000));
    let texts: Vec<_> = differences.iter().map(ToString::to_string).collect();
    let here = "4 points of the 4ms tick (213 us past multiples of 1ms)";
    assert_eq!(texts, [format!("phases met: {here} / {}", here.replace("213", "870"))]);
    assert_eq!(differences[0].weight, compare::Weight::Draw);
    let both = compare::compare(&[run(213_000), run(870_000)], &[], &plain()).replace('\n', " ");
    assert!(both.contains("The runs met different phases of the kernel's tick"), "{both}");
    assert!(both.find("max, us") < both.find("The runs met"), "figures come first: {both}");
    let text =
        report::table::bench(&run(213_000), false, report::foot::Notes::All, &plain()).replace("\n  ", " ");
    assert!(text.contains(&format!("phases: {here}")), "{text}");
}

#[test]
fn another_kernel_machine_or_seed_is_what_a_comparison_is_about() {
    let left = failed();
    let mut right = left.clone();
    right.header.machine.kernel.release = "3.12.19".into();
    right.header.machine.host = "p2041rdb".into();
    right.header.tool.version = "0.2.0".into();
    right.header.plan.seed = None;
    let differences = compare::differences(&left, &right);
    assert_eq!(differences.len(), 4);
    let draws: Vec<&str> = differences
        .iter()
        .filter(|difference| difference.weight == compare::Weight::Draw)
        .map(|difference| difference.what.as_str())
        .collect();
    assert_eq!(draws, ["seed"], "every run draws its own");
    assert!(differences.iter().all(|difference| difference.weight != compare::Weight::Forbids));
}

/// What `tune apply` changed between two runs is what their comparison is about, and had no line.
#[test]
fn what_tune_changed_between_two_runs_is_named_by_rule() {
    let tuned = |rule: &str, settings, value: &str| record::Tuned {
        rule: rule.into(),
        settings,
        values: vec![value.into()],
    };
    let (mut left, mut right) = (failed(), failed());
    left.header.tuned = Some(vec![tuned("rn-same", 1, "1"), tuned("rn-thp", 1, "madvise")]);
    right.header.tuned =
        Some(vec![tuned("rn-same", 1, "1"), tuned("rn-slab", 430, "0"), tuned("rn-thp", 1, "never")]);
    let said = |left: &record::Record, right: &record::Record| -> Vec<String> {
        let differences = compare::differences(left, right);
        assert!(differences.iter().all(|one| one.weight == compare::Weight::Note));
        differences.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        said(&left, &right),
        ["tune rn-slab: not applied / 0 in 430 settings", "tune rn-thp: madvise / never"]
    );
    left.header.tuned = None;
    assert_eq!(said(&left, &right), ["applied by tune: unknown / 3 rules"]);
    right.header.tuned = None;
    assert!(said(&left, &right).is_empty());
}

/// Masks of 128 CPUs and lists of words filled the screen.
#[test]
fn values_of_tune_are_short_and_say_how_many_more_there_are() {
    let tuned = |values: &[&str]| record::Tuned {
        rule: "rn-irq".into(),
        settings: 24,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let said = |values: &[&str]| {
        let (mut left, mut right) = (failed(), failed());
        (left.header.tuned, right.header.tuned) = (Some(vec![]), Some(vec![tuned(values)]));
        compare::differences(&left, &right)[0].right.clone()
    };
    assert_eq!(said(&["00000000,00000000,00000003"]), "3 in 24 settings");
    assert_eq!(said(&["00000001,00000003"]), "1,00000003 in 24 settings");
    assert_eq!(said(&["00000000"]), "0 in 24 settings");
    assert_eq!(said(&["0,2"]), "0,2 in 24 settings", "a list");
    assert_eq!(said(&["never", "madvise", "always"]), "24 settings (never, madvise, ..)");
    assert_eq!(said(&[""]), "nothing in 24 settings");
    let long = said(&[&"word ".repeat(30)]);
    assert!(long.contains('~') && long.len() < 50, "{long}");
}

#[test]
fn a_column_that_was_not_alike_is_named_with_its_period_and_c_states() {
    let record = Spec {
        loads: vec!["idle", "cpu"],
        intervals: vec![Nanos::from_micros(500), Nanos::from_millis(1)],
        cstates: vec![CStates::AsIs, CStates::Restrict],
        ..Spec::default()
    }
    .record();
    let claims = record::claims::of(&record);
    let places: Vec<_> = claims.series.iter().map(|claim| claims.place(claim)).collect();
    assert!(places.contains(&"cpu 500us restrict on CPU 1".to_owned()), "{places:?}");
    let mut distinct = places.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), places.len(), "{places:?}");
    let alone = Spec { loads: vec!["idle", "cpu"], ..Spec::default() }.record();
    let claims = record::claims::of(&alone);
    assert_eq!(claims.place(&claims.series[0]), "idle on CPU 0");
}

#[test]
fn loads_that_a_partition_keeps_off_its_cpus_forbid_no_comparison() {
    let plain_load = Spec { loads: vec!["cpu"], cpus: 1, ..Spec::default() }.record();
    let mut moved = plain_load.clone();
    moved.header.plan.load_cpus = "3".parse().unwrap();
    let weight = |other: &record::Record| {
        let differences = compare::differences(&plain_load, other);
        differences.into_iter().find(|one| one.what == "CPUs of the loads").map(|one| one.weight)
    };
    assert_eq!(weight(&moved), Some(compare::Weight::Forbids));
    let cpus = moved.header.plan.cpus.clone();
    moved.header.plan.partition =
        Some(record::Partition { group: "/p".into(), state: "isolated".into(), cpus });
    assert_eq!(weight(&moved), Some(compare::Weight::Note));
    let text = compare::compare(&[plain_load.clone(), moved], &[], &plain());
    assert!(text.contains("The loads have other CPUs") && !text.contains("loads, periods"), "{text}");
}

#[test]
fn a_comparison_ends_with_what_would_make_one_of_it() {
    let of = |loads| Spec { loads, cpus: 1, ..Spec::default() }.record();
    let names = ["a dir".to_owned(), "b".to_owned()];
    let steps = |left, right| -> Vec<String> {
        let steps = report::next::run::of_several(&[of(left), of(right)], &names);
        steps.into_iter().map(|(command, _)| command).collect()
    };
    let page = "worstcase report 'a dir' b --html compared.html";
    assert_eq!(steps(vec!["idle", "cpu"], vec!["idle", "cpu"]), [page]);
    let steps = steps(vec!["idle", "cpu"], vec!["cpu"]);
    assert!(steps[0].starts_with("worstcase bench --phase random --loads idle,cpu "), "{steps:?}");
    assert!(steps[0].ends_with(" --against 'a dir'"), "{steps:?}");
    assert_eq!(steps[1..], [page]);
}

#[test]
fn instructions_and_microseconds_never_stand_side_by_side() {
    let run = || Spec { loads: vec!["idle"], cpus: 1, ..Spec::default() }.record();
    let guest = || in_lab(run(), LabTime::Instructions);
    for (left, right) in [(run(), guest()), (guest(), run())] {
        let text = compare::compare(&[left, right], &[], &plain());
        assert!(text.contains("NOT COMPARABLE") && text.contains("what the clock counts: "), "{text}");
        assert!(text.contains("No tables: ") && !text.contains("p99.9"), "{text}");
    }
    let emulated = in_lab(run(), LabTime::Wall);
    assert!(compare::compare(&[run(), emulated], &[], &plain()).contains("time / an emulator's time"));
}

#[test]
fn guests_are_distinguished_by_what_was_booted_and_their_seed() {
    let run = |seed| Spec { loads: vec!["idle"], cpus: 1, seed, ..Spec::default() }.record();
    let guests = [1, 2].map(|seed| in_lab(run(seed), LabTime::Instructions));
    let text = compare::compare(&guests, &[], &plain());
    insta::assert_snapshot!(text.split_once("\navg,").unwrap().0, @r"
    A  Linux 6.18.0-rt3 threadirqs, in QEMU 7.2.17, clock: instructions, seed 1:
       made up for tests: nothing here was measured
    B  Linux 6.18.0-rt3 threadirqs, in QEMU 7.2.17, clock: instructions, seed 2:
       made up for tests: nothing here was measured

    Comparable: loads, periods, lengths, priorities, CPUs and the rest of the plans
    agree.
    In instruction time a run is one draw, the same each time: another seed or
    another kernel parameter can move a maximum fivefold. Compare several seeds of
    each, and tails before maxima.

    max, instructions    no load
    A                     29,624
    B                     21,162

    p99.9, instructions  no load
    A                      7,799
    B                      6,599
    ");
}

#[test]
fn columns_of_records_meet_by_load_period_and_c_states_not_by_their_heads() {
    let one = Spec { loads: vec!["idle"], ..Spec::default() };
    let two = Spec { intervals: vec![Nanos::from_millis(1), Nanos::from_millis(10)], ..one.clone() };
    let text = compare::compare(&[one.record(), two.record()], &[], &plain());
    let maxima: Vec<_> =
        text.lines().skip_while(|line| !line.starts_with("max, us")).skip(2).take(2).collect();
    assert!(maxima[0].ends_with('-') && !maxima[1].contains('-'), "{maxima:?}");
}
