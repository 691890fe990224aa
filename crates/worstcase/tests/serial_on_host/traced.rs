//! What the trace said of late wake-ups in a guest, made ones and those of loads, beside what their instructions were.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Stdio};

use guest_tests::lab_of_this_guest;
use record::Class;
use serde_json::Value;
use units::{CpuId, Nanos};

use crate::injection::{self, Delay, MS, Stop};
use crate::support::guests;

/// What tells the guests of this file from all others: a kernel parameter that nobody reads.
const WORD: &str = "worstcase.delays=1";
const CPU: CpuId = CpuId(0);
/// How long a delay is, far more than what recording its stacks takes; in instructions.
const HELD: u64 = MS;
/// Of such a length.
const SOCKETS: usize = 1_200;

/// Makes delays of three sorts until the guest ends.
#[test]
#[ignore = "long: what the guests of this file do beside bench"]
fn makes_delays() {
    if !lab_of_this_guest().is_some_and(|lab| lab.words.iter().any(|word| word == WORD)) {
        return;
    }
    let stop = &Stop::new(false);
    // None is a multiple of the probe's period: a delay that always began just before a wake-up ended would be none of the worst.
    std::thread::scope(|scope| {
        let hog = ("the-hog", CPU, Some("99"));
        injection::again_and_again(scope, stop, hog, 127 * MS + 700_000, || {
            Ok(injection::computing(HELD, stop))
        });
        injection::again_and_again(scope, stop, ("the-runner", CPU, None), 71 * MS + 300_000, calls);
        injection::again_and_again(scope, stop, ("the-sender", CPU, None), 143 * MS + 100_000, || {
            injection::one_datagram_for(SOCKETS)
        });
    });
}

/// System calls without a preemption point: a kernel of 2024 makes each a third of a millisecond long at most.
fn calls<'a>() -> Result<Delay<'a>, String> {
    let mut call = injection::waiting_on(CPU, HELD)?;
    Ok(Box::new(move || (0..3).for_each(|_| call())))
}

/// What `worstcase` printed.
fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The late wake-ups of a guest's loads, each by its trace and by its instructions.
fn compared(run: &[&str], out: &Path, worst: &str) -> Vec<Value> {
    let out = out.to_str().unwrap();
    printed(&[&["lab", "run", "--out", out][..], run].concat());
    let compared = printed(&["lab", "explain", out, "--traced", "--worst", worst, "--json"]);
    let compared: Value = serde_json::from_str(&compared).unwrap();
    crate::support::schema::check("microscope-traced", &compared);
    for of_load in compared.as_array().unwrap() {
        assert_eq!(of_load["not_found"], 0, "all are found again");
    }
    compared.as_array().unwrap().clone()
}

/// The late wake-ups of a guest with this kernel beside delays, and their median.
fn beside_delays(kernel: &str, out: &Path) -> (Nanos, Vec<Value>) {
    let maker = std::env::current_exe().unwrap();
    let name = maker.file_name().unwrap().to_str().unwrap();
    let append = format!("nowatchdog {WORD}");
    // The delays have begun when bench has warmed up.
    let script = format!(
        "{name} --exact traced::makes_delays --include-ignored --test-threads=1 & \
         exec worstcase bench --loads idle --warm-up 2s --duration 3s --explain=30 --seed 1 --out ."
    );
    let run = ["--kernel", kernel, "--append", &append, "--with", maker.to_str().unwrap()];
    let run = [&run[..], &["--with", "sh", "--", "sh", "-c", &script]].concat();
    let all = compared(&run, out, "30");
    let median = Nanos(all[0]["median"].as_u64().unwrap());
    (median, all[0]["comparisons"].as_array().unwrap().clone())
}

/// The time above the median, and how much of it the trace named rightly; what recorded the trace is no part of either.
fn above(median: Nanos, one: &Value) -> (u64, u64) {
    let of = |key: &str| one[key].as_u64().unwrap();
    let sum: u64 = ["same", "edges", "recording", "unknown", "other"].map(of).iter().sum();
    assert_eq!(sum, of("latency"), "{one}");
    let above = of("latency").saturating_sub(median.0).saturating_sub(of("recording"));
    (above, above.saturating_sub(of("unknown") + of("other")))
}

/// A cause in words.
fn words(one: &Value, by: &str) -> String {
    format!("{} {}", one[by]["class"], one[by]["culprit"])
}

fn kernel(version: &str, flavour: &str) -> String {
    match flavour {
        "rt" => format!("debian-{version}-rt-amd64"),
        _ => format!("debian-{version}-amd64"),
    }
}

/// Where a kernel's code is not preempted anyway, no event shows whether the preemption count forbade it too.
fn is_same_class(trace: &Value, seen: &Value) -> bool {
    trace == seen || trace == "no-preemption" && seen == "preemption-off"
}

