//! Signals: a run ends early and is judged on what it measured, or tells how it stands and goes on.

use std::time::{Duration, Instant};

use record::journal::Line;
use record::verdict::Verdict;
use record::{ScenarioEnd, WarningId};
use rustix::process::Signal;

use crate::support::{self, Run, kill};

const LONG: [&str; 6] = ["--loads", "cpu,idle", "--duration", "40s", "--warm-up", "100ms"];

/// Ends a run in its first scenario by `end`.
fn ends_early(end: fn(&Run)) {
    let mut run = Run::bench(&LONG);
    run.wait_measured("cpu", 1);
    end(&run);
    let asked = Instant::now();
    let ended = run.end();
    assert!(asked.elapsed() < Duration::from_secs(15), "it took {:?}", asked.elapsed());
    let record = ended.record();
    let [scenario] = &record.scenarios[..] else {
        panic!("{} scenarios were measured", record.scenarios.len())
    };
    assert_eq!((&scenario.end, scenario.head.planned.load.as_str()), (&ScenarioEnd::Interrupted, "cpu"));
    assert_eq!(ended.code(), Some(3), "{:?}", record.judgement);
    assert!(scenario.series.iter().all(|series| series.expected() >= 1000));
    assert!(scenario.evidence.threads.len() == scenario.series.len(), "what was read back is missing");
    assert!(scenario.load.stressors[0].work > 0);
    assert!(ended.out.contains("interrupted") && ended.path("record/report.html").exists(), "{}", ended.out);
}

#[test]
fn ctrl_c_ends_a_run_early() {
    ends_early(Run::interrupt);
}

#[test]
fn termination_ends_a_run_early() {
    ends_early(|run| run.signal(Signal::TERM));
}

#[test]
fn a_lost_terminal_ends_a_run_early() {
    ends_early(|run| run.signal(Signal::HUP));
}

#[test]
fn ctrl_c_before_anything_was_measured_is_130() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut run = Run::bench(&["--loads", "cpu,idle", "--duration", "1s", "--warm-up", "40s"]);
        run.wait_measured("cpu", 0);
        run.wait_until("workers", |run| run.processes().len() > 4);
        std::thread::sleep(Duration::from_millis(300));
        run.signal(signal);
        let asked = Instant::now();
        let ended = run.end();
        assert_eq!(ended.code(), Some(130), "{}", ended.err);
        assert!(asked.elapsed() < Duration::from_secs(15), "it took {:?}", asked.elapsed());
        let record = record::store::load(&ended.path("record")).unwrap();
        assert_eq!(record.activations(), 0);
    }
}

/// When a run is ended.
#[derive(Clone, Copy, Debug)]
enum Moment {
    BeforeTheFirst,
    WarmUp,
    Middle,
    Between,
    LastSecond,
}

/// Waits for the moment in a run of `cpu` and `idle`, 3 s each.
fn wait(run: &mut Run, moment: Moment) {
    match moment {
        Moment::BeforeTheFirst => {
            run.wait_until("the journal", |run| matches!(run.journal().first(), Some(Line::Begin(_))))
        }
        Moment::WarmUp => run.wait_measured("cpu", 0),
        Moment::Middle => run.wait_measured("cpu", 1),
        Moment::Between => run.wait_until("the first scenario's end", |run| {
            run.journal().iter().any(|line| matches!(line, Line::Ended(_)))
        }),
        Moment::LastSecond => run.wait_measured("idle", 2),
    }
}

#[test]
fn no_run_that_a_signal_ended_passes_its_requirement() {
    // One handler takes all three signals: every moment is met, and every signal at two of them.
    let cases = [
        (Signal::INT, Moment::BeforeTheFirst),
        (Signal::TERM, Moment::WarmUp),
        (Signal::INT, Moment::Middle),
        (Signal::HUP, Moment::Middle),
        (Signal::TERM, Moment::Between),
        (Signal::HUP, Moment::LastSecond),
    ];
    for (signal, moment) in cases {
        let options = ["--duration", "3s", "--warm-up", "300ms", "--limit", "60s", "--loads", "cpu,idle"];
        let mut run = Run::bench(&options);
        wait(&mut run, moment);
        run.signal(signal);
        let ended = run.end();
        let what = format!("{signal:?} {moment:?}: {}", ended.out);
        let record = record::store::load(&ended.path("record")).unwrap();
        if record.scenarios.len() == 2 && record.scenarios[1].end == ScenarioEnd::Complete {
            // The last second was over before the signal came.
            assert!(matches!(moment, Moment::LastSecond), "{what}");
            continue;
        }
        let measured = record.activations() > 0;
        assert_eq!(ended.code(), Some(if measured { 3 } else { 130 }), "{what}");
        assert_eq!(
            record.judgement.verdict,
            if measured { Verdict::Inconclusive } else { Verdict::Error },
            "{what}"
        );
        if matches!(moment, Moment::Middle) {
            assert_eq!(record.scenarios[0].end, ScenarioEnd::Interrupted, "{what}");
        }
        let reasons = record.judgement.reasons.join("; ");
        assert!(reasons.contains("not measured to the end: "), "{what}: {reasons}");
        assert!(reasons.contains("idle"), "{what}: what was planned and not measured is named: {reasons}");
        for series in record.scenarios.iter().flat_map(|scenario| &scenario.series) {
            assert_eq!(series.expected(), series.accounted(), "{what}");
        }
        assert!(measured == support::report(&ended.path("record")).contains("\nINCONCLUSIVE  "), "{what}");
    }
}

