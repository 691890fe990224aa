//! The table of faults: whatever goes wrong at whichever step, nothing is lost, and nothing is half done unsaid.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;

use control::Kernel;
use rustix::io::Errno;
use sysroot::Tree;
use units::CpuList;

use crate::apply::{End, OnRefusal, apply, rewrite};
use crate::journal::{Begin, History, Journal, Line, Outcome, Store, read};
use crate::plan::{Change, Plan, Request, Threads, plan};
use crate::scripted::{Fault, Killed, Scripted};
use crate::setting::Target;
use crate::status::{Now, now, reconcile};
use crate::undo::{Back, differences, restore};

pub(crate) const STAT: &str = "S 2 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 40 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
const INTERRUPTS: &str = "           CPU0       CPU1       CPU2       CPU3\n \
     24:          0          9          0          0 PCI-MSI 0-edge      eth0\n \
     25:          0          9          0          0 PCI-MSI 1-edge      nvme0q1\n";

pub(crate) fn machine() -> Scripted {
    let latency = 2_000_000_000_i32.to_ne_bytes();
    let files: [(&str, &[u8]); 17] = [
        ("/proc/sys/vm/swappiness", b"60\n"),
        ("/proc/sys/vm/stat_interval", b"1\n"),
        ("/proc/sys/kernel/printk", b"7\t4\t1\t7\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", b"[always] madvise never\n"),
        ("/sys/devices/virtual/workqueue/cpumask", b"00000000,0000000f\n"),
        ("/proc/interrupts", INTERRUPTS.as_bytes()),
        ("/proc/irq/24/smp_affinity_list", b"0-3\n"),
        ("/proc/irq/25/smp_affinity_list", b"2-3\n"),
        ("/proc/15/stat", b""),
        ("/proc/self/mountinfo", b"1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("/sys/fs/cgroup/cgroup.controllers", b"cpuset cpu io\n"),
        ("/sys/fs/cgroup/cgroup.subtree_control", b"cpu io\n"),
        ("/proc/15/task/15/status", b"Name:\trcu_preempt\nCpus_allowed_list:\t0-3\nx:\t1\n"),
        ("/dev/cpu_dma_latency", &latency),
        ("/sys/devices/system/cpu/cpu2/cpuidle/state1/latency", b"133\n"),
        ("/sys/devices/system/cpu/cpu2/cpuidle/state1/disable", b"0\n"),
        ("/sys/devices/system/cpu/cpu3/cpuidle/state1/latency", b"133\n"),
    ];
    let mut machine =
        Scripted::new(Tree::whole(files.map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))));
    machine.put("/proc/15/task/15/stat", &format!("15 (rcu_preempt) {STAT}\n"));
    machine
}

fn files(path: &str, value: &str) -> Request {
    let change = Change::Files { path: path.to_owned(), value: value.to_owned() };
    Request {
        rule: format!("rule-{}", path.rsplit('/').next().unwrap()),
        changes: vec![change],
        ..Request::default()
    }
}

