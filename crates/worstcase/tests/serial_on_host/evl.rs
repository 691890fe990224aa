//! Threads of EVL. No kernel of Debian has EVL: `sys::evl::double` answers here as the core of a kernel with it did, where these figures
//! stand beside those of latmus in docs/respond.md. What is measured is the double's sleeps.

use std::process::Command;

use record::instrument::timer::TimerSeries;
use record::{Effect, WarningId};
use sys::evl::double::{self, Asked, Behaviour};

use crate::support::{BINARY, Ended, Run, is_root, skipped};

const MEASURE: [&str; 9] =
    ["measure", "--wake", "evl", "--cpus", "0", "--out", "record", "--interval", "2ms"];

fn measured(behaviour: Behaviour, arguments: &[&str]) -> (Ended, Vec<Asked>) {
    let mut command = Command::new(BINARY);
    command.args(MEASURE).args(arguments);
    double::put_under(&mut command);
    let run = Run::start_as(&mut command);
    let answering = double::serve(run.pid(), behaviour).unwrap();
    let ended = run.end();
    (ended, answering.end())
}

fn timer(ended: &Ended) -> TimerSeries {
    ended.record().scenarios[0].series[0].timer().unwrap().clone()
}

#[test]
fn a_thread_of_evl_is_attached_sleeps_out_of_band_and_is_given_back() {
    if !is_root() {
        return skipped("root: another process's calls are answered");
    }
    const ACTIVATIONS: u32 = 200;
    let (ended, asked) = measured(Behaviour::default(), &["--samples", "200", "--priority", "80"]);
    let [asked] = asked.as_slice() else { panic!("{asked:?}: {}{}", ended.out, ended.err) };
    assert!(asked.name.starts_with("worstcase-"), "{asked:?}");
    assert_eq!((asked.scheduling, asked.detached), (Some((1, 80)), true), "SCHED_FIFO 80, {asked:?}");
    assert!(asked.sleeps >= ACTIVATIONS && asked.states == 2, "{asked:?}");
    let (record, timer) = (ended.record(), timer(&ended));
    assert_eq!((timer.expected, timer.in_band_switches), (u64::from(ACTIVATIONS), Some(0)));
    // Woken early by the gravity, it would have slept again and again.
    let thread = &record.scenarios[0].evidence.threads[0];
    assert!(thread.early_wakes == 0 && thread.voluntary_switches >= u64::from(ACTIVATIONS), "{thread:?}");
    assert!(record.all_warnings().all(|one| one.id != WarningId::DidNotSleep), "{}", ended.out);
}

#[test]
fn sleeps_of_evl_that_are_longer_are_found_with_their_length() {
    if !is_root() {
        return skipped("root: another process's calls are answered");
    }
    let late = 25_000_000;
    let behaviour = Behaviour { delay: Some((60, late)), ..Behaviour::default() };
    let (ended, asked) = measured(behaviour, &["--samples", "300"]);
    let worst = ended.record().scenarios[0].series[0].worst.clone();
    // One in 60 of 300, and of those of the warm-up.
    let found: Vec<u64> =
        worst.iter().map(|sample| sample.latency.0).filter(|latency| *latency >= late).collect();
    assert!((4..=asked[0].delayed as usize).contains(&found.len()), "{asked:?} {worst:?}");
    assert!(found.iter().all(|latency| *latency < 2 * late), "{worst:?}");
}

#[test]
fn a_thread_that_fell_back_in_band_makes_the_run_inconclusive() {
    if !is_root() {
        return skipped("root: another process's calls are answered");
    }
    let behaviour = Behaviour { in_band_switches: 7, ..Behaviour::default() };
    let (ended, _) = measured(behaviour, &["--samples", "50", "--limit", "10s"]);
    let record = ended.record();
    let warning = record.all_warnings().find(|one| one.id == WarningId::InBandSwitches).unwrap();
    assert!(warning.evidence.contains("CPU 0 fell back in band 7 times"), "{}", warning.evidence);
    assert_eq!((warning.effect, ended.code()), (Effect::Inconclusive, Some(3)));
}

#[test]
fn a_core_that_refuses_or_has_another_interface_is_an_error_with_a_hint() {
    if !is_root() {
        return skipped("root: another process's calls are answered");
    }
    let older = Behaviour { abi: (18, 26), ..Behaviour::default() };
    let stopped = Behaviour { refuses: Some(sys::Errno::NXIO), ..Behaviour::default() };
    let foreign = Behaviour { refuses: Some(sys::Errno::INVAL), ..Behaviour::default() };
    for (behaviour, words) in [
        (older, ["ABI 18 to 26, not 32", "libevl 0.47"]),
        (stopped, ["EVL_IOC_CLONE /dev/evl/thread/clone", "evl start"]),
        (foreign, ["CPU 0: EVL_IOC_CLONE", "/sys/devices/virtual/evl/control/cpus"]),
    ] {
        let (ended, _) = measured(behaviour, &["--samples", "50"]);
        assert_eq!(ended.code(), Some(2), "{}{}", ended.out, ended.err);
        assert!(words.iter().all(|word| ended.err.contains(word)), "{words:?}: {}", ended.err);
    }
}

#[test]
fn without_evl_and_on_another_clock_the_refusal_says_why() {
    if std::path::Path::new("/dev/evl").exists() {
        return skipped("a kernel without EVL");
    }
    let run = |more: &[&str]| Run::start(&[&MEASURE[..], &["--samples", "5"], more].concat()).end();
    let none = run(&[]);
    assert_eq!(none.code(), Some(2), "{}", none.err);
    assert!(none.err.contains("/dev/evl/control") && none.err.contains("no EVL"), "{}", none.err);
    let clock = run(&["--clock", "tai"]);
    assert!(clock.code() == Some(2) && clock.err.contains("monotonic clock, not on tai"), "{}", clock.err);
}
