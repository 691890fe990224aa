//! What happens to a machine between apply and undo: its clock is set back, CPUs leave, it sleeps, it boots, and somebody
//! uses another state directory.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

use super::machine_state::MachineState;
use super::{tune, tuned, undone};

const INTERVAL: &str = "/proc/sys/vm/stat_interval";
const PARTITION: &str = "/sys/fs/cgroup/worstcase/cpuset.cpus.partition";
const CPU: &str = "/sys/devices/system/cpu/cpu1/online";
const JOURNAL: &str = "/var/lib/worstcase/tune/journal";
const CLAIM: &str = "/run/worstcase/applied";
const APPLY: &str = "apply --isolate 1 --only rn-stat-interval";
const ISOLATE: &str = "apply --isolate 1 --only rn-cpuset-partition";

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Settings end when their time has run out, not when a clock says so that anybody may set.
pub fn a_clock_that_is_set_back() {
    tuned(&format!("{APPLY} --for 2s"));
    let now = clock_gettime(ClockId::Realtime);
    let earlier = Timespec { tv_sec: now.tv_sec - 7_200, ..now };
    clock_settime(ClockId::Realtime, earlier).unwrap();
    assert!(tuned("status").contains("all as written"));
    until("undone by itself", || read(INTERVAL) == "1" && !Path::new(JOURNAL).exists());
    assert!(tuned("status").contains("their time had run out"), "{}", tuned("status"));
    clock_settime(ClockId::Realtime, now).unwrap();
}

/// As where SMT is switched off, or a laptop sleeps.
pub fn a_cpu_that_leaves_and_comes_back() {
    let before = MachineState::at_first();
    tuned(ISOLATE);
    assert_eq!(tune("status").0, Some(0));
    fs::write(CPU, "0").unwrap();
    let (code, said) = tune("status");
    assert!(code == Some(1) && said.contains("broken"), "a partition without its CPU is not fine: {said}");
    fs::write(CPU, "1").unwrap();
    healed();
    fs::write(CPU, "0").unwrap();
    let (code, said) = tune("undo");
    fs::write(CPU, "1").unwrap();
    assert!(!Path::new(PARTITION).exists(), "{said}");
    // No thread can be bound to a CPU that is away.
    if code != Some(0) {
        assert!(code == Some(1) && said.contains("worstcase tune undo tries again"), "{said}");
        undone();
    }
    assert_eq!(before.differences(&MachineState::now()), Vec::<String>::new());
}

/// Siblings leave when SMT is switched off: one of a partition's two CPUs, and all of another's.
pub fn smt_that_is_switched() {
    const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
    let siblings = read("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list");
    assert_eq!((read(CONTROL).as_str(), siblings.as_str()), ("on", "2-3"), "a guest with siblings");
    for cpus in ["2-3", "3"] {
        let before = MachineState::now();
        tuned(&format!("apply --isolate {cpus} --only rn-cpuset-partition"));
        assert_eq!(tune("status").0, Some(0));
        fs::write(CONTROL, "off").unwrap();
        let (code, said) = tune("status");
        assert!(code == Some(1), "CPUs {cpus}: a partition without its sibling is not fine: {said}");
        fs::write(CONTROL, "on").unwrap();
        healed();
        fs::write(CONTROL, "off").unwrap();
        let (code, said) = tune("undo");
        fs::write(CONTROL, "on").unwrap();
        assert!(!Path::new(PARTITION).exists(), "{said}");
        println!("CPUs {cpus}: undo while its sibling is away: {code:?}");
        if code != Some(0) {
            assert!(code == Some(1) && said.contains("worstcase tune undo tries again"), "{said}");
            undone();
        }
        assert_eq!(before.differences(&MachineState::now()), Vec::<String>::new(), "CPUs {cpus}");
    }
}

