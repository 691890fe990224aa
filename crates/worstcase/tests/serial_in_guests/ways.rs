//! One task in each way that a guest has, plain and PREEMPT_RT, with a partition for those that want one.

use std::fs;
use std::process::Command;

use record::ways::{Way, Ways};

use super::partition::{NEW, OLD};

/// What a core that spins needs.
const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";

fn worstcase(words: &str) -> (bool, String, String) {
    let output = Command::new("worstcase").args(words.split_whitespace()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// The ways that were measured, with how often; and why one of the others was not.
fn table(words: &str, absent: &str) -> (Vec<(String, u64)>, String) {
    let (_, text, complaints) = worstcase(&format!("ways --loads idle -D 1s --json --out out {words}"));
    let all: Ways = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{complaints}"));
    let count = |way: &Way| {
        let record = record::store::load(&std::path::Path::new("out").join(way.record.as_ref()?)).unwrap();
        let series = &record.scenarios[0].series[0];
        Some((way.name.clone(), series.observed.summary().count + series.missed().summary().count))
    };
    let measured = all.ways.iter().filter_map(count).collect();
    let why = all.ways.iter().find(|way| way.name == absent).and_then(|way| way.why_not.clone());
    fs::remove_dir_all("out").unwrap();
    (measured, why.unwrap_or_default())
}

fn assert_all_ways(of_kernel: &str) {
    let before = fs::read_to_string(THROTTLING).unwrap();
    fs::write(THROTTLING, "-1").unwrap();
    let (made, text, complaints) = worstcase("partition create --rt 1");
    assert!(made, "{text}{complaints}");
    let (measured, why) = table("", "preempt-rt");
    println!("{measured:?}; preempt-rt: {why}");
    let names: Vec<&str> = measured.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["other", "fifo", "partition", "runtime-block", "runtime-spin"]);
    assert!(measured.iter().all(|(_, count)| *count >= 900), "{measured:?}");
    assert!(why.contains(of_kernel), "{why}");
    let (removed, text, complaints) = worstcase("partition undo");
    assert!(removed, "{text}{complaints}");
    // The sender of messages would need a second CPU in the partition.
    let (measured, _) = table("--task stages", "xen");
    println!("stages: {measured:?}");
    let names: Vec<&str> = measured.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["other", "fifo", "runtime-block", "runtime-spin"]);
    assert!(measured.iter().all(|(_, count)| *count > 100), "{measured:?}");
    fs::write(THROTTLING, before).unwrap();
}

#[test]
#[ignore = "long: each way of two tasks"]
fn each_way_of_a_plain_kernel_has_a_row() {
    OLD.run(|| assert_all_ways("is not PREEMPT_RT"));
}

#[test]
#[ignore = "long: each way of two tasks"]
fn each_way_of_a_real_time_kernel_has_a_row() {
    NEW.run(|| assert_all_ways("this kernel is PREEMPT_RT"));
}