#[test]
fn a_run_without_a_planned_length_is_complete_when_it_is_ended() {
    for (signal, verdict) in
        [(Signal::INT, Verdict::Pass), (Signal::TERM, Verdict::Pass), (Signal::HUP, Verdict::Inconclusive)]
    {
        let mut run = Run::measure(&["--warm-up", "100ms", "--limit", "60s"]);
        run.wait_measured("idle", 1);
        run.signal(signal);
        let ended = run.end();
        let record = ended.record();
        let judged = record.judgement.clone();
        // What the machine did meanwhile may make it inconclusive; the end may not.
        let end = &record.scenarios[0].end;
        assert_eq!(*end == ScenarioEnd::Complete, verdict == Verdict::Pass, "{signal:?} {judged:?}");
        assert_eq!(
            judged.reasons.iter().any(|reason| reason.contains("to the end")),
            verdict != Verdict::Pass
        );
    }
}

/// A probe that is held over the end comes back: its stall is measured, not dropped.
#[test]
fn a_thread_that_is_held_over_the_end_is_as_late_as_it_is() {
    let mut run = Run::measure(&["--warm-up", "100ms", "--limit", "500ms"]);
    run.wait_measured("idle", 1);
    let probe = run.helper("__probe");
    kill(probe.pid, Signal::STOP);
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(800));
    kill(probe.pid, Signal::CONT);
    let ended = run.end();
    assert_eq!(ended.code(), Some(1), "{}", ended.out);
    for series in &ended.record().scenarios[0].series {
        assert_eq!((series.expected(), series.censored), (series.accounted(), None));
        // Held for a second, less what was left of its period.
        assert!(series.observed.summary().max >= 900_000_000, "{}", series.observed.summary().max);
        assert!(series.missed().summary().count >= 150, "due until the end, 200 ms later");
    }
}

/// One that does not come back is entered as at least so late, whatever ends the wait.
#[test]
fn a_thread_that_does_not_come_back_is_at_least_so_late() {
    let mut run = Run::measure(&["--warm-up", "100ms", "--limit", "500ms"]);
    run.wait_measured("idle", 1);
    kill(run.helper("__probe").pid, Signal::STOP);
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(800));
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.code(), Some(1), "{}", ended.out);
    let record = ended.record();
    assert!(record.all_warnings().any(|warning| warning.id == WarningId::ThreadLost));
    for series in &record.scenarios[0].series {
        assert_eq!(series.expected(), series.accounted());
        assert!(series.censored.unwrap().latency.0 >= 900_000_000);
    }
    assert!(ended.out.contains("at least") && ended.out.contains('>'), "{}", ended.out);
}

/// What a lock-up leaves that a watchdog ended: the journal knows which threads had gone silent.
#[test]
fn a_killed_run_shows_the_threads_that_had_gone_silent() {
    let mut run = Run::measure(&["--warm-up", "100ms", "--limit", "500ms"]);
    run.wait_measured("idle", 1);
    kill(run.helper("__probe").pid, Signal::STOP);
    let overdue = |run: &Run| {
        let clock = |line: Line| match line {
            Line::Clock(clock) => Some(clock),
            _ => None,
        };
        run.journal().into_iter().filter_map(clock).filter(|clock| !clock.overdue.is_empty()).count()
    };
    run.wait_until("two seconds of silence", |run| overdue(run) >= 2);
    run.signal(Signal::KILL);
    let ended = run.end();
    let record = record::store::load(&ended.path("record")).unwrap();
    assert_eq!(record.judgement.verdict, Verdict::Fail, "{:?}", record.judgement);
    for series in &record.scenarios[0].series {
        assert_eq!(series.expected(), series.accounted());
        assert!(series.censored.unwrap().latency.0 >= 900_000_000);
    }
}

