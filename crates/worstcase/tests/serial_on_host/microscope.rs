//! A guest's worst wake-ups under the microscope: the record is the same, and every instruction of the latency has its place.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::guests;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const KERNEL: &str = "debian-6.1-rt-amd64";

/// Whether such guests cannot run here; says why.
fn hindered() -> bool {
    guests::hindered(&["qemu-system-x86_64"], &[&["--flavour", "rt"]])
}

fn worstcase(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn measure(out: &Path) {
    let place = out.to_str().unwrap();
    let words = ["bench", "--loads", "idle", "--duration", "100ms", "--warm-up", "0s", "--seed", "1"];
    let ran = worstcase(&[&["lab", "run", "--kernel", KERNEL, "--out", place, "--"], &words[..]].concat());
    assert!(out.join("record.json").is_file(), "{}", text(&ran.stderr));
}

#[test]
fn each_instruction_of_a_guests_worst_wake_ups_is_accounted_for() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    measure(&out);
    let ran = worstcase(&["lab", "explain", out.to_str().unwrap(), "--worst", "3", "--json"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let accounts: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    crate::support::schema::check("microscope", &accounts);
    let accounts = accounts.as_array().unwrap();
    assert_eq!(accounts.len(), 3, "all were found again");
    for account in accounts {
        let sum = |list: &str| {
            let all = account[list].as_array().unwrap().iter();
            all.map(|one| one["length"].as_u64().unwrap()).sum::<u64>()
        };
        let latency = account["latency"].as_u64().unwrap();
        assert_eq!((sum("pieces"), sum("causes")), (latency, latency));
        assert_eq!(account["readings"][0], account["readings"][1], "the count is the guest's clock");
        let words = account.to_string();
        assert!(!words.contains("not-recorded") && !words.contains("[unknown]"), "{words}");
        assert!(words.contains("hrtimer_interrupt") && words.contains("try_to_wake_up"), "{words}");
    }

    let off = longest_with_interrupts_off(&out);
    for account in accounts {
        let within = account["interrupts_off"].as_u64().unwrap();
        assert!(within <= off, "{within} in a late wake-up, {off} in the whole of the run");
    }

    // A record that the guest does not leave again is no record of this guest.
    let path = out.join("record.json");
    let edited = std::fs::read_to_string(&path).unwrap().replacen("\"note\": null", "\"note\": \"\"", 1);
    let edited = if edited.contains("\"note\": \"\"") { edited } else { edited + "\n" };
    std::fs::write(&path, edited).unwrap();
    let ran = worstcase(&["lab", "explain", out.to_str().unwrap()]);
    assert!(!ran.status.success() && text(&ran.stderr).contains("another record"), "{}", text(&ran.stderr));
}

/// Of the run in `out`, whose sections are all whole.
fn longest_with_interrupts_off(out: &Path) -> u64 {
    let ran = worstcase(&["lab", "sections", out.to_str().unwrap(), "--longest", "3", "--json"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let loads: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    crate::support::schema::check("sections", &loads);
    let sections = loads[0]["sections"].as_array().unwrap();
    let longest = |off: &str| {
        let of = sections.iter().filter(|section| section["off"] == off);
        of.map(|section| section["length"].as_u64().unwrap()).max().unwrap()
    };
    for section in sections {
        let number = |name: &str| section[name].as_u64().unwrap();
        assert_eq!(section["calls"]["total"].as_u64().unwrap(), number("length"), "{section}");
        assert!(number("length") <= number("sum") && number("sum") <= number("length") * number("times"));
        assert!(!section["owner"].as_str().unwrap().starts_with('['), "{section}");
    }
    assert!(longest("interrupts") <= longest("preemption"), "interrupts off is preemption off");
    longest("interrupts")
}

#[test]
fn what_was_not_measured_in_a_guest_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for verb in ["explain", "sections"] {
        let ran = worstcase(&["lab", verb, directory.path().to_str().unwrap()]);
        assert_eq!(ran.status.code(), Some(2), "{}", text(&ran.stderr));
        assert!(text(&ran.stderr).starts_with("error: "), "{}", text(&ran.stderr));
    }
}
