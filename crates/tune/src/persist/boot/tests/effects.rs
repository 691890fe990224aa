//! What is said after the reboot.

use super::super::effect::{Effect, effects, still_there};
use super::*;

fn shown(files: &[(&str, &str)], words: &str) -> Vec<String> {
    let machine = Machine::new(files);
    machine.put("/sys/devices/system/cpu/possible", "0-3\n");
    let effects = effects(&machine.root(), &ParameterEdit::of(words).unwrap().set);
    let word = |effect: &Effect| match effect {
        Effect::InForce(why) => format!("in force: {why}"),
        Effect::Given => "given".to_owned(),
        Effect::NotGiven(why) => format!("not given: {why}"),
        Effect::Ignored(why) => format!("ignored: {why}"),
        Effect::Differs(why) => format!("differs: {why}"),
    };
    effects.iter().map(|(_, effect)| word(effect)).collect()
}

#[test]
fn each_word_is_reported_by_what_the_running_kernel_shows() {
    let files = [
        (
            "/proc/cmdline",
            "isolcpus=domain,2-N nohz_full=2-3 threadirqs irqaffinity=0-1 kvm.nx_huge_pages=off skew_tick=1 skew_tick=0\n",
        ),
        ("/sys/devices/system/cpu/isolated", "2-3\n"),
        ("/sys/devices/system/cpu/nohz_full", "3\n"),
        ("/proc/irq/default_smp_affinity", "3\n"),
        ("/sys/module/kvm/parameters/nx_huge_pages", "N\n"),
    ];
    let words = "isolcpus=domain,2-N nohz_full=2-3 threadirqs irqaffinity=0-1 kvm.nx_huge_pages=off nosmt skew_tick=1";
    assert_eq!(
        shown(&files, words),
        [
            "in force: /sys/devices/system/cpu/isolated says 2-3",
            "differs: /sys/devices/system/cpu/nohz_full says 3",
            "given",
            "in force: /proc/irq/default_smp_affinity says 3",
            "in force: /sys/module/kvm/parameters/nx_huge_pages says N",
            "not given: the line does not have it",
            "ignored: skew_tick=0 stands behind it",
        ]
    );
}

#[test]
fn what_the_kernel_does_not_know_or_has_not_is_reported() {
    let files = [
        ("/proc/cmdline", "noht nohz_full=2-3 rcu_nocbs=2-3\n"),
        ("/proc/sys/kernel/osrelease", "6.1.0"),
        ("/proc/config.gz", "CONFIG_RCU_NOCB_CPU=y\n# CONFIG_NO_HZ_FULL is not set\n"),
        ("/dev/kmsg", "5,0,0,-;Linux version 6.1\n5,9,100,-;rcu: \tOffload RCU callbacks from CPUs: 2-3.\n"),
    ];
    assert_eq!(
        shown(&files, "noht nohz_full=2-3 rcu_nocbs=2-3"),
        [
            "ignored: the kernel does not know it: in no document, but the log does not name it: a patched kernel?",
            "ignored: this kernel was built without it: needs CONFIG_NO_HZ_FULL",
            "in force: the kernel's log says 2-3",
        ]
    );
    let machine = Machine::new(&[("/proc/cmdline", "quiet splash\n")]);
    assert_eq!(still_there(&machine.root(), &["quiet".into(), "audit".into()]), ["quiet"]);
}
