//! Threads and processes that a partition has moved go back to where they were.

use control::Kernel;
use units::CpuList;

use super::*;
use crate::apply::{OnRefusal, apply};
use crate::fault_tests::{Disk, STAT, machine, run};
use crate::plan::{Change, Request, plan};
use crate::scripted::Scripted;

/// Before Linux 6.2 the kernel forgets what programs were bound to.
#[test]
fn who_executes_another_program_is_bound_again_and_who_was_bound_since_stays_so() {
    let mut before = machine();
    before.put("/sys/devices/system/cpu/online", "0-3\n");
    before.put("/proc/sys/kernel/osrelease", "6.1.0\n");
    let thread = |machine: &mut Scripted, tid: i32, name: &str, cpus: &str| {
        let stat = STAT.replace(" 2097152 ", " 0 ");
        machine.put(&format!("/proc/{tid}/task/{tid}/stat"), &format!("{tid} ({name}) {stat}\n"));
        machine.put(&format!("/proc/{tid}/task/{tid}/status"), &format!("Cpus_allowed_list:\t{cpus}\n"));
    };
    for (tid, cpus) in [(700, "1"), (701, "1"), (702, "0-3"), (703, "0-3")] {
        thread(&mut before, tid, "sh", cpus);
    }
    let changes = vec![Change::Partition("2-3".parse().unwrap())];
    let plan = plan(&before.root(), &[Request { changes, ..Request::default() }], &CpuList::new());
    let (mut machine, disk) = (before, Disk::default());
    apply(&mut machine, &mut disk.journal(), &plan.steps, OnRefusal::RollBack, &mut |_| true);
    thread(&mut machine, 700, "robot", "0-1");
    let bind =
        |machine: &mut Scripted, tid, cpus: &str| machine.set_affinity(tid, &cpus.parse().unwrap()).unwrap();
    bind(&mut machine, 701, "0");
    bind(&mut machine, 702, "2");
    let undone = restore(&mut machine, &disk.history().steps);
    let cpus = |tid: i32| machine.text(&format!("/proc/{tid}/task/{tid}/status")).unwrap();
    assert_eq!(cpus(700), "Cpus_allowed_list:\t1\n", "it was bound before, under another name");
    assert_eq!(cpus(701), "Cpus_allowed_list:\t0\n", "somebody has bound it elsewhere since");
    assert_eq!(cpus(702), "Cpus_allowed_list:\t2\n", "somebody has bound it for the first time");
    assert_eq!(cpus(703), "Cpus_allowed_list:\t0-3\n");
    let foreign: Vec<&Back> =
        undone.iter().map(|undone| &undone.back).filter(|back| !back.is_as_before()).collect();
    assert_eq!(foreign, [&Back::Foreign("0".into())]);
    assert_eq!(differences(&machine.root(), &disk.history().steps).len(), 1, "and that is no proof");
}

#[test]
fn what_a_service_has_started_in_a_partition_goes_back_to_it() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    let (group, top) = ("/sys/fs/cgroup/worstcase", "/sys/fs/cgroup");
    let inner = format!("{group}/{}", machine::origin_name("/openrc/robot").unwrap());
    machine.make_directory(&inner).unwrap();
    machine.put(&format!("{inner}/cgroup.procs"), "700\n");
    for place in ["", "/openrc/robot"] {
        machine.put(&format!("{top}{place}/cgroup.procs"), "1\n");
    }
    let group = Target::Group(group.into());
    // The made-up kernel leaves a process in both groups.
    let _ = group.kind().write(&mut machine, "none");
    assert_eq!(machine.text(&format!("{top}/openrc/robot/cgroup.procs")).as_deref(), Some("700\n"));
    assert_eq!(machine.text(&format!("{top}/cgroup.procs")).as_deref(), Some("1\n"), "not to the top group");
}

/// Killed between the threads that a partition would move and the partition's CPUs.
#[test]
fn threads_of_a_partition_that_was_never_finished_get_back_their_cpus() {
    let mut before = machine();
    before.put("/sys/devices/system/cpu/online", "0-3\n");
    before.put("/proc/sys/kernel/osrelease", "6.1.0\n");
    let stat = STAT.replace(" 2097152 ", " 0 ");
    before.put("/proc/700/task/700/stat", &format!("700 (sh) {stat}\n"));
    before.put("/proc/700/task/700/status", "Cpus_allowed_list:\t2\n");
    let changes = vec![Change::Partition("2-3".parse().unwrap())];
    let plan = plan(&before.root(), &[Request { changes, ..Request::default() }], &CpuList::new());
    let is_of_group = |step: &crate::Step| matches!(step.target, Target::Group(_));
    let begun = plan.steps.iter().position(is_of_group).unwrap() + 1;
    let (mut machine, disk) = (before, Disk::default());
    apply(&mut machine, &mut disk.journal(), &plan.steps[..begun], OnRefusal::RollBack, &mut |_| true);
    let cpus = |machine: &Scripted| machine.text("/proc/700/task/700/status").unwrap();
    assert_eq!(cpus(&machine), "Cpus_allowed_list:\t0-1\n");
    let undone = restore(&mut machine, &disk.history().steps);
    assert!(undone.iter().all(|undone| undone.back.is_as_before()), "{undone:?}");
    assert_eq!(cpus(&machine), "Cpus_allowed_list:\t2\n");
}
