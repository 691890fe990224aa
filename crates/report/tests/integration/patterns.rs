//! What the worst values have in common, and what to do next.

use record::verdict::Verdict;
use record::{
    Block, CStates, ClockName, Effect, Phase, Record, Sample, ScenarioEnd, Timeline, Warning, WarningId,
};
use report::foot::{Notes, foot};
use report::next::run;
use units::{Nanos, Policy, Priority};

use crate::sample::{Spec, plain};

/// One load on two CPUs, every wake-up below 100 us; what a test adds is the worst.
fn quiet() -> Record {
    let mut record = Spec { loads: vec!["io"], ..Spec::default() }.record();
    for series in &mut record.scenarios[0].series {
        series.worst.clear();
    }
    record.header.plan.timer_mut().unwrap().phase = Phase::Sweep;
    record
}

/// Adds wake-ups of these lengths, due at these milliseconds, to a CPU's.
fn late(record: &mut Record, cpu: usize, wakes: &[(u64, u64)]) {
    let series = &mut record.scenarios[0].series[cpu];
    for &(us, ms) in wakes {
        let latency = Nanos::from_micros(us);
        series.observed.record(latency);
        series.worst.push(Sample { latency, due: Nanos::from_millis(ms), activation: ms });
    }
    series.worst.sort_by_key(|sample| std::cmp::Reverse(sample.latency));
}

fn said(record: &Record) -> String {
    foot(record, Notes::Few("DIR"), &plain()).replace("\n  ", " ").replace('\n', " ")
}

#[test]
fn cpus_late_at_the_same_moment_are_said_to_be() {
    let mut record = quiet();
    late(&mut record, 0, &[(25_000, 1_201)]);
    late(&mut record, 1, &[(27_000, 1_200), (26_000, 5_000)]);
    let text = said(&record);
    assert!(text.contains("Worst: 27000 us on CPU 1 under io, 1.2 s into it."), "{text}");
    assert!(text.contains("CPU 0 was late at the same moment (25000 us)"), "{text}");
    // Late at another moment is no coincidence.
    record.scenarios[0].series[0].worst[0].due = Nanos::from_millis(1_300);
    assert!(!said(&record).contains("same moment"), "{}", said(&record));
}

#[test]
fn the_worst_value_names_the_period_and_the_policy_where_several_were_measured() {
    let mut record = quiet();
    late(&mut record, 1, &[(27_000, 1_200)]);
    let interval = record.header.plan.timer().unwrap().intervals[0];
    record.header.plan.timer_mut().unwrap().intervals.push(Nanos::from_millis(9));
    let period = format!("Worst: 27000 us on CPU 1 under io, every {interval}, 1.2 s into it.");
    assert!(said(&record).contains(&period), "{}", said(&record));
    record.header.plan.cstates = vec![CStates::AsIs, CStates::Restrict];
    let both = format!("under io, every {interval}, C-states as they are, 1.2 s into it.");
    assert!(said(&record).contains(&both), "{}", said(&record));
}

#[test]
fn a_cpu_late_alone_is_named_and_one_that_did_not_report_is_not_taken_for_quiet() {
    let mut record = quiet();
    late(&mut record, 1, &[(27_000, 1_200)]);
    assert!(said(&record).contains("Only CPU 1 was so late"), "{}", said(&record));
    let mut missed = record.clone();
    missed.scenarios[0].series[0].timer_mut().unwrap().missed.record(Nanos::from_millis(40));
    assert!(!said(&missed).contains("Only CPU 1"), "{}", said(&missed));
    record.scenarios[0].series[0].observed = histogram::Histogram::default();
    assert!(!said(&record).contains("Only CPU 1"), "{}", said(&record));
}

#[test]
fn delays_of_one_length_stand_out_from_delays_of_many() {
    let mut record = quiet();
    late(&mut record, 1, &[(7_990, 100), (7_980, 900), (7_960, 2_345), (7_940, 7_000)]);
    assert!(
        said(&record).contains("The 4 worst under io are of one length (7940.0 to 7990.0 us)"),
        "{}",
        said(&record)
    );
    let mut record = quiet();
    late(&mut record, 1, &[(7_990, 100), (6_980, 900), (5_960, 2_345), (4_940, 7_000)]);
    assert!(!said(&record).contains("of one length"), "{}", said(&record));
}

