//! A guest's worst wake-ups under the microscope: the record is the same, and every instruction of the latency has its place.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::guests;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const KERNEL: &str = "debian-6.1-rt-amd64";

const ARM64: &str = "debian-6.1-rt-arm64";

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

/// What `lab run` said.
fn run(kernel: &str, out: &Path) -> String {
    let place = out.to_str().unwrap();
    let words = ["bench", "--loads", "idle", "--duration", "100ms", "--warm-up", "0s", "--seed", "1"];
    let ran = worstcase(&[&["lab", "run", "--kernel", kernel, "--out", place, "--"], &words[..]].concat());
    text(&ran.stderr)
}

fn measure(out: &Path) {
    let said = run(KERNEL, out);
    assert!(out.join("record.json").is_file(), "{said}");
}

#[test]
fn each_instruction_of_a_guests_worst_wake_ups_is_accounted_for() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    measure(&out);
    let accounts = three_worst(&out);
    for account in &accounts {
        assert!(account.to_string().contains("sysvec_apic_timer_interrupt"), "{account}");
    }

    let off = longest_with_interrupts_off(&out);
    for account in &accounts {
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

/// The accounts of the three worst wake-ups in `out`: all were found, every instruction has its place, and the run was the same.
fn three_worst(out: &Path) -> Vec<serde_json::Value> {
    let ran = worstcase(&["lab", "explain", out.to_str().unwrap(), "--worst", "3", "--json"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let accounts: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    crate::support::schema::check("microscope", &accounts);
    let accounts = accounts.as_array().unwrap().clone();
    assert_eq!(accounts.len(), 3, "all were found again");
    for account in &accounts {
        let sum = |list: &str| {
            let all = account[list].as_array().unwrap().iter();
            all.map(|one| one["length"].as_u64().unwrap()).sum::<u64>()
        };
        let latency = account["latency"].as_u64().unwrap();
        assert_eq!((sum("pieces"), sum("causes")), (latency, latency));
        assert_eq!(account["calls"]["total"].as_u64(), Some(latency));
        assert_eq!(account["readings"][0], account["readings"][1], "the count is the guest's clock");
        let words = account.to_string();
        assert!(!words.contains("not-recorded") && !words.contains("[unknown]"), "{words}");
        assert!(words.contains("hrtimer_interrupt") && words.contains("try_to_wake_up"), "{words}");
    }
    accounts
}

#[test]
fn each_instruction_of_an_arm64_guests_worst_wake_ups_is_accounted_for() {
    let kernel = ["--version", "6.1", "--flavour", "rt", "--arch", "arm64"];
    if guests::hindered(&["qemu-system-aarch64"], &[&kernel]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    let said = run(ARM64, &out);
    if said.contains("no static worstcase for arm64") {
        return println!("skipped: target aarch64-unknown-linux-gnu: nothing in dist/ (cargo xtask dist)");
    }
    assert!(out.join("record.json").is_file(), "{said}");
    let off = longest_with_interrupts_off(&out);
    for account in three_worst(&out) {
        let words = account.to_string();
        assert!(words.contains("\"is\":\"interrupt\",\"name\":\"arch_timer_handler_virt\""), "{words}");
        assert!(words.contains("el1h_64_irq") && words.contains("el0t_64_sync"), "{words}");
        let number = |name: &str| account[name].as_u64().unwrap();
        assert!(number("interrupts_off") <= number("preemption_off") && number("interrupts_off") <= off);
        // A program's call and its end: outermost are the idle loop, the boot that began it, and the way into the kernel and back.
        for (thread, calls) in account["calls"]["callees"].as_object().unwrap() {
            for outermost in calls["callees"].as_object().unwrap().keys() {
                let known = ["cpu_startup_entry", "rest_init", "el0t_64_sync", "ret_to_user", "[program]"];
                assert!(known.contains(&outermost.as_str()), "{outermost} in {thread}");
            }
        }
    }
}

#[test]
fn an_arm64_guest_whose_interrupts_the_controller_masks_is_refused() {
    let kernel = ["--version", "6.1", "--flavour", "rt", "--arch", "arm64"];
    if guests::hindered(&["qemu-system-aarch64"], &[&kernel]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    let place = out.to_str().unwrap();
    let word = "irqchip.gicv3_pseudo_nmi=1";
    let words = ["lab", "run", "--kernel", ARM64, "--append", word, "--out", place, "--", "bench"];
    let ran = worstcase(&[&words[..], &["--loads", "idle", "--duration", "100ms"]].concat());
    if text(&ran.stderr).contains("no static worstcase for arm64") {
        return println!("skipped: target aarch64-unknown-linux-gnu: nothing in dist/ (cargo xtask dist)");
    }
    let ran = worstcase(&["lab", "explain", place]);
    assert!(!ran.status.success() && text(&ran.stderr).contains("pseudo-NMI"), "{}", text(&ran.stderr));
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
