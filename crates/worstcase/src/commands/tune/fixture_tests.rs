//! Apply and then undo is the identity on every machine of crates/audit/tests/fixtures.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use audit::Profile;
use control::Kernel;
use survey::Survey;
use sysroot::{SysRoot, Tree};
use tune::apply::{End, OnRefusal, apply};
use tune::journal::{History, Journal, Store};
use tune::scripted::Scripted;
use tune::status::{Now, now};
use tune::undo::{differences, restore};
use tune::{Plan, Target};
use units::CpuList;

use super::selection::Selection;
use crate::commands::check::subject::set;

/// A journal that nobody reads.
struct Nowhere;

impl Store for Nowhere {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The machines: their names and what they answer.
fn machines() -> Vec<(String, Tree)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/tests/fixtures");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "txt"));
    let tree = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, Tree::of_text(&fs::read_to_string(path).unwrap()).unwrap())
    };
    texts.map(tree).collect()
}

/// What can be asked for on a machine: nothing in particular, and its last CPU set apart for each sort of use.
fn selections(tree: &Tree) -> Vec<Selection> {
    let survey = Survey::new(SysRoot::of(tree.clone()), CpuList::new());
    let online = set(&survey, "cpus.online");
    let last: CpuList = online.iter().next_back().into_iter().filter(|_| online.len() > 1).collect();
    let apart = (!last.is_empty()).then_some(last);
    let with = |profiles: &[Profile]| Selection {
        profile: profiles.to_vec(),
        isolate: apart.clone(),
        ..Selection::default()
    };
    let sorts: [&[Profile]; 4] =
        [&[], &[Profile::Rt], &[Profile::Poll, Profile::Rt], &[Profile::Host, Profile::Rt]];
    sorts.into_iter().map(with).chain([Selection::default()]).collect()
}

pub(super) fn there_and_back(name: &str, tree: &Tree, plan: &Plan) {
    let mut machine = Scripted::new(tree.clone());
    let mut journal = Journal::new(Box::new(Nowhere), Path::new("nowhere"));
    let applied = apply(&mut machine, &mut journal, &plan.steps, OnRefusal::RollBack, &mut |_| true);
    assert!(matches!(applied.end, End::Applied), "{name}: {applied:#?}");
    assert!(applied.taken.iter().all(|taken| taken.held()), "{name}: {applied:#?}");
    assert_eq!(machine.tree != *tree, !plan.steps.is_empty(), "{name}");
    let history = History { steps: applied.taken, ..History::default() };
    // No device of a made-up machine fires, so its interrupts stay where they are.
    let holds = |now: &Now| matches!(now, Now::Holds | Now::Pending(_));
    assert!(now(&machine.root(), &history).iter().all(|(_, now)| holds(now)), "{name}");
    let undone = restore(&mut machine, &history.steps);
    assert!(undone.iter().all(|undone| undone.back.is_as_before()), "{name}: {undone:#?}");
    assert!(differences(&machine.root(), &history.steps).is_empty(), "{name}");
    let differ = |path: &&String| machine.tree.files.get(*path) != tree.files.get(*path);
    let differing: Vec<&String> = tree.files.keys().filter(differ).collect();
    assert!(machine.tree == *tree, "{name} is not as it was: {differing:?}");
}

/// What was changed, numbers and names left out.
fn kind(target: &Target) -> String {
    match target {
        Target::File(path) => path.rsplit('/').next().unwrap_or_default().to_owned(),
        Target::Interrupt { .. } => "interrupt".to_owned(),
        Target::Affinity(_) | Target::Freed(_) => "affinity".to_owned(),
        Target::Scheduling(_) => "scheduling".to_owned(),
        Target::CpusetBelow(_) | Target::Group(_) | Target::Programs(_) | Target::Slice(_) => {
            "partition".to_owned()
        }
        Target::Swap(_) => "swap".to_owned(),
        Target::Service { .. } => "service".to_owned(),
        Target::LatencyLimit => "latency-limit".to_owned(),
    }
}

#[test]
fn apply_then_undo_is_the_identity_on_every_machine() {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (name, tree) in machines() {
        for selection in selections(&tree) {
            let plan = selection.plan_for(&SysRoot::of(tree.clone())).unwrap();
            there_and_back(&name, &tree, &plan);
            seen.extend(plan.steps.iter().map(|step| kind(&step.target)));
        }
    }
    let wanted = [
        "affinity",
        "default_smp_affinity",
        "enabled",
        "guest_halt_poll_ns",
        "interrupt",
        "numa_balancing",
        "rcu_normal",
        "scaling_governor",
        "scheduling",
    ];
    let missing: Vec<_> = wanted.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "no machine has {missing:?}; seen: {seen:?}");
}

