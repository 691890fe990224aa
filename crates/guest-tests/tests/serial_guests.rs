//! The helper itself: where a test runs, and that a failure in the guest is one here.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use guest_tests::Guests;

static PLAIN: Guests = Guests::new("debian-6.1-amd64", "quiet").processors(2);
static OTHER: Guests = Guests::new("debian-6.1-amd64", "quiet threadirqs");

#[test]
fn a_test_runs_as_root_with_the_kernel_words_and_cpus_that_it_asks_for() {
    PLAIN.run(|| {
        let line = fs::read_to_string("/proc/cmdline").unwrap();
        assert!(line.split_whitespace().any(|word| word == "quiet"), "{line}");
        assert!(fs::read_to_string("/proc/version").unwrap().contains("6.1."));
        assert_eq!(std::thread::available_parallelism().unwrap().get(), 2);
        assert!(fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0\t0\t0\n"));
    });
}

#[test]
fn a_test_of_another_guest_does_not_run_in_this_one() {
    OTHER.run(|| {
        let line = fs::read_to_string("/proc/cmdline").unwrap();
        assert!(line.contains("threadirqs"), "{line}");
        assert_eq!(std::thread::available_parallelism().unwrap().get(), 1);
    });
}

/// Fails in the guest, and so on the host, where that is caught.
#[test]
fn a_failure_in_the_guest_is_a_failure_here() {
    let run = || PLAIN.run(|| panic!("words of the guest"));
    let is_host = std::process::id() != 1 && std::env::var_os("WORSTCASE_LAB").is_none();
    if !is_host {
        return run();
    }
    match catch_unwind(AssertUnwindSafe(run)) {
        Err(words) => assert!(words.downcast_ref::<String>().unwrap().ends_with("failed in the guest")),
        Ok(()) => assert!(PLAIN.missing().is_some(), "the failure is lost"),
    }
}
