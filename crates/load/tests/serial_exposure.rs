//! Real workers that are stopped, frozen, starved, killed, that end early or wait by design: for how long a load ran is
//! found out, whatever was done to it.
//!
//! This binary plays two parts, which its first argument selects: the tests and the supervisor. The cases of a test run at the
//! same time: what one takes from the others must not be taken for time in which they stood still.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod harness;
#[allow(dead_code, reason = "the other binary uses the rest")]
mod processes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use load::{Catalogue, Containment, Load, LoadPlan, RunningLoad, Work, Workers};
use record::{Effect, Fact, LoadDirectory, LoadEvidence, LoadProof, WarningId};
use rustix::process::{Pid, Signal};
use units::Seed;

const PATIENCE: Duration = Duration::from_secs(20);
/// A scenario, where the machine is not too busy. Something is done to the load for four fifths of it, as in the case that
/// was once missed.
const LENGTH: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == load::SUPERVISOR_ARGUMENT) {
        return load::supervisor::main().into();
    }
    let tests: [harness::Test; 6] = [
        ("workers_that_run_are_loaded", workers_that_run_are_loaded),
        ("workers_that_stand_still_are_not_loaded", workers_that_stand_still_are_not_loaded),
        (
            "workers_that_sync_and_stand_still_are_not_loaded",
            workers_that_sync_and_stand_still_are_not_loaded,
        ),
        ("workers_that_are_starved_are_not_loaded", workers_that_are_starved_are_not_loaded),
        ("a_command_is_judged_as_its_user_says", a_command_is_judged_as_its_user_says),
        (
            "what_reaches_the_disk_is_distinguished_from_what_is_written",
            what_reaches_the_disk_is_distinguished_from_what_is_written,
        ),
    ];
    harness::run(&tests, &arguments)
}

/// What is done to a load while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Nothing,
    /// SIGSTOP to every worker, and SIGCONT.
    Stop,
    /// SIGSTOP to the supervisor too: nobody looks at the workers meanwhile.
    StopAll,
    /// The cgroup freezer, on all but the parent.
    Freeze,
    /// A CPU quota of a thousandth of a CPU.
    Starve,
    Kill,
}

struct Case {
    load: Load,
    deed: Deed,
}

fn case(name: &str, deed: Deed) -> Case {
    let mut load = Catalogue::shipped().unwrap().get(name).unwrap().clone();
    for stressor in &mut load.stressors {
        stressor.workers = Workers::Number(1);
        // Hundreds of processes take a second to be stopped.
        if let Work::Hackbench(crowds) = &mut stressor.work {
            (crowds.groups, crowds.pairs) = (1, 2);
        }
    }
    Case { load, deed }
}

fn command(command: &str, proof: Option<LoadProof>, deed: Deed) -> Case {
    Case { load: Load::from_command(command).proven_by(proof), deed }
}

impl Case {
    /// Runs it: a fifth of the time as it is, and then with the deed done to it. On a busy machine the deed takes its
    /// time, and so does the rest.
    fn run(self) -> LoadEvidence {
        let deed = self.deed;
        let mut plan = LoadPlan::new(self.load, sys::schedule::affinity(0).unwrap(), Seed(3));
        plan.containment = (!rustix::process::geteuid().is_root()).then_some(Containment::Walk);
        plan.directory = plan.load.writes().then(directory);
        let mut load = load::start(plan).unwrap();
        load.wait_running(PATIENCE).unwrap();
        let supervisor = load.supervisor_pid().unwrap();
        // Starvation is judged by whole seconds.
        let starved = (deed == Deed::Starve).then(|| Group::starved(supervisor));
        load.mark_begin();
        let began = Instant::now();
        look_until(&mut load, began + LENGTH / 5);
        let group = do_to(supervisor, deed).or(starved);
        look_until(&mut load, began + LENGTH.max(began.elapsed() * 5));
        undo(supervisor, deed, group.as_ref());
        load.mark_end();
        load.stop()
    }
}

fn look_until(load: &mut RunningLoad, until: Instant) {
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        load.look();
    }
}

fn do_to(supervisor: u32, deed: Deed) -> Option<Group> {
    match deed {
        Deed::Nothing | Deed::Starve => None,
        Deed::Stop | Deed::StopAll => {
            send(supervisor, deed, Signal::STOP);
            None
        }
        Deed::Kill => {
            send(supervisor, deed, Signal::KILL);
            None
        }
        Deed::Freeze => {
            let group = Group::new("freezer", supervisor, everybody(supervisor));
            group.freeze(true);
            Some(group)
        }
    }
}

fn undo(supervisor: u32, deed: Deed, group: Option<&Group>) {
    match deed {
        Deed::Stop | Deed::StopAll => send(supervisor, deed, Signal::CONT),
        Deed::Freeze => group.iter().for_each(|group| group.freeze(false)),
        Deed::Nothing | Deed::Starve | Deed::Kill => {}
    }
}

