//! Settings of real kernels: applied, found to hold, undone, and the whole machine as it was.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod between;
mod identity;
mod machine_state;
mod service;
mod settings;
mod threads;

use std::process::{Command, Output, Stdio};

use guest_tests::Guests;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");

const fn guest(kernel: &'static str) -> Guests {
    Guests::new(kernel, "quiet").processors(2).programs(&[PROGRAM, "sleep", "sh"])
}

/// Exit code and all that was said by `worstcase tune`.
fn tune(words: &str) -> (Option<i32>, String) {
    let mut command = Command::new("worstcase");
    command.arg("tune").args(words.split_whitespace()).env("COLUMNS", "200").stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

/// What `worstcase tune` says where it succeeds.
fn tuned(words: &str) -> String {
    let (code, text) = tune(words);
    assert_eq!(code, Some(0), "tune {words}: {text}");
    text
}

/// Applies, undoes, and says that everything reads as before.
fn undone() -> String {
    let text = tuned("undo");
    assert!(text.ends_with("proof: everything reads as before\n"), "{text}");
    text
}

/// That all holds, but for interrupts of devices that have not fired since: these are not moved before they do.
fn written_but_for_silent_devices() -> String {
    let (code, text) = tune("status");
    let pending = text.lines().filter(|line| line.starts_with("pending")).count();
    let all_else_holds = text.contains(&format!(" {pending} pending")) && code == Some(1);
    assert!(all_else_holds || code == Some(0) && text.contains("all as written"), "{text}");
    text
}

/// The tests of one kernel, which share a guest. What `$ignored` is said of is left out of a normal run: what other
/// kernels show there.
macro_rules! on {
    ($module:ident, $kernel:literal, $is_real_time:literal, [$($ignored:meta)?], [$($ignored_too:meta)?]) => {
        mod $module {
            static GUEST: guest_tests::Guests = super::guest($kernel);

            #[test]
            $(#[$ignored])?
            fn undo_is_the_identity() {
                GUEST.run(|| super::identity::of_profiles($is_real_time));
            }

            #[test]
            $(#[$ignored])?
            fn settings_take_effect() {
                GUEST.run(|| super::settings::take_effect($kernel));
            }

            #[test]
            $(#[$ignored_too])?
            fn threads_of_interrupts_and_timers_are_raised() {
                GUEST.run(|| super::threads::are_raised($is_real_time));
            }

            #[test]
            $(#[$ignored_too])?
            fn services_are_stopped_and_started_again() {
                GUEST.run(super::service::is_stopped_and_started);
            }

            #[test]
            $(#[$ignored_too])?
            fn settings_end_though_the_clock_is_set_back() {
                GUEST.run(super::between::a_clock_that_is_set_back);
            }

            #[test]
            $(#[$ignored_too])?
            fn a_partition_outlives_its_cpu() {
                GUEST.run(super::between::a_cpu_that_leaves_and_comes_back);
            }

            #[test]
            $(#[$ignored_too])?
            fn a_journal_of_another_boot_is_not_obeyed() {
                GUEST.run(super::between::a_machine_that_boots);
            }

            #[test]
            $(#[$ignored_too])?
            fn a_second_state_directory_is_refused() {
                GUEST.run(super::between::another_state_directory);
            }

            #[test]
            $(#[$ignored_too])?
            fn what_runs_in_a_partition_goes_on_when_it_goes_away() {
                GUEST.run(super::identity::of_a_partition);
            }
        }
    };
}

on!(debian_6_12_rt, "debian-6.12-rt-amd64", true, [], []);
on!(debian_6_1, "debian-6.1-amd64", false, [], [ignore = "long"]);
on!(debian_6_1_rt, "debian-6.1-rt-amd64", true, [ignore = "long"], [ignore = "long"]);
on!(debian_6_12, "debian-6.12-amd64", false, [ignore = "long"], [ignore = "long"]);

/// Sleep leaves traces of its own: consoles, threads of drivers that begin anew.
static SLEEPERS: [Guests; 2] = [
    Guests::new("debian-6.1-amd64", "quiet nowatchdog").processors(2).programs(&[PROGRAM]),
    Guests::new("debian-6.12-rt-amd64", "quiet nowatchdog").processors(2).programs(&[PROGRAM]),
];

#[test]
#[ignore = "long: two guests"]
fn what_is_applied_outlives_sleep() {
    SLEEPERS.iter().for_each(|guests| guests.run(between::a_machine_that_sleeps));
}

/// Two cores of two threads each.
static SIBLINGS: Guests =
    Guests::new("debian-6.1-amd64", "quiet no_timer_check").processors(4).siblings().programs(&[PROGRAM]);

#[test]
#[ignore = "long: one more guest"]
fn a_partition_outlives_smt_being_switched_off_and_on() {
    SIBLINGS.run(between::smt_that_is_switched);
}
