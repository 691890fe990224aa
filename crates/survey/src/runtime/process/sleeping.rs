//! How its threads wait, seen in the system call that each of them is in (proc_pid_syscall(5)).

use machine::tasks::{self, Task};
use record::Fact;

use super::about::{about, real_time_threads};
use crate::survey::Survey;
use crate::value::{Item, Reading, Value, item};

/// `CLOCK_REALTIME` of include/uapi/linux/time.h.
const REALTIME: u64 = 0;
/// `TIMER_ABSTIME` of the same file.
const ABSOLUTE: u64 = 1;

/// A sleep that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sleep {
    clock: u64,
    absolute: bool,
}

/// The numbers of clock_nanosleep and nanosleep, by what uname(2) calls the machine (the kernel's syscall tables): the
/// calls for 64-bit times of 32-bit machines have the same number on all of them.
fn numbers(architecture: &str) -> Option<(&'static [u64], u64)> {
    Some(match architecture {
        "x86_64" => (&[230], 35),
        "aarch64" | "riscv64" | "loongarch64" => (&[115], 101),
        "armv6l" | "armv7l" | "armv8l" => (&[265, 407], 162),
        "i686" | "i586" => (&[267, 407], 162),
        "ppc" => (&[248, 407], 162),
        "ppc64" | "ppc64le" => (&[248], 162),
        "riscv32" => (&[407], u64::MAX),
        _ => return None,
    })
}

/// The sleep in a line of a syscall file: `230 0x1 0x1 0x7ffd... 0x0 ...`.
fn parse(line: &str, architecture: &str) -> Option<Sleep> {
    let (with_clock, without) = numbers(architecture)?;
    let mut words = line.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    if number == without {
        return Some(Sleep { clock: 1, absolute: false });
    }
    if !with_clock.contains(&number) {
        return None;
    }
    Some(Sleep { clock: argument()?, absolute: argument()? & ABSOLUTE != 0 })
}

/// Its real-time threads that are in a sleep which `wanted` picks; absent where no thread sleeps so that it could be
/// seen.
fn sleepers(survey: &Survey, wanted: impl Fn(&Sleep) -> bool) -> Reading {
    about(survey, "task/*/syscall", |pid| {
        let architecture =
            survey.read("architecture").value.value().map(ToString::to_string).unwrap_or_default();
        let threads = real_time_threads(survey, pid);
        let sleeps = threads.iter().filter_map(|task| {
            let line = survey.root.read(&format!("/proc/{pid}/task/{}/syscall", task.tid));
            Some((task, parse(line.value()?, &architecture)?))
        });
        let sleeps: Vec<(&Task, Sleep)> = sleeps.collect();
        if sleeps.is_empty() {
            return Fact::Absent;
        }
        let picked = sleeps.iter().filter(|(_, sleep)| wanted(sleep));
        let items =
            picked.map(|(task, sleep)| item(format!("{} ({})", task.name, task.tid), described(*sleep)));
        Fact::Value(Value::List(items.collect::<Vec<Item>>()))
    })
}

fn described(sleep: Sleep) -> String {
    let until = if sleep.absolute { "until a time" } else { "for a time" };
    format!("sleeps {until} of clock {}", sleep.clock)
}

/// Threads that sleep for a time instead of until one.
pub(super) fn relative(survey: &Survey) -> Reading {
    sleepers(survey, |sleep| !sleep.absolute)
}

/// Threads that sleep until a time of the clock that can be set.
pub(super) fn settable_clock(survey: &Survey) -> Reading {
    sleepers(survey, |sleep| sleep.clock == REALTIME && sleep.absolute)
}

/// By how much the kernel may delay the sleeps of its threads, the largest; absent for a process with real-time threads,
/// whose sleeps are not delayed (prctl(2), PR_SET_TIMERSLACK).
pub(super) fn timer_slack(survey: &Survey) -> Reading {
    about(survey, "timerslack_ns", |pid| {
        if !real_time_threads(survey, pid).is_empty() {
            return Fact::Absent;
        }
        let slack = |task: Task| survey.root.number::<i64>(&format!("/proc/{}/timerslack_ns", task.tid));
        let facts = tasks::threads(&survey.root, pid).into_iter().map(slack);
        let largest =
            facts.reduce(|largest, fact| largest.and_then(|largest| fact.map(|slack| slack.max(largest))));
        largest.unwrap_or(Fact::Absent).map(Value::Number)
    })
}

#[cfg(test)]
mod tests {
    use super::{Sleep, parse};
    use proptest::prelude::*;

    #[test]
    fn sleeps_are_reported_by_their_numbers() {
        let absolute = "230 0x1 0x1 0x7ffd3a2f10b0 0x0 0x0 0x0 0x7ffd3a2f1090 0x7f1c2f4e0c5a";
        assert_eq!(parse(absolute, "x86_64"), Some(Sleep { clock: 1, absolute: true }));
        assert_eq!(parse("115 0x0 0x0 0x1", "aarch64"), Some(Sleep { clock: 0, absolute: false }));
        assert_eq!(parse("407 0x1 0x1 0x1", "armv7l"), Some(Sleep { clock: 1, absolute: true }));
        assert_eq!(parse("35 0x7ffd 0x0", "x86_64"), Some(Sleep { clock: 1, absolute: false }));
        assert_eq!(parse("running", "x86_64"), None);
        assert_eq!(parse("-1 0x7ffd 0x7f1c", "x86_64"), None);
        assert_eq!(parse("230 0x1", "x86_64"), None);
        assert_eq!(parse("230 0x1 0x1", "vax"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(230|115)?( 0x[0-9a-f]{0,18}){0,4}|.{0,40}") {
            let _ = (parse(&text, "x86_64"), parse(&text, "aarch64"));
        }
    }
}
