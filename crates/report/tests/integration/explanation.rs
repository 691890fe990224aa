//! Explanations: what stands in them, at every width, on terminal and page.

use histogram::Histogram;
use record::{
    Activity, Cause, Certainty, Class, Explanation, Handler, HandlerKind, Hit, LostEvents, Overview,
    PathLengths, PathPart, Piece, Record, Stage, Tracing, Wake, WatchSummary,
};
use report::Style;
use units::{CpuId, Nanos};

use crate::sample::Spec;

fn thread(tid: i32, name: &str) -> Activity {
    Activity::Thread { tid, name: name.into(), priority: Some(120), work: None }
}

/// 5 ms late because of a page that was cleared, by a thread whose name looks like markup.
fn hit(latency: u64) -> Hit {
    let piece = |length, stage, activity| Piece { length: Nanos(length), stage, activity };
    let interrupt = || Activity::Interrupt { name: "local_timer".into() };
    let cleared = latency - 8_000;
    Hit {
        cpu: CpuId(1),
        tid: 9,
        activation: 3_447,
        due: Nanos(1_000_000_000),
        latency: Nanos(latency),
        pieces: vec![
            piece(3_000, Stage::BeforeInterrupt, Activity::Idle { asleep: true }),
            piece(1_000, Stage::InInterrupt, interrupt()),
            piece(cleared, Stage::Runnable, thread(7, "<b>stress</b>")),
            piece(4_000, Stage::Running, thread(9, "probe/1")),
        ],
        causes: vec![
            Cause {
                class: Class::NoPreemption,
                culprit: "clear_huge_page in <b>stress</b> [7]".into(),
                length: Nanos(cleared),
                certainty: Certainty::Likely,
                witness: "it gave way at a resched point (__cond_resched)".into(),
            },
            Cause {
                class: Class::Usual,
                culprit: String::new(),
                length: Nanos(8_000),
                certainty: Certainty::Sure,
                witness: String::new(),
            },
        ],
        waking_stack: vec!["hrtimer_wakeup".into(), "clear_huge_page".into()],
        switch_stack: Vec::new(),
        events: Vec::new(),
        left_out: 0,
    }
}

pub fn explained() -> Record {
    let mut record = Spec::default().record();
    let scenario = record.scenarios[0].clone();
    let tracing = Tracing {
        absent: vec!["ipi/ipi_send_cpu".into(), "names of functions (refused)".into()],
        threshold: Nanos(400_000),
        freezes: 3,
        blind: 1,
        ..Tracing::default()
    };
    let hits = vec![hit(5_000_000), hit(400_000)];
    record.explanations = vec![Explanation { of: 0, scenario, tracing, hits, overview: overview() }];
    record
}

/// Each part took 1 and 3 us; a device's handler whose name looks like markup ran for 70 us.
fn overview() -> Overview {
    let lengths = || {
        let mut lengths = Histogram::default();
        [1_000, 3_000].into_iter().for_each(|length| lengths.record(Nanos(length)));
        lengths
    };
    let part = |name| PathLengths { name, lengths: lengths() };
    Overview {
        activations: 2,
        others: 1,
        parts: PathPart::ALL.map(part).into(),
        watched: Nanos(2_000_000_000),
        handlers: vec![Handler {
            kind: HandlerKind::Interrupt,
            name: "<i>eth0</i>".into(),
            interrupt: Some(24),
            count: 12,
            time: Nanos(400_000),
            longest: Nanos(70_000),
            longest_on: CpuId(1),
        }],
        left_out: 0,
    }
}

