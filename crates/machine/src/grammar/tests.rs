use units::KernelVersion;

use super::*;
use crate::CommandLine;

const NEW: Option<KernelVersion> = Some(KernelVersion::new(6, 12));
const OLD: Option<KernelVersion> = Some(KernelVersion::new(6, 1));

fn is_wrong(word: &str, version: Option<KernelVersion>) -> bool {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    judge(name, value, version).is_some()
}

#[test]
fn each_line_of_the_tables_is_read() {
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(parameters().count(), lines(&TABLE));
    assert_eq!(files::files().count(), lines(include_str!("files.txt")));
    assert_eq!(symbols::names().count(), lines(include_str!("symbols.txt")));
    assert!(parameters().count() >= 150, "{}", parameters().count());
}

#[test]
fn words_of_the_table_are_taken_and_others_are_not() {
    for parameter in parameters() {
        if let Kind::Words(words) | Kind::Start(words) | Kind::List(words) = &parameter.kind {
            let word = words[0].text.replace('+', ",");
            assert_eq!(judge(parameter.name, Some(&word), None), None, "{}", parameter.name);
            assert!(judge(parameter.name, Some("zzz"), None).is_some(), "{}", parameter.name);
        }
    }
}

#[test]
fn values_that_the_kernel_does_not_take_are_faults() {
    for word in [
        "idle=spin",
        "transparent_hugepage=no",
        "mitigations=none",
        "preempt=rt",
        "intel_pstate=performance",
        "numa_balancing=off",
        "nmi_watchdog=off",
        "isolcpus=1-3,managed_irq",
        "isolcpus=domain",
        "isolcpus=managed-irq,2",
        "nohz_full=5-2",
        "nohz_full=",
        "nohz_full=2-3x",
        "rcu_nocb_poll=0",
        "nosmt=off",
        "processor.max_cstate=C1",
        "skew_tick=yes",
        "psi=maybe",
        "hugepagesz=5M",
        "amd_iommu=on",
    ] {
        assert!(is_wrong(word, NEW), "{word}");
    }
}

#[test]
fn values_that_the_kernel_takes_are_none() {
    for word in [
        "isolcpus=nohz,domain,managed_irq,1-3",
        "isolcpus=1-N",
        "isolcpus=0-30:2/4,",
        "nohz_full=all",
        "rcu_nocbs",
        "rcu_nocbs=1,,2",
        "rcu_nocb_poll",
        "rcu_nocb_poll=1",
        "nosmt=force",
        "mitigations=auto,nosmt",
        "highres=n",
        "skew_tick=0x1",
        "retbleed=auto,nosmt",
        "nmi_watchdog=panic,1",
        "isolcpus=$CPUS",
        "isolcpus=<cpus>",
        "root=/dev/sda1",
    ] {
        assert!(!is_wrong(word, NEW), "{word}");
    }
}

#[test]
fn versions_decide_which_words_there_are() {
    assert!(is_wrong("preempt=lazy", NEW));
    assert!(!is_wrong("preempt=lazy", Some(KernelVersion::new(6, 13))));
    assert!(is_wrong("amd_pstate=active", OLD) && !is_wrong("amd_pstate=active", NEW));
    assert!(is_wrong("nohz_full=1-N", Some(KernelVersion::new(5, 4))));
}

#[test]
fn words_that_do_not_go_together_are_misfits() {
    let misfits = |text: &str| together(&CommandLine::parse(text), NEW).len();
    for line in [
        "nohz=off nohz_full=2",
        "maxcpus=2 isolcpus=2-3",
        "nr_cpus=4 nohz_full=2-5",
        "isolcpus=nohz,2 nohz_full=2-3",
        "isolcpus=2-3 irqaffinity=1-2",
        "hugepages=4 hugepagesz=1G",
        "nosmp isolcpus=1",
    ] {
        assert_eq!(misfits(line), 1, "{line}");
    }
    for line in [
        "nohz=on nohz_full=2",
        "maxcpus=4 isolcpus=2-3",
        "nr_cpus=4 nohz_full=1-N",
        "isolcpus=nohz,2-3 nohz_full=2-3",
        "isolcpus=domain,2-3 nohz_full=2",
        "isolcpus=2-3 irqaffinity=0-1",
        "hugepagesz=1G hugepages=4",
    ] {
        assert_eq!(misfits(line), 0, "{line}");
    }
}

#[test]
fn files_know_their_values_and_versions() {
    use files::{FileFault, judge};
    let wrong = |path: &str, value: &str| matches!(judge(path, value, NEW), Some(FileFault::Value(_)));
    let gone = |path: &str, value: &str| matches!(judge(path, value, NEW), Some(FileFault::Gone(_)));
    assert!(wrong("/sys/kernel/mm/transparent_hugepage/enabled", "no"));
    assert!(!wrong("/sys/kernel/mm/transparent_hugepage/enabled", "never"));
    assert!(wrong("/proc/irq/$irq/smp_affinity", "2-3"));
    assert!(wrong("/proc/irq/12/smp_affinity_list", "0xc"));
    assert!(!wrong("/proc/irq/12/smp_affinity_list", "2-3"));
    assert!(wrong("/sys/fs/cgroup/a/b/cpu.max", "-1"));
    assert!(!wrong("/sys/fs/cgroup/a/b/cpu.max", "max 100000"));
    assert!(gone(&files::path_of("kernel.sched_latency_ns"), "1"));
    assert!(
        judge(&files::path_of("kernel.sched_latency_ns"), "1", Some(KernelVersion::new(5, 10))).is_none()
    );
    assert_eq!(files::path_of("net.ipv4.conf.eth0/1.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
    assert_eq!(files::path_of("kernel/sched_rt_runtime_us"), "/proc/sys/kernel/sched_rt_runtime_us");
}

proptest::proptest! {
    /// A list that is written from numbers and ranges is read as those CPUs, whatever empty items stand in it.
    #[test]
    fn lists_are_read_as_the_kernel_reads_them(ranges in proptest::collection::vec((0_u32..200, 0_u32..20), 1..8)) {
        let text: Vec<String> = ranges.iter().map(|(from, more)| format!("{from}-{}", from + more)).collect();
        let cpus = cpu_list(&text.join(",,"), None, NEW).unwrap();
        let expected: units::CpuList = ranges.iter().flat_map(|(from, more)| *from..=from + more).collect();
        proptest::prop_assert_eq!(cpus, expected);
    }

    #[test]
    fn any_value_is_judged_without_a_panic(name in 0_usize..150, text in "(\\PC|[-,:/@N=0-9]|all|domain,){0,20}") {
        let parameter = parameters().nth(name).unwrap();
        let _ = judge(parameter.name, Some(&text), NEW);
        let _ = together(&CommandLine::parse(&format!("{}={text}", parameter.name)), NEW);
        let _ = files::judge(&text, &text, NEW);
    }
}

#[test]
fn a_word_that_a_later_kernel_may_know_is_no_fault() {
    let later = Some(KernelVersion::new(6, 18));
    assert!(!is_wrong("mitigations=auto,no_guest_host,no_guest_guest", later));
    assert!(is_wrong("mitigations=auto,no_guest_host", NEW), "a word of 6.17");
    assert!(is_wrong("preempt=rt", NEW) && !is_wrong("preempt=rt", later));
    assert!(is_wrong("idle=Poll", later), "a slip in a word that the table has");
    assert!(is_wrong("isolcpus=1,domain", later), "the grammar of CPU lists has not changed");
}
