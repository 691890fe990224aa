//! `worstcase guard`: what takes a core of the runtime is named, with its length and the object that ran. The host takes the same time
//! from what is injected and from who looks on; where it has a part in what is between, an attempt is made again.

use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use sys::clock::Clock;
use sys::injection::Waiting;
use sys::schedule;

use crate::guarded::{
    self, BUDGET, LENGTH, MS, RUNS, STALL, cpu, excess, near, order, other_cpu, part, spin, start, taken,
};
use crate::support;

const ATTEMPTS: u32 = 6;

/// Whether there is somewhere to guard from, and the right to.
fn is_hindered() -> bool {
    let hindrance = match () {
        () if !support::is_root() => "tracing needs root",
        () if cpu() == other_cpu() => "needs two CPUs",
        () => return false,
    };
    support::skipped(hindrance);
    true
}

/// What a guard has seen while `inject` was done in the midst of it; none where nothing can be traced here.
fn guarded(inject: impl FnOnce()) -> Option<(Option<i32>, Value)> {
    match guarded::guarded(support::BINARY, inject) {
        Ok((code, seen)) => {
            support::schema::check("guard", &seen);
            Some((code, seen))
        }
        Err(said) => {
            support::skipped(support::refusal(&said));
            None
        }
    }
}

#[test]
fn an_object_that_overruns_is_named_with_its_length() {
    if is_hindered() {
        return;
    }
    let _program = start(1 << 12, || spin(LENGTH));
    support::in_one_of(ATTEMPTS, || {
        let mut truth = 0;
        let Some((code, seen)) = guarded(|| truth = order()) else { return Ok(()) };
        let excess = excess(&seen, "controller")?;
        assert_eq!(
            (code, excess["exceeded"].as_str(), excess["allowed"].as_u64()),
            (Some(1), Some("run"), Some(BUDGET))
        );
        near("run", excess["took"].as_u64().unwrap(), truth)?;
        near("its own", excess["own"].as_u64().unwrap(), truth)
    });
}

#[test]
fn a_system_call_in_an_object_is_named_whether_it_sleeps_or_not() {
    if is_hindered() {
        return;
    }
    static RANDOM: OnceLock<File> = OnceLock::new();
    RANDOM.get_or_init(|| File::open("/dev/urandom").unwrap());
    // Touched before: what is timed is the read alone.
    static BYTES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    BYTES.lock().unwrap().resize(4 << 20, 1);
    let reads: fn() = || RANDOM.get().unwrap().read_exact(&mut BYTES.lock().unwrap()).unwrap();
    for (name, act) in
        [("system call clock_nanosleep, slept", guarded::sleep as fn()), ("system call read", reads)]
    {
        let program = start(1 << 12, act);
        support::in_one_of(ATTEMPTS, || {
            let mut truth = 0;
            let Some((_, seen)) = guarded(|| truth = order()) else { return Ok(()) };
            let rows = taken(&seen, 0, name);
            let [(object, number, time)] = &rows[..] else { return Err(format!("{name}: {rows:?}")) };
            assert_eq!(object, "controller");
            assert_eq!(*number, 1);
            near(name, *time, truth)?;
            near(name, part(excess(&seen, "controller")?, "taken", name), truth)
        });
        drop(program);
    }
}

#[test]
fn an_interrupt_storm_is_counted_and_charged_to_the_object() {
    if is_hindered() {
        return;
    }
    const STORM: u64 = 100;
    const EACH: u64 = 100_000;
    let waiting = match Waiting::load().and_then(|waiting| waiting.run_on(cpu().0, 1_000).map(|()| waiting)) {
        Ok(waiting) => waiting,
        Err(error) => return support::skipped(&error.to_string()),
    };
    let _program = start(1 << 12, || {
        RUNS.store(true, Ordering::Release);
        while RUNS.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    });
    support::in_one_of(ATTEMPTS, || {
        let Some((_, seen)) = guarded(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    guarded::wait_until(|| RUNS.load(Ordering::Acquire));
                    (0..STORM).for_each(|_| waiting.run_on(cpu().0, EACH).unwrap());
                    RUNS.store(false, Ordering::Release);
                });
                order();
            });
        }) else {
            return Ok(());
        };
        let all = taken(&seen, 0, "interrupt call_function_single (__bpf_prog_test_run_raw_tp)");
        let [(object, number, time)] = &all[..] else { return Err(format!("{all:?} {seen:#}")) };
        assert_eq!((object.as_str(), *number), ("controller", STORM));
        assert!(*time >= STORM * EACH, "{time} ns: a wait never ends early");
        near("storm", *time, STORM * EACH)
    });
}