#[test]
fn all_activations_stand_in_parts_and_their_worst_are_no_bound() {
    let text = report::explanation::text(&explained(), &Style::default());
    for expected in [
        "traced activations in parts; without 1 cut off, or not begun by their",
        "worst parts seen, laid end to end: 18.0 us. This is not a bound",
        "interrupt 24 <i>eth0</i>",
        "threaded by threadirqs",
        "rn-irq-affinity",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let page = report::page::page(&[explained()]).unwrap();
    assert!(page.contains("laid end to end: 18.0 us") && !page.contains("<i>eth0"));
}

#[test]
fn a_traced_repetition_that_was_interrupted_says_so() {
    let mut record = explained();
    record.explanations[0].scenario.end = record::ScenarioEnd::Interrupted;
    let text = report::explanation::text(&record, &Style::default());
    assert!(text.contains("the traced repetition ended early: interrupted"), "{text}");
}

#[test]
fn the_worst_that_were_caught_are_not_called_the_worst_where_others_were_not() {
    let mut record = explained();
    let text = report::explanation::text(&record, &Style::default());
    assert!(text.contains("2 late ones of "), "the record's worst end before: {text}");
    let least = record.explanations[0].hits.last().unwrap().latency;
    let sample = |latency| record::Sample { latency, due: Nanos::ZERO, activation: 0 };
    let ordinary = sample(Nanos(900));
    let series = &mut record.explanations[0].scenario.series;
    series.iter_mut().for_each(|series| series.worst = vec![ordinary]);
    series[0].worst =
        [Nanos(9_000_000), Nanos(8_000_000), least].map(sample).into_iter().chain([ordinary]).collect();
    let text = report::explanation::text(&record, &Style::default());
    assert!(text.contains("2 of the 3 worst of "), "{text}");
    record.explanations[0].tracing.blind = 0;
    let text = report::explanation::text(&record, &Style::default());
    assert!(text.contains("the 2 worst of "), "{text}");
}

#[test]
fn a_trace_that_was_never_frozen_has_not_missed_what_came_while_it_was_read() {
    let mut record = explained();
    record.explanations[0].tracing.freezes = 0;
    let text = report::explanation::text(&record, &Style::default());
    assert!(text.contains("1 wake-up above 400.0 us left no events in the trace"), "{text}");
}

#[test]
fn an_explanation_says_causes_what_helps_the_worst_and_what_is_missing() {
    let text = report::explanation::text(&explained(), &Style::default());
    for expected in [
        "clear_huge_page in <b>stress</b>: no  ",
        "\n  preemption point (likely)\n",
        "\nsum  ",
        "against no preemption point: kc-preempt-rt, bt-preempt, rn-thp",
        "The worst: 5000.0 us on CPU 1, activation 3447",
        "1 wake-up above 400.0 us came while the trace was read",
        "this kernel has no events for: who sends IPIs",
        "not to be had: names of functions (refused)",
        "seen by: it gave way at a resched point",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(report::explanation::text(&Spec::default().record(), &Style::default()), "");
}

#[test]
fn a_watch_says_which_events_it_lost_and_what_is_not_to_be_had() {
    let lost = |cpu, times, length| LostEvents { cpu: CpuId(cpu), times, length: Nanos(length) };
    let summary = WatchSummary {
        seconds: 5.0,
        threshold: Nanos(100_000),
        wake_ups: 1_867,
        unknown: 2,
        lost: vec![lost(0, 12, 3_200_000_000), lost(1, 1, 40_000_000)],
        ..WatchSummary::default()
    };
    let absent = vec!["ipi/ipi_send_cpu".into(), "names of functions (read /proc/kallsyms: gone)".into()];
    let tracing = Tracing { threshold: summary.threshold, absent, ..Tracing::default() };
    let seen = (&tracing, &Overview::default(), None);
    let text = report::explanation::watched(&[], &summary, seen, &Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "0 of 1867 wake-ups in 5.0 s were 100.0 us late or more; how late 2 more wake-ups came is not known",
        "wake-ups meanwhile are not counted: CPU 0 12 times, 3.200 s in all; CPU 1 1 time, 0.040 s in all",
        "not to be had: names of functions (read /proc/kallsyms: gone)",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let whole = WatchSummary { lost: Vec::new(), ..summary };
    let text = report::explanation::watched(&[], &whole, seen, &Style::default());
    assert!(!text.contains("overwritten"), "{text}");
}

#[test]
fn a_guest_that_is_watched_is_not_sent_to_its_firmware() {
    let mut hits = explained().explanations.remove(0).hits;
    hits.iter_mut().flat_map(|hit| &mut hit.causes).for_each(|cause| cause.class = Class::Host);
    let (tracing, overview) = (Tracing::default(), Overview::default());
    let of = |is_guest| {
        let seen = (&tracing, &overview, is_guest);
        report::explanation::watched(&hits, &WatchSummary::default(), seen, &Style::default())
    };
    let named = |is_guest| ["rn-guest-steal", "fw-smi"].map(|rule| of(is_guest).contains(rule));
    assert_eq!([Some(true), Some(false), None].map(named), [[true, false], [false, true], [true, true]]);
}

#[test]
fn an_explanation_ends_with_the_trial_of_what_helps() {
    let steps = report::next::run::of_explanations(&explained(), "run", &|_| true);
    let commands: Vec<&str> = steps.iter().map(|(command, _)| command.as_str()).collect();
    assert!(commands[0].starts_with("worstcase tune trial rn-thp --load "), "{commands:?}");
    assert!(!commands[0].contains("--without-steal"), "{commands:?}");
    assert_eq!(commands[1], "worstcase explain run --export perfetto -o run.trace");
    // What a host takes hides what a setting does.
    let mut stolen = explained();
    stolen.explanations[0].hits[1].causes[1].class = Class::Host;
    let steps = report::next::run::of_explanations(&stolen, "run", &|_| true);
    assert!(steps[0].0.ends_with(" --without-steal"), "{steps:?}");
    // Where the rule passes already, a trial of it would be refused.
    let steps = report::next::run::of_explanations(&explained(), "run", &|_| false);
    assert!(steps.iter().all(|(command, _)| !command.contains(" trial ")), "{steps:?}");
}

#[test]
fn where_all_late_wake_ups_came_while_the_trace_was_read_a_longer_run_is_next() {
    let mut record = explained();
    record.explanations.iter_mut().for_each(|one| one.hits.clear());
    let (command, _) = report::next::run::of_explanations(&record, "run", &|_| true).swap_remove(0);
    assert!(command.starts_with("worstcase bench --explain --loads "), "{command}");
    assert!(command.contains(" --duration "), "{command}");
    record.explanations.iter_mut().for_each(|one| one.tracing.blind = 0);
    let (command, _) = report::next::run::of_explanations(&record, "run", &|_| true).swap_remove(0);
    assert!(command.ends_with("check"), "none came: nothing to export, a longer run is no better: {command}");
}

#[test]
fn the_page_draws_the_worst_wake_ups_and_escapes_names() {
    let page = report::page::page(&[explained()]).unwrap();
    assert!(page.contains("Why the worst wake-ups were late"));
    assert!(page.contains("&#60;b&#62;stress") || page.contains("&lt;b&gt;stress"), "names are text");
    assert!(!page.contains("<b>stress"));
    assert!(page.contains("What the CPU did until the thread ran again"));
}

/// An explained record whose traced repetition had these latencies, of one series.
fn with_latencies(latencies: &[u64]) -> Record {
    let mut record = explained();
    let explanation = &mut record.explanations[0];
    explanation.tracing.blind = 0;
    explanation.scenario.series.truncate(1);
    let series = &mut explanation.scenario.series[0];
    series.observed = Histogram::default();
    series.worst.clear();
    for latency in latencies {
        series.observed.record(Nanos(*latency));
        let (due, activation) = (Nanos::ZERO, 0);
        series.worst.push(record::Sample { latency: Nanos(*latency), due, activation });
    }
    record
}

fn text_and_page(record: &Record) -> [String; 2] {
    let page = report::page::page(std::slice::from_ref(record)).unwrap();
    [report::explanation::text(record, &Style { width: 200, ..Style::default() }), page]
}

#[test]
fn where_no_wake_up_was_traced_none_is_said_to_be_in_time() {
    let mut record = with_latencies(&[]);
    record.explanations[0].hits.clear();
    for shown in text_and_page(&record) {
        assert!(shown.contains("othing was traced: no wake-up came"), "{shown}");
        assert!(!shown.contains("o wake-up was later than"), "{shown}");
    }
    let mut record = with_latencies(&[1_000]);
    record.explanations[0].hits.clear();
    let text = report::explanation::text(&record, &Style::default());
    assert!(text.contains("no wake-up was later than 400.0 us"), "{text}");
}

#[test]
fn a_worst_wake_up_that_is_not_explained_stands_above_the_worst_that_is() {
    for shown in text_and_page(&with_latencies(&[5_000_000, 7_240_300])) {
        assert!(
            shown.contains("worst traced wake-up was 7240.3 us late on CPU 0: it is not explained"),
            "{shown}"
        );
        assert!(!shown.contains("The worst: "), "{shown}");
    }
    let text = report::explanation::text(&with_latencies(&[5_000_000, 7_240_300]), &Style::default());
    assert!(text.contains("The worst that was explained: 5000.0 us on CPU 1"), "{text}");
    let [text, page] = text_and_page(&with_latencies(&[5_000_000]));
    assert!(text.contains("The worst: 5000.0 us"), "{text}");
    assert!(!text.contains("it is not explained") && !page.contains("it is not explained"), "{text}");
}

#[test]
fn a_table_of_parts_that_is_not_there_says_why() {
    let mut record = explained();
    record.explanations[0].overview.parts.clear();
    let said = |record: &Record, why: &str| {
        for shown in text_and_page(record) {
            assert!(shown.contains("o table of the parts of") && shown.contains(why), "{why}: {shown}");
        }
    };
    said(&record, "hides the names of functions");
    record.explanations[0].tracing.absent.clear();
    said(&record, "the trace has none of them whole");
    for wake in [Wake::Timerfd, Wake::PosixTimer, Wake::Deadline] {
        record.header.plan.timer_mut().unwrap().wake = wake;
        said(&record, "these threads wait otherwise");
    }
}

#[test]
fn each_load_that_was_not_explained_beside_others_that_were_says_why() {
    let reasons = ["vm was not explained: no room", "io was not explained: no tracefs"];
    let mut record = explained();
    record.warnings.extend(reasons.map(|why| record::validity::not_explained(why, "")));
    let text = report::explanation::text(&record, &Style::default());
    assert!(reasons.iter().all(|why| text.contains(why)), "{text}");
}

#[test]
fn a_page_has_the_causes_of_each_wake_up_with_certainty_and_witness() {
    let page = report::page::page(&[explained()]).unwrap();
    let tables = page.matches("<span>Its causes</span>").count();
    assert_eq!(tables, 2, "one a wake-up that is drawn");
    let first = &page[page.find("Its causes").unwrap()..];
    for expected in
        ["likely", "it gave way at a resched point (__cond_resched)", "99.8 %", "certainty", "seen by"]
    {
        assert!(first.contains(expected), "{expected}");
    }
}

#[test]
fn a_guest_is_not_sent_to_its_firmware_nor_a_machine_to_its_host() {
    let mut record = explained();
    for cause in record.explanations[0].hits.iter_mut().flat_map(|hit| &mut hit.causes) {
        cause.class = Class::Host;
    }
    let mut shown = |virtualization: &str| {
        record.header.machine.virtualization = record::Fact::Value(virtualization.into());
        text_and_page(&record).concat()
    };
    let guest = shown("kvm");
    assert!(guest.contains("rn-guest-steal") && !guest.contains("fw-smi"), "{guest}");
    let metal = shown("none");
    assert!(metal.contains("fw-smi") && !metal.contains("rn-guest-steal"), "{metal}");
}

#[test]
fn activations_whose_switch_is_missing_are_said_to_be_in_the_first_parts() {
    let mut record = explained();
    record.explanations[0].overview.parts[..4].iter_mut().for_each(|part| part.lengths.record(Nanos(9_000)));
    for shown in text_and_page(&record) {
        assert!(
            shown.contains("(of 1 the trace lacks the switch: their parts before it are here)"),
            "{shown}"
        );
    }
}