fn directory() -> LoadDirectory {
    machine::directory_of(&sysroot::SysRoot::live(), &std::env::temp_dir()).unwrap()
}

/// The supervisor and all that it has started.
fn everybody(supervisor: u32) -> impl Iterator<Item = i32> {
    let descendants = processes::descendants(supervisor).into_iter().map(|process| process.pid);
    descendants.chain([supervisor as i32])
}

/// Whether a process owns workers: the supervisor, or the first of its namespace.
fn is_keeper(pid: i32, supervisor: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    pid == supervisor as i32 || name.trim() == "load:init"
}

/// Signals every worker, and their keepers where all are meant.
fn send(supervisor: u32, deed: Deed, signal: Signal) {
    for pid in everybody(supervisor).filter(|&pid| deed == Deed::StopAll || !is_keeper(pid, supervisor)) {
        // A process of hackbench may have ended meanwhile.
        let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal);
    }
}

/// A cgroup for all that a supervisor has started.
struct Group {
    path: PathBuf,
    is_v1: bool,
    supervisor: u32,
}

impl Group {
    /// Moves `pids` into a new group.
    fn new(controller: &str, supervisor: u32, pids: impl Iterator<Item = i32>) -> Self {
        let v1 = Path::new("/sys/fs/cgroup").join(controller);
        let is_v1 = v1.join("tasks").exists();
        let parent = if is_v1 { v1 } else { PathBuf::from("/sys/fs/cgroup") };
        if !is_v1 && controller == "cpu" {
            std::fs::write(parent.join("cgroup.subtree_control"), "+cpu").unwrap();
        }
        let path = parent.join(format!("worstcase-test-{}", supervisor));
        std::fs::create_dir(&path).unwrap();
        for pid in pids {
            let moved = std::fs::write(path.join("cgroup.procs"), pid.to_string());
            assert!(moved.is_ok() || !Path::new(&format!("/proc/{pid}")).exists(), "{moved:?}");
        }
        Self { path, is_v1, supervisor }
    }

    fn freeze(&self, is_frozen: bool) {
        let (file, value) = match (self.is_v1, is_frozen) {
            (true, true) => ("freezer.state", "FROZEN"),
            (true, false) => ("freezer.state", "THAWED"),
            (false, true) => ("cgroup.freeze", "1"),
            (false, false) => ("cgroup.freeze", "0"),
        };
        std::fs::write(self.path.join(file), value).unwrap();
    }