#[test]
fn delays_that_come_back_after_the_same_time_stand_out_from_scattered_ones() {
    let mut record = quiet();
    let times = [100, 1_101, 2_100, 4_099, 5_100, 7_101];
    let wakes: Vec<_> =
        times.iter().enumerate().map(|(place, ms)| (5_000 + 500 * place as u64, *ms)).collect();
    late(&mut record, 0, &wakes);
    assert!(said(&record).contains("come each 1 s or a multiple of it"), "{}", said(&record));
    let mut record = quiet();
    let scattered: Vec<_> =
        [100, 730, 2_100, 3_333, 5_190, 7_401].iter().map(|&ms| (5_000 + ms, ms)).collect();
    late(&mut record, 0, &scattered);
    assert!(!said(&record).contains("multiple of it"), "{}", said(&record));
}

#[test]
fn lateness_in_the_first_second_alone_is_said_to_be() {
    let mut record = quiet();
    late(&mut record, 0, &[(5_000, 300)]);
    let block = |latency: u64| {
        let mut block = Block::default();
        block.observed.add(latency, 1000);
        block
    };
    for series in &mut record.scenarios[0].series {
        series.timeline = Timeline { step: Nanos::from_secs(1), blocks: vec![block(20_000); 8] };
    }
    record.scenarios[0].series[0].timeline.blocks[0] = block(5_000_000);
    assert!(said(&record).contains("in the first second only"), "{}", said(&record));
    record.scenarios[0].series[1].timeline.blocks[5] = block(4_000_000);
    assert!(!said(&record).contains("in the first second only"), "{}", said(&record));
}

#[test]
fn few_notes_are_three_and_the_number_of_the_others() {
    let mut record = quiet();
    for id in
        [WarningId::Guest, WarningId::NotIsolated, WarningId::Smi, WarningId::BusyBefore, WarningId::Rival]
    {
        record.warnings.push(record::Warning::note(id, "seen", ""));
    }
    record.judgement.verdict = Verdict::Measured;
    let few = foot(&record, Notes::Few("DIR"), &plain());
    let all = foot(&record, Notes::All, &plain());
    let count = |text: &str| text.lines().filter(|line| line.starts_with("note  ")).count();
    assert_eq!(count(&few), 3, "{few}");
    assert!(count(&all) > 5 && few.contains(&format!("{} more notes: ", count(&all) - 3)), "{few}\n{all}");
    let first = few.lines().find(|line| line.starts_with("note  ")).unwrap();
    assert!(first.contains("steal") || first.contains("smi"), "what happened comes first: {first}");
}

fn commands(record: &Record) -> Vec<String> {
    run::steps(record, &|_| true).into_iter().map(|(command, _)| command).collect()
}

#[test]
fn next_steps_fit_what_was_seen() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    assert_eq!(
        commands(&record),
        [
            "worstcase bench --explain --loads io",
            "worstcase check",
            "worstcase bench --loads io --limit 50ms --duration 10m"
        ]
    );
    record.header.plan.limit = Some(Nanos::from_millis(1));
    record.judgement.verdict = Verdict::Fail;
    record.warnings.push(record::Warning::note(WarningId::NotIsolated, "seen", ""));
    assert_eq!(commands(&record)[2], "worstcase tune plan --isolate 1");
    record.header.plan.limit = Some(Nanos::from_millis(100));
    record.judgement.verdict = Verdict::Pass;
    assert_eq!(commands(&record)[2], "worstcase bench --loads io --limit 100ms --duration 10m");
    record.scenarios[0].end = ScenarioEnd::Interrupted;
    record.judgement.verdict = Verdict::Inconclusive;
    let rest = commands(&record);
    let of = &record.scenarios[0].head.planned.load;
    assert!(rest[0].starts_with(&format!("worstcase bench --loads {of} --limit 100ms --")), "{rest:?}");
    assert!(!rest[1..].iter().any(|command| command.contains("--limit")), "{rest:?}");
    record.scenarios.clear();
    assert_eq!(commands(&record), Vec::<String>::new());
}