/// The trace of a kernel names what ran, in each of the late wake-ups, and so often one of these sorts.
fn is_confirmed(version: &str, flavour: &str, sorts: &[Class]) {
    if guests::hindered(&["qemu-system-x86_64"], &[&["--version", version, "--flavour", flavour]]) {
        return;
    }
    let kernel = kernel(version, flavour);
    let directory = tempfile::tempdir().unwrap();
    let (median, all) = beside_delays(&kernel, &directory.path().join("run"));
    let late: Vec<&Value> = all.iter().filter(|one| one["latency"].as_u64().unwrap() >= HELD / 4).collect();
    for one in &late {
        let [trace, seen] = ["by_trace", "by_instructions"].map(|by| words(one, by));
        let (above, named) = above(median, one);
        let named = 100 * named / above;
        println!("{kernel} {}: {trace} | {seen}, {named} % above the median", one["latency"]);
        assert!(is_same_class(&one["by_trace"]["class"], &one["by_instructions"]["class"]), "{one}");
        assert!(named >= 90, "{named} %: {one}");
        assert_eq!(one["contradicted"].as_array().unwrap().len(), 0, "{one}");
        assert_eq!(one["readings"][0], one["readings"][1], "{one}");
    }
    // A function is likely, where the kernel could not follow a stack to its end.
    let agree = late.iter().filter(|one| one["agrees"] == true).count();
    assert!(agree >= 10 && 10 * agree >= 9 * late.len(), "{agree} of {}", late.len());
    for class in sorts {
        let class = serde_json::to_value(class).unwrap();
        let of_it = late.iter().filter(|one| one["by_trace"]["class"] == class).count();
        assert!(of_it >= 1, "{of_it} of {} are {class}", late.len());
    }
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_1_is_confirmed_by_the_instructions() {
    is_confirmed("6.1", "plain", &[Class::Rival, Class::NoPreemption, Class::Softirq]);
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_12_is_confirmed_by_the_instructions() {
    // System calls that it makes a third of a millisecond long may be none of the worst.
    is_confirmed("6.12", "plain", &[Class::Rival, Class::Softirq]);
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_1_rt_is_confirmed_by_the_instructions() {
    is_confirmed("6.1", "rt", &[Class::Rival, Class::PreemptionOff]);
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_12_rt_is_confirmed_by_the_instructions() {
    // Programs of BPF can be preempted there: a rival alone holds a CPU of such a kernel for long.
    is_confirmed("6.12", "rt", &[Class::Rival]);
}

/// Loads that have all they need in a guest, and for how long: what 400 processes leave in the trace takes long to read.
const LOADS: [(&str, &str); 6] = [
    ("idle", "1200ms"),
    ("network", "1200ms"),
    ("vm", "1200ms"),
    ("scary-grinder", "4s"),
    ("cpu", "1200ms"),
    ("io", "1200ms"),
];

/// Of the ten worst wake-ups of each load nine tenths of the time above the median are named by what ran, and no piece is something else.
fn is_right_under_loads(version: &str, flavour: &str) {
    if guests::hindered(&["qemu-system-x86_64"], &[&["--version", version, "--flavour", flavour]]) {
        return;
    }
    let kernel = kernel(version, flavour);
    let directory = tempfile::tempdir().unwrap();
    let mut agree = (0, 0);
    for (load, duration) in LOADS {
        let bench = ["bench", "--loads", load, "--warm-up", "500ms", "--duration", duration, "--explain"];
        let run = [&["--kernel", kernel.as_str(), "--"][..], &bench, &["--seed", "1", "--out", "."]].concat();
        let all = compared(&run, &directory.path().join(load), "10");
        let median = Nanos(all[0]["median"].as_u64().unwrap());
        let hits = all[0]["comparisons"].as_array().unwrap();
        let (mut sum, mut of_it) = (0, 0);
        for one in hits {
            let (above, named) = above(median, one);
            (sum, of_it) = (sum + above, of_it + named);
            let [trace, seen] = ["by_trace", "by_instructions"].map(|by| words(one, by));
            println!("{kernel} {load} {}: {trace} | {seen}, {named} of {above} above", one["latency"]);
            assert_eq!(one["contradicted"].as_array().unwrap().len(), 0, "{one}");
            assert_eq!(one["readings"][0], one["readings"][1], "{one}");
            // Without stacks it is not known why a thread ran on.
            if !["usual", "unknown"].iter().any(|class| one["by_trace"]["class"] == *class) {
                agree = (agree.0 + u64::from(one["agrees"] == true), agree.1 + 1);
            }
        }
        println!("{kernel} {load}: {} late, {of_it} of {sum} named above the median {median}", hits.len());
        assert!(!hits.is_empty(), "{kernel} {load}: none was explained");
        assert!(10 * of_it >= 9 * sum, "{kernel} {load}: {of_it} of {sum}");
    }
    println!("{kernel}: of {} that have a culprit {} have the same", agree.1, agree.0);
    assert!(10 * agree.0 >= 9 * agree.1, "{} of {}", agree.0, agree.1);
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_1_is_right_under_loads() {
    is_right_under_loads("6.1", "plain");
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_12_is_right_under_loads() {
    is_right_under_loads("6.12", "plain");
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_1_rt_is_right_under_loads() {
    is_right_under_loads("6.1", "rt");
}

#[test]
#[ignore = "long: guests under the microscope"]
fn the_trace_of_6_12_rt_is_right_under_loads() {
    is_right_under_loads("6.12", "rt");
}