fn requests() -> Vec<Request> {
    let moved =
        Threads { named: vec!["rcu*".into()], cpus: Some("0-1".parse().unwrap()), ..Threads::default() };
    let raised =
        Threads { named: vec!["rcu*".into()], priority: Some(4.try_into().unwrap()), ..Threads::default() };
    let threads = |rule: &str, threads| Request {
        rule: rule.to_owned(),
        changes: vec![Change::Threads(threads)],
        ..Request::default()
    };
    vec![
        files("/proc/sys/vm/swappiness", "10"),
        files("/proc/sys/vm/stat_interval", "10"),
        files("/proc/sys/kernel/printk", "4"),
        files("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
        files("/sys/devices/virtual/workqueue/cpumask", "3"),
        files("/proc/irq/*/smp_affinity_list", "0-1"),
        files("/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us", "10"),
        threads("moved", moved),
        threads("raised", raised),
        Request {
            rule: "apart".into(),
            changes: vec![Change::Partition("2-3".parse().unwrap())],
            ..Request::default()
        },
    ]
}

fn planned(machine: &Scripted) -> Plan {
    plan(&machine.root(), &requests(), &"2-3".parse().unwrap())
}

/// A disk: what was written, what of it is safe from a power cut, and at which call it fails.
#[derive(Clone, Default)]
pub(crate) struct Disk(Rc<RefCell<Contents>>);

#[derive(Default)]
pub(crate) struct Contents {
    written: Vec<u8>,
    safe: usize,
    calls: usize,
    fails_at: Option<(usize, i32)>,
}

impl Disk {
    fn failing(call: usize, errno: Errno) -> Self {
        let disk = Self::default();
        disk.0.borrow_mut().fails_at = Some((call, errno.raw_os_error()));
        disk
    }

    fn answer(&self) -> io::Result<()> {
        let mut contents = self.0.borrow_mut();
        contents.calls += 1;
        match contents.fails_at {
            Some((call, errno)) if contents.calls > call => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    pub(crate) fn journal(&self) -> Journal {
        let mut journal = Journal::new(Box::new(self.clone()), Path::new("journal"));
        let begin = Begin { boot_id: "this".into(), ..Begin::default() };
        let _ = journal.promise(&Line::Begin(begin));
        journal
    }

    pub(crate) fn history(&self) -> History {
        History::of(read(&self.0.borrow().written))
    }
}

impl Store for Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.answer()?;
        self.0.borrow_mut().written.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.answer()?;
        let mut contents = self.0.borrow_mut();
        contents.safe = contents.written.len();
        Ok(())
    }
}

pub(crate) fn run(machine: &mut Scripted, disk: &Disk, on_refusal: OnRefusal) -> crate::apply::Applied {
    let plan = planned(machine);
    apply(machine, &mut disk.journal(), &plan.steps, on_refusal, &mut |_| true)
}

/// How many writes the plan comes to.
fn steps() -> usize {
    planned(&machine()).steps.len()
}

/// Undoes from the journal alone, and finds the machine as it was.
fn undone_from(disk: &Disk, machine: &mut Scripted, what: &str) {
    let history = disk.history();
    let undone = restore(machine, &history.steps);
    assert!(undone.iter().all(|undone| undone.back.is_as_before()), "{what}: {undone:#?}");
    assert!(differences(&machine.root(), &history.steps).is_empty(), "{what}");
    assert_eq!(machine.tree, self::machine().tree, "{what}");
}

#[test]
fn the_plan_is_what_the_requests_come_to() {
    let plan = planned(&machine());
    let shown: Vec<String> =
        plan.steps.iter().map(|step| format!("{}: {} -> {}", step.target, step.old, step.new)).collect();
    assert_eq!(
        shown,
        [
            "cpuset controller below /sys/fs/cgroup: off -> on",
            "control group /sys/fs/cgroup/worstcase: none -> there",
            "/sys/fs/cgroup/worstcase/cpuset.cpus:  -> 2-3",
            "/sys/fs/cgroup/worstcase/cpuset.cpus.partition: member -> isolated",
            "CPUs of rcu_preempt (15): 0-3 -> 0-1",
            "/sys/devices/virtual/workqueue/cpumask: 00000000,0000000f -> 3",
            "CPUs of irq 24 (PCI-MSI 0-edge eth0): 0-3 -> 0-1",
            "CPUs of irq 25 (PCI-MSI 1-edge nvme0q1): 2-3 -> 0-1",
            "/sys/devices/system/cpu/cpu2/cpuidle/state1/disable: 0 -> 1",
            "/dev/cpu_dma_latency: 2000000000 -> 10",
            "/proc/sys/vm/swappiness: 60 -> 10",
            "/proc/sys/vm/stat_interval: 1 -> 10",
            "/proc/sys/kernel/printk: 7\t4\t1\t7 -> 4",
            "/sys/kernel/mm/transparent_hugepage/enabled: always -> never",
            "priority of rcu_preempt (15): other 0 -> fifo 4",
        ]
    );
    assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
}

#[test]
fn apply_then_undo_is_the_identity() {
    let (mut machine, disk) = (machine(), Disk::default());
    let applied = run(&mut machine, &disk, OnRefusal::RollBack);
    assert!(matches!(applied.end, End::Applied));
    assert!(applied.taken.iter().all(|taken| taken.held()), "{applied:#?}");
    assert_eq!(machine.text("/proc/sys/kernel/printk").as_deref(), Some("4\t4\t1\t7\n"));
    let history = disk.history();
    assert!(history.applied && now(&machine.root(), &history).iter().all(|(_, now)| *now == Now::Holds));
    undone_from(&disk, &mut machine, "undo");
}

#[test]
fn a_refusal_at_any_step_takes_everything_back() {
    for step in 0..steps() {
        for errno in [Errno::IO, Errno::PERM, Errno::INVAL, Errno::BUSY, Errno::NOSPC] {
            let (mut machine, disk) = (machine().with(step, Fault::Refuse(errno)), Disk::default());
            let applied = run(&mut machine, &disk, OnRefusal::RollBack);
            let refused = applied.taken.iter().find(|taken| !taken.held()).unwrap();
            assert_eq!(refused.outcome, Some(Outcome::Refused(errno.raw_os_error())), "step {step}");
            match (&applied.end, refused.target.kind().may_be_refused()) {
                (End::Applied, true) => undone_from(&disk, &mut machine, "after a fact"),
                (End::RolledBack(undone), false) => {
                    assert_eq!(undone.len(), step, "what was done before is put back");
                    assert_eq!(machine.tree, self::machine().tree, "step {step} {errno}");
                }
                other => panic!("step {step} {errno}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_ignored_or_clamped_is_reported_and_can_be_undone() {
    for step in 0..steps() {
        let (mut machine, disk) = (machine().with(step, Fault::Ignore), Disk::default());
        let applied = run(&mut machine, &disk, OnRefusal::GoOn);
        assert_eq!(applied.taken[step].outcome, Some(Outcome::Ignored), "step {step}");
        let held = applied.taken.iter().filter(|taken| taken.held()).count();
        assert_eq!(held + applied.left_out.len(), steps() - 1, "what is not there is reported");
        undone_from(&disk, &mut machine, "ignored");
    }
    let clamped = [(4, "0"), (6, "0"), (10, "20")];
    for (step, value) in clamped {
        let (mut machine, disk) = (machine().with(step, Fault::Clamp(value.into())), Disk::default());
        let applied = run(&mut machine, &disk, OnRefusal::RollBack);
        assert_eq!(applied.taken[step].outcome, Some(Outcome::Clamped(value.into())), "step {step}");
        undone_from(&disk, &mut machine, "clamped");
    }
}

#[test]
fn a_partition_that_is_not_valid_is_refused_with_the_kernels_reason() {
    const STATE: &str = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
    let (mut machine, disk) = (machine().with(3, Fault::Clamp(STATE.into())), Disk::default());
    let applied = run(&mut machine, &disk, OnRefusal::RollBack);
    assert!(matches!(applied.end, End::RolledBack(_)), "{applied:#?}");
    assert_eq!(applied.taken[3].outcome, Some(Outcome::Clamped(STATE.into())));
    assert_eq!(machine.tree, self::machine().tree);
}

#[test]
fn what_runs_in_a_partition_is_moved_out_before_it_goes() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    machine.put("/sys/fs/cgroup/cgroup.procs", "1\n");
    machine.put("/sys/fs/cgroup/worstcase/cgroup.procs", "700\n");
    let undone = restore(&mut machine, &disk.history().steps);
    // The made-up kernel leaves a process in both groups, so that the group stays: what counts is that it was moved.
    assert_eq!(machine.text("/sys/fs/cgroup/cgroup.procs").as_deref(), Some("700\n"));
    let group =
        undone.iter().find(|undone| undone.target == Target::Group("/sys/fs/cgroup/worstcase".into()));
    assert!(matches!(&group.unwrap().back, Back::Refused(_)), "{group:?}");
    machine.put("/sys/fs/cgroup/cgroup.procs", "1\n");
    machine.put("/sys/fs/cgroup/worstcase/cgroup.procs", "");
    restore(&mut machine, &disk.history().steps);
    machine.tree.files.remove("/sys/fs/cgroup/cgroup.procs");
    assert_eq!(machine.tree, self::machine().tree, "the next undo takes it away");
}

#[test]
fn threads_get_back_the_cpus_that_a_partition_made_the_kernel_forget() {
    let mut before = machine();
    before.put("/sys/devices/system/cpu/online", "0-3\n");
    for (tid, name, cpus) in [(16, "irq/24-eth0", "1"), (17, "irq/25-nvme0q1", "2-3"), (18, "rcu_exp", "0-1")]
    {
        before.put(&format!("/proc/{tid}/stat"), "");
        before.put(&format!("/proc/{tid}/task/{tid}/stat"), &format!("{tid} ({name}) {STAT}\n"));
        before.put(&format!("/proc/{tid}/task/{tid}/status"), &format!("Cpus_allowed_list:\t{cpus}\n"));
    }
    let cpus =
        |machine: &Scripted, tid: i32| machine.text(&format!("/proc/{tid}/task/{tid}/status")).unwrap();
    let narrowed = Change::Threads(Threads {
        named: vec!["irq/25*".into()],
        cpus: Some("0".parse().unwrap()),
        ..Threads::default()
    });
    let changes = vec![Change::Partition("2-3".parse().unwrap()), narrowed];
    let plan = plan(&before.root(), &[Request { changes, ..Request::default() }], &CpuList::new());
    let (mut machine, disk) = (before.clone(), Disk::default());
    apply(&mut machine, &mut disk.journal(), &plan.steps, OnRefusal::RollBack, &mut |_| true);
    assert_eq!(
        (cpus(&machine, 16), cpus(&machine, 17)),
        ("Cpus_allowed_list:\t0-1\n".into(), "Cpus_allowed_list:\t0\n".into())
    );
    let history = disk.history();
    assert!(now(&machine.root(), &history).iter().all(|(_, now)| *now == Now::Holds));
    let undone = restore(&mut machine, &history.steps);
    assert!(undone.iter().all(|undone| undone.back.is_as_before()), "{undone:#?}");
    assert_eq!(differences(&machine.root(), &history.steps), []);
    assert_eq!(machine.tree, before.tree);
}

#[test]
fn what_is_refused_and_then_gone_with_its_group_is_undone() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    // While something runs in a partition, the kernel does not take its CPUs away: the third step, third from the end.
    machine = machine.with(steps() - 3, Fault::Refuse(Errno::NOSPC));
    undone_from(&disk, &mut machine, "with its group");
}

#[test]
fn a_process_killed_at_any_step_leaves_what_undo_needs() {
    for step in 0..steps() {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let (mut machine, disk) = (machine().with(step, fault.clone()), Disk::default());
            let end = catch_unwind(AssertUnwindSafe(|| run(&mut machine, &disk, OnRefusal::RollBack)));
            assert!(end.err().is_some_and(|panic| panic.is::<Killed>()));
            let history = disk.history();
            assert_eq!((history.steps.len(), history.applied), (step + 1, false), "{fault:?}");
            assert_eq!(history.steps[step].outcome, None);
            undone_from(&disk, &mut machine, &format!("killed at {step}, {fault:?}"));
        }
    }
}

#[test]
fn an_undo_that_is_killed_is_undone_by_the_next() {
    for step in 0..steps() {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let (mut machine, disk) = (machine(), Disk::default());
            run(&mut machine, &disk, OnRefusal::RollBack);
            machine = machine.with(step, fault.clone());
            let history = disk.history();
            let end = catch_unwind(AssertUnwindSafe(|| restore(&mut machine, &history.steps)));
            assert!(end.is_err(), "undo writes as often as apply did");
            undone_from(&disk, &mut machine, &format!("undo killed at {step}, {fault:?}"));
        }
    }
}

#[test]
fn a_journal_that_cannot_be_written_stops_everything() {
    let whole = Disk::default();
    run(&mut machine(), &whole, OnRefusal::RollBack);
    let calls = whole.0.borrow().calls;
    // The first two calls are those of the journal's beginning.
    for call in 2..calls {
        for errno in [Errno::NOSPC, Errno::IO] {
            let (mut machine, disk) = (machine(), Disk::failing(call, errno));
            let applied = run(&mut machine, &disk, OnRefusal::GoOn);
            let End::JournalFailed(error, undone) = applied.end else { panic!("call {call}") };
            assert!(error.to_string().contains("journal"), "{error}");
            assert!(undone.iter().all(|undone| undone.back.is_as_before()));
            assert_eq!(machine.tree, self::machine().tree, "call {call}");
        }
    }
}

#[test]
fn nothing_is_written_that_is_not_on_the_disk_before() {
    // At every write of the machine, what is safe from a power cut names it.
    for step in 0..steps() {
        let (mut machine, disk) = (machine().with(step, Fault::KillBefore), Disk::default());
        let _ = catch_unwind(AssertUnwindSafe(|| run(&mut machine, &disk, OnRefusal::RollBack)));
        let contents = disk.0.borrow();
        let safe = History::of(read(&contents.written[..contents.safe]));
        assert_eq!(safe.steps.len(), step + 1);
    }
}

#[test]
fn a_journal_cut_off_by_a_power_cut_undoes_what_it_tells() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    let whole = disk.0.borrow().written.clone();
    for cut in 0..=whole.len() {
        let history = History::of(read(&whole[..cut]));
        let mut machine = machine.clone();
        let undone = restore(&mut machine, &history.steps);
        assert!(undone.iter().all(|undone| undone.back == Back::Restored), "at {cut}: {undone:?}");
        assert_eq!(undone.len(), history.steps.len());
        assert!(history.damaged.is_empty());
    }
}

