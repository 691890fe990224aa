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
            (6, Misspelt, "evl.oobcpus=1"),
            (7, Assumption, "-$(nproc)"),
            (8, Elsewhere, "evl.oob_cpus=1"),
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
            (7, NoEffect, "intel_idle.max_cstate=0"),
            (7, NoEffect, "processor.max_cstate=0"),
            (7, Dangerous, "idle=poll"),
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