/// What a plan for the machine with everything comes to, tried there and back.
fn shown(profile: &[Profile], only: &[&str]) -> Vec<String> {
    let tree = Tree::of_text(ALL).unwrap();
    let isolate = Some("2-3".parse().unwrap());
    let selection = Selection {
        profile: profile.to_vec(),
        isolate,
        only: only.iter().map(|&rule| rule.to_owned()).collect(),
        ..Selection::default()
    };
    let plan = selection.plan_for(&SysRoot::of(tree.clone())).unwrap();
    there_and_back("a machine with everything", &tree, &plan);
    plan.steps.iter().map(|step| format!("{}: {} -> {}", step.target, step.old, step.new)).collect()
}

#[test]
fn every_family_of_settings_takes_effect_and_is_undone() {
    let shown = shown(&[Profile::Poll, Profile::Rt], &[]);
    assert_eq!(
        shown,
        [
            "/sys/devices/virtual/workqueue/cpumask: 0f -> 3",
            "/proc/irq/default_smp_affinity: f -> 3",
            "CPUs of irq 24 (PCI-MSI 0-edge eth0): 0-3 -> 0-1",
            "CPUs of irq 25 (PCI-MSI 1-edge nvme0q1): 2-3 -> 0-1",
            "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor: schedutil -> performance",
            "/sys/devices/system/cpu/cpufreq/policy3/scaling_min_freq: 800000 -> 2400000",
            "/sys/devices/system/cpu/cpufreq/boost: 1 -> 0",
            "/proc/sys/kernel/watchdog_cpumask: 0-3 -> 0-1",
            "/sys/kernel/mm/transparent_hugepage/enabled: always -> never",
            "/proc/sys/kernel/numa_balancing: 1 -> 0",
            "/sys/class/net/eth0/queues/rx-0/rps_cpus: c -> 3",
            "/proc/sys/vm/stat_interval: 1 -> 10",
            "/sys/kernel/mm/ksm/run: 1 -> 2",
            "/proc/sys/vm/swappiness: 60 -> 10",
        ]
    );
}

#[test]
fn what_costs_safety_or_cpus_is_changed_only_where_it_is_named() {
    let shown = shown(&[Profile::Poll, Profile::Rt], &["fw-smt-off", "rn-rt-throttle"]);
    assert_eq!(
        shown,
        [
            "/sys/devices/system/cpu/smt/control: on -> off",
            "/proc/sys/kernel/sched_rt_runtime_us: 950000 -> -1",
        ]
    );
}

/// On the machine with everything, whose kernel has partial slabs for each CPU.
#[test]
fn changes_of_the_whole_machine_without_a_measured_gain_are_made_only_where_they_are_named() {
    const MORE: &str = "\
=== /sys/kernel/slab/dentry/cpu_partial
13
=== /sys/kernel/slab/task_struct/cpu_partial
6
=== /proc/sys/vm/dirty_ratio
20
=== /proc/sys/vm/dirty_background_ratio
10
";
    const RULES: [&str; 3] = ["kc-slub-cpu-partial", "rn-dirty-ratio", "rn-dirty-background"];
    let files = Tree::of_text(MORE).unwrap().files;
    let mut tree = Tree::of_text(ALL).unwrap();
    tree.files.extend(files.clone());
    let config = record::Fact::Value(b"CONFIG_PREEMPT_RT=y\nCONFIG_SLUB_CPU_PARTIAL=y\n".to_vec());
    tree.files.insert("/boot/config-6.6.30".to_owned(), config);
    let root = SysRoot::of(tree);
    let plan = |only: &[&str]| {
        let only = only.iter().map(|&rule| rule.to_owned()).collect();
        let isolate = Some("2-3".parse().unwrap());
        Selection { profile: vec![Profile::Rt], isolate, only, ..Selection::default() }
            .plan_for(&root)
            .unwrap()
    };
    let written = |plan: &Plan| {
        let is_step =
            |path: &&String| plan.steps.iter().any(|step| step.target == Target::File((*path).clone()));
        files.keys().filter(is_step).count()
    };
    let by_itself = plan(&[]);
    assert!(!by_itself.steps.is_empty());
    assert_eq!(written(&by_itself), 0, "{:#?}", by_itself.steps);
    for rule in RULES {
        let refusal = by_itself.refusals.iter().find(|refusal| refusal.rule == rule).unwrap();
        assert!(refusal.why_not.ends_with("only if --only names the rule"), "{refusal:?}");
    }
    assert_eq!(written(&plan(&RULES)), files.len());
}

