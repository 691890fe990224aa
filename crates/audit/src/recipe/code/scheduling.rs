//! Policies, priorities and CPUs.

use super::super::{Remark, RemarkId, quantities};
use super::calls::Call;
use super::{Program, literal};

/// What is wrong with them.
pub fn remarks(program: &Program) -> Vec<Remark> {
    let mut remarks = priorities(program);
    remarks.extend(program.calls.iter().filter_map(|call| {
        policy(program, call).or_else(|| affinity(program, call)).or_else(|| unseen(program, call))
    }));
    remarks.extend(attributes(program));
    remarks.extend(deadline(program));
    remarks.extend(times(program));
    remarks
}

/// A policy's name without Python's module, and without the flag for children.
fn policy_of(text: &str) -> &str {
    let text = text.split('|').next().unwrap_or(text).trim();
    text.trim_start_matches("os.")
}

fn is_real_time(policy: &str) -> bool {
    matches!(policy, "SCHED_FIFO" | "SCHED_RR")
}

/// The policies that calls ask for.
fn policies<'a>(program: &'a Program<'_>) -> Vec<&'a str> {
    let of = |call: &'_ Call| {
        matches!(call.name, "sched_setscheduler" | "pthread_setschedparam" | "pthread_attr_setschedpolicy")
    };
    let asked = program.calls.iter().filter(|call| of(call)).filter_map(|call| call.arguments.get(1));
    asked.map(|text| policy_of(text)).filter(|text| text.starts_with("SCHED_")).collect()
}

/// Priorities that the policy does not have (sched(7)).
fn priorities(program: &Program) -> Vec<Remark> {
    let policies = policies(program);
    let all_real = !policies.is_empty() && policies.iter().all(|policy| is_real_time(policy));
    let none_real = !policies.is_empty()
        && policies.iter().all(|policy| matches!(*policy, "SCHED_OTHER" | "SCHED_BATCH" | "SCHED_IDLE"));
    let fault = |value: &str| {
        let above = value.split_once("sched_get_priority_max(").and_then(|(_, rest)| {
            rest.split_once(')')?.1.trim().strip_prefix('+')?.trim().parse::<u32>().ok()
        });
        match literal(value) {
            _ if above.is_some_and(|more| more > 0) => {
                Some("is above the policy's highest priority: the call is refused")
            }
            Some(number) if all_real && !(1..=99).contains(&number) => {
                Some("SCHED_FIFO and SCHED_RR have the priorities 1 to 99: the call is refused")
            }
            Some(number) if none_real && number != 0 => {
                Some("this policy has the priority 0 only: the call is refused")
            }
            _ => None,
        }
    };
    let written =
        program.assigned("sched_priority").into_iter().map(|(line, value)| (line, value.to_owned()));
    let python =
        program.all("sched_param").filter_map(|call| Some((call.line, call.arguments.first()?.clone())));
    let of = |(line, value): (usize, String)| Some(program.error(line, RemarkId::Malformed, fault(&value)?));
    written.chain(python).filter_map(of).collect()
}

/// Arguments of the calls that set a policy.
fn policy(program: &Program, call: &Call) -> Option<Remark> {
    let is_one = matches!(call.name, "sched_setscheduler" | "pthread_setschedparam");
    let asked = policy_of(call.arguments.get(1)?);
    let message = match call.name {
        "sched_setscheduler" if call.arguments.len() == 3 && call.arguments[0].contains("SCHED_") => {
            "the process stands first, then the policy"
        }
        _ if is_one && asked == "SCHED_DEADLINE" => {
            "SCHED_DEADLINE has times and no priority: the call is refused, sched_setattr() sets it"
        }
        _ if is_one && call.arguments.get(2).is_some_and(|text| literal(text).is_some()) => {
            "takes a sched_param, not a number"
        }
        "sched_setattr" if call.arguments.len() == 2 => "takes three arguments, the last one flags: 0",
        _ => return None,
    };
    Some(program.error(call.line, RemarkId::Malformed, message))
}

/// CPU sets.
fn affinity(program: &Program, call: &Call) -> Option<Remark> {
    let error = |message: String| Some(program.error(call.line, RemarkId::Malformed, message));
    let is_setter =
        matches!(call.name, "sched_setaffinity" | "pthread_setaffinity_np" | "pthread_attr_setaffinity_np");
    if is_setter && call.arguments.len() == 3 && call.arguments[1].starts_with('&') {
        return error("the size of the set stands before the set".to_owned());
    }
    if call.name != "CPU_SET" {
        return None;
    }
    if call.arguments[0].starts_with("0x") {
        return error("CPU_SET() takes a CPU's number, not a mask".to_owned());
    }
    let is_first = program.all("CPU_SET").next() == Some(call);
    let set = call.arguments.get(1)?.trim_start_matches('&');
    let is_cleared = program.calls_any("CPU_ZERO")
        || program.code.contains("memset(")
        || program.code.split(set).any(|rest| rest.trim_start().starts_with("= {"));
    if is_first && !is_cleared {
        return error("the set has whatever was on the stack: CPU_ZERO() comes first".to_owned());
    }
    let comment = program
        .text
        .lines()
        .nth(call.line - 1)?
        .split_once("//")
        .or_else(|| program.text.lines().nth(call.line - 1)?.split_once("/*"))?;
    let meant = only_cpu(comment.1)?;
    (literal(&call.arguments[0])? != meant).then_some(())?;
    error(format!("the comment says CPU {meant}"))
}