    fn starved(supervisor: u32) -> Self {
        let workers = everybody(supervisor).filter(|&pid| !is_keeper(pid, supervisor));
        let group = Self::new("cpu", supervisor, workers);
        if group.is_v1 {
            std::fs::write(group.path.join("cpu.cfs_period_us"), "1000000").unwrap();
            std::fs::write(group.path.join("cpu.cfs_quota_us"), "1000").unwrap();
        } else {
            std::fs::write(group.path.join("cpu.max"), "1000 1000000").unwrap();
        }
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Also where a test has failed in between.
        let parent = self.path.parent().unwrap().join("cgroup.procs");
        for pid in everybody(self.supervisor) {
            let _ = std::fs::write(&parent, pid.to_string());
        }
        for _ in 0..100 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Runs all cases at once; what each came to, in their order.
fn run_all(cases: Vec<Case>) -> Vec<LoadEvidence> {
    let threads: Vec<_> = cases.into_iter().map(|case| std::thread::spawn(move || case.run())).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn loaded_permille(evidence: &LoadEvidence) -> Vec<u64> {
    evidence.stressors.iter().map(|stressor| stressor.exposure.unwrap().permille()).collect()
}

fn worst(evidence: &LoadEvidence) -> Option<(WarningId, Effect)> {
    let warnings = record::validity::of_load_alone(evidence).into_iter();
    warnings.map(|warning| (warning.id, warning.effect)).max_by_key(|(_, effect)| *effect)
}

/// A machine of two CPUs runs two workers whole; where others have its CPUs, a load may well stand. The network has none
/// beside it: its packets are handled in softirqs, and on a virtual machine that had no other process run for seconds.
fn workers_that_run_are_loaded() {
    let shipped = |name| case(name, Deed::Nothing);
    let own = || command("while :; do :; done", None, Deed::Nothing);
    run_undisturbed(|| vec![shipped("cpu"), own()]);
    run_undisturbed(|| vec![shipped("io"), shipped("vm")]);
    for load in ["hdd", "network", "scary-grinder"] {
        run_undisturbed(|| vec![shipped(load)]);
    }
}

/// Runs cases whose workers run, again where one was doubted and others had a quarter of the CPUs meanwhile.
fn run_undisturbed(cases: impl Fn() -> Vec<Case>) {
    for attempt in 1.. {
        let (began, before) = (Instant::now(), busy());
        let all = run_all(cases());
        let spent = busy().saturating_sub(before);
        let own: u64 = all.iter().flat_map(|load| &load.stressors).map(|stressor| stressor.cpu_time.0).sum();
        let foreign = spent.0.saturating_sub(own);
        let capacity = units::Nanos::from(began.elapsed()).saturating_mul(cpus().len() as u64);
        let disturbed = foreign >= capacity.0 / 4;
        if !disturbed || attempt == 5 || all.iter().all(|evidence| doubt(evidence).is_none()) {
            return all.iter().for_each(is_loaded);
        }
    }
}

fn cpus() -> units::CpuList {
    sys::schedule::affinity(0).unwrap()
}

/// CPU time that was not idle, the time that a host took included.
fn busy() -> units::Nanos {
    match machine::CpuTimes::read(&sysroot::SysRoot::live()) {
        Fact::Value(times) => times.busy(&cpus()),
        _ => panic!("/proc/stat cannot be read"),
    }
}

fn doubt(evidence: &LoadEvidence) -> Option<(WarningId, Effect)> {
    worst(evidence).filter(|(_, effect)| *effect == Effect::Inconclusive)
}

fn is_loaded(evidence: &LoadEvidence) {
    assert_eq!(doubt(evidence), None, "{evidence:#?}");
    assert!(evidence.timeline.blocks.len() >= 2, "{evidence:#?}");
    for (index, stressor) in evidence.stressors.iter().enumerate() {
        let work: u64 = evidence.timeline.blocks.iter().map(|block| block.work[index]).sum();
        assert!(
            work.abs_diff(stressor.work) <= stressor.work / 5 + 2,
            "{work} of {}: {evidence:#?}",
            stressor.work
        );
    }
}

fn workers_that_stand_still_are_not_loaded() {
    let mut cases = vec![
        case("cpu", Deed::Stop),
        case("cpu", Deed::StopAll),
        case("scary-grinder", Deed::Stop),
        command("while :; do :; done", None, Deed::Stop),
        command("sleep 100", Some(LoadProof::Alive), Deed::Stop),
        case("cpu", Deed::Kill),
        command("timeout 0.4 sh -c 'while :; do :; done'; exit 0", None, Deed::Nothing),
    ];
    if rustix::process::geteuid().is_root() {
        cases.push(case("cpu", Deed::Freeze));
        cases.push(case("hdd", Deed::Freeze));
        cases.push(command("sleep 100", Some(LoadProof::Alive), Deed::Freeze));
    } else {
        println!("skipped: needs privileges: the freezer");
    }
    let names: Vec<String> = cases.iter().map(|case| format!("{} {:?}", case.load.name, case.deed)).collect();
    for (name, evidence) in names.iter().zip(run_all(cases)) {
        stood_still(name, &evidence);
    }
}

/// A disk that is busy with others' data keeps a worker in sync(2), and it stops when that has ended: such a run is repeated.
fn workers_that_sync_and_stand_still_are_not_loaded() {
    let attempt = |_| run_all(vec![case("io", Deed::Stop)]).remove(0);
    let few = |evidence: &LoadEvidence| loaded_permille(evidence).iter().all(|&permille| permille < 500);
    let evidence = (1..4).map(attempt).find(few).unwrap_or_else(|| attempt(4));
    stood_still("io Stop", &evidence);
}

fn stood_still(name: &str, evidence: &LoadEvidence) {
    let loaded = loaded_permille(evidence);
    assert!(loaded.iter().all(|&permille| permille < 500), "{name}: {loaded:?} {evidence:#?}");
    assert!(
        worst(evidence).is_some_and(|(_, effect)| effect == Effect::Inconclusive),
        "{name}: {evidence:#?}"
    );
}

fn workers_that_are_starved_are_not_loaded() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs privileges: a CPU quota");
    }
    for evidence in run_all(vec![case("cpu", Deed::Starve), case("vm", Deed::Starve)]) {
        assert!(loaded_permille(&evidence)[0] < 500, "{evidence:#?}");
        assert!(evidence.stressors[0].exposure.unwrap().held_back.0 > 0, "{evidence:#?}");
    }
}

fn a_command_is_judged_as_its_user_says() {
    let cases = [None, Some(LoadProof::Work), Some(LoadProof::Alive)]
        .map(|proof| command("sleep 100", proof, Deed::Nothing));
    let found: Vec<_> = run_all(cases.into()).iter().map(worst).collect();
    let idle = Some((WarningId::LoadIdle, Effect::Inconclusive));
    assert_eq!(found, [idle, idle, None]);
}

fn what_reaches_the_disk_is_distinguished_from_what_is_written() {
    if directory().is_in_memory() {
        return println!("skipped: needs a disk: the temporary directory is in memory");
    }
    let evidence = case("disk", Deed::Nothing).run();
    let device = evidence.device.clone().unwrap();
    match device.written {
        Fact::Value(written) => assert!(written >= evidence.stressors[0].work / 2, "{evidence:#?}"),
        missing => println!("skipped: needs a device of its own below the directory: {missing}"),
    }
}
