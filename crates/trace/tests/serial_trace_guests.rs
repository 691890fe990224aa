//! The trace of other kernels, in guests.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::time::Duration;

use guest_tests::Guests;
use support::{fixture, kernel, tracers};

/// On a busy host the kernel may find that its timer does not interrupt, and stop.
const WORDS: &str = "quiet no_timer_check";

/// A boot and its tests take some 15 s.
const PATIENCE: Duration = Duration::from_secs(120);

static PLAIN: Guests =
    Guests::new("debian-6.1-amd64", WORDS).processors(2).programs(&["true"]).patience(PATIENCE);
static RT: Guests =
    Guests::new("debian-6.1-rt-amd64", WORDS).processors(2).programs(&["true"]).patience(PATIENCE);
static NEW: Guests =
    Guests::new("debian-6.12-rt-amd64", WORDS).processors(2).programs(&["true"]).patience(PATIENCE);

/// One after the other: each test of a file is a boot's, and these are quick. Where one hangs, what it printed until then says
/// which: standard error itself, which the test harness does not keep to itself.
fn in_turn(tests: &[(&str, fn())]) {
    for (name, test) in tests {
        let _ = writeln!(std::io::stderr(), "{name}");
        test();
    }
}

macro_rules! named {
    ($($test:path),* $(,)?) => { &[$((stringify!($test), $test as fn())),*] };
}

fn everything() {
    in_turn(named![
        kernel::the_trace_clock_is_clock_monotonic,
        kernel::binary_and_text_agree,
        kernel::what_is_recorded_and_what_is_lost_is_what_was_written,
        kernel::events_of_all_cpus_come_in_order,
        kernel::pages_are_moved_into_a_file,
        kernel::nothing_is_left_behind,
    ]);
}

fn tracers() {
    in_turn(named![
        tracers::timerlat_measures_each_period_and_settings_are_put_back,
        tracers::timerlat_stops_at_a_threshold,
        tracers::a_period_out_of_range_is_refused,
    ]);
}

#[test]
fn a_kernel_of_2022_is_read() {
    PLAIN.run(|| {
        everything();
        tracers::a_kernel_without_them_is_refused();
    });
}

#[test]
fn a_preempt_rt_kernel_of_2022_is_read() {
    RT.run(|| {
        everything();
        tracers();
    });
}

#[test]
fn a_preempt_rt_kernel_of_2024_is_read() {
    NEW.run(|| {
        everything();
        tracers();
    });
}

#[test]
#[ignore = "prints a fixture: tests/fixtures/README.md"]
fn record_plain() {
    PLAIN.run(fixture::record);
}

#[test]
#[ignore = "prints a fixture: tests/fixtures/README.md"]
fn record_rt() {
    RT.run(fixture::record);
}