/// The one CPU that a comment names by its number.
fn only_cpu(comment: &str) -> Option<i128> {
    let lower = comment.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let named = words.windows(2).filter(|pair| matches!(pair[0], "cpu" | "core"));
    let mut numbers = named.filter_map(|pair| pair[1].parse().ok());
    numbers.next().filter(|_| numbers.next().is_none())
}

/// Calls that give an error's number, and never -1 (pthreads(7), clock_nanosleep(2)).
fn unseen(program: &Program, call: &Call) -> Option<Remark> {
    let gives_number = call.name.starts_with("pthread_") || call.name == "clock_nanosleep";
    let behind = program.code[call.end..].trim_start();
    let is_test = behind.starts_with("== -1")
        || behind.starts_with("==-1")
        || behind.starts_with("< 0")
        || behind.starts_with("<0");
    (gives_number && is_test).then(|| {
        let message = format!("{}() gives the error's number, never -1: a failure goes unseen", call.name);
        program.error(call.line, RemarkId::NoEffect, message)
    })
}

/// Attributes of threads: what they say counts with PTHREAD_EXPLICIT_SCHED only (pthread_attr_setinheritsched(3)).
fn attributes(program: &Program) -> Option<Remark> {
    let setters = || {
        let is_setter =
            |call: &&Call| matches!(call.name, "pthread_attr_setschedpolicy" | "pthread_attr_setschedparam");
        program.calls.iter().filter(is_setter)
    };
    let first = setters().next()?;
    let attribute = first.arguments.first()?;
    let inherits =
        program.all("pthread_attr_setinheritsched").filter_map(|call| Some((call, call.arguments.get(1)?)));
    let inherits: Vec<_> = inherits.collect();
    if let Some((call, _)) = inherits.iter().find(|(_, how)| how.as_str() == "PTHREAD_INHERIT_SCHED") {
        let message = "the thread gets its creator's policy: what the attribute says is passed over";
        return Some(program.error(call.line, RemarkId::NoEffect, message).instead("PTHREAD_EXPLICIT_SCHED"));
    }
    let creates = program.calls_any("pthread_create");
    if inherits.is_empty() && creates {
        let message =
            "counts with PTHREAD_EXPLICIT_SCHED only: by default a thread gets its creator's policy";
        return Some(
            program
                .error(first.line, RemarkId::NoEffect, message)
                .instead(format!("pthread_attr_setinheritsched({attribute}, PTHREAD_EXPLICIT_SCHED)")),
        );
    }
    if let Some(call) = program.all("pthread_create").next() {
        let is_used = program.all("pthread_create").any(|call| call.arguments.get(1) == Some(attribute));
        let is_null =
            call.arguments.get(1).is_some_and(|text| matches!(text.as_str(), "NULL" | "nullptr" | "0"));
        if is_null && !is_used {
            let message = "the thread is made without the attribute: it has its creator's policy";
            return Some(program.error(call.line, RemarkId::NoEffect, message).instead(attribute.clone()));
        }
    }
    let has_policy_later = setters().skip(1).any(|call| call.name == "pthread_attr_setschedpolicy");
    (first.name == "pthread_attr_setschedparam" && has_policy_later).then(|| {
        let message =
            "the policy is still SCHED_OTHER here, whose only priority is 0: glibc refuses any other";
        program
            .error(first.line, RemarkId::Malformed, message)
            .instead("pthread_attr_setschedpolicy() before it")
    })
}

/// Times of SCHED_DEADLINE, in nanoseconds (sched_setattr(2)).
fn deadline(program: &Program) -> Option<Remark> {
    let value =
        |name: &str| program.assigned(name).into_iter().find_map(|(line, text)| Some((line, literal(text)?)));
    let (line, runtime) = value("sched_runtime")?;
    let deadline = value("sched_deadline");
    let period = value("sched_period");
    let above = |small: i128, large: Option<(usize, i128)>| {
        large.is_some_and(|(_, large)| large > 0 && small > large)
    };
    let message = match () {
        () if above(runtime, deadline.or(period)) => {
            "the runtime is above the deadline: the kernel refuses it"
        }
        () if deadline.is_some_and(|(_, deadline)| above(deadline, period)) => {
            "the deadline is above the period: the kernel refuses it"
        }
        () if (1..1024).contains(&runtime) => "the kernel refuses a runtime below 1024 ns",
        () => return None,
    };
    Some(program.error(line, RemarkId::Malformed, message))
}

/// Fields whose unit is known beside what a comment on their line says.
fn times(program: &Program) -> Vec<Remark> {
    const FIELDS: [(&str, i128); 5] = [
        ("sched_runtime", 1),
        ("sched_deadline", 1),
        ("sched_period", 1),
        ("tv_nsec", 1),
        ("tv_usec", 1_000),
    ];
    let of = |(field, unit): (&str, i128)| {
        let fault = move |(line, value): (usize, &str)| {
            let shown = program.text.lines().nth(line - 1)?;
            let (_, comment) = shown.split_once("//").or_else(|| shown.split_once("/*"))?;
            let length = u64::try_from(literal(value)? * unit).ok()?;
            let said = quantities::slip(comment, length)?;
            let message = format!("this is {}, and the comment says {said}", units::Nanos(length));
            Some(program.error(line, RemarkId::Malformed, message))
        };
        program.assigned(field).into_iter().filter_map(fault).collect::<Vec<_>>()
    };
    FIELDS.into_iter().flat_map(of).collect()
}
