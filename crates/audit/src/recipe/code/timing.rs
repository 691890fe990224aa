//! Sleeping until a time, and timers.

use super::super::{Remark, RemarkId};
use super::calls::Call;
use super::{Program, literal};

const SECOND: i128 = 1_000_000_000;

/// What is wrong with them.
pub fn remarks(program: &Program) -> Vec<Remark> {
    let sleeps = program.all("clock_nanosleep").filter_map(|call| sleep(program, call));
    let mut remarks: Vec<Remark> = sleeps.collect();
    remarks.extend(drift(program));
    remarks.extend([nanoseconds(program), unarmed(program), clock(program)].into_iter().flatten());
    remarks
}

/// Clocks that no timer runs by: neither clock_nanosleep() nor timers take them.
const WITHOUT_TIMERS: [&str; 3] = ["CLOCK_MONOTONIC_RAW", "CLOCK_MONOTONIC_COARSE", "CLOCK_REALTIME_COARSE"];

fn sleep(program: &Program, call: &Call) -> Option<Remark> {
    let [clock, flags, time, ..] = call.arguments.as_slice() else { return None };
    let read = program
        .all("clock_gettime")
        .find(|read| read.arguments.get(1) == Some(time))
        .map(|read| read.arguments[0].as_str());
    let is_absolute = flags.contains("TIMER_ABSTIME");
    let message = match read {
        _ if WITHOUT_TIMERS.contains(&clock.as_str()) => format!("no timer runs by {clock}: the call fails"),
        Some(_) if flags == "0" => {
            "the time is a point in time, and without TIMER_ABSTIME it is slept for".to_owned()
        }
        Some(read) if is_absolute && read != clock => format!("the time was read from {read}"),
        _ => return None,
    };
    Some(program.error(call.line, RemarkId::Malformed, message))
}

/// Sleeping for a time in a loop whose period is to be kept.
fn drift(program: &Program) -> Option<Remark> {
    const AIMS: [&str; 8] = [
        "no drift",
        "without drift",
        "drift-free",
        "does not drift",
        "not drift",
        "exact 1 khz",
        "exact period",
        "exactly",
    ];
    const LOOPS: [&str; 8] =
        ["for (;;", "for(;;", "while (1", "while(1", "while (true", "while(true", "while (run", "while (!"];
    let lower = program.text.to_lowercase();
    let is_meant = AIMS.iter().any(|aim| lower.contains(aim));
    let is_loop = LOOPS.iter().any(|head| program.code.contains(head));
    let is_relative = |call: &&Call| call.arguments.get(1).is_some_and(|flags| flags == "0");
    let call = program.all("clock_nanosleep").find(is_relative)?;
    (is_meant && is_loop && !program.calls_any("clock_gettime")).then(|| {
        let message = "sleeps behind the work: each cycle adds what the work and the wake-up took";
        program.error(call.line, RemarkId::NoEffect, message).instead("TIMER_ABSTIME with a time that grows")
    })
}

/// Nanoseconds of a second and more are refused (clock_nanosleep(2)).
fn nanoseconds(program: &Program) -> Option<Remark> {
    let is_above = |value: &str| literal(value).is_some_and(|value| value >= SECOND);
    if let Some((line, _)) = program.assigned("tv_nsec").into_iter().find(|(_, value)| is_above(value)) {
        let message = "nanoseconds are 0 to 999999999: the call is refused";
        return Some(program.error(line, RemarkId::Malformed, message).instead("whole seconds in tv_sec"));
    }
    let at = program.code.find("tv_nsec +=").or_else(|| program.code.find("tv_nsec+="))?;
    let carries = [
        "tv_sec++",
        "tv_sec +=",
        "tv_sec+=",
        "1000000000",
        "NSEC_PER_SEC",
        "1e9",
        "1'000'000'000",
        "norm",
        "BILLION",
    ];
    let is_used = program.calls_any("clock_nanosleep")
        || program.calls_any("timerfd_settime")
        || program.calls_any("timer_settime");
    (is_used && !carries.iter().any(|sign| program.code.contains(sign))).then(|| {
        let message = "reaches a second soon, and is refused from then on: the carry to tv_sec is missing";
        program.error(program.line_at(at), RemarkId::Malformed, message)
    })
}

/// A timer without a first time is not armed (timerfd_create(2), timer_settime(2)).
fn unarmed(program: &Program) -> Option<Remark> {
    let call = program.all("timerfd_settime").chain(program.all("timer_settime")).next()?;
    let has_interval = program.code.contains("it_interval");
    (has_interval && !program.code.contains("it_value")).then(|| {
        let message = "it_value is 0, which disarms the timer: the interval alone starts nothing";
        program.error(call.line, RemarkId::NoEffect, message)
    })
}

fn clock(program: &Program) -> Option<Remark> {
    let mut timers = program.all("timerfd_create").chain(program.all("timer_create"));
    let call = timers.find(|call| WITHOUT_TIMERS.contains(&call.arguments[0].as_str()))?;
    let message = format!("no timer runs by {}: the call fails", call.arguments[0]);
    Some(program.error(call.line, RemarkId::Malformed, message))
}
