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

#[test]
fn a_misspelt_word_gets_a_suggestion() {
    let remarks =
        examine("quiet root=/dev/sda1 isolcpu=2 evl.oobcpu=1 nohz-full=2\n", Target::default()).remarks;
    let shown: Vec<_> = remarks.iter().map(|remark| (remark.id, remark.instead.as_deref())).collect();
    assert_eq!(shown, [(RemarkId::Misspelt, Some("evl.oobcpus")), (RemarkId::Misspelt, Some("isolcpus"))]);
}
