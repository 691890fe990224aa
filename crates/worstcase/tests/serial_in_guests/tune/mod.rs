//! Settings of real kernels: applied, found to hold, undone, and the whole machine as it was.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

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
