//! The trace of this machine's kernel: the clock, both forms, what is lost, pages in a file, what is left behind.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::process::Command;

use support::{fixture, kernel};
use sysroot::SysRoot;
use trace::live::place;

/// What a child answers that could not mount tracefs.
const NOT_MOUNTED: i32 = 77;

/// Runs a test where tracefs is; where it is not mounted, in a mount namespace in which it is.
fn with_tracefs(test: &str, body: fn()) {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root");
    }
    if place(&SysRoot::live()).is_ok() {
        return body();
    }
    let script = format!(
        "mount -t tracefs none /sys/kernel/tracing || exit {NOT_MOUNTED}; exec \"$0\" --exact \"$1\" --nocapture --include-ignored"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script]).arg(std::env::current_exe().unwrap()).arg(test);
    match unshare.output() {
        Err(error) => println!("skipped: tracefs is not mounted, and unshare: {error}"),
        Ok(output) if output.status.code() == Some(NOT_MOUNTED) => {
            println!("skipped: no tracefs: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output) => {
            let (out, errors) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            print!("{out}");
            assert!(output.status.success(), "{out}\n{errors}");
        }
    }
}

#[test]
fn the_trace_clock_is_clock_monotonic() {
    with_tracefs("the_trace_clock_is_clock_monotonic", kernel::the_trace_clock_is_clock_monotonic);
}

#[test]
fn binary_and_text_agree() {
    with_tracefs("binary_and_text_agree", kernel::binary_and_text_agree);
}

#[test]
fn what_is_recorded_and_what_is_lost_is_what_was_written() {
    with_tracefs(
        "what_is_recorded_and_what_is_lost_is_what_was_written",
        kernel::what_is_recorded_and_what_is_lost_is_what_was_written,
    );
}

#[test]
fn events_of_all_cpus_come_in_order() {
    with_tracefs("events_of_all_cpus_come_in_order", kernel::events_of_all_cpus_come_in_order);
}

#[test]
fn pages_are_moved_into_a_file() {
    with_tracefs("pages_are_moved_into_a_file", kernel::pages_are_moved_into_a_file);
}

#[test]
fn nothing_is_left_behind() {
    with_tracefs("nothing_is_left_behind", kernel::nothing_is_left_behind);
}

#[test]
#[ignore = "prints a fixture: tests/fixtures/README.md"]
fn record() {
    with_tracefs("record", fixture::record);
}
