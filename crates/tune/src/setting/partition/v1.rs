//! An exclusive cpuset of cgroup v1 (Documentation/admin-guide/cgroup-v1/cpusets.rst): one group for real time, one for
//! all programs that are in the top group, and a top group that balances load no longer, as it would over both.

use machine::V1;
use sysroot::SysRoot;
use units::CpuList;

use super::{Expansion, NAME, Programs, Target, WHAT, in_the_way, nodes_of};
use crate::setting::Step;

/// The group of all others.
const REST: &str = "worstcase-rest";

const EFFECT: &str = "all programs of the top group run on the other CPUs; what is bound to some stays bound to those \
                      that are left";

/// Below the top group of `files`.
pub(super) fn add(root: &SysRoot, expansion: &mut Expansion, files: &V1, cpus: &CpuList) {
    let top = &files.top;
    let (group, rest) = (format!("{top}/{NAME}"), format!("{top}/{REST}"));
    let here = |name: &str| root.cpu_list(&files.file(top, name)).value().cloned().unwrap_or_default();
    let (others, nodes) = (here("cpus").difference(cpus), here("mems"));
    if let Some(why) = [&group, &rest].into_iter().find_map(|group| in_the_way(root, group)) {
        return expansion.refuse(WHAT, why);
    }
    if others.is_empty() || nodes.is_empty() {
        return expansion
            .refuse(WHAT, format!("{top} has no other CPUs, or no memory: this may be a container"));
    }
    // From the inner ones to the outer ones, because a group may not have less than those below it.
    for other in files.groups(root).into_iter().rev() {
        expansion.change(root, Target::File(files.file(&other, "cpus")), &others.to_string());
    }
    let file = |group: &str, name: &str| Target::File(files.file(group, name));
    let programs = Programs { from: top.clone(), to: rest.clone() };
    let near = nodes_of(root, cpus, &nodes);
    let steps = [
        (Target::Group(rest.clone()), "none", "there".to_owned()),
        (file(&rest, "cpus"), "", others.to_string()),
        (file(&rest, "mems"), "", nodes.to_string()),
        (Target::Group(group.clone()), "none", "there".to_owned()),
        (file(&group, "cpus"), "", cpus.to_string()),
        (file(&group, "mems"), "", near.to_string()),
        (file(&group, "cpu_exclusive"), "0", "1".to_owned()),
        (file(&group, "sched_load_balance"), "1", "0".to_owned()),
        (Target::Programs(programs), Programs::TOGETHER, Programs::APART.to_owned()),
    ];
    for (target, old, new) in steps {
        expansion.steps.push(Step::new(target, old.to_owned(), new));
    }
    expansion.change(root, file(top, "sched_load_balance"), "0");
    if let Some(first) = expansion.steps.first_mut() {
        first.effects.push(EFFECT.to_owned());
        first.effects.push(format!("a program gets in by: echo PID > {group}/cgroup.procs"));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use control::Kernel;
    use sysroot::Tree;

    use crate::apply::{Applied, End, OnRefusal, apply};
    use crate::fault_tests::Disk;
    use crate::plan::{Change, Plan, Request, plan};
    use crate::scripted::{Fault, Scripted};
    use crate::status::{Now, now};
    use crate::undo::{differences, restore};

    const TOP: &str = "/sys/fs/cgroup/cpuset";

    /// Two programs, the second of them with a bound thread, and a thread of the kernel; a cpuset of somebody else.
    fn machine() -> Scripted {
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        let mut files = vec![
            file("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"),
            file("/sys/devices/system/cpu/online", "0-3\n"),
            file("/sys/devices/system/node/node0/cpulist", "0-3\n"),
        ];
        let names = ["cpus", "mems", "cpu_exclusive", "sched_load_balance"];
        for (group, values) in [("", ["0-3", "0", "1", "1"]), ("/docker", ["1-2", "0", "0", "1"])] {
            let named = names.iter().zip(values);
            files
                .extend(named.map(|(name, value)| {
                    file(&format!("{TOP}{group}/cpuset.{name}"), &format!("{value}\n"))
                }));
        }
        files.push(file(&format!("{TOP}/tasks"), "2\n700\n800\n801\n"));
        files.push(file(&format!("{TOP}/docker/tasks"), ""));
        for (pid, flags, cpus) in [(2, 0x0020_0000, "0-3"), (700, 0, "0-3"), (800, 0, "0-3"), (801, 0, "1-2")]
        {
            let rest = "0 0 0 0 0 0 0 0 20 0 1 0 40 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
            let directory = format!("/proc/{pid}/task/{pid}");
            files.push(file(
                &format!("{directory}/stat"),
                &format!("{pid} (some) S 2 0 0 0 -1 {flags} {rest}\n"),
            ));
            files.push(file(
                &format!("{directory}/status"),
                &format!("Name:\tsome\nCpus_allowed_list:\t{cpus}\n"),
            ));
        }
        Scripted::new(Tree::whole(files))
    }

    fn planned(machine: &Scripted) -> Plan {
        let cpus: units::CpuList = "2-3".parse().unwrap();
        let request = Request {
            rule: "apart".into(),
            changes: vec![Change::Partition(cpus.clone())],
            ..Request::default()
        };
        plan(&machine.root(), &[request], &cpus)
    }

    fn run(machine: &mut Scripted, disk: &Disk) -> Applied {
        let plan = planned(machine);
        apply(machine, &mut disk.journal(), &plan.steps, OnRefusal::RollBack, &mut |_| true)
    }

    fn undone_from(disk: &Disk, machine: &mut Scripted, what: &str) {
        let history = disk.history();
        let undone = restore(machine, &history.steps);
        assert!(undone.iter().all(|undone| undone.back.is_as_before()), "{what}: {undone:#?}");
        assert!(differences(&machine.root(), &history.steps).is_empty(), "{what}");
        let (now, before) = (sorted(machine), sorted(&self::machine()));
        let differing = now.files.iter().filter(|(path, text)| before.files.get(*path) != Some(text));
        assert_eq!(differing.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<&String>::new(), "{what}");
        assert_eq!(now.files.len(), before.files.len(), "{what}");
    }

    /// The order in which the kernel names threads is its own.
    fn sorted(machine: &Scripted) -> Tree {
        let mut machine = machine.clone();
        let list = format!("{TOP}/tasks");
        let text = machine.text(&list).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        machine.put(&list, &lines.join("\n"));
        machine.tree
    }

    #[test]
    fn the_plan_makes_two_groups_and_has_the_top_one_balance_no_longer() {
        let plan = planned(&machine());
        let lines: Vec<String> =
            plan.steps.iter().map(|step| format!("{}: {} -> {}", step.target, step.old, step.new)).collect();
        let expected = [
            "TOP/docker/cpuset.cpus: 1-2 -> 1",
            "control group TOP/worstcase-rest: none -> there",
            "TOP/worstcase-rest/cpuset.cpus:  -> 0-1",
            "TOP/worstcase-rest/cpuset.mems:  -> 0",
            "control group TOP/worstcase: none -> there",
            "TOP/worstcase/cpuset.cpus:  -> 2-3",
            "TOP/worstcase/cpuset.mems:  -> 0",
            "TOP/worstcase/cpuset.cpu_exclusive: 0 -> 1",
            "TOP/worstcase/cpuset.sched_load_balance: 1 -> 0",
            "programs of TOP and TOP/worstcase-rest: together -> apart",
            "TOP/cpuset.sched_load_balance: 1 -> 0",
        ];
        assert_eq!(lines, expected.map(|line| line.replace("TOP", TOP)));
        assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
    }

    #[test]
    fn programs_are_moved_by_one_entry_and_stay_bound_where_they_were() {
        let (mut machine, disk) = (machine(), Disk::default());
        let applied = run(&mut machine, &disk);
        assert!(matches!(applied.end, End::Applied), "{applied:#?}");
        assert_eq!(machine.text(&format!("{TOP}/tasks")).as_deref(), Some("2\n"), "the kernel's stay");
        assert_eq!(machine.text(&format!("{TOP}/worstcase-rest/tasks")).as_deref(), Some("700\n800\n801\n"));
        let cpus = |tid: i32| machine.text(&format!("/proc/{tid}/task/{tid}/status")).unwrap();
        assert!(cpus(801).ends_with("\t1\n"), "of 1-2 the first is left: {}", cpus(801));
        assert!(cpus(700).ends_with("\t0-1\n"));
        let [partition] = &machine::partitions(&machine.root())[..] else { panic!() };
        assert_eq!((partition.state.as_str(), partition.is_valid()), ("exclusive", true));
        undone_from(&disk, &mut machine, "undo");
    }

    #[test]
    fn who_came_later_goes_back_too_and_who_came_to_the_top_is_reported() {
        let (mut machine, disk) = (machine(), Disk::default());
        run(&mut machine, &disk);
        let kept = |machine: &Scripted| {
            let history = disk.history();
            let all = now(&machine.root(), &history);
            all.into_iter().all(|(_, now)| now == Now::Holds)
        };
        assert!(kept(&machine));
        machine.put(&format!("{TOP}/tasks"), "2\n700\n");
        machine.put(&format!("{TOP}/worstcase-rest/tasks"), "800\n801\n");
        machine.put("/proc/700/task/700/status", "Name:\tsome\nCpus_allowed_list:\t0-3\n");
        assert!(!kept(&machine));
        undone_from(&disk, &mut machine, "with a straggler");
    }

    #[test]
    fn a_process_killed_at_any_write_of_apply_or_undo_leaves_what_undo_needs() {
        let writes = {
            let mut machine = machine();
            run(&mut machine, &Disk::default());
            machine.writes
        };
        for write in 0..writes {
            for fault in [Fault::KillBefore, Fault::KillAfter] {
                let (mut machine, disk) = (machine().with(write, fault.clone()), Disk::default());
                let end = catch_unwind(AssertUnwindSafe(|| run(&mut machine, &disk)));
                assert!(end.is_err());
                undone_from(&disk, &mut machine, &format!("killed at {write}, {fault:?}"));
                let (mut machine, disk) = (self::machine(), Disk::default());
                run(&mut machine, &disk);
                machine = machine.with(write, fault.clone());
                let history = disk.history();
                let _ = catch_unwind(AssertUnwindSafe(|| restore(&mut machine, &history.steps)));
                undone_from(&disk, &mut machine, &format!("undo killed at {write}, {fault:?}"));
            }
        }
    }

    #[test]
    fn without_any_cpuset_controller_it_is_said_why() {
        let lines = |release: &str| {
            let mut machine = machine();
            machine.put("/proc/self/mountinfo", "");
            machine.put("/proc/sys/kernel/osrelease", release);
            planned(&machine).refusals[0].why_not.clone()
        };
        assert!(lines("6.12.117+deb12-amd64\n").contains("CONFIG_CPUSETS_V1"));
        assert!(lines("6.1.0-56-amd64\n").ends_with("mount -t cgroup2 none /sys/fs/cgroup"));
    }
}