/// The sleep is refused, as a sandbox does it: a probe that spins looks perfect, and is none.
#[test]
fn a_sleep_that_is_refused_fails_the_probe() {
    for (wake, refused, named) in [
        ("nanosleep", "clock_nanosleep:error=ENOSYS", "clock_nanosleep"),
        ("nanosleep", "clock_nanosleep:error=EPERM:when=200+", "clock_nanosleep"),
        ("nanosleep", "clock_nanosleep:retval=0", "returns at once"),
        ("timerfd", "timerfd_settime:error=EINVAL", "timerfd"),
        ("posix-timer", "rt_sigtimedwait:error=ENOSYS", "sigwaitinfo"),
        ("deadline", "sched_yield:error=EPERM", "sched_yield"),
    ] {
        let mut strace = std::process::Command::new("strace");
        let call = refused.split(':').next().unwrap();
        let (trace, inject) = (format!("trace={call}"), format!("inject={refused}"));
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
        strace.args([support::BINARY, "measure", "--out", "record", "--limit", "60s", "--wake", wake]);
        // A traced call takes tens of microseconds: only a long period has room for a thousand of them.
        let interval = if refused.contains("retval") { "200ms" } else { "2ms" };
        strace.args(["--duration", "2s", "--warm-up", "100ms", "--interval", interval]);
        let ended = Run::start_as(&mut strace).end();
        let record = record::store::load(&ended.path("record")).unwrap();
        let [scenario] = &record.scenarios[..] else { panic!("{refused}: {}", ended.err) };
        let ScenarioEnd::Failed(why) = &scenario.end else { panic!("{refused}: {:?}", scenario.end) };
        assert!(why.contains(named) && why.contains("cannot sleep"), "{refused}: {why}");
        let measured = record.activations() > 0;
        assert_eq!(ended.code(), Some(if measured { 3 } else { 2 }), "{refused}: {:?}", record.judgement);
        assert_eq!(measured, refused.contains("when"), "{refused}");
    }
}

/// Before anybody measures: the kernel's reason was lost, and thread 0 blamed.
#[test]
fn a_timer_that_cannot_be_made_is_named_with_the_kernels_reason() {
    for (wake, call, error, reason) in [
        ("timerfd", "timerfd_create", "EMFILE", "Too many open files"),
        ("posix-timer", "timer_create", "EAGAIN", "Resource temporarily unavailable"),
    ] {
        let mut strace = std::process::Command::new("strace");
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error={error}"));
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
        strace.args([support::BINARY, "measure", "--out", "record", "--wake", wake, "--duration", "300ms"]);
        let ended = Run::start_as(&mut strace).end();
        assert_eq!(ended.code(), Some(2), "{}", ended.err);
        assert!(ended.err.contains(call) && ended.err.contains(reason), "{}", ended.err);
        assert!(ended.err.contains("hint: choose another way to be woken"), "{}", ended.err);
    }
}

#[test]
fn bench_tells_how_it_stands_and_goes_on() {
    let mut run = Run::bench(&["--loads", "idle", "--duration", "2s", "--warm-up", "100ms"]);
    run.wait_measured("idle", 1);
    assert!(!run.text("stderr").contains("p99.9"));
    run.signal(Signal::USR1);
    run.wait_until("a snapshot", |run| run.text("stderr").contains("p99.9"));
    let record = run.end().record();
    assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
    assert!(record.scenarios[0].series.iter().all(|series| series.expected() == 2000));
}

#[test]
fn measure_tells_how_it_stands_and_goes_on() {
    let mut run = Run::measure(&["--duration", "3s", "--warm-up", "100ms"]);
    run.wait_until("the first second", |run| run.text("stdout").contains("1 s  CPU"));
    run.wait_measured("idle", 1);
    let lines = |run: &Run| run.text("stdout").lines().filter(|line| line.contains(" s  CPU 0 ")).count();
    let before = lines(&run);
    run.signal(Signal::USR1);
    run.wait_until("a snapshot", |run| lines(run) > before);
    let ended = run.end();
    let seconds: Vec<&str> = ended.out.lines().filter(|line| line.contains(" s  CPU 0 ")).collect();
    assert_eq!(seconds.len(), 4, "a line a second and the snapshot: {seconds:#?}");
    assert_eq!(ended.record().scenarios[0].end, ScenarioEnd::Complete);
}

#[test]
fn cyclictest_lines_are_reported_on_request() {
    let mut run = Run::measure(&["--format", "cyclictest", "--duration", "2s", "--warm-up", "100ms"]);
    run.wait_measured("idle", 1);
    run.signal(Signal::USR1);
    run.wait_until("a snapshot", |run| run.text("stderr").contains("T: 0 ("));
    let ended = run.end();
    assert!(ended.out.starts_with("T: 0 ("), "{}", ended.out);
    assert_eq!(ended.record().scenarios[0].end, ScenarioEnd::Complete);
}

#[test]
fn a_run_that_is_stopped_and_continued_goes_on() {
    let mut run = Run::bench(&["--loads", "idle", "--duration", "3s", "--warm-up", "100ms"]);
    run.wait_measured("idle", 1);
    run.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1500));
    run.signal(Signal::CONT);
    let ended = run.end();
    let record = ended.record();
    assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
    // The probe is a process of its own: it has not noticed. No second of the timeline is missing either.
    assert!(
        record.scenarios[0]
            .series
            .iter()
            .all(|series| series.expected() == 3000 && series.timeline.blocks.len() == 3)
    );
    let journal =
        crate::support::lines(&std::fs::read_to_string(ended.path("record/journal.ndjson")).unwrap());
    assert!(matches!(journal.last(), Some(Line::Finished { .. })));
}
