use sysroot::FakeTree;

use super::super::tests::{Isolated, link, shown_about, thread};

const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
    Max locked memory         8388608              8388608              bytes     \n\
    Max realtime priority     0                    0                              \n\
    Max realtime timeout      unlimited            unlimited            us        \n";

/// A program with a real-time thread at 80 on CPU 2 and a helper, beside another program at 80 on all CPUs.
fn machine() -> FakeTree {
    let tree = FakeTree::new(&[
        ("/proc/30/comm", "control"),
        ("/proc/30/limits", LIMITS),
        ("/proc/30/cgroup", "0::/app.slice/control.service"),
        ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
        ("/sys/fs/cgroup/app.slice/cpu.max", "50000 100000"),
        ("/sys/fs/cgroup/app.slice/control.service/cpu.max", "max 100000"),
        ("/proc/sys/kernel/arch", "x86_64"),
    ]);
    status(&tree, "0000000000000000", "0");
    thread(&tree, (30, 30), "control", 0, (0, 0), "0-1");
    thread(&tree, (30, 31), "control/rt", 0, (1, 80), "2");
    thread(&tree, (40, 40), "other", 0, (1, 80), "0-3");
    tree
}

fn status(tree: &FakeTree, capabilities: &str, tracer: &str) {
    let text = format!(
        "Name:\tcontrol\nTracerPid:\t{tracer}\nVmLck:\t    1000 kB\nVmRSS:\t    4096 kB\nVmSwap:\t      12 kB\n\
         CapEff:\t{capabilities}\nCpus_allowed_list:\t0-1\n"
    );
    tree.write("/proc/30/status", text);
}

fn reading(tree: &FakeTree, name: &str) -> String {
    shown_about(tree, Isolated::Cpus("2-3"), 30, name)
}

#[test]
fn threads_are_counted_and_placed() {
    let tree = machine();
    assert_eq!(reading(&tree, "process"), "control (30)");
    assert_eq!(reading(&tree, "process.real-time-threads"), "1");
    assert_eq!(reading(&tree, "process.top-priority"), "80");
    assert_eq!(reading(&tree, "process.equals"), "other (40) fifo 80: CPU 2");
    assert_eq!(
        (reading(&tree, "process.wandering"), reading(&tree, "process.off-isolated")),
        ("none".into(), "none".into())
    );
    thread(&tree, (30, 31), "control/rt", 0, (1, 80), "1-2");
    assert_eq!(reading(&tree, "process.wandering"), "control/rt (31) fifo 80: CPUs 1-2");
    assert_eq!(reading(&tree, "process.off-isolated"), "control/rt (31) fifo 80: CPUs 1-2");
}

#[test]
fn two_equals_of_one_process_are_reported_once() {
    let tree = machine();
    thread(&tree, (40, 40), "other", 0, (0, 0), "0-3");
    thread(&tree, (30, 32), "control/b", 0, (1, 80), "2");
    assert_eq!(reading(&tree, "process.equals"), "control/b (32) fifo 80: CPU 2");
}

#[test]
fn memory_is_locked_or_not() {
    let tree = machine();
    assert_eq!(reading(&tree, "process.unlocked-kib"), "3096");
    assert_eq!(reading(&tree, "process.swapped-kib"), "12");
    assert_eq!(reading(&tree, "process.major-faults"), "none");
    let stat = "31 (control/rt) S 1 1 1 0 -1 0 5 0 3 0 5 6 0 0 -100 0 1 0 4711 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 17 0 80 1";
    tree.write("/proc/30/task/31/stat", stat);
    assert_eq!(reading(&tree, "process.major-faults"), "control/rt (31): 3");
}

#[test]
fn what_it_may_comes_from_capabilities_or_limits() {
    let tree = machine();
    let may = || (reading(&tree, "process.may-be-real-time"), reading(&tree, "process.may-lock-memory"));
    assert_eq!(may(), ("no".into(), "no".into()));
    status(&tree, "0000000000800000", "0");
    assert_eq!(may(), ("yes".into(), "no".into()));
    status(&tree, "0000000000004000", "0");
    assert_eq!(may(), ("no".into(), "yes".into()));
    assert_eq!(reading(&tree, "process.run-time-limit"), "unlimited");
}

