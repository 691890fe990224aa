//! One kernel alone and as Xen's first domain, in instructions.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use record::Record;

use crate::support::guests;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const KERNEL: &str = "debian-6.1-amd64";
const XEN: &str = "xen-4.17-amd64";
const SAMPLES: u64 = 300;

fn worstcase(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).stdin(Stdio::null()).output().unwrap()
}

/// Whether guests under Xen cannot run here; says why.
fn hindered() -> bool {
    if guests::hindered(&["qemu-system-x86_64"], &[&["--version", "6.1"]]) {
        return true;
    }
    let fetched = worstcase(&["lab", "kernels", "fetch", "xen", "--version", "4.17"]);
    if !fetched.status.success() {
        println!("skipped: no hypervisor: {}", String::from_utf8_lossy(&fetched.stderr));
    }
    !fetched.status.success()
}

/// The record that a guest with `words` left in `place`.
fn measured(place: &Path, words: &[&str]) -> Record {
    let out = place.to_str().unwrap();
    let bench = ["--", "bench", "--loads", "idle", "-D", "300ms", "--warm-up", "200ms", "--seed", "1"];
    let ran = worstcase(&[&["lab", "run", "--kernel", KERNEL, "--out", out], words, &bench].concat());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let record = record::store::load(place).unwrap();
    let series = &record.scenarios[0].series[0];
    assert_eq!(series.observed.summary().count + series.missed().summary().count, SAMPLES);
    record
}

#[test]
#[ignore = "long: three guests, two of them under Xen"]
fn the_first_domain_wakes_up_later_than_the_kernel_alone_and_the_same_each_time() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let alone = measured(&place("alone"), &["--cpu-model", "qemu64"]);
    let under = measured(&place("under"), &["--under", XEN]);
    measured(&place("again"), &["--under", XEN]);
    let file = |name: &str| std::fs::read(place(name).join("record.json")).unwrap();
    assert!(file("under") == file("again"), "two runs with one seed");
    let median = |record: &Record| record.scenarios[0].series[0].observed.quantile(0.5).unwrap();
    println!("median {} alone, {} under Xen", median(&alone), median(&under));
    assert!(median(&alone) < median(&under), "{} {}", median(&alone), median(&under));
    let said = worstcase(&["report", place("alone").to_str().unwrap(), place("under").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("hypervisor: none / Xen 4.17."), "{said}");
    let refused = worstcase(&["lab", "explain", place("under").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("the microscope does not look under xen-4.17-amd64"), "{why}");
}
