//! kill -9 at any moment: nothing that the run started survives, nothing stays changed, and what was measured up to the
//! last second can be reported.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use record::journal::Line;
use record::verdict::Verdict;
use record::{ScenarioEnd, WarningId};
use rustix::process::Signal;

use crate::support::{self, Run, is_root, lines, open_scenario, skipped};

/// Leaves its parent twice, its session, and its terminal's signals, and works on.
const DOUBLE_FORK: &str = "(setsid nohup sh -c 'while :; do :; done' >/dev/null 2>&1 &); sleep 0.2";

/// When the run is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after its start.
    StartUp(Duration),
    /// The load is up, the probe warms up.
    WarmUp,
    /// Two seconds are written, the third is not.
    MidScenario,
    /// As soon as the end of a scenario is written.
    BetweenScenarios,
}

const MOMENTS: [Moment; 5] = [
    Moment::StartUp(Duration::from_millis(4)),
    Moment::StartUp(Duration::from_millis(40)),
    Moment::WarmUp,
    Moment::MidScenario,
    Moment::BetweenScenarios,
];

/// The limit on idle states that is in effect, which a run with --cstates restrict changes while it lasts.
fn latency_limit() -> Option<i32> {
    let mut value = [0; 4];
    fs::File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut value).ok()?;
    Some(i32::from_ne_bytes(value))
}

/// Names in a directory that loads may write to, beside what was there.
fn left_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Directories of stress-ng's own.
fn left_by_stress_ng() -> Vec<String> {
    left_in(Path::new("/tmp")).into_iter().filter(|name| name.starts_with("tmp-stress-ng")).collect()
}

/// A run with a load that `load` chooses and with `idle`, in which the idle states are restricted.
fn start(load: &[&str], files: &Path) -> Run {
    let files = files.to_str().unwrap();
    let common = ["--duration", "3s", "--warm-up", "1s", "--cstates", "restrict", "--load-dir", files];
    Run::bench(&[&common[..], load].concat())
}

/// Waits for `moment`. Says how long the open scenario has been measured then, at least.
fn wait(run: &mut Run, moment: Moment, load: &str) -> Duration {
    match moment {
        Moment::StartUp(delay) => std::thread::sleep(delay),
        Moment::WarmUp => {
            run.wait_measured(load, 0);
            run.wait_until("workers", |run| run.processes().len() > 4);
        }
        Moment::MidScenario => {
            run.wait_measured(load, 1);
            let first_reported = Instant::now();
            run.wait_measured(load, 2);
            std::thread::sleep(Duration::from_millis(400));
            assert!(
                run.processes().len() > 4,
                "parent, probe, supervisor, the first of a namespace, and no worker?"
            );
            return Duration::from_secs(1) + first_reported.elapsed();
        }
        Moment::BetweenScenarios => run.wait_until("a scenario's end", |run| {
            run.journal().iter().any(|line| matches!(line, Line::Ended(_)))
        }),
    }
    Duration::ZERO
}

/// What `report` makes of what a killed run left, against its journal and the clock.
fn check_report(run: &Run, measured: Duration, what: &str) {
    let journal = run.journal();
    if !matches!(journal.first(), Some(Line::Begin(_))) {
        return;
    }
    let printed = support::report(&run.path("record"));
    let record = record::store::load(&run.path("record")).unwrap();
    assert!(
        record.ended.is_none() && record.judgement.verdict != Verdict::Pass,
        "{what}: {:?}",
        record.judgement
    );
    assert!(record.all_warnings().any(|warning| warning.id == WarningId::EndedEarly), "{what}");
    assert!(printed.contains("cut off"), "{what}: {printed}");
    let Some((load, seconds)) = open_scenario(&journal) else { return };
    let last = record.scenarios.last().unwrap();
    assert_eq!((&last.end, &last.head.planned.load), (&ScenarioEnd::CutOff, &load), "{what}");
    assert_eq!(
        last.length.duration(),
        Duration::from_secs(seconds),
        "{what}: not all that the journal tells"
    );
    // A second is written when it is over and the recorder, an ordinary process beside a load, has come around to it.
    let late = Duration::from_millis(2500);
    assert!(last.length.duration() + late >= measured, "{what}: {seconds} s shown of {measured:?}");
    for series in &last.series {
        assert!(
            series.expected() >= 999 * seconds,
            "{what}: {} activations in {seconds} s",
            series.expected()
        );
    }
}

