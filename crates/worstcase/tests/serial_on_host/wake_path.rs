//! Wake paths in guests in instruction time: on PREEMPT_RT soft timers expire in a thread of a low priority, on other kernels
//! not. The kernel's own documents say so (Documentation/core-api/real-time/differences.rst), and a hog shows it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::Command;

use record::wake_path::{WakePath, WakePaths};

use crate::support::guests;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");

/// What each of `lines` in a guest's shell printed: wake paths.
fn found(kernel: &str, script: &str) -> Vec<WakePaths> {
    let arguments =
        ["lab", "run", "--kernel", kernel, "--with", "busybox", "--with", "chrt", "--", "sh", "-c", script];
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).unwrap();
    let all: Result<Vec<WakePaths>, _> = text.lines().map(serde_json::from_str).collect();
    all.unwrap_or_else(|error| panic!("{error}: {text}\n{said}"))
}

fn of<'a>(found: &'a WakePaths, way: &str) -> &'a WakePath {
    found.paths.iter().find(|path| path.way == way).unwrap()
}

fn unsafe_ways(found: &WakePaths) -> Vec<&str> {
    let known = |path: &&WakePath| path.is_safe().unwrap_or_else(|| panic!("{path:?}"));
    found.paths.iter().filter(|path| !known(path)).map(|path| path.way.as_str()).collect()
}

/// The ways that pass through a thread, and that they do not any more once it comes before the hog.
fn timers_pass_through_a_thread_of_the_kernel(kernel: &str) {
    let script = "worstcase check --wake --json; \
                  for place in /proc/[0-9]*; do read name <$place/comm; \
                  [ $name = ktimers/0 ] && chrt -f -p 85 ${place#/proc/} >/dev/null; done; \
                  worstcase check --wake=timerfd,posix-timer,uring-timeout --json; \
                  worstcase measure --wake timerfd -D 1m --quiet >/dev/null 2>&1 & busybox sleep 3; \
                  for place in /proc/[0-9]*/task/*; do read name <$place/comm; \
                  [ $name = probe/0 ] && program=${place#/proc/} && program=${program%%/*}; done; \
                  worstcase check --wake --pid $program --json; true";
    let found = found(kernel, script);
    let [before, after, of_program] = &found[..] else { panic!("{found:?}") };
    a_program_is_seen_to_wait_and_is_delayed_from_the_priority_of_the_thread(of_program);
    let mut ways = unsafe_ways(before);
    ways.sort_unstable();
    assert_eq!(ways, ["mutex", "posix-timer", "timerfd", "uring-timeout"], "{before:?}");
    inversion_is_shown(before);
    for way in ["posix-timer", "timerfd", "uring-timeout"] {
        let path = of(before, way);
        assert_eq!(path.delayed_from, Some(1), "{path:?}");
        let through: Vec<(&str, u32)> =
            path.through.iter().map(|one| (one.name.as_str(), one.priority)).collect();
        assert_eq!(through, [("ktimers/0", 1)], "{path:?}");
        // A hog is not over before it is.
        assert!(path.worst.unwrap().0 > wakepath::BURST.0 / 2, "{path:?}");
        assert!(of(before, "nanosleep").worst.unwrap().0 * 10 < path.worst.unwrap().0, "{path:?}");
    }
    assert_eq!(unsafe_ways(after), [""; 0], "{after:?}");
}

/// By then the thread that serves the timers is at FIFO 85, and the program waits at FIFO 98.
fn a_program_is_seen_to_wait_and_is_delayed_from_the_priority_of_the_thread(found: &WakePaths) {
    let program = found.program.as_ref().unwrap();
    let wait = program.waits.iter().find(|wait| wait.thread.name == "probe/0").unwrap();
    assert_eq!(
        (wait.call.as_str(), wait.ways.as_slice()),
        ("read: timerfd", &["timerfd".to_owned()][..]),
        "{found:?}"
    );
    assert!(wait.seen * 10 > program.looks * 8, "{wait:?}");
    assert_eq!(found.priority, 98);
    let [path] = &found.paths[..] else { panic!("{found:?}") };
    assert_eq!((path.way.as_str(), path.delayed_from), ("timerfd", Some(85)), "{path:?}");
}

/// A hog above the thread that holds the lock delays the waiter, unless its priority is inherited: then the waiter waits for what was
/// left of the critical section.
fn inversion_is_shown(found: &WakePaths) {
    let (plain, inheriting) = (of(found, "mutex"), of(found, "pi-mutex"));
    assert_eq!((plain.delayed_from, inheriting.delayed_from), (Some(2), None), "{found:?}");
    assert!(plain.through.is_empty(), "{plain:?}");
    assert!(inheriting.worst.unwrap().0 * 10 < plain.worst.unwrap().0, "{found:?}");
}

#[test]
fn timers_pass_through_a_thread_of_debians_real_time_kernel() {
    if guests::hindered(&["qemu-system-x86_64", "busybox", "chrt"], &[&["--flavour", "rt"]]) {
        return;
    }
    timers_pass_through_a_thread_of_the_kernel("debian-6.1-rt-amd64");
}

#[test]
fn timers_pass_through_a_thread_of_debians_real_time_kernel_6_12() {
    if guests::hindered(
        &["qemu-system-x86_64", "busybox", "chrt"],
        &[&["--version", "6.12", "--flavour", "rt"]],
    ) {
        return;
    }
    timers_pass_through_a_thread_of_the_kernel("debian-6.12-rt-amd64");
}

#[test]
fn no_way_is_delayed_by_lower_priorities_on_a_plain_kernel() {
    if guests::hindered(&["qemu-system-x86_64", "busybox", "chrt"], &[&[]]) {
        return;
    }
    no_way_but_a_lock_is_delayed("debian-6.1-amd64");
}

#[test]
fn no_way_is_delayed_by_lower_priorities_on_a_plain_kernel_6_12() {
    if guests::hindered(&["qemu-system-x86_64", "busybox", "chrt"], &[&["--version", "6.12"]]) {
        return;
    }
    no_way_but_a_lock_is_delayed("debian-6.12-amd64");
}

fn no_way_but_a_lock_is_delayed(kernel: &str) {
    let found = found(kernel, "worstcase check --wake --json; true");
    assert_eq!(unsafe_ways(&found[0]), ["mutex"], "{found:?}");
    inversion_is_shown(&found[0]);
}
