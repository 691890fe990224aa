//! `worstcase guard` on four kernels, by a clock that counts instructions: no host has a part in any length.

use guest_tests::Guests;
use serde_json::Value;

use super::guarded::{self, BUDGET, LENGTH, excess, near, order, part, spin, start, taken};
use super::partition::PROGRAMS;

const WORDS: &str = "quiet no_timer_check";

const fn guests(kernel: &'static str) -> Guests {
    Guests::new(kernel, WORDS).programs(PROGRAMS).in_instructions()
}

static OLD: Guests = guests("debian-6.1-amd64");
static OLD_RT: Guests = guests("debian-6.1-rt-amd64");
static NEW: Guests = guests("debian-6.12-amd64");
static NEW_RT: Guests = guests("debian-6.12-rt-amd64");

fn guarded(inject: impl FnOnce()) -> (Option<i32>, Value) {
    guarded::guarded("worstcase", inject).unwrap()
}

fn fits(found: Result<(), String>) {
    found.unwrap();
}

/// An object that overruns, one that sleeps in a system call, and a thread that takes its CPU.
fn each_is_named() {
    let program = start(1 << 10, || spin(LENGTH));
    let mut truth = 0;
    let (code, seen) = guarded(|| truth = order());
    println!("{seen:#}");
    let overrun = excess(&seen, "controller").unwrap();
    assert_eq!((code, overrun["allowed"].as_u64()), (Some(1), Some(BUDGET)));
    fits(near("overrun", overrun["took"].as_u64().unwrap(), truth));
    fits(near("its own", overrun["own"].as_u64().unwrap(), truth));
    assert!(seen["lost"].as_array().unwrap().is_empty(), "{seen:#}");
    drop(program);

    let program = start(1 << 10, guarded::sleep);
    let (_, seen) = guarded(|| truth = order());
    const SLEEP: &str = "system call clock_nanosleep, slept";
    let calls = taken(&seen, 0, SLEEP);
    let [(object, 1, time)] = &calls[..] else { panic!("{calls:?}: {seen:#}") };
    assert_eq!(object, "controller");
    fits(near("sleep", *time, truth));
    fits(near("sleep of the excess", part(excess(&seen, "controller").unwrap(), "taken", SLEEP), truth));
    drop(program);

    let program = start(1 << 10, guarded::run_while_raised);
    let (_, seen) = guarded(|| truth = guarded::rival());
    let rows = taken(&seen, 0, "thread the-rival [");
    let time = rows.iter().filter(|(object, ..)| object == "controller").map(|(_, _, time)| time).sum();
    fits(near("rival", time, truth));
    drop(program);

    let program = start(1 << 10, || {});
    let (code, seen) = guarded(|| std::thread::sleep(std::time::Duration::from_millis(300)));
    assert_eq!((code, seen["excesses"].as_array().unwrap().len()), (Some(0), 0), "{seen:#}");
    drop(program);
}

#[test]
fn what_takes_a_core_is_named_on_6_1() {
    OLD.run(each_is_named);
}

#[test]
fn what_takes_a_core_is_named_on_6_1_rt() {
    OLD_RT.run(each_is_named);
}

#[test]
fn what_takes_a_core_is_named_on_6_12() {
    NEW.run(each_is_named);
}

#[test]
fn what_takes_a_core_is_named_on_6_12_rt() {
    NEW_RT.run(each_is_named);
}