/// Kills runs with a load at every moment.
fn kill_the_parent(load: &[&str], name: &str) {
    let before = (latency_limit(), left_by_stress_ng());
    for moment in MOMENTS {
        let what = format!("{name} killed at {moment:?}");
        let files = tempfile::tempdir().unwrap();
        let mut run = start(load, files.path());
        let measured = wait(&mut run, moment, name);
        run.signal(Signal::KILL);
        run.assert_nothing_survives(&what);
        assert_eq!(left_in(files.path()), [""; 0], "{what}");
        assert_eq!((latency_limit(), left_by_stress_ng()), before, "{what}");
        check_report(&run, measured, &what);
    }
}

#[test]
fn hackbench_and_copies_do_not_survive_the_parent() {
    kill_the_parent(&["--loads", "scary-grinder,idle"], "scary-grinder");
}

#[test]
fn writers_leave_no_file_behind() {
    kill_the_parent(&["--loads", "full,idle"], "full");
}

#[test]
fn stress_ng_does_not_survive_the_parent() {
    if support::is_missing("stress-ng") {
        return skipped("stress-ng is not installed");
    }
    kill_the_parent(&["--loads", "stress-ng-cpu,idle"], "stress-ng-cpu");
}

#[test]
fn a_command_that_forks_twice_does_not_survive_the_parent() {
    kill_the_parent(&["--load-command", DOUBLE_FORK], "command:(setsid");
}

/// Kills parent and supervisor while each other's death cannot be noticed.
fn kill_parent_and_supervisor(load: &[&str], name: &str) {
    let before = latency_limit();
    let files = tempfile::tempdir().unwrap();
    let mut run = start(load, files.path());
    let measured = wait(&mut run, Moment::MidScenario, name);
    let supervisor = run.helper(load::SUPERVISOR_ARGUMENT);
    for signal in [Signal::STOP, Signal::KILL] {
        run.signal(signal);
        support::kill(supervisor.pid, signal);
    }
    run.assert_nothing_survives(name);
    assert_eq!(latency_limit(), before, "{name}");
    assert_eq!(left_in(files.path()), [""; 0], "{name}");
    check_report(&run, measured, name);
}

#[test]
fn nothing_survives_parent_and_supervisor() {
    kill_parent_and_supervisor(&["--loads", "full,idle"], "full");
    if !is_root() {
        return skipped(
            "without CAP_SYS_ADMIN external programs can outlive parent and supervisor, as documented",
        );
    }
    kill_parent_and_supervisor(&["--load-command", DOUBLE_FORK], "command:(setsid");
}

#[test]
fn a_probe_that_is_killed_leaves_it_open_and_what_it_measured_is_saved() {
    let mut run = Run::bench(&["--loads", "cpu,idle", "--duration", "20s", "--warm-up", "100ms"]);
    run.wait_measured("cpu", 1);
    support::kill(run.helper(probe::process::ARGUMENT).pid, Signal::KILL);
    let ended = run.end();
    let record = ended.record();
    assert_eq!((ended.code(), record.scenarios.len()), (Some(3), 1));
    let ScenarioEnd::Failed(what) = &record.scenarios[0].end else { panic!("{:?}", record.scenarios[0].end) };
    assert!(what.contains("signal: 9") && ended.out.contains(what), "{what}");
    assert!(record.scenarios[0].series.iter().all(|series| series.expected() >= 999));
    assert!(lines(&fs::read_to_string(ended.path("record/journal.ndjson")).unwrap()).len() > 4);
    assert!(ended.path("record/report.html").exists());
}

#[test]
fn a_supervisor_that_is_killed_takes_its_load_along_and_that_is_reported() {
    let mut run = Run::bench(&["--loads", "scary-grinder", "--duration", "3s", "--warm-up", "100ms"]);
    run.wait_measured("scary-grinder", 1);
    let supervisor = run.helper(load::SUPERVISOR_ARGUMENT);
    support::kill(supervisor.pid, Signal::KILL);
    run.wait_until("the end of the load", |run| run.processes().len() <= 2);
    let ended = run.end();
    let record = ended.record();
    assert_eq!(record.judgement.verdict, Verdict::Inconclusive);
    assert!(ended.out.contains("the supervisor died"), "{}", ended.out);
    assert_eq!(record.scenarios[0].end, ScenarioEnd::Complete);
}
