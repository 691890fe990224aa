//! Whole machines, read from trees under `fixtures`, and the machine at hand.

#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use machine::{
    Heat, KernelLog, Snapshot, busy_between, directory_of, evidence_between, machine, partition_of,
};
use record::Fact;
use sysroot::SysRoot;
use units::{CpuId, CpuList};

use crate::mend;

/// Writes a fixture into a directory and gives it as a root.
fn fixture(text: &str) -> (tempfile::TempDir, SysRoot) {
    let directory = tempfile::tempdir().unwrap();
    let root = SysRoot::at(directory.path());
    for file in format!("\n{text}").split("\n=== ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap_or((file, ""));
        let path = root.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.replace("\\0", "\0")).unwrap();
    }
    (directory, root)
}

/// Every file below a directory with its content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    files
}

macro_rules! reads_the_machine {
    ($($test:ident from $file:literal;)+) => {
        $(#[test]
        fn $test() {
            let (_directory, root) = fixture(include_str!(concat!("../fixtures/", $file, ".tree")));
            mend::assert_snapshot!(serde_json::to_string_pretty(&machine(&root)).unwrap());
        })+
    };
}

reads_the_machine! {
    a_guest_reads from "guest";
    a_desktop_reads from "intel";
    a_real_time_board_reads from "arm64-rt";
    an_old_powerpc_board_reads from "powerpc";
}

#[test]
fn reading_changes_nothing() {
    let (directory, root) = fixture(include_str!("../fixtures/intel.tree"));
    let before = contents(directory.path());
    let cpus = machine(&root).cpus.online;
    let snapshot = Snapshot::take(&root, &cpus);
    let _ =
        (evidence_between(&snapshot, &snapshot), Heat::read(&root, &cpus), KernelLog::open(&root).since());
    let _ = (partition_of(&root, CpuId(3)), directory_of(&root, Path::new("/home")));
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn a_desktop_counts_idle_time_and_throttling() {
    let (_directory, root) = fixture(include_str!("../fixtures/intel.tree"));
    let before = Snapshot::take(&root, &"1,3".parse().unwrap());
    std::fs::write(root.path("/sys/devices/system/cpu/cpu3/cpuidle/state4/time"), "9000\n").unwrap();
    std::fs::write(root.path("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count"), "5\n")
        .unwrap();
    let stat = "cpu  0\ncpu1 260 0 125 22590 25 0 5 0 0 0\ncpu3 250 0 125 22550 25 0 55 0 0 0\n";
    std::fs::write(root.path("/proc/stat"), stat).unwrap();
    let after = Snapshot::take(&root, &"1,3".parse().unwrap());
    let evidence = evidence_between(&before, &after);
    let idle: Vec<u64> = evidence.cpus[1].idle.iter().map(|state| state.time.0).collect();
    assert_eq!(idle, [0, 0, 0, 0, 4_000_000]);
    let throttles: Vec<_> = evidence.cpus.iter().map(|cpu| cpu.thermal_throttles.clone()).collect();
    assert_eq!(throttles, [Fact::Value(0), Fact::Value(2)]);
    assert_eq!(evidence.temperature_millidegrees, Fact::Value(41_000));
    // The msr driver is not loaded on this machine, which is no proof that there were no interrupts.
    assert_eq!(evidence.cpus[0].smis, Fact::Absent);
    let shares: Vec<_> =
        busy_between(&before, &after).iter().map(|share| (share.cpu.0, share.busy_permille)).collect();
    assert_eq!(shares, [(1, 100), (3, 500)]);
}

#[test]
fn the_owner_of_a_cpu_is_found() {
    let (_directory, root) = fixture(include_str!("../fixtures/intel.tree"));
    assert_eq!(partition_of(&root, CpuId(3)), Some("/sys/fs/cgroup/control.slice".into()));
    assert_eq!(partition_of(&root, CpuId(2)), None);
}

#[test]
fn a_board_that_is_being_cooled_says_so() {
    let (_directory, root) = fixture(include_str!("../fixtures/arm64-rt.tree"));
    let heat = Heat::read(&root, &"0-3".parse().unwrap());
    assert_eq!(heat.temperature, Fact::Value(54_000));
    assert_eq!(heat.throttles, Fact::Absent);
    assert_eq!(heat.cooling, ["cpufreq-cpu0 at 1 of 2"]);
}

#[test]
fn a_root_on_nfs_is_named() {
    let (_directory, root) = fixture(include_str!("../fixtures/powerpc.tree"));
    let directory = directory_of(&root, Path::new("/home")).unwrap();
    assert_eq!((directory.file_system.as_str(), directory.device.as_str()), ("nfs", "10.0.0.1:/srv/p2041"));
}

#[test]
fn an_empty_tree_is_answered_with_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let root = SysRoot::at(directory.path());
    let nothing = machine(&root);
    assert_eq!(nothing.kernel.preemption, Fact::Unsupported);
    assert_eq!(nothing.virtualization, Fact::Unsupported);
    assert_eq!(nothing.clock_source, Fact::Absent);
    assert_eq!(nothing.cpus.online, CpuList::new());
    let snapshot = Snapshot::take(&root, &"0".parse().unwrap());
    assert_eq!(evidence_between(&snapshot, &snapshot).cpus[0].steal, Fact::Absent);
    assert_eq!(busy_between(&snapshot, &snapshot), []);
}

#[test]
fn the_machine_at_hand_agrees_with_itself() {
    let root = SysRoot::live();
    let facts = machine(&root);
    assert_eq!(root.read("/proc/sys/kernel/osrelease"), Fact::Value(facts.kernel.release.clone()));
    assert!(!facts.cpus.online.is_empty());
    assert_eq!(facts.cpus.allowed.difference(&facts.cpus.online), CpuList::new());
    let before = Snapshot::take(&root, &facts.cpus.online);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let after = Snapshot::take(&root, &facts.cpus.online);
    assert_eq!(evidence_between(&before, &after).cpus.len(), facts.cpus.online.len());
    assert!(busy_between(&before, &after).iter().all(|share| share.busy_permille <= 1000));
}
