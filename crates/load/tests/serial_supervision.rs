//! Real processes: every stressor works, and nothing survives whatever is killed.
//!
//! This binary plays three parts, which its first argument selects: the tests, the parent that is killed, and the supervisor.
//! Tests run one after the other, each for a second or so.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod harness;
mod processes;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use load::{Catalogue, Containment, Limits, Load, LoadPlan, RunningLoad, Work};
use record::{LoadDirectory, LoadEvidence};
use rustix::process::Signal;
use sys::schedule::{self, Scheduling};
use units::{Bytes, CpuList, Nanos, Seed};

use processes::{Watch, signal};

const PATIENCE: Duration = Duration::from_secs(20);
const WHILE: Duration = Duration::from_millis(600);
/// A command that leaves its parent, its session, its environment and its name behind, and works on.
const DOUBLE_FORK: &str = "env -i setsid sh -c 'while :; do :; done' & sleep 0.1; exit 0";
/// hackbench without end, as EVL runs it.
const HACKBENCH: &str = "while :; do hackbench -g 2 >/dev/null; done";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(load::SUPERVISOR_ARGUMENT) => load::supervisor::main().into(),
        Some("parent") => parent(&arguments[1..]),
        _ => harness::run(&TESTS, &arguments),
    }
}

const TESTS: [harness::Test; 14] = [
    ("every_built_in_stressor_works_and_stops", every_built_in_stressor_works_and_stops),
    ("workers_are_ordinary_where_the_parent_is_not", workers_are_ordinary_where_the_parent_is_not),
    ("the_crowd_is_real_time", the_crowd_is_real_time),
    ("programs_work_and_stop", programs_work_and_stop),
    ("a_sequence_goes_through_its_steps", a_sequence_goes_through_its_steps),
    ("a_program_in_the_background_is_the_load", a_program_in_the_background_is_the_load),
    ("what_a_program_says_when_it_fails_is_kept", what_a_program_says_when_it_fails_is_kept),
    ("nothing_is_written_below_the_floor", nothing_is_written_below_the_floor),
    ("no_memory_is_taken_above_the_ceiling", no_memory_is_taken_above_the_ceiling),
    ("files_have_no_name_or_go_with_the_load", files_have_no_name_or_go_with_the_load),
    ("nothing_survives_the_parent", nothing_survives_the_parent),
    ("nothing_survives_parent_and_supervisor", nothing_survives_parent_and_supervisor),
    (
        "built_in_workers_do_not_survive_outside_a_namespace",
        built_in_workers_do_not_survive_outside_a_namespace,
    ),
    ("a_supervisor_that_is_killed_is_missed", a_supervisor_that_is_killed_is_missed),
];

fn skipped(why: &str) {
    println!("skipped: {why}");
}

// The parent that is killed: `parent LOAD CONTAINMENT`.

fn parent(arguments: &[String]) -> ExitCode {
    let mut plan = plan(&named(&arguments[0]));
    plan.containment = Containment::ALL.into_iter().find(|way| way.to_string() == arguments[1]);
    let mut load = load::start(plan).unwrap();
    load.wait_running(PATIENCE).unwrap();
    println!("{}", load.supervisor_pid().unwrap());
    loop {
        std::thread::sleep(PATIENCE);
    }
}

// Plans.

fn named(name: &str) -> Load {
    match name.strip_prefix("command:") {
        Some(command) => Load::from_command(command),
        None => Catalogue::shipped().unwrap().get(name).unwrap().clone(),
    }
}

fn plan(load: &Load) -> LoadPlan {
    let mut plan = LoadPlan::new(load.clone(), schedule::affinity(0).unwrap(), Seed(11));
    plan.directory = Some(directory(&std::env::temp_dir()));
    plan
}

fn directory(path: &Path) -> LoadDirectory {
    LoadDirectory { path: path.to_str().unwrap().into(), file_system: "test".into(), device: "test".into() }
}

fn started(plan: LoadPlan) -> RunningLoad {
    let mut load = load::start(plan).unwrap();
    load.wait_running(PATIENCE).unwrap();
    load
}

/// What the load did in [`WHILE`]; whatever it started must be gone afterwards.
fn ran(plan: LoadPlan) -> LoadEvidence {
    let mut load = started(plan);
    let watch = Watch::of(load.supervisor_pid().unwrap());
    load.mark_begin();
    std::thread::sleep(WHILE);
    load.mark_end();
    let evidence = load.stop();
    watch.assert_gone(&evidence.name);
    evidence
}

fn installed(program: &str) -> bool {
    let script = format!("command -v {program} >/dev/null");
    let there = Command::new("sh").args(["-c", &script]).status().unwrap().success();
    if !there {
        skipped(&format!("{program} is not installed"));
    }
    there
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("needs privileges");
    }
    root
}

// Tests.