#[test]
fn another_boot_is_known() {
    let disk = Disk::default();
    run(&mut machine(), &disk, OnRefusal::RollBack);
    assert!(disk.history().is_of_another_boot("other") && !disk.history().is_of_another_boot("this"));
}

#[test]
fn somebody_elses_later_change_is_never_overwritten() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    machine.put("/proc/sys/vm/swappiness", "30\n");
    machine.put("/sys/devices/virtual/workqueue/cpumask", "00000000,00000001\n");
    machine.put("/proc/sys/vm/stat_interval", "1\n");
    let history = disk.history();
    let drifted = now(&machine.root(), &history).into_iter().filter(|(_, now)| *now != Now::Holds);
    assert_eq!(drifted.count(), 3);
    let undone = restore(&mut machine, &history.steps);
    let of = |path: &str| {
        undone.iter().find(|undone| undone.target == Target::File(path.to_owned())).unwrap().back.clone()
    };
    assert_eq!(of("/proc/sys/vm/swappiness"), Back::Foreign("30".into()));
    assert_eq!(of("/proc/sys/vm/stat_interval"), Back::AsBefore);
    assert_eq!(machine.text("/proc/sys/vm/swappiness").as_deref(), Some("30\n"));
    let left = differences(&machine.root(), &history.steps);
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn an_interrupt_with_another_number_is_found_and_one_in_its_place_is_spared() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    // eth0 comes back as 26, and a sound card has 24 now.
    let text = INTERRUPTS.replace("eth0", "snd_hda").replace("0-edge", "7-edge")
        + " 26:          0          9          0          0 PCI-MSI 0-edge      eth0\n";
    machine.put("/proc/interrupts", &text);
    machine.put("/proc/irq/24/smp_affinity_list", "0-1\n");
    machine.put("/proc/irq/26/smp_affinity_list", "0-1\n");
    restore(&mut machine, &disk.history().steps);
    assert_eq!(machine.text("/proc/irq/24/smp_affinity_list").as_deref(), Some("0-1\n"));
    assert_eq!(machine.text("/proc/irq/25/smp_affinity_list").as_deref(), Some("2-3\n"));
    assert_eq!(machine.text("/proc/irq/26/smp_affinity_list").as_deref(), Some("0-3\n"));
}