#[test]
fn idle_states_are_limited_for_one_cpu_and_disabled_on_one_that_has_no_limit() {
    let shown = shown(&[Profile::Isolated, Profile::Rt], &[]);
    let cpus: Vec<&String> = shown.iter().filter(|line| line.contains("/cpu/cpu")).collect();
    let cpus: Vec<&String> = cpus.into_iter().filter(|line| !line.contains("cpufreq")).collect();
    assert_eq!(
        cpus,
        [
            "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 0 -> 10",
            "/sys/devices/system/cpu/cpu3/cpuidle/state1/disable: 0 -> 1",
        ]
    );
}

/// A machine with everything.
pub(super) const ALL: &str = "\
=== /proc/sys/kernel/osrelease
6.6.30
=== /proc/sys/kernel/version
#1 SMP PREEMPT_RT
=== /sys/kernel/realtime
1
=== /sys/class/dmi/id/sys_vendor
Dell Inc.
=== /proc/cpuinfo
flags : fpu tsc
=== /sys/devices/system/cpu/online
0-3
=== /sys/devices/system/cpu/smt/control
on
=== /sys/devices/system/cpu/smt/active
1
=== /sys/devices/system/cpu/cpufreq/boost
1
=== /sys/devices/system/cpu/cpufreq/policy0/related_cpus
0 1
=== /sys/devices/system/cpu/cpufreq/policy0/scaling_governor
schedutil
=== /sys/devices/system/cpu/cpufreq/policy2/related_cpus
2
=== /sys/devices/system/cpu/cpufreq/policy2/scaling_governor
schedutil
=== /sys/devices/system/cpu/cpufreq/policy2/scaling_available_governors
schedutil performance
=== /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq
800000
=== /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq
2400000
=== /sys/devices/system/cpu/cpufreq/policy3/related_cpus
3
=== /sys/devices/system/cpu/cpufreq/policy3/scaling_governor
powersave
=== /sys/devices/system/cpu/cpufreq/policy3/scaling_available_governors
powersave schedutil
=== /sys/devices/system/cpu/cpufreq/policy3/scaling_min_freq
800000
=== /sys/devices/system/cpu/cpufreq/policy3/scaling_max_freq
2400000
=== /proc/sys/kernel/sched_rt_runtime_us
950000
=== /proc/sys/kernel/watchdog
1
=== /proc/sys/kernel/watchdog_cpumask
0-3
=== /proc/sys/vm/stat_interval
1
=== /proc/sys/vm/swappiness
60
=== /proc/swaps
Filename Type Size Used Priority
/dev/sda2 partition 1000 0 -2
=== /proc/sys/kernel/numa_balancing
1
=== /sys/kernel/mm/transparent_hugepage/enabled
[always] madvise never
=== /sys/kernel/mm/ksm/run
1
=== /sys/devices/virtual/workqueue/cpumask
0f
=== /proc/irq/default_smp_affinity
f
=== /sys/devices/system/cpu/cpu2/cpuidle/state1/name
C6
=== /sys/devices/system/cpu/cpu2/cpuidle/state1/latency
133
=== /sys/devices/system/cpu/cpu2/cpuidle/state1/disable
0
=== /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us
0
=== /sys/devices/system/cpu/cpu3/cpuidle/state1/name
C6
=== /sys/devices/system/cpu/cpu3/cpuidle/state1/latency
133
=== /sys/devices/system/cpu/cpu3/cpuidle/state1/disable
0
=== /proc/interrupts
           CPU0       CPU1       CPU2       CPU3
 24:          0          9          0          0 PCI-MSI 0-edge      eth0
 25:          0          9          0          0 PCI-MSI 1-edge      nvme0q1
=== /proc/irq/24/smp_affinity_list
0-3
=== /proc/irq/25/smp_affinity_list
2-3
=== /sys/class/net/eth0/queues/rx-0/rps_cpus
c
";
