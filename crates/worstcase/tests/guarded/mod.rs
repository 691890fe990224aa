//! A program of the runtime that is guarded: the test itself. What its object does at its next event is ordered, and timed by
//! who does it, on the trace's clock.
#![allow(dead_code)] // each executable does some of it

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runtime::{
    Config, Contract, Cores, Event, Here, Kind, Machine, Place, QueueId, QueueSpec, TimeoutSpec, Wait,
};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use sys::clock::Clock;
use sys::schedule;
use units::CpuId;

pub const MS: u64 = 1_000_000;
pub const PERIOD: u64 = 20 * MS;
pub const BUDGET: u64 = 2 * MS;
/// How long what is injected lasts.
pub const LENGTH: u64 = 5 * MS;

/// What the object does at its next event, and how long that took by its own clock.
pub static ORDERED: AtomicBool = AtomicBool::new(false);
pub static TOOK: AtomicU64 = AtomicU64::new(0);

/// Raised for whoever is to act while the object runs.
pub static RUNS: AtomicBool = AtomicBool::new(false);

pub fn cpu() -> CpuId {
    schedule::affinity(0).unwrap().iter().last().unwrap()
}

pub fn other_cpu() -> CpuId {
    schedule::affinity(0).unwrap().iter().next().unwrap()
}

pub fn spin(length: u64) {
    let end = Clock::Monotonic.now() + length;
    while Clock::Monotonic.now() < end {
        std::hint::spin_loop();
    }
}

/// Core 0 runs `controller` each 20 ms, which acts where that was ordered; its last event goes to `worker`, which is at home
/// with `neighbour` on core 1.
pub struct Program(Option<Cores>);

pub fn start(publish: usize, act: fn()) -> Program {
    let config = Config { publish, cores: 2, ..Config::default() };
    let (machine, dispatchers) = Machine::new(config).unwrap();
    let pool = machine.pool(8, 64).unwrap();
    let [here, there] = [0, 1].map(|core| machine.cores(&[core]).unwrap());
    let contract = Contract::periodic(PERIOD, BUDGET).burst(2);
    let spec = |name: &str, cores| QueueSpec::new(name, Kind::Atomic).contract(contract).cores(cores);
    let worker = machine.object("worker", |_: &Here<'_>, event: Event, _: QueueId| drop(event)).unwrap();
    let works = machine.queue(&spec("works", there), Some(worker)).unwrap();
    let neighbour = |_: &Here<'_>, event: Event, _: QueueId| spin(event.word(0));
    let neighbour = machine.object("neighbour", neighbour).unwrap();
    let spins = machine.queue(&QueueSpec::new("spins", Kind::Atomic).cores(there), Some(neighbour)).unwrap();
    let controller = move |here: &Here<'_>, tick: Event, _: QueueId| {
        if ORDERED.swap(false, Ordering::AcqRel) {
            let begin = Clock::Monotonic.now();
            act();
            TOOK.store(Clock::Monotonic.now() - begin, Ordering::Release);
        }
        for (queue, word) in [(spins, STALL.swap(0, Ordering::Relaxed)), (works, 0)] {
            if queue == works || word > 0 {
                let mut event = here.allocate(pool, 64).unwrap();
                event.set_word(0, word);
                here.send(event, queue).ok();
            }
        }
        here.acknowledge(tick).ok();
    };
    let controller = machine.object("controller", controller).unwrap();
    let controls = machine.queue(&spec("controls", here), Some(controller)).unwrap();
    [worker, neighbour, controller].into_iter().for_each(|object| machine.start(object).unwrap());
    let ticks = machine.timeout(TimeoutSpec::new(controls)).unwrap();
    let mut first = machine.allocate(pool, 64).ok();
    // They sleep while they have nothing to do: cores that spin would be throttled, which is one more thing to name.
    let place =
        |cpu, priority: &str| Place { cpu: Some(cpu), priority: priority.parse().ok(), wait: Wait::Block };
    let cores = Cores::start(&machine, dispatchers, &[place(cpu(), "50"), place(other_cpu(), "50")]).unwrap();
    machine
        .on(0, &mut |here| {
            if let Some(event) = first.take() {
                here.set_timeout(ticks, here.now() + PERIOD, PERIOD, event).ok();
            }
        })
        .unwrap();
    Program(Some(cores))
}