#[test]
fn of_several_interrupts_of_a_name_none_is_touched_and_that_is_reported() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    let line =
        |number| format!(" {number}:          0          9          0          0 PCI-MSI 0-edge      eth0\n");
    let text = INTERRUPTS.replace(" 24:", " 23:").replace("0-edge", "9-edge") + &line(26) + &line(27);
    machine.put("/proc/interrupts", &text);
    let undone = restore(&mut machine, &disk.history().steps);
    let unclear = undone.iter().filter(|undone| matches!(undone.back, Back::Unclear(_)));
    assert_eq!(unclear.count(), 1, "{undone:?}");
    assert_eq!(differences(&machine.root(), &disk.history().steps).len(), 1);
}

#[test]
fn a_thread_that_ended_is_reported_and_one_with_its_id_is_spared() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    let stat = machine.text("/proc/15/task/15/stat").unwrap().replace(" 40 0 0 ", " 41 0 0 ");
    machine.put("/proc/15/task/15/stat", &stat);
    let before = machine.tree.clone();
    let undone = restore(&mut machine, &disk.history().steps);
    let gone = undone.iter().filter(|undone| matches!(undone.back, Back::Gone(_)));
    assert_eq!(gone.count(), 2, "its CPUs and its priority");
    assert_eq!(machine.tree.files["/proc/15/task/15/stat"], before.files["/proc/15/task/15/stat"]);
}