/// As it was, of itself or by what status names.
fn healed() {
    let (code, said) = tune("status");
    if code != Some(0) {
        assert!(said.contains("keep --reconcile"), "{said}");
        tuned("keep --reconcile");
    }
    assert_eq!((tune("status").0, read(PARTITION).as_str()), (Some(0), "isolated"));
}

/// As far as a guest can: everything is put to sleep, other CPUs are taken away, and the machine wakes up by itself.
pub fn a_machine_that_sleeps() {
    if let Err(why) = slept() {
        return println!("skipped: this guest does not sleep: {why}");
    }
    let before = [INTERVAL, "/sys/fs/cgroup/cgroup.subtree_control", "/sys/fs/cgroup/cpuset.cpus.effective"];
    let before = before.map(|path| (path, read(path)));
    tuned("apply --isolate 1 --only rn-cpuset-partition,rn-stat-interval --for 1h");
    slept().unwrap();
    healed();
    undone();
    for (path, text) in before {
        assert_eq!(read(path), text, "{path}");
    }
}

/// With the kernel's test of sleep, which wakes up again after some seconds: Documentation/power/basic-pm-debugging.rst.
fn slept() -> std::io::Result<()> {
    const TEST: &str = "/sys/power/pm_test";
    fs::write(TEST, "core")?;
    let slept = fs::write("/sys/power/state", "mem");
    fs::write(TEST, "none")?;
    slept
}

/// A journal of another boot, whole and with its first line lost: nothing of it is called held, and nothing is written.
pub fn a_machine_that_boots() {
    tuned(APPLY);
    let boot = read("/proc/sys/kernel/random/boot_id");
    let journal = fs::read_to_string(JOURNAL).unwrap();
    let (first, rest) = journal.split_once('\n').unwrap();
    let (_, line) = first.split_once(' ').unwrap();
    let line = line.replace(&boot, "01234567-89ab-4cde-8fab-0123456789ab");
    let other = format!("{:08x} {line}\n{rest}", crc(line.as_bytes()));
    let claim = fs::read(CLAIM).unwrap();
    fs::remove_file(CLAIM).unwrap();
    fs::write(JOURNAL, &other).unwrap();
    let (code, said) = tune("status");
    assert!(code == Some(1) && said.contains("the machine was booted since"), "{said}");
    assert!(!said.contains("as written"), "{said}");
    fs::write(JOURNAL, format!("00000000 {line}\n{rest}")).unwrap();
    assert_eq!(tune("status").0, Some(1));
    for words in ["undo", "keep --reconcile", APPLY] {
        let (code, said) = tune(words);
        assert!(code == Some(2), "tune {words}: {said}");
        assert_eq!(read(INTERVAL), "10", "tune {words} wrote for another boot: {said}");
    }
    fs::write(JOURNAL, &other).unwrap();
    assert!(tuned("undo").contains("nothing of it holds any more"));
    assert_eq!(read(INTERVAL), "10", "undo wrote into another boot's object");
    fs::write(JOURNAL, &journal).unwrap();
    fs::write(CLAIM, claim).unwrap();
    undone();
    assert_eq!(read(INTERVAL), "1");
}

/// CRC-32, as the lines of a journal have it.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// One at a time: whoever comes second is refused, and writes nothing.
pub fn another_state_directory() {
    tuned(&format!("{APPLY} --state one"));
    let (code, said) = tune(&format!("{APPLY} --state two"));
    assert!(code == Some(2) && said.contains("settings are applied already, by the journal in"), "{said}");
    assert!(said.contains("/one"), "{said}");
    assert_eq!(tune(APPLY).0, Some(2), "nor by the usual one");
    assert!(tuned("status --state one").contains("all as written"));
    assert!(tuned("undo --state one").ends_with("proof: everything reads as before\n"));
    assert_eq!(read(INTERVAL), "1");
    tuned(&format!("{APPLY} --state two"));
    assert!(tuned("undo --state two").ends_with("proof: everything reads as before\n"));
}
