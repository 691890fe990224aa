//! Signals: a run ends early and is judged on what it measured, or tells how it stands and goes on.

use std::time::{Duration, Instant};

use record::ScenarioEnd;
use record::journal::Line;
use rustix::process::Signal;

use crate::support::Run;

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
    assert_eq!((&scenario.end, scenario.head.load.as_str()), (&ScenarioEnd::Interrupted, "cpu"));
    assert!(matches!(ended.code(), Some(0 | 3)), "{:?}", record.judgement);
    assert!(scenario.series.iter().all(|series| series.expected >= 1000));
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

#[test]
fn bench_tells_how_it_stands_and_goes_on() {
    let mut run = Run::bench(&["--loads", "idle", "--duration", "2s", "--warm-up", "100ms"]);
    run.wait_measured("idle", 1);
    assert!(!run.text("stderr").contains("p99.9"));
    run.signal(Signal::USR1);
    run.wait_until("a snapshot", |run| run.text("stderr").contains("p99.9"));
    let record = run.end().record();
    assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
    assert!(record.scenarios[0].series.iter().all(|series| series.expected == 2000));
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
fn cyclictest_lines_are_told_on_request() {
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
            .all(|series| series.expected == 3000 && series.timeline.blocks.len() == 3)
    );
    let journal =
        crate::support::lines(&std::fs::read_to_string(ended.path("record/journal.ndjson")).unwrap());
    assert!(matches!(journal.last(), Some(Line::Finished { .. })));
}