fn every_built_in_stressor_works_and_stops() {
    for load in Catalogue::shipped().unwrap().loads() {
        let programs = load.stressors.iter().any(|stressor| matches!(stressor.work, Work::Program(_)));
        if programs || load.is_real_time() || load.stressors.is_empty() {
            continue;
        }
        let evidence = ran(plan(load));
        assert_eq!(evidence.stressors.len(), load.stressors.len());
        for stressor in &evidence.stressors {
            // A sync may take longer than this looks: then it waited for the disk all the time.
            let syncs = stressor.name == "io" && !stressor.did_nothing();
            assert!(stressor.work > 0 || syncs, "{}: {stressor:?}", load.name);
            assert!(stressor.failures.is_empty(), "{}: {stressor:?}", load.name);
            assert!(stressor.cpu_time > Nanos::ZERO || stressor.name == "io", "{}: {stressor:?}", load.name);
        }
        assert!(!evidence.containment.is_empty());
    }
    let idle = load::start(plan(&named("idle"))).unwrap().stop();
    assert!(idle.stressors.is_empty() && idle.cpus.is_empty());
}

fn workers_are_ordinary_where_the_parent_is_not() {
    if let Err(error) = schedule::set(Scheduling::Fifo("1".parse().unwrap())) {
        return skipped(&error.to_string());
    }
    let one: CpuList = schedule::affinity(0).unwrap().first().into_iter().collect();
    let mut plan = plan(&named("full"));
    plan.cpus = one.clone();
    let load = started(plan);
    schedule::set(Scheduling::Other).unwrap();
    let all = processes::descendants(load.supervisor_pid().unwrap());
    // The first process of its namespace is a part of the supervisor, which goes before its workers.
    let is_first = |process: &processes::Process| {
        std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).is_ok_and(|name| name == "load:init\n")
    };
    let (first, workers): (Vec<_>, Vec<_>) = all.into_iter().partition(is_first);
    assert!(first.iter().all(|first| (first.policy, first.nice) == (0, -20)), "{first:?}");
    assert!(workers.len() >= 4, "{workers:?}");
    for worker in workers {
        assert_eq!((worker.policy, worker.nice), (0, 0), "{worker:?}");
        assert_eq!(schedule::affinity(worker.pid).unwrap(), one, "{worker:?}");
    }
    load.stop();
}

fn the_crowd_is_real_time() {
    let mut load = load::start(plan(&named("rt-crowd"))).unwrap();
    if let Err(error) = load.wait_running(PATIENCE) {
        assert!(error.to_string().contains("RLIMIT_RTPRIO"), "{error}");
        return skipped("no privilege for SCHED_FIFO");
    }
    let workers = processes::descendants(load.supervisor_pid().unwrap()).into_iter();
    let real_time = workers.filter(|worker| worker.policy == 1).count();
    assert_eq!(real_time, 2 * schedule::affinity(0).unwrap().len());
    load.mark_begin();
    std::thread::sleep(WHILE);
    assert!(load.stop().stressors.iter().all(|stressor| stressor.work > 0));
}

fn programs_work_and_stop() {
    for (program, load) in
        [("stress-ng", named("stress-ng-cpu")), ("hackbench", Load::from_command(HACKBENCH))]
    {
        if !installed(program) {
            continue;
        }
        let evidence = ran(plan(&load));
        let stressor = &evidence.stressors[0];
        assert!(stressor.work > 0 && stressor.failures.is_empty() && !stressor.built_in, "{stressor:?}");
        assert_eq!(stressor.unit, "ms of CPU time");
    }
}

fn a_sequence_goes_through_its_steps() {
    if !installed("stress-ng") {
        return;
    }
    let mut load = named("pesky-neighbour");
    if let Work::Program(program) = &mut load.stressors[0].work {
        program.steps = ["switch", "no-such-stressor", "memcpy"].map(String::from).to_vec();
    }
    let mut plan = plan(&load);
    plan.duration = Some(Nanos::from_millis(900));
    let mut load = started(plan);
    let watch = Watch::of(load.supervisor_pid().unwrap());
    std::thread::sleep(Duration::from_millis(2500));
    assert!(load.alive());
    let stressor = load.stop().stressors.remove(0);
    watch.assert_gone("pesky-neighbour");
    assert_eq!(stressor.name, "stress-ng (3 of 3 in turn)");
    assert_eq!(stressor.failures.len(), 1, "{stressor:?}");
    assert!(stressor.failures[0].contains("no-such-stressor ended with status"), "{stressor:?}");
}

fn a_program_in_the_background_is_the_load() {
    for way in ways() {
        let mut plan = plan(&Load::from_command(DOUBLE_FORK));
        plan.containment = Some(way);
        let mut load = started(plan);
        std::thread::sleep(WHILE);
        let watch = Watch::of(load.supervisor_pid().unwrap());
        load.mark_begin();
        std::thread::sleep(WHILE);
        let evidence = load.stop();
        watch.assert_gone(&way.to_string());
        assert!(evidence.stressors[0].work > 0 && evidence.stressors[0].failures.is_empty(), "{evidence:?}");
        assert_eq!(evidence.containment, way.to_string());
    }
}

