//! A guest that is Xen's first domain: what it knows of that, and whether its clock is the emulated machine's.

use std::fs;
use std::process::Command;
use std::time::Duration;

use guest_tests::Guests;
use record::Record;
use record::ways::Ways;
use sys::clock::Clock;

use super::partition::PROGRAMS;

/// In instruction time: one with two CPUs, in wall time, was seen to stall on a busy host.
static DOM0: Guests =
    Guests::new("debian-6.1-amd64", "quiet").programs(PROGRAMS).under("xen-4.17-amd64").in_instructions();

#[test]
fn a_record_of_the_first_domain_names_xen() {
    DOM0.run(|| {
        let words =
            ["bench", "--loads", "idle", "-D", "300ms", "--warm-up", "0s", "--seed", "1", "--out", "out"];
        let output = Command::new("worstcase").args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let record: Record = record::store::load("out".as_ref()).unwrap();
        let machine = &record.header.machine;
        assert_eq!(machine.virtualization.value().map(String::as_str), Some("xen"));
        let xen = machine.xen.value().unwrap();
        assert!(xen.starts_with("Xen 4.17.") && xen.ends_with(", PV, the first domain"), "{xen}");
        let under = machine.lab.as_ref().unwrap().under.as_ref().unwrap();
        assert_eq!((&*under.command_line, under.image.0.len()), ("console=com1 com1=115200,8n1", 64));
        let series = &record.scenarios[0].series[0];
        assert_eq!(series.observed.summary().count + series.missed().summary().count, 300);
    });
}

#[test]
#[ignore = "long: each way that one CPU has"]
fn each_way_that_one_cpu_has_is_measured_in_the_first_domain() {
    DOM0.run(|| {
        let words = ["ways", "--loads", "idle", "-D", "300ms", "--seed", "1", "--out", "ways", "--json"];
        let output = Command::new("worstcase").args(words).output().unwrap();
        let all: Ways = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let (measured, others): (Vec<_>, Vec<_>) = all.ways.iter().partition(|way| !way.figures.is_empty());
        let names: Vec<&str> = measured.iter().map(|way| way.name.as_str()).collect();
        assert_eq!(names, ["other", "fifo", "runtime-block", "xen"]);
        assert!(others.iter().all(|way| way.why_not.is_some()), "{others:?}");
        let spins = others.iter().find(|way| way.name == "runtime-spin").unwrap();
        println!("runtime-spin: {:?}", spins.why_not);
        assert!(spins.why_not.as_ref().unwrap().contains("would leave none"), "{spins:?}");
    });
}

/// Seconds of the emulated machine's own clock, which counts as QEMU does, without Xen and without a time-stamp counter.
fn next_second() -> (u64, u64) {
    let seconds = || fs::read_to_string("/sys/class/rtc/rtc0/since_epoch").unwrap().trim().parse::<u64>();
    let before = seconds().unwrap();
    loop {
        std::thread::sleep(Duration::from_micros(100));
        let now = seconds().unwrap();
        if now != before {
            return (now, Clock::Monotonic.now());
        }
    }
}

#[test]
fn its_clock_goes_as_fast_as_the_machines() {
    DOM0.run(|| {
        let begin = next_second();
        std::thread::sleep(Duration::from_secs(8));
        let end = next_second();
        let (machine, own) = ((end.0 - begin.0) * 1_000_000_000, end.1 - begin.1);
        println!("{} s of the machine are {own} ns of the first domain's clock", end.0 - begin.0);
        // Either second is seen up to a look too late, which takes some 100 us.
        assert!(end.0 - begin.0 >= 8 && own.abs_diff(machine) < 5_000_000, "{own} of {machine}");
    });
}