#[test]
fn a_thread_that_began_anew_is_judged_by_its_name_and_written_again() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    let off = |machine: &Scripted| {
        now(&machine.root(), &disk.history()).iter().filter(|(_, now)| now.is_off()).count()
    };
    let text = |name: &str| self::machine().text(&format!("/proc/15/task/15/{name}")).unwrap();
    let (stat, status) =
        (text("stat").replace("15 (", "99 (").replace(" 40 0 0 ", " 41 0 0 "), text("status"));
    machine.tree.files.retain(|path, _| !path.starts_with("/proc/15"));
    assert_eq!(off(&machine), 0, "what is gone neither holds nor does not");
    machine.put("/proc/99/task/99/stat", &stat);
    machine.put("/proc/99/task/99/status", &status);
    assert_eq!(off(&machine), 2, "it has neither the CPUs nor the priority");
    let history = disk.history();
    let mut journal = Journal::new(Box::new(disk.clone()), Path::new("journal"));
    (0..history.steps.len()).for_each(|_| {
        journal.next();
    });
    assert_eq!(reconcile(&mut machine, &mut journal, &history).unwrap().len(), 2);
    assert!(disk.history().applied, "it was done to its end");
    restore(&mut machine, &disk.history().steps);
    assert_eq!(machine.text("/proc/99/task/99/stat"), Some(stat));
    assert_eq!(machine.text("/proc/99/task/99/status"), Some(status));
}

