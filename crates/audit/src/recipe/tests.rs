use super::*;

fn found(text: &str) -> Vec<(usize, RemarkId, String)> {
    let remarks = examine(text, Target::default()).remarks;
    remarks.into_iter().map(|remark| (remark.line, remark.id, remark.excerpt)).collect()
}

#[test]
fn nothing_is_found_in_a_sound_recipe() {
    let sound = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 irqaffinity=0-1 systemd.unit=multi-user.target\"\n\
                 kernel.sched_rt_runtime_us = 950000\nCONFIG_PREEMPT_RT=y\n# CONFIG_DEBUG_PREEMPT is not set\n";
    assert_eq!(found(sound), []);
    let examination = examine(sound, Target::default());
    assert_eq!((examination.parameters, examination.symbols, examination.sysctls), (5, 2, 1));
}

/// A kernel whose files no table has: its recipe says something all the same, and nothing of it is known.
#[test]
fn what_no_table_has_is_not_judged_and_nothing_of_it_passes() {
    let target = Target { version: Some(KernelVersion::new(6, 99)), ..Target::default() };
    let text = "echo 0 > /sys/foo/bar\nsysctl -w kernel.nosuch=1\n";
    let examination = examine(text, target);
    assert_eq!(examination.remarks, []);
    let lines: Vec<usize> = examination.not_judged.iter().map(|one| one.line).collect();
    assert_eq!(lines, [1, 2]);
    assert!(!examination.is_understood(), "{examination:?}");
    // What is known beside it is counted once, whatever it is written by.
    let examination = examine(&format!("{text}sysctl -w kernel.sched_rt_runtime_us=-1\n"), target);
    assert_eq!((examination.sysctls, examination.commands, examination.not_judged.len()), (1, 0, 2));
    assert!(examination.is_understood());
    // Nor is it lost beside what is known on its own line.
    let both = "echo 0 > /sys/foo/bar; sysctl -w kernel.sched_rt_runtime_us=950000\n";
    assert_eq!(examine(both, target).not_judged.len(), 1);
}

#[test]
fn a_misspelt_word_gets_a_suggestion() {
    let remarks =
        examine("quiet root=/dev/sda1 isolcpu=2 evl.oobcpu=1 nohz-full=2\n", Target::default()).remarks;
    let shown: Vec<_> = remarks.iter().map(|remark| (remark.id, remark.instead.as_deref())).collect();
    assert_eq!(shown, [(RemarkId::Misspelt, Some("evl.oobcpus")), (RemarkId::Misspelt, Some("isolcpus"))]);
}