/// How long `neighbour` is to run.
pub static STALL: AtomicU64 = AtomicU64::new(0);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.take().map(Cores::end);
    }
}

pub fn guard(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(["guard", "--json", "--pid", &std::process::id().to_string()]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a guard, and waits until it guards; its complaint where it does not.
pub fn started(mut command: Command) -> Result<Child, String> {
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while stderr.read_line(&mut said).unwrap() > 0 && !said.contains("guarding") {}
    if said.contains("guarding") {
        return Ok(child);
    }
    child.wait().unwrap();
    Err(said)
}

/// Ends a guard: its exit code, and what it has seen.
pub fn ended(child: Child) -> (Option<i32>, Value) {
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

/// What a guard has seen while `inject` was done in the midst of it.
pub fn guarded(program: &str, inject: impl FnOnce()) -> Result<(Option<i32>, Value), String> {
    let child = started(guard(program, &[]))?;
    std::thread::sleep(Duration::from_millis(200));
    inject();
    std::thread::sleep(Duration::from_millis(200));
    Ok(ended(child))
}

/// Waits for a minute at most.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Holds the core's CPU before all others while the object runs, for 5 ms: how long that was. Has the object act, which is
/// to run for as long as [`RUNS`] is raised.
pub fn rival() -> u64 {
    let held = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let rival = || {
            schedule::set_affinity(0, &[cpu()].into_iter().collect()).unwrap();
            schedule::set(schedule::Scheduling::Fifo("99".parse().unwrap())).unwrap();
            wait_until(|| RUNS.load(Ordering::Acquire));
            let begin = Clock::Monotonic.now();
            spin(LENGTH);
            held.store(Clock::Monotonic.now() - begin, Ordering::Release);
            RUNS.store(false, Ordering::Release);
        };
        std::thread::Builder::new().name("the-rival".to_owned()).spawn_scoped(scope, rival).unwrap();
        order();
    });
    held.load(Ordering::Acquire)
}

/// What the object does beside a rival.
pub fn run_while_raised() {
    RUNS.store(true, Ordering::Release);
    let end = Clock::Monotonic.now() + 20 * MS;
    while RUNS.load(Ordering::Acquire) && Clock::Monotonic.now() < end {
        std::hint::spin_loop();
    }
}

/// What the object does that sleeps in a system call.
pub fn sleep() {
    let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + LENGTH);
}

/// Has the object act, and says how long that took.
pub fn order() -> u64 {
    TOOK.store(0, Ordering::Release);
    ORDERED.store(true, Ordering::Release);
    wait_until(|| TOOK.load(Ordering::Acquire) > 0);
    TOOK.load(Ordering::Acquire)
}

/// What was taken from a core in rows of this name: the object, how often, and how long.
pub fn taken(seen: &Value, core: usize, name: &str) -> Vec<(String, u64, u64)> {
    let rows = seen["cores"][core]["taken"].as_array().unwrap().iter();
    let named = rows.filter(|row| row["what"].as_str().unwrap().starts_with(name));
    named
        .map(|row| {
            let object = row["object"].as_str().unwrap_or_default().to_owned();
            (object, row["number"].as_u64().unwrap(), row["time"].as_u64().unwrap_or_default())
        })
        .collect()
}

pub fn excess<'a>(seen: &'a Value, object: &str) -> Result<&'a Value, String> {
    let all = seen["excesses"].as_array().unwrap();
    all.iter()
        .find(|excess| excess["object"] == object)
        .ok_or_else(|| format!("{object} has no excess: {seen:#}"))
}

/// Within 5 %.
fn is_near(figure: u64, truth: u64) -> bool {
    figure.abs_diff(truth) * 20 <= truth
}

pub fn near(what: &str, figure: u64, truth: u64) -> Result<(), String> {
    println!("{what}: {figure} ns of {truth} ns");
    if is_near(figure, truth) { Ok(()) } else { Err(format!("{what}: {figure} ns, and was {truth} ns")) }
}

/// The part of that name in an excess.
pub fn part(excess: &Value, list: &str, name: &str) -> u64 {
    let parts = excess[list].as_array().unwrap().iter();
    parts
        .filter(|part| part["name"].as_str().unwrap().starts_with(name))
        .map(|part| part["time"].as_u64().unwrap())
        .sum()
}