fn what_a_program_says_when_it_fails_is_kept() {
    let failure = |command: &str| {
        let mut load = load::start(plan(&Load::from_command(command))).unwrap();
        std::thread::sleep(WHILE);
        let failed = load.wait_running(PATIENCE).unwrap_err().to_string();
        let failures = load.stop().stressors.remove(0).failures;
        assert!(failures.iter().all(|text| failed.contains(text)), "{failed} {failures:?}");
        failures.join("; ")
    };
    let text = failure("echo first >&2; echo oops >&2; exit 3");
    assert!(text.contains("status 3") && text.contains("oops"), "{text}");
    let text = failure("/nonexistent/stress-ng --cpu 1");
    assert!(text.contains("stress-ng was not found") && text.contains("package stress-ng"), "{text}");
    let text = failure("true");
    assert!(text.contains("ended by itself"), "{text}");
}

fn nothing_is_written_below_the_floor() {
    let mut plan = plan(&named("hdd"));
    plan.limits = Limits { disk_floor: Bytes(u64::MAX / 2), ..Limits::default() };
    let evidence = ran(plan);
    let stressor = &evidence.stressors[0];
    assert_eq!(stressor.work, 0);
    assert!(stressor.failures[0].contains("refused to write"), "{stressor:?}");
}

fn no_memory_is_taken_above_the_ceiling() {
    let mut load = named("scary-grinder");
    load.stressors.remove(0);
    let mut plan = plan(&load);
    plan.limits = Limits { memory_permille: 0, ..Limits::default() };
    let mut load = load::start(plan).unwrap();
    let text = load.wait_running(PATIENCE).unwrap_err().to_string();
    assert!(text.contains("no buffer of 128 MiB"), "{text}");
    assert_eq!(load.stop().stressors[0].work, 0);
}

fn files_have_no_name_or_go_with_the_load() {
    for named_files in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let mut plan = plan(&named("hdd"));
        plan.directory = Some(directory(place.path()));
        plan.limits = Limits { named_files, ..Limits::default() };
        let load = started(plan);
        let names = || std::fs::read_dir(place.path()).unwrap().count();
        assert_eq!(names(), usize::from(named_files), "while it runs");
        let evidence = load.stop();
        assert_eq!(names(), 0, "afterwards");
        assert!(evidence.stressors[0].failures.is_empty(), "{evidence:?}");
        assert_eq!(evidence.directory, Some(directory(place.path())));
    }
}

/// The ways of containment that can be tried here.
fn ways() -> Vec<Containment> {
    if is_root() { Containment::ALL.to_vec() } else { vec![Containment::Walk] }
}

/// Loads with processes that are hard to find, as far as their programs are installed.
fn hard_cases() -> Vec<String> {
    let mut cases = vec!["scary-grinder".to_owned(), format!("command:{DOUBLE_FORK}")];
    cases.extend(installed("hackbench").then(|| format!("command:{HACKBENCH}")));
    cases.extend(installed("stress-ng").then(|| "pesky-neighbour".to_owned()));
    cases
}

struct Victim {
    parent: Child,
    supervisor: u32,
}

impl Victim {
    fn start(load: &str, way: Containment) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["parent", load, &way.to_string()]).env(processes::MARK, std::process::id().to_string());
        let mut parent = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        std::thread::sleep(WHILE);
        Self { parent, supervisor: line.trim().parse().unwrap() }
    }

    fn kill_parent(&mut self) {
        self.parent.kill().unwrap();
        self.parent.wait().unwrap();
    }

    /// Kills parent and supervisor so that neither can see the other end.
    fn kill_both(&mut self) {
        for pid in [self.parent.id(), self.supervisor] {
            signal(pid, Signal::STOP);
        }
        for pid in [self.parent.id(), self.supervisor] {
            signal(pid, Signal::KILL);
        }
        self.parent.wait().unwrap();
    }
}

/// A test that fails leaves nobody behind either.
impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

fn nothing_survives_the_parent() {
    for way in ways() {
        for load in hard_cases() {
            let mut victim = Victim::start(&load, way);
            let watch = Watch::of(victim.supervisor);
            victim.kill_parent();
            watch.assert_gone(&format!("{load} in {way}"));
        }
    }
}

fn nothing_survives_parent_and_supervisor() {
    if !is_root() {
        return;
    }
    for load in hard_cases() {
        let mut victim = Victim::start(&load, Containment::PidNamespace);
        let watch = Watch::of(victim.supervisor);
        victim.kill_both();
        watch.assert_gone(&load);
    }
}

fn built_in_workers_do_not_survive_outside_a_namespace() {
    for load in ["full", "scary-grinder", "network"] {
        let mut victim = Victim::start(load, Containment::Walk);
        let watch = Watch::of(victim.supervisor);
        victim.kill_both();
        watch.assert_gone(load);
    }
}

fn a_supervisor_that_is_killed_is_missed() {
    let mut load = started(plan(&named("scary-grinder")));
    let pid = load.supervisor_pid().unwrap();
    let watch = Watch::of(pid);
    signal(pid, Signal::KILL);
    while load.alive() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The parent still holds the leash: the workers must go for the supervisor's sake.
    watch.assert_gone("scary-grinder");
    let evidence = load.stop();
    assert!(evidence.stressors.iter().all(|stressor| stressor.failures[0].contains("supervisor died")));
}
