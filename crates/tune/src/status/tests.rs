//! Whatever breaks what was set, it is seen, and repaired where it can be.

use std::path::Path;

use sysroot::Tree;

use super::*;
use crate::apply::{End, OnRefusal, apply};
use crate::fault_tests::Disk;
use crate::plan::{Change, Plan, Request, plan};
use crate::scripted::Scripted;
use crate::undo::{differences, restore};

const TOP: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/worstcase";
const INTERRUPTS: &str = " CPU0 CPU1\n 24: 0 9 PCI-MSI 0-edge eth0\n 25: 0 9 PCI-MSI 1-edge nvme0q1\n";

/// Four CPUs, two interrupts, a program; the cpuset controller is on below the top group already.
fn machine() -> Scripted {
    let files = [
        ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("/proc/sys/kernel/osrelease", "6.12.1\n"),
        ("/sys/devices/system/cpu/online", "0-3\n"),
        ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n"),
        ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu\n"),
        ("/proc/interrupts", INTERRUPTS),
        ("/proc/irq/24/smp_affinity_list", "0-3\n"),
        ("/proc/irq/24/effective_affinity_list", "1\n"),
        ("/proc/irq/25/smp_affinity_list", "0-1\n"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    let mut machine = Scripted::new(Tree::whole(files));
    program(&mut machine, 700, "0-1");
    machine
}

/// A program that may run on those CPUs.
fn program(machine: &mut Scripted, pid: i32, cpus: &str) {
    let rest =
        "0 0 0 0 0 0 0 0 20 0 1 0 40 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    let place = format!("/proc/{pid}/task/{pid}");
    machine.put(&format!("{place}/stat"), &format!("{pid} (some) S 1 0 0 0 -1 0 {rest}\n"));
    machine.put(&format!("{place}/status"), &format!("Cpus_allowed_list:\t{cpus}\n"));
}

fn planned(machine: &Scripted) -> Plan {
    let cpus: CpuList = "2-3".parse().unwrap();
    let files = Change::Files { path: "/proc/irq/*/smp_affinity_list".into(), value: "0-1".into() };
    let changes = vec![Change::Partition(cpus.clone()), files];
    plan(&machine.root(), &[Request { changes, ..Request::default() }], &cpus)
}

/// The machine with a partition of CPUs 2-3, and its journal.
fn applied() -> (Scripted, Disk) {
    let (mut machine, disk) = (machine(), Disk::default());
    let (plan, mut journal) = (planned(&machine), disk.journal());
    journal.rely(&plan.relied).unwrap();
    let applied = apply(&mut machine, &mut journal, &plan.steps, OnRefusal::RollBack, &mut |_| true);
    assert!(matches!(applied.end, End::Applied), "{applied:#?}");
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
    (machine, disk)
}

/// What is not as it should be.
fn problems(machine: &Scripted, disk: &Disk) -> Vec<String> {
    let (root, history) = (machine.root(), disk.history());
    let off = now(&root, &history).into_iter().filter(|(_, now)| now.is_off());
    off.map(|(taken, now)| format!("{}: {now:?}", taken.target)).chain(faults(&root, &history)).collect()
}

fn repaired(machine: &mut Scripted, disk: &Disk) {
    let history = disk.history();
    let mut journal = Journal::new(Box::new(disk.clone()), Path::new("journal"));
    (0..history.steps.len()).for_each(|_| {
        journal.next();
    });
    reconcile(machine, &mut journal, &history).unwrap();
}

#[test]
fn a_partition_whose_files_vanish_with_the_controller_is_broken_and_repaired() {
    let (mut machine, disk) = applied();
    machine.put(&format!("{TOP}/cgroup.subtree_control"), "cpu\n");
    machine.show_cpusets(TOP, false);
    let seen = problems(&machine, &disk);
    let expected = [
        "/sys/fs/cgroup/worstcase/cpuset.cpus: Gone(\"it is no longer there\")",
        "/sys/fs/cgroup/worstcase/cpuset.cpus.partition: Gone(\"it is no longer there\")",
        "cpuset controller below /sys/fs/cgroup, which was on already and is relied on: off",
        "/sys/fs/cgroup/worstcase is for CPUs 2-3, and nothing says that it has any",
    ];
    assert_eq!(seen, expected);
    repaired(&mut machine, &disk);
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
    let steps = disk.history().steps;
    restore(&mut machine, &steps);
    assert_eq!(differences(&machine.root(), &steps), [], "undone to what was there at first");
}

#[test]
fn a_group_that_somebody_removed_is_made_again() {
    let (mut machine, disk) = applied();
    machine.remove_directory(GROUP).unwrap();
    assert!(problems(&machine, &disk).len() >= 3, "{:?}", problems(&machine, &disk));
    repaired(&mut machine, &disk);
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
}

#[test]
fn a_partition_that_has_lost_a_cpu_is_broken_though_its_files_say_what_was_written() {
    let (mut machine, disk) = applied();
    machine.put(&format!("{GROUP}/cpuset.cpus.effective"), "2\n");
    assert_eq!(problems(&machine, &disk), ["/sys/fs/cgroup/worstcase is for CPUs 2-3 and has 2"]);
}

#[test]
fn a_program_on_the_wrong_side_of_a_partition_is_seen() {
    let (mut machine, disk) = applied();
    program(&mut machine, 700, "0-3");
    let seen = problems(&machine, &disk);
    assert_eq!(
        seen,
        ["some (700) may run on CPUs 0-3: on the wrong side of the partition of CPUs 2-3"],
        "outside of it"
    );
    machine.put(&format!("{GROUP}/cgroup.procs"), "700\n");
    assert_eq!(problems(&machine, &disk).len(), 1, "inside");
    program(&mut machine, 700, "3");
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
}

#[test]
fn an_interrupt_that_is_still_given_to_its_old_cpu_is_pending() {
    let (mut machine, disk) = applied();
    machine.put("/proc/irq/24/effective_affinity_list", "2\n");
    let seen = problems(&machine, &disk);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].ends_with("Pending(\"the next one still comes to CPU 2\")"), "{seen:?}");
}