#[test]
fn what_was_added_and_refused_is_withdrawn_and_the_rest_holds_on() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    let before = disk.history();
    let plan = plan(&machine.root(), &[files("/proc/sys/vm/swappiness", "1")], &CpuList::new());
    let mut journal = Journal::new(Box::new(disk.clone()), Path::new("journal"));
    (0..before.steps.len()).for_each(|_| {
        journal.next();
    });
    apply(&mut machine, &mut journal, &plan.steps, OnRefusal::RollBack, &mut |_| true);
    assert_eq!((disk.history().steps.len(), disk.history().applied), (before.steps.len() + 1, true));
    journal.intend(&before.steps[0]).unwrap();
    assert!(!disk.history().applied, "a command that was killed while it added is known");
    journal.promise(&Line::Withdrawn { from: before.steps.len() + 1 }).unwrap();
    let history = disk.history();
    assert_eq!((history.steps.len(), history.applied), (before.steps.len() + 1, true));
    undone_from(&disk, &mut machine, "what was there and what was added");
}

#[test]
fn a_cpu_gone_offline_takes_its_files_along_and_nothing_else() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    machine.tree.files.retain(|path, _| !path.contains("/cpu2/"));
    let undone = restore(&mut machine, &disk.history().steps);
    let gone: Vec<_> = undone.iter().filter(|undone| matches!(undone.back, Back::Gone(_))).collect();
    assert_eq!(gone.len(), 1, "{gone:?}");
    assert!(undone.iter().all(|undone| undone.back.is_as_before()));
    assert!(differences(&machine.root(), &disk.history().steps).is_empty());
}

#[test]
fn what_was_reset_is_written_again_by_name_and_undone_to_the_first_value() {
    let (mut machine, disk) = (machine(), Disk::default());
    run(&mut machine, &disk, OnRefusal::RollBack);
    machine.put("/proc/irq/24/smp_affinity_list", "0-3\n");
    machine.put("/sys/devices/virtual/workqueue/cpumask", "00000000,0000000f\n");
    let history = disk.history();
    let mut journal = Journal::new(Box::new(disk.clone()), Path::new("journal"));
    (0..history.steps.len()).for_each(|_| {
        journal.next();
    });
    let again = reconcile(&mut machine, &mut journal, &history).unwrap();
    assert_eq!(again.len(), 2, "{again:?}");
    let history = disk.history();
    assert!(now(&machine.root(), &history).iter().all(|(_, now)| *now == Now::Holds));
    undone_from(&disk, &mut machine, "after reconciling");
}

#[test]
fn what_is_not_wanted_is_not_touched() {
    let (mut machine, disk) = (machine(), Disk::default());
    let plan = planned(&machine);
    let none = &mut |_: &crate::plan::Step| false;
    let applied = apply(&mut machine, &mut disk.journal(), &plan.steps, OnRefusal::RollBack, none);
    assert!(applied.taken.is_empty() && machine.writes == 0);
}

#[test]
fn what_is_rewritten_says_the_same_and_what_does_not_is_named() {
    let mut calm = machine();
    let steps = plan(
        &calm.root(),
        &[files("/proc/sys/vm/swappiness", "10"), files("/proc/sys/vm/stat_interval", "10")],
        &"2-3".parse().unwrap(),
    )
    .steps;
    assert_eq!(steps.len(), 2);
    let tree = calm.tree.clone();
    assert!(rewrite(&mut calm, &steps).is_empty());
    assert_eq!((calm.writes, calm.tree == tree), (2, true), "both are written, and nothing changes");
    let mut refusing = machine().with(0, Fault::Refuse(Errno::PERM));
    assert!(rewrite(&mut refusing, &steps).is_empty(), "it was asked, and says the same");
    let mut clamping = machine().with(1, Fault::Clamp("3".to_owned()));
    let moved = rewrite(&mut clamping, &steps);
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0], (steps[1].target.clone(), record::Fact::Value("3".to_owned())));
}