#[test]
fn a_capability_of_a_user_namespace_proves_nothing() {
    let tree = machine();
    status(&tree, "0000000000804000", "0");
    let may = || (reading(&tree, "process.may-be-real-time"), reading(&tree, "process.may-lock-memory"));
    assert_eq!(may(), ("yes".into(), "yes".into()));
    link(&tree, "/proc/30/ns/user", "user:[4026531999]");
    assert_eq!(may(), ("no".into(), "no".into()), "root in there, and nobody outside");
    tree.write("/proc/30/limits", LIMITS.replace("0                    0 ", "50                   50"));
    assert_eq!(may().0, "yes", "the limit counts there too");
}

#[test]
fn quotas_of_groups_above_count() {
    assert_eq!(reading(&machine(), "process.cpu-quotas"), "/app.slice: 50000 100000");
}

#[test]
fn a_tracer_and_children_are_reported() {
    let tree = machine();
    assert_eq!(reading(&tree, "process.tracer"), "0");
    status(&tree, "0", "77");
    assert_eq!(reading(&tree, "process.tracer"), "77");
    assert_eq!(reading(&tree, "process.real-time-children"), "none");
    thread(&tree, (50, 50), "child", 0, (1, 80), "2");
    let stat = std::fs::read_to_string(tree.root.path("/proc/50/task/50/stat")).unwrap();
    tree.write("/proc/50/task/50/stat", stat.replace(") S 1 ", ") S 30 "));
    assert_eq!(reading(&tree, "process.real-time-children"), "child (50) fifo 80: process 50");
}

#[test]
fn devices_wait_behind_threads_of_the_program() {
    let tree = machine();
    link(&tree, "/proc/30/fd/3", "/dev/uio0");
    link(&tree, "/proc/30/fd/4", "/dev/null");
    assert_eq!(reading(&tree, "process.devices-behind"), "absent");
    thread(&tree, (60, 60), "irq/9-uio", 0x0020_0000, (1, 50), "0-3");
    assert_eq!(
        reading(&tree, "process.devices-behind"),
        "/dev/uio0: interrupt threads up to 50, the program from 80 on"
    );
    thread(&tree, (60, 60), "irq/9-uio", 0x0020_0000, (1, 90), "0-3");
    assert_eq!(reading(&tree, "process.devices-behind"), "none");
}

#[test]
fn sleeps_are_seen_in_system_calls() {
    let tree = machine();
    assert_eq!(reading(&tree, "process.relative-sleeps"), "absent");
    tree.write("/proc/30/task/31/syscall", "230 0x0 0x1 0x7ffd3a2f10b0 0x0 0x0 0x0 0x7ffd 0x7f1c");
    assert_eq!(reading(&tree, "process.relative-sleeps"), "none");
    assert_eq!(reading(&tree, "process.settable-clock"), "control/rt (31): sleeps until a time of clock 0");
    tree.write("/proc/30/task/31/syscall", "230 0x1 0x0 0x7ffd3a2f10b0 0x0 0x0 0x0 0x7ffd 0x7f1c");
    assert_eq!(reading(&tree, "process.relative-sleeps"), "control/rt (31): sleeps for a time of clock 1");
    assert_eq!(reading(&tree, "process.settable-clock"), "none");
}

#[test]
fn slack_matters_without_real_time() {
    let tree = machine();
    tree.write("/proc/30/timerslack_ns", "50000");
    tree.write("/proc/31/timerslack_ns", "1");
    assert_eq!(reading(&tree, "process.timer-slack"), "absent");
    thread(&tree, (30, 31), "control/rt", 0, (0, 0), "2");
    assert_eq!(reading(&tree, "process.timer-slack"), "50000");
}

#[test]
fn nothing_is_said_of_a_process_that_nobody_asked_about() {
    let tree = machine();
    let names = super::FACTS.iter().map(|fact| fact.name);
    for name in names {
        assert_eq!(super::super::tests::shown(&tree, Isolated::Cpus("2-3"), name), "unknown", "{name}");
    }
}