#[test]
fn an_interrupt_that_is_gone_or_was_relied_on_and_moved_is_off() {
    let (mut machine, disk) = applied();
    machine.put("/proc/irq/25/smp_affinity_list", "0-3\n");
    let seen = problems(&machine, &disk);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains("was 0-1 already and is relied on: 0-3"), "{seen:?}");
    repaired(&mut machine, &disk);
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
    machine.put("/proc/interrupts", " CPU0 CPU1\n");
    assert_eq!(problems(&machine, &disk).len(), 2, "{:?}", problems(&machine, &disk));
}

/// The same machine, whose control groups are kept by systemd.
fn kept_by_systemd() -> Scripted {
    let mut machine = machine();
    machine.put("/run/systemd/system/x", "");
    machine.put(&format!("{TOP}/init.scope/cgroup.procs"), "1\n");
    machine
}

#[test]
fn under_systemd_a_partition_is_a_slice_of_its_own() {
    let (mut machine, disk) = (kept_by_systemd(), Disk::default());
    let before = machine.tree.clone();
    let plan = planned(&machine);
    let steps: Vec<String> =
        plan.steps.iter().map(|step| format!("{}: {} -> {}", step.target, step.old, step.new)).collect();
    let expected = [
        "AllowedCPUs of /sys/fs/cgroup/worstcase.slice:  -> 2-3",
        "/sys/fs/cgroup/worstcase.slice/cpuset.cpus.partition: member -> isolated",
        "CPUs of irq 24 (PCI-MSI 0-edge eth0): 0-3 -> 0-1",
    ];
    assert_eq!(steps, expected);
    apply(&mut machine, &mut disk.journal(), &plan.steps, OnRefusal::RollBack, &mut |_| true);
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
    machine.slice("/sys/fs/cgroup/worstcase.slice", control::SliceProperty::AllowedCpus, "").unwrap();
    assert!(!problems(&machine, &disk).is_empty(), "somebody stopped the slice");
    repaired(&mut machine, &disk);
    assert_eq!(problems(&machine, &disk), Vec::<String>::new());
    let written = disk.history().steps;
    restore(&mut machine, &written);
    assert_eq!(differences(&machine.root(), &written), []);
    assert_eq!(machine.tree, before);
}

#[test]
fn a_slice_with_services_in_it_is_taken_and_one_with_cpus_of_its_own_is_not() {
    let mut machine = kept_by_systemd();
    let slice = "/sys/fs/cgroup/worstcase.slice";
    machine.slice(slice, control::SliceProperty::AllowedMemoryNodes, "0").unwrap();
    assert!(planned(&machine).refusals.is_empty());
    machine.put(&format!("{slice}/cpuset.cpus"), "1\n");
    assert!(planned(&machine).refusals[0].why_not.contains("has CPUs of its own already"));
}
