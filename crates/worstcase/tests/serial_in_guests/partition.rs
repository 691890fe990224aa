//! A partition on a real kernel: made, found by counting, entered, and given back.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use guest_tests::Guests;
use rustix::process::{Pid, Signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
/// What bench answers in a guest in wall time, whose latencies mean nothing.
const INCONCLUSIVE: i32 = 3;
/// Ticks in two seconds that a CPU without a tick does not reach: others have 250 a second, on a busy host fewer.
const FEW: u64 = 60;
const UNIFIED: &str = "/sys/fs/cgroup";
const V1: &str = "/run/cpuset";

/// What the guests have of the host's programs.
pub const PROGRAMS: &[&str] = &[PROGRAM, "sleep", "sh", "yes", "mount", "umount"];
/// On a busy host the kernel may find that its timer does not interrupt, and stop.
const PLAIN: &str = "quiet no_timer_check";
const TICKLESS: &str = "quiet no_timer_check nohz_full=1 rcu_nocbs=1";

pub static OLD: Guests = Guests::new("debian-6.1-amd64", PLAIN).processors(2).programs(PROGRAMS);
pub static NEW: Guests = Guests::new("debian-6.12-rt-amd64", TICKLESS).processors(2).programs(PROGRAMS);
static BOOTED: Guests = Guests::new(
    "debian-6.12-amd64",
    "quiet no_timer_check isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0",
)
.processors(2)
.programs(PROGRAMS);
/// The others of two versions, plain and PREEMPT_RT, with a tick and without.
static OTHERS: [Guests; 6] = [
    Guests::new("debian-6.1-amd64", TICKLESS).processors(2).programs(PROGRAMS),
    Guests::new("debian-6.1-rt-amd64", PLAIN).processors(2).programs(PROGRAMS),
    Guests::new("debian-6.1-rt-amd64", TICKLESS).processors(2).programs(PROGRAMS),
    Guests::new("debian-6.12-amd64", PLAIN).processors(2).programs(PROGRAMS),
    Guests::new("debian-6.12-amd64", TICKLESS).processors(2).programs(PROGRAMS),
    Guests::new("debian-6.12-rt-amd64", PLAIN).processors(2).programs(PROGRAMS),
];

fn command(words: &str) -> Command {
    let mut command = Command::new("worstcase");
    command.arg("partition").args(words.split_whitespace());
    command
}

fn answer(words: &str) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(words).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

/// A thing that verify found on CPU 1, and how often.
#[derive(Debug)]
struct Found {
    kind: String,
    name: String,
    events: u64,
}

/// What verify found on CPU 1. Each thing has a source.
fn found() -> Vec<Found> {
    counted("--duration 2s")
}

/// The same with further words for verify.
fn counted(words: &str) -> Vec<Found> {
    let Output { status, stdout, stderr } =
        command(&format!("verify --rt 1 --allow 0 --json {words}")).output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{text}{}", String::from_utf8_lossy(&stderr));
    let proof: serde_json::Value = serde_json::from_str(&text).unwrap();
    let word = |residue: &serde_json::Value, key: &str| residue[key].as_str().unwrap().to_owned();
    let residues = proof["residues"].as_array().unwrap();
    assert!(residues.iter().all(|residue| !word(residue, "source").is_empty()), "{text}");
    let found = |residue: &serde_json::Value| {
        let events = residue["events"].as_u64().unwrap();
        Found { kind: word(residue, "kind"), name: word(residue, "name"), events }
    };
    residues.iter().map(found).collect()
}

fn events(found: &[Found], kind: &str, name: &str) -> u64 {
    found.iter().filter(|one| one.kind == kind && one.name == name).map(|one| one.events).sum()
}

fn has(found: &[Found], kind: &str, name: &str) -> bool {
    events(found, kind, name) > 0
}

/// Two threads that may run anywhere and never sleep.
fn spinners(ended: &Arc<AtomicBool>) {
    for _ in 0..2 {
        let ended = Arc::clone(ended);
        let spin = move || while !ended.load(Ordering::Relaxed) {};
        std::thread::Builder::new().name("spinner".into()).spawn(spin).unwrap();
    }
}

/// A command in the partition, once it is there.
fn inside(words: &str, program: &str) -> Child {
    let child = command(words).stdout(Stdio::null()).spawn().unwrap();
    let name = || fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    while name().trim() != program {
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// The processes in the partition.
fn residents(top: &str) -> Vec<u32> {
    let text = fs::read_to_string(format!("{top}/worstcase/cgroup.procs")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Looks until it is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a program starts in the partition is there too, and may not run elsewhere.
fn children_stay_inside(top: &str) {
    let before = residents(top);
    let shell = command("run -- sh").arg("-c").arg("sleep 100 & sleep 101; true").spawn().unwrap();
    let new = || residents(top).into_iter().filter(|pid| !before.contains(pid)).collect::<Vec<u32>>();
    until("a shell and its two children are inside", || new().len() == 3);
    for pid in new() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t1\n"), "{status}");
        let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
    end(shell);
    until("they are gone", || new().is_empty());
}

/// The probe's process is inside while it measures; the command that started it, recorder and loads are not.
fn the_probe_alone_is_inside(top: &str) {
    let out = std::env::temp_dir().join(top.replace('/', "-"));
    let words = "bench --partition worstcase --loads cpu --duration 3s --out";
    let mut bench = Command::new("worstcase");
    bench.args(words.split_whitespace()).arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = residents(top);
    let bench = bench.spawn().unwrap();
    let new = || residents(top).into_iter().filter(|pid| !before.contains(pid)).collect::<Vec<u32>>();
    until("the probe is inside", || !new().is_empty());
    let load = || processes().any(|pid| command_of(pid).contains("__supervise-load"));
    until("a load runs", load);
    let inside: Vec<String> = new().into_iter().map(command_of).collect();
    assert!(inside.len() == 1 && inside[0].contains("__probe"), "{inside:?}");
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(INCONCLUSIVE), "{output:#?}");
    let record = fs::read(out.join("record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let (plan, scenario) = (&record["header"]["plan"], &record["scenarios"][0]);
    assert_eq!((&plan["cpus"], &plan["load_cpus"]), (&"1".into(), &"0".into()));
    assert_eq!(plan["partition"]["group"], format!("{top}/worstcase"));
    assert_eq!(plan["partition"], scenario["evidence"]["partition"]);
    assert!(scenario["series"][0]["timer"]["expected"].as_u64().unwrap() > 1000, "{scenario}");
    let shown = record.to_string();
    assert!(!shown.contains("partition-invalid") && !shown.contains("not-isolated"), "{shown}");
}

fn processes() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

fn command_of(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Spinners are found on CPU 1, are kept off by a partition below `top`, whose state is `state`, and come back.
fn proven(top: &str, state: &str) {
    let ended = Arc::new(AtomicBool::new(false));
    spinners(&ended);
    let before = found();
    assert!(has(&before, "unpinned-thread", "spinner"), "{before:?}");
    // Where the host is busy, CPU 1 may stand still for a whole second.
    until("verify names them", || answer("verify --rt 1 --duration 1s").1.contains("over program spinner"));

    let (code, text) = answer("create --rt 1");
    assert_eq!(code, Some(0), "{text}");
    assert!(answer("list").1.starts_with(&format!("{top}/worstcase: CPU 1, {state}, 0 processes")));
    let (code, text) = answer("create --rt 1");
    assert!(code == Some(2) && text.contains("already"), "{text}");

    println!("left on an idle CPU: {:?}", found());
    let busy = inside("run -- yes", "yes");
    let between = found();
    println!("left on a busy CPU: {between:?}");
    assert!(!has(&between, "unpinned-thread", "spinner"), "{between:?}");
    assert!(has(&between, "pinned-thread", "yes"), "{between:?}");
    let ticks = events(&between, "interrupt", "LOC");
    let is_tickless = fs::read_to_string("/proc/cmdline").unwrap().contains("nohz_full");
    assert_eq!(ticks > FEW, !is_tickless, "250 a second where they are not stopped: {between:?}");
    let traced = counted("--duration 2s --trace");
    println!("traced on a busy CPU: {traced:?}");
    assert!(events(&traced, "system-call", "yes") > 1000, "{traced:?}");
    let interrupts = events(&traced, "interrupt", "LOC");
    assert_eq!(interrupts > FEW, !is_tickless, "{traced:?}");
    let ticks: u64 =
        ["tick_sched_timer", "tick_nohz_handler"].iter().map(|name| events(&traced, "timer", name)).sum();
    // Tracing begins before the first look at the counts: where the CPU has hardly any tick, that may be the only one.
    let most = if interrupts == 0 { FEW } else { 0 };
    assert!(ticks <= most, "each tick counts once, as an interrupt: {traced:?}");
    end(busy);
    a_killed_trace_leaves_nothing();

    given_back(top);
    ended.store(true, Ordering::Relaxed);
}

fn instances() -> usize {
    fs::read_dir("/sys/kernel/tracing/instances").unwrap().count()
}

fn a_killed_trace_leaves_nothing() {
    let signalled = |signal: Signal| {
        let mut child =
            command("verify --rt 1 --duration 100s --trace").stdout(Stdio::null()).spawn().unwrap();
        until("it traces", || instances() == 1);
        // Taken at the first look.
        std::thread::sleep(Duration::from_millis(500));
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        child.wait().unwrap();
    };
    signalled(Signal::INT);
    assert_eq!(instances(), 0, "Ctrl-C leaves nothing");
    signalled(Signal::KILL);
    until("a child of the killed command has taken it away", || instances() == 0);
}

/// A program of real time is inside and stays there, until undo gives everything back.
fn given_back(top: &str) {
    let child = inside("run --policy fifo --priority 80 -- sleep 10000", "sleep");
    let pid = i32::try_from(child.id()).unwrap();
    let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status().contains("Cpus_allowed_list:\t1\n"), "{}", status());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.split_whitespace().collect();
    assert_eq!((fields[39], fields[40]), ("80", "1"), "priority and policy: {stat}");
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(groups.lines().any(|line| line.ends_with(":/worstcase")), "{groups}");
    assert!(sys::schedule::set_affinity(pid, &"0".parse().unwrap()).is_err());

    children_stay_inside(top);
    the_probe_alone_is_inside(top);

    let (code, text) = answer("undo");
    assert!(code == Some(0) && text.ends_with("proof: everything reads as before\n"), "{text}");
    assert!(!Path::new(top).join("worstcase").exists());
    let all = sys::schedule::affinity(pid).unwrap().to_string();
    assert_eq!(all, "0-1", "it may run everywhere again");
    end(child);
}

/// Runs a program of the host that answers.
fn ran(program: &str, words: &str) -> (bool, String) {
    let output = Command::new(program).args(words.split_whitespace()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_partition_is_proven_by_counting_entered_and_given_back() {
    OLD.run(|| {
        let (code, text) = answer("create --rt 0-1");
        assert!(code == Some(2) && text.contains("leaves no CPU"), "{text}");
        proven(UNIFIED, "isolated");
    });
}

#[test]
fn where_cgroup_v1_has_the_cpusets_they_serve() {
    OLD.run(|| {
        fs::create_dir(V1).unwrap();
        // The controller leaves the other hierarchy a moment after its last group.
        until("v1 has the cpusets", || ran("mount", &format!("-t cgroup -o cpuset none {V1}")).0);
        let bound = Command::new("sleep").arg("10000").spawn().unwrap();
        let pid = i32::try_from(bound.id()).unwrap();
        let one: units::CpuList = "1".parse().unwrap();
        sys::schedule::set_affinity(pid, &one).unwrap();
        let file = |name: &str| fs::read_to_string(format!("{V1}/{name}")).unwrap();
        let others = || file("tasks").lines().count();
        let (before, balance) = (others(), file("cpuset.sched_load_balance"));
        proven(V1, "exclusive");
        assert_eq!(sys::schedule::affinity(pid).unwrap(), one, "it is bound as it was");
        assert_eq!(file("cpuset.sched_load_balance"), balance);
        assert!(others().abs_diff(before) < 10, "all are back: {before}, {}", others());
        end(bound);
        assert!(ran("umount", V1).0);
    });
}

#[test]
fn a_kernel_without_a_tick_and_without_cpusets_of_v1_makes_one_too() {
    NEW.run(|| {
        proven(UNIFIED, "isolated");
        until("the groups are gone", || ran("umount", UNIFIED).0);
        assert!(!ran("mount", &format!("-t cgroup -o cpuset none {UNIFIED}")).0, "Debian leaves them out");
        let (code, text) = answer("create --rt 1");
        assert!(code == Some(2) && text.contains("CONFIG_CPUSETS_V1"), "{text}");
        assert!(ran("mount", &format!("-t cgroup2 none {UNIFIED}")).0);
    });
}

/// As a kernel without CONFIG_CPUSETS.
static WITHOUT: Guests = Guests::new("debian-6.1-amd64", "quiet no_timer_check cgroup_disable=cpuset")
    .processors(2)
    .programs(PROGRAMS);

#[test]
#[ignore = "long: one more guest"]
fn a_kernel_without_cpusets_makes_no_partition_and_does_the_rest() {
    WITHOUT.run(|| {
        let (code, text) = answer("create --rt 1");
        assert!(code == Some(2) && text.contains("cpuset controller"), "{text}");
        let (code, text) = answer("verify --duration 1s");
        assert!(code == Some(2) && text.contains("there is no partition to verify"), "{text}");
        assert!(answer("list").1.contains("no partition"), "{}", answer("list").1);
        // Everything else is done, and comes back.
        let ran = |words: &str| {
            let mut command = Command::new("worstcase");
            let output = command.arg("tune").args(words.split_whitespace()).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (code, text) = ran("apply --isolate 1 --only rn-cpuset-partition,rn-stat-interval");
        assert!(code == Some(0) && text.contains("stat_interval: 1 -> 10"), "{text}");
        let (code, text) = ran("undo");
        assert!(code == Some(0) && text.ends_with("proof: everything reads as before\n"), "{text}");
    });
}

#[test]
#[ignore = "long: one more guest"]
fn a_boot_line_that_isolates_leaves_the_rest_to_create() {
    BOOTED.run(|| {
        // A guest has no boot loader: the parameters are printed all the same.
        let (_, text) = answer("create --rt 1 --kind boot --dry-run");
        let line = text.lines().find(|line| line.starts_with("isolcpus=") && line.contains(' ')).unwrap();
        let booted = fs::read_to_string("/proc/cmdline").unwrap();
        assert!(line.split(' ').all(|word| booted.contains(word)), "{line}: {booted}");
        let (code, text) = answer("create --rt 1");
        assert!(
            code == Some(0) && text.contains("the kernel command line isolates CPUs 1 already"),
            "{text}"
        );
        assert!(text.contains("/proc/sys/vm/stat_interval: 1 -> 10"), "{text}");
        println!("left on an idle CPU: {:?}", found());
        let busy = Command::new("yes").stdout(Stdio::null()).spawn().unwrap();
        sys::schedule::set_affinity(busy.id().try_into().unwrap(), &"1".parse().unwrap()).unwrap();
        let between = found();
        println!("left on a busy CPU: {between:?}");
        assert!(
            has(&between, "pinned-thread", "yes") && events(&between, "interrupt", "LOC") < FEW,
            "{between:?}"
        );
        println!("traced on a busy CPU: {:?}", counted("--duration 2s --trace"));
        end(busy);
        let (code, text) = answer("undo");
        assert!(code == Some(0) && text.ends_with("proof: everything reads as before\n"), "{text}");
    });
}

#[test]
#[ignore = "long: six guests"]
fn on_all_kernels_what_is_left_is_named_and_everything_comes_back() {
    for guests in &OTHERS {
        guests.run(|| proven(UNIFIED, "isolated"));
    }
}