#[test]
fn next_steps_keep_the_warm_up_and_a_trace_the_length_of_the_run() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    record.header.plan.warm_up = Nanos::ZERO;
    record.header.plan.duration = Some(Nanos::from_secs(600));
    let [explain, _, limit] = commands(&record).try_into().unwrap();
    assert_eq!(explain, "worstcase bench --explain --warm-up 0s --loads io --duration 10m");
    assert!(limit.contains(" --warm-up 0s "), "{limit}");
}

#[test]
fn what_was_interrupted_before_it_measured_is_to_be_measured_and_nothing_is_claimed_of_it() {
    let mut record = quiet();
    record.scenarios.truncate(1);
    record.scenarios[0].end = record::ScenarioEnd::Interrupted;
    record.scenarios[0].series.clear();
    record.judgement.verdict = Verdict::Inconclusive;
    let text = report::table::bench(&record, true, Notes::All, &plain());
    assert!(text.starts_with("nothing was measured\n") && !text.contains("Checked"), "{text}");
    let [rest] = commands(&record).try_into().unwrap();
    assert!(rest.starts_with("worstcase bench --loads "), "{rest}");
}

#[test]
fn a_command_of_the_users_own_is_named_in_no_step() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    record.header.plan.loads = vec!["command:sh".into()];
    record.scenarios.iter_mut().for_each(|one| one.head.planned.load = "command:sh".into());
    let steps = run::steps(&record, &|_| false);
    assert!(steps.iter().all(|(command, _)| !command.contains("command:")), "{steps:?}");
}

#[test]
fn how_long_a_run_takes_is_said_of_the_loads_that_it_runs() {
    let time = |loads: &[&str]| {
        let mut record = quiet();
        record.judgement.verdict = Verdict::Measured;
        late(&mut record, 1, &[(27_000, 1_200)]);
        record.header.plan.loads = loads.iter().map(|load| (*load).to_owned()).collect();
        record.scenarios.iter_mut().for_each(|one| one.head.planned.load = loads[0].into());
        run::steps(&record, &|_| false).pop().unwrap()
    };
    let (command, purpose) = time(&["io", "cpu"]);
    assert!(command.contains("--loads io,cpu") && purpose.ends_with("takes 20 min"), "{command}: {purpose}");
    // Each period is a scenario of its own.
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    if let record::InstrumentPlan::Timer(timer) = &mut record.header.plan.instrument {
        timer.intervals = vec![Nanos(500_000), Nanos(1_000_000)];
    }
    record.header.plan.loads = vec!["io".into(), "cpu".into()];
    record.scenarios.iter_mut().for_each(|one| one.head.planned.load = "io".into());
    let (command, purpose) = run::steps(&record, &|_| false).pop().unwrap();
    assert!(
        command.contains("--interval 500us,1ms") && purpose.ends_with("takes 40 min"),
        "{command}: {purpose}"
    );
    // What an idle machine shows is no limit for a loaded one: the loads come first, the six that bench has.
    let (command, purpose) = time(&["idle"]);
    assert_eq!((&*command, &*purpose), ("worstcase bench", "measure under load"));
}

#[test]
fn next_steps_measure_the_same_cpus_and_loads() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    let plan = &mut record.header.plan;
    plan.loads = vec!["io".into(), "cpu".into()];
    plan.cpus = "1".parse().unwrap();
    assert_eq!(
        commands(&record),
        [
            "worstcase bench --explain --cpus 1 --loads io",
            "worstcase check",
            "worstcase bench --cpus 1 --loads io,cpu --limit 50ms --duration 10m"
        ]
    );
    let cpus = record.header.plan.cpus.clone();
    record.header.plan.partition =
        Some(record::Partition { group: "/sys/fs/cgroup/worstcase".into(), state: "isolated".into(), cpus });
    assert!(
        commands(&record)[0].contains(" --partition /sys/fs/cgroup/worstcase "),
        "{:?}",
        commands(&record)
    );
}

#[test]
fn next_steps_measure_in_the_same_way() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    let plan = &mut record.header.plan;
    plan.policy = Some(Policy::Rr);
    plan.priority = Priority::try_from(60).ok();
    plan.cstates = vec![CStates::AsIs, CStates::Restrict];
    plan.load_cpus = "1".parse().unwrap();
    let timer = plan.timer_mut().unwrap();
    (timer.phase, timer.clock) = (Phase::Aligned, ClockName::Tai);
    let first = commands(&record).swap_remove(0);
    assert_eq!(
        first,
        "worstcase bench --explain --clock tai --phase aligned --policy rr --priority 60 --cstates both \
         --load-cpus 1 --loads io"
    );
}

