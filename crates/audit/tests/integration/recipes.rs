//! The seeds' own lines, and what their readers must learn.
#![allow(clippy::unwrap_used)]

use audit::Severity;
use audit::recipe::{RemarkId, Target, examine};

/// Line, kind and the beginning of the excerpt of everything that is found.
fn found(text: &str, target: Target) -> Vec<(usize, RemarkId, String)> {
    let remarks = examine(text, target).remarks;
    remarks.into_iter().map(|remark| (remark.line, remark.id, remark.excerpt)).collect()
}

#[track_caller]
fn assert_found(text: &str, expected: &[(usize, RemarkId, &str)]) {
    let found = found(text, Target::default());
    let expected: Vec<_> = expected.iter().map(|(line, id, text)| (*line, *id, (*text).to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn s0s_printed_commands_and_its_fragment() {
    use RemarkId::*;
    assert_found(
        include_str!("../recipes/s0.txt"),
        &[
            (1, Typography, "–d –hdd-bytes"),
            (2, Typography, "–m –vm-bytes"),
            (3, Typography, "–c –i –m –vm-bytes –d –hdd-bytes"),
            (4, Typography, "–S –m –p99 –l"),
            (5, NotMerged, "# CONFIG_HIGHMEM is not set, but you can set CONFIG_HIGHMEM="),
            (7, Elsewhere, "# CONFIG_FSL_ERRATUM_A_004801 is not set"),
            (8, Elsewhere, "# CONFIG_FSL_ERRATUM_A_005337 is not set"),
            (15, Gone, "# CONFIG_TREE_RCU_TRACE is not set"),
            (17, Gone, "CONFIG_RCU_BOOST_PRIO=1"),
            (19, NoEffect, "CONFIG_RCU_NOCB_CPU=y"),
            (20, MistakenIdea, "likely/unlikely"),
            (21, Typography, "setenv bootargs threadirqs root=/dev/nfs rw …"),
        ],
    );
}

#[test]
fn s1s_misspelt_word_its_wires_and_its_processor_count() {
    use RemarkId::*;
    assert_found(
        include_str!("../recipes/s1.txt"),
        &[
            (1, Contradiction, "GPIO24 on the FRDM-K64F (pulse signal) should be wired to GP"),
            (2, Contradiction, "GPIO25 on the FRDM-K64F (ack signal) should be wired to GPIO"),
            (3, Assumption, "chrt -f -p 99 345"),
            (4, Contradiction, "latmus -I …,23"),
            (4, Contradiction, "latmus -O …,24"),
            (5, Gone, "CONFIG_PREEMPT_RT_FULL"),
            (6, Elsewhere, "evl.oobcpus=1"),
            (7, Assumption, "-$(nproc)"),
            (8, Misspelt, "evl.oob_cpus=1"),
        ],
    );
}

#[test]
fn s3s_quotes_masks_and_words_without_effect() {
    use RemarkId::*;
    assert_found(
        include_str!("../recipes/s3.txt"),
        &[
            (4, Contradiction, "CONFIG_NO_HZ_IDLE=y CONFIG_NO_HZ_FULL=y"),
            (5, Gone, "CONFIG_NO_HZ_FULL_ALL=y"),
            (7, NoEffect, "idle=poll"),
            (7, NoEffect, "intel_idle.max_cstate=0"),
            (7, NoEffect, "processor.max_cstate=0"),
            (8, Malformed, "in $(nproc)"),
            (9, TooShort, "cyclictest --latency=750000 -D5m -m -Sp90 -i200 -h400 -q"),
            (10, TooShort, "hwlatdetect --duration=60s"),
            (11, Typography, "GRUB_CMDLINE_LINUX_DEFAULT=“isolcpus=0-3,8-11”"),
            (11, Assumption, "isolcpus=0-3,8-11"),
            (12, MaskNotNumber, "echo <cpu_core> > /proc/irq/<irq_id>/smp_affinity"),
            (13, Typography, "GRUB_CMDLINE_LINUX_DEFAULT=“isolcpus=1-3,5,7 nohz_full=1-3,…"),
        ],
    );
}

#[test]
fn s4s_option_of_another_program_and_its_path() {
    use RemarkId::*;
    assert_found(
        include_str!("../recipes/s4.txt"),
        &[(1, NoSuchOption, "mpstat -w"), (2, MistakenIdea, "cpuX/stateY")],
    );
}

#[test]
fn lists_are_judged_against_the_machine() {
    let target = Target { processors: Some(4), ..Target::default() };
    let ids = |text: &str| found(text, target).into_iter().map(|(_, id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids("quiet isolcpus=2-4"), [RemarkId::Malformed]);
    assert_eq!(ids("quiet isolcpus=0-3"), [RemarkId::Dangerous]);
    assert_eq!(ids("quiet isolcpus=managed,2-3"), [RemarkId::Malformed]);
    assert_eq!(ids("quiet isolcpus=3-2"), [RemarkId::Malformed]);
    assert_eq!(ids("quiet isolcpus=2-3 nohz_full=2-3 rcu_nocbs=0-1"), [RemarkId::Contradiction]);
    assert_eq!(ids("quiet isolcpus=2-3 irqaffinity=0-2"), [RemarkId::Contradiction]);
    assert_eq!(ids("quiet isolcpus=2-3 nohz_full=3"), [RemarkId::Contradiction]);
    assert_eq!(ids("quiet isolcpus=2-3 isolcpus=3"), [RemarkId::Duplicate]);
    assert!(ids("quiet isolcpus=2-3 nohz_full=2-3 irqaffinity=0-1 console=tty0 console=ttyS0").is_empty());
}

#[test]
fn versions_decide_what_is_gone() {
    let at = |version: &str| Target { version: version.parse().ok(), ..Target::default() };
    assert!(found("CONFIG_RCU_BOOST_PRIO=1", at("3.12")).is_empty());
    assert_eq!(found("CONFIG_RCU_BOOST_PRIO=1", at("6.12")).len(), 1);
    assert_eq!(found("quiet workqueue.unbound_cpus=0-1", at("6.1")).len(), 1);
    assert!(found("quiet workqueue.unbound_cpus=0-1", at("6.12")).is_empty());
    assert!(found("kernel.sched_latency_ns = 1000000", at("5.10")).is_empty());
    assert_eq!(found("kernel.sched_latency_ns = 1000000", at("5.15")).len(), 1);
}

#[test]
fn a_mask_is_distinguished_from_a_number() {
    let remark = |text: &str| {
        examine(text, Target::default()).remarks.pop().map(|remark| (remark.severity, remark.message))
    };
    let note = remark("echo 3 > /proc/irq/24/smp_affinity").unwrap();
    assert_eq!(note, (Severity::Note, "is a mask: CPU 0-1".to_owned()));
    assert_eq!(remark("echo 2-3 > /proc/irq/24/smp_affinity").unwrap().0, Severity::Error);
    assert_eq!(remark("echo 0xc > /proc/irq/24/smp_affinity_list").unwrap().0, Severity::Error);
    assert_eq!(remark("echo 2-3 > /proc/irq/24/smp_affinity_list"), None);
}

proptest::proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(text in "(\\PC|[=,<>\"\n$#]|isolcpus=|CONFIG_|echo |smp_affinity|GPIO|wired to |latmus -I ){0,60}") {
        let _ = examine(&text, Target { processors: Some(8), ..Target::default() });
    }
}

/// What is an error in `text`, for Linux 6.12.
fn errors(text: &str) -> Vec<String> {
    let target = Target { version: "6.12".parse().ok(), ..Target::default() };
    let remarks = examine(text, target).remarks.into_iter();
    remarks.filter(|remark| remark.severity == Severity::Error).map(|remark| remark.message).collect()
}

#[track_caller]
fn assert_right(text: &str) {
    let examination = examine(text, Target { version: "6.12".parse().ok(), ..Target::default() });
    assert!(examination.is_understood(), "{text}");
    let grave = examination.remarks.iter().find(|remark| remark.severity != Severity::Note);
    assert_eq!(grave, None, "{text}");
}

#[test]
fn settings_on_the_command_line_are_judged_as_sysctls() {
    assert_right("quiet sysctl.vm.stat_interval=10 sysctl.kernel.nmi_watchdog=0");
    assert_eq!(errors("quiet sysctl.vm.stat_intervals=10").len(), 1);
    assert_eq!(errors("quiet sysctl.kernel.watchdog_thresh=90").len(), 1);
}

#[test]
fn a_word_with_a_plus_is_another_than_one_with_a_comma() {
    assert_right("echo defer+madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag");
    assert_eq!(errors("echo defer,madvise > /sys/kernel/mm/transparent_hugepage/defrag").len(), 1);
}

#[test]
fn directories_that_are_known_whole_have_no_other_files() {
    assert_eq!(errors("echo 0 > /sys/devices/system/cpu/intel_pstate/turbo").len(), 1);
    assert_eq!(errors("echo off > /sys/devices/system/cpu/smt/state").len(), 1);
    assert_eq!(errors("echo 2-3 > /sys/fs/cgroup/plc/cpuset.cpu").len(), 1);
    assert_eq!(errors("echo '+cpus' > /sys/fs/cgroup/plc/cgroup.subtree_control").len(), 1);
    assert_right(
        "echo '+cpu -memory' > /sys/fs/cgroup/plc/cgroup.subtree_control\necho 1 > /sys/fs/cgroup/plc/cgroup.freeze",
    );
    assert_eq!(
        errors("echo fast > /sys/devices/system/cpu/cpu3/cpufreq/energy_performance_preference").len(),
        1
    );
    assert_right(
        "echo balance_power > /sys/devices/system/cpu/cpufreq/policy2/energy_performance_preference",
    );
}

#[test]
fn options_behind_the_first_operand_are_none() {
    for text in ["chrt 30 -f ./plc", "chrt -r 20 -p 77", "taskset 0x8 -p 77", "taskset -c 3 -p 77"] {
        assert_eq!(errors(text).len(), 1, "{text}");
    }
    // Options behind the command are its own.
    assert_right("taskset 0x8 gcc -c plc.c\nchrt -o 0 chrt -p 8\nchrt -b 0 ./plc -d 5");
    assert_right("bootargs=root=/dev/mmcblk0p2 isolcpus=1\nbootdelay=3\nbaudrate=115200");
    for text in ["chrt -f 30 ./plc -p 8", "taskset -c 3 ./plc -x", "pidof plc | xargs -n1 taskset -pc 3"] {
        assert_right(text);
    }
}

#[test]
fn arguments_of_tools_are_judged_in_their_form() {
    for text in [
        "sysctl -w vm.swappiness 10",
        "ethtool --features enp1s0 tso=off",
        "rtla osnoise hist -P r95",
        "./scripts/config --on PREEMPT_RT",
        "scripts/config --set-str PREEMPT_RT yes",
    ] {
        assert_eq!(errors(text).len(), 1, "{text}");
    }
    for text in [
        "ethtool -K enp1s0 tso off gso off",
        "rtla timerlat top -P d:500us:1ms",
        "scripts/config --file .config -e PREEMPT_RT --set-val NR_CPUS 8 --set-str LOCALVERSION -plc",
        "find /proc/irq -name smp_affinity_list -exec sh -c 'echo 0-1 > {}' +",
    ] {
        assert_right(text);
    }
}

#[test]
fn values_of_a_configuration_have_its_form() {
    for text in ["CONFIG_CMDLINE=isolcpus=3", "CONFIG_DEFAULT_HOSTNAME=plc", "CONFIG_PREEMPT_LAZY=y"] {
        assert_eq!(errors(text).len(), 1, "{text}");
    }
    assert_right(
        "CONFIG_CMDLINE=\"isolcpus=3\"\nCONFIG_DEFAULT_HOSTNAME=\"plc\"\nCONFIG_PHYSICAL_START=0x1000000",
    );
}

#[test]
fn kernel_arguments_of_other_programs_files_are_judged() {
    let config = |words: &str| {
        format!(
            "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nspec:\n  kernelArguments:\n  - {words}\n"
        )
    };
    assert_right(&config("isolcpus=domain,3"));
    assert_eq!(errors(&config("isolcpus=3,domain")).len(), 1);
    assert_right("optargs=isolcpus=3 nohz_full=3");
    assert_eq!(errors("extraargs=idle=sleep quiet").len(), 1);
}

#[test]
fn every_cure_of_a_configuration_names_symbols_that_check_knows() {
    for rule in audit::Rules::built_in().unwrap().all() {
        // A symbol that some version has no more is right for others.
        let remarks = examine(&rule.cure.config.join("\n"), Target::default()).remarks.into_iter();
        let unknown: Vec<_> =
            remarks.filter(|remark| [RemarkId::Misspelt, RemarkId::Malformed].contains(&remark.id)).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", rule.id);
    }
}