#[test]
fn another_thread_on_the_core_is_named() {
    if is_hindered() {
        return;
    }
    let _program = start(1 << 12, guarded::run_while_raised);
    support::in_one_of(ATTEMPTS, || {
        let mut held = 0;
        let Some((_, seen)) = guarded(|| held = guarded::rival()) else { return Ok(()) };
        let rows = taken(&seen, 0, "thread the-rival [");
        let time = rows.iter().filter(|(object, ..)| object == "controller").map(|(_, _, time)| time).sum();
        near("rival", time, held)?;
        near("in the excess", part(excess(&seen, "controller")?, "taken", "thread the-rival ["), time)
    });
}

#[test]
fn a_neighbour_that_does_not_come_round_is_named_by_who_waits_for_it() {
    if is_hindered() {
        return;
    }
    let _program = start(1 << 12, || STALL.store(20 * MS, Ordering::Relaxed));
    support::in_one_of(ATTEMPTS, || {
        let Some((_, seen)) = guarded(|| {
            order();
            std::thread::sleep(Duration::from_millis(50));
        }) else {
            return Ok(());
        };
        let objects = seen["cores"][1]["objects"].as_array().unwrap();
        let neighbour = objects.iter().find(|object| object["object"] == "neighbour");
        let longest = neighbour.ok_or("the neighbour is not there")?["longest"].as_u64().unwrap();
        near("neighbour", longest, 20 * MS)?;
        let waited = excess(&seen, "worker")?;
        assert_eq!((waited["core"].as_u64(), waited["exceeded"].as_str()), (Some(1), Some("response")));
        // The two were sent one after the other.
        near("response", waited["took"].as_u64().unwrap(), longest)?;
        let taken: u64 =
            waited["taken"].as_array().unwrap().iter().map(|part| part["time"].as_u64().unwrap()).sum();
        near("before it", part(waited, "before", "neighbour") + taken, longest)
    });
}

#[test]
fn nobody_is_named_where_nothing_was_done() {
    if is_hindered() {
        return;
    }
    let _program = start(1 << 12, || {});
    support::in_one_of(ATTEMPTS, || {
        let Some((code, seen)) = guarded(|| std::thread::sleep(Duration::from_millis(500))) else {
            return Ok(());
        };
        assert_eq!(seen["lost"].as_array().unwrap().len(), 0, "{seen:#}");
        // What the object makes no use of, it is not charged for.
        let calls = taken(&seen, 0, "system call");
        assert!(calls.iter().all(|(object, ..)| object.is_empty() || object == "controller"), "{calls:?}");
        assert!(taken(&seen, 0, "page fault").is_empty(), "{seen:#}");
        let receives = seen["cores"][0]["objects"][0]["receives"].as_u64().unwrap();
        assert!(receives >= 20, "{receives} receives in 900 ms and more");
        match code {
            Some(0) => Ok(()),
            _ => Err(format!("{code:?}: {:#}", seen["excesses"])),
        }
    });
}