#[test]
fn next_steps_load_from_the_same_place_as_the_same_user_and_with_a_command_of_ones_own() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    let words = ["worstcase", "bench", "--load-dir=/dev/shm/a b", "--load-user", "nobody"];
    record.header.command_line = words.map(str::to_owned).to_vec();
    let asked = " --load-dir '/dev/shm/a b' --load-user nobody --loads io";
    assert_eq!(commands(&record)[0], format!("worstcase bench --explain{asked}"));
    record.header.command_line.clear();
    record.header.plan.loads = vec!["idle".into(), "command:while".into()];
    record.scenarios[0].head.planned.load = "command:while".into();
    let all = commands(&record);
    assert_eq!(all[0], "worstcase bench --explain --load-command '...'");
    assert_eq!(all[2], "worstcase bench --load-command '...' --limit 50ms --duration 10m");
    record.header.plan.loads[0] = "cpu".into();
    assert!(commands(&record)[2].contains(" --loads cpu --load-command '...' --limit"), "{all:?}");
}

#[test]
fn a_run_without_privileges_is_to_be_made_again_with_them() {
    let mut record = quiet();
    let again = "worstcase bench --loads io --duration 10s";
    let mut doubt = |id| {
        record.warnings.push(Warning {
            id,
            effect: Effect::Note,
            evidence: String::new(),
            cure: String::new(),
        });
        run::steps(&record, &|_| true).first().map(|(command, _)| command.clone())
    };
    assert_ne!(doubt(WarningId::MemoryNotLocked).as_deref(), Some(again), "a limit of memory");
    assert_eq!(doubt(WarningId::PolicyDiffers).as_deref(), Some(again));
}

/// `measure` of a few seconds draws a phase by itself: a run of ten minutes need not.
#[test]
fn next_steps_name_a_phase_only_where_somebody_asked_for_it() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    record.header.plan.timer_mut().unwrap().phase = Phase::Random;
    record.header.command_line = vec!["worstcase".into(), "measure".into(), "-D".into(), "1s".into()];
    assert!(commands(&record).iter().all(|command| !command.contains("--phase")), "{:?}", commands(&record));
    record.header.command_line.push("--phase=random".into());
    assert!(commands(&record)[0].contains(" --phase random "), "{:?}", commands(&record));
    record.header.command_line.truncate(2);
    record.header.plan.preset = Some("enea".into());
    assert!(commands(&record)[0].contains(" --phase random "), "a preset's: {:?}", commands(&record));
}

#[test]
fn next_steps_explain_nothing_that_could_not_be_explained() {
    let mut record = quiet();
    record.judgement.verdict = Verdict::Measured;
    late(&mut record, 1, &[(27_000, 1_200)]);
    assert!(commands(&record)[0].starts_with("worstcase bench --explain"), "{:?}", commands(&record));
    record.warnings.push(record::validity::not_explained("io was not explained: no tracefs", "mount it"));
    assert!(
        commands(&record).iter().all(|command| !command.contains("--explain")),
        "{:?}",
        commands(&record)
    );
}

#[test]
fn the_verdict_on_one_of_several_records_names_its_directory_and_the_weightiest_reason() {
    let reasons = vec!["CPU 1 under io: 27 ms".to_owned(), "another".into(), "a third".into()];
    let judgement = record::verdict::Judgement { verdict: Verdict::Fail, reasons, ..Default::default() };
    let lines = report::foot::verdict_of_one("before", &judgement, &plain());
    assert_eq!(lines, ["FAIL  before: CPU 1 under io: 27 ms; and 2 more"]);
}

#[test]
fn nothing_is_said_to_be_saved_where_an_output_failed() {
    let mut record = quiet();
    assert!(said(&record).contains("nothing lost in recording"), "{}", said(&record));
    record.judgement.verdict = Verdict::Error;
    assert!(said(&record).contains("not everything could be saved"), "{}", said(&record));
    record.judgement.verdict = Verdict::Fail;
    record.judgement.losses = vec!["journal.ndjson: write: No space left on device".into()];
    assert!(said(&record).contains("not everything could be saved"), "{}", said(&record));
}