/// A guard that was stopped reads what is left: what it could not read is unknown, and said.
#[test]
fn what_was_lost_is_unknown() {
    if is_hindered() {
        return;
    }
    static ZERO: OnceLock<File> = OnceLock::new();
    ZERO.get_or_init(|| File::open("/dev/zero").unwrap());
    let _program = start(8, || {
        let mut byte = [0];
        let end = Clock::Monotonic.now() + 300 * MS;
        while Clock::Monotonic.now() < end {
            ZERO.get().unwrap().read_exact(&mut byte).unwrap();
        }
    });
    let child = match guarded::started(guarded::guard(support::BINARY, &["-D", "10s"])) {
        Ok(child) => child,
        Err(said) => return support::skipped(support::refusal(&said)),
    };
    support::kill(child.id() as i32, Signal::STOP);
    order();
    std::thread::sleep(Duration::from_millis(500));
    support::kill(child.id() as i32, Signal::CONT);
    std::thread::sleep(Duration::from_millis(200));
    let (code, seen) = guarded::ended(child);
    let lost: Vec<&str> =
        seen["lost"].as_array().unwrap().iter().map(|words| words.as_str().unwrap()).collect();
    assert!(lost.iter().any(|words| words.starts_with("the trace lost ")), "{lost:?}");
    assert!(lost.iter().any(|words| words.contains("overwritten before they were read")), "{lost:?}");
    assert!(matches!(code, Some(1 | 3)), "{code:?}");
}

#[test]
fn a_killed_guard_leaves_no_instance_of_the_trace() {
    if is_hindered() {
        return;
    }
    let _program = start(1 << 12, || {});
    let mut child = guarded::guard(support::BINARY, &[]).spawn().unwrap();
    let process = child.id();
    support::wait_until("an instance, or the end", || {
        !super::explain::instances(process).is_empty() || child.try_wait().unwrap().is_some()
    });
    if super::explain::instances(process).is_empty() {
        return support::skipped("nothing can be traced here");
    }
    support::kill(process as i32, Signal::KILL);
    child.wait().unwrap();
    support::wait_until("the instance to be gone", || super::explain::instances(process).is_empty());
}

#[test]
fn a_thread_of_any_program_is_guarded_without_objects() {
    if is_hindered() {
        return;
    }
    let (say, said) = std::sync::mpsc::channel();
    let stop = AtomicUsize::new(0);
    let output = std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            schedule::set_affinity(0, &[cpu()].into_iter().collect()).unwrap();
            say.send(schedule::thread_id()).unwrap();
            while stop.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let tid = said.recv().unwrap().to_string();
        let mut command = Command::new(support::BINARY);
        let output = command.args(["guard", "--json", "--tid", &tid, "-D", "500ms"]).output().unwrap();
        stop.store(1, Ordering::Relaxed);
        output
    });
    let words = String::from_utf8_lossy(&output.stderr);
    if output.stdout.is_empty() {
        return support::skipped(support::refusal(&words));
    }
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::check("guard", &seen);
    let sleeps = taken(&seen, 0, "system call clock_nanosleep, slept");
    let [(object, number, _)] = &sleeps[..] else { panic!("{seen:#}") };
    assert!(object.is_empty() && (20..=60).contains(number), "{sleeps:?}");
    let refused = Command::new(support::BINARY).args(["guard", "--pid", "1"]).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("[1] publishes nothing that its cores run"), "{words}");
}

#[test]
fn a_thread_that_never_ran_was_off_the_cpu_and_one_that_is_named_twice_is_one() {
    if is_hindered() {
        return;
    }
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let tid = sleeper.id().to_string();
    let mut command = Command::new(support::BINARY);
    let guarded = command.args(["guard", "--json", "--tid", &tid, "--tid", &tid, "-D", "300ms"]);
    let output = guarded.output().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if output.stdout.is_empty() {
        return support::skipped(support::refusal(&words));
    }
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::check("guard", &seen);
    assert_eq!(seen["cores"].as_array().unwrap().len(), 1, "{seen:#}");
    let rows = taken(&seen, 0, "off the CPU since before the guard");
    let [(_, 1, length)] = rows[..] else { panic!("{seen:#}") };
    let time = seen["time"].as_u64().unwrap();
    assert!(length <= time && length >= time / 10 * 9, "{length} of {time}");
}
