use rustix::io::Errno;
use sysroot::{FakeTree, SysRoot};
use units::CpuList;

use super::*;

fn survey(files: &[(&str, &str)]) -> (FakeTree, Survey) {
    let tree = FakeTree::new(files);
    let survey = Survey::new(tree.root.clone(), "2-3".parse().unwrap());
    (tree, survey)
}

/// A value, or the state in words.
fn reading(survey: &Survey, name: &str) -> String {
    survey.read(name).value.to_string()
}

#[test]
fn kinds_of_facts_read_files() {
    let (_tree, survey) = survey(&[
        ("/proc/sys/kernel/osrelease", "6.1.0-rt"),
        (
            "/boot/config-6.1.0-rt",
            "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_HZ=250\nCONFIG_NET=y\n# CONFIG_KASAN is not set\n\
             CONFIG_CMDLINE=\"a b\"\n# end of Kernel hacking\n",
        ),
        ("/proc/cmdline", "isolcpus=2 quiet console=tty0 nosmt=force isolcpus=2-3 -- nohz_full=1"),
        ("/proc/sys/kernel/printk", "4\t4\t1\t7"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/proc/irq/default_smp_affinity", "00000001,0000000c"),
        ("/sys/devices/system/cpu/isolated", "2-3"),
        ("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance"),
        ("/sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "powersave"),
        ("/sys/devices/system/cpu/cpufreq/boost", "007"),
    ]);
    for (name, value) in [
        ("config:HZ", "250"),
        ("config:NET", "y"),
        ("config:KASAN", "n"),
        ("config:CMDLINE", "a b"),
        ("config:NO_SUCH", "absent"),
        ("boot:isolcpus", "2-3"),
        ("boot:quiet", ""),
        ("boot:nosmt", "force"),
        ("boot:nohz_full", "absent"),
        ("sysctl:kernel.printk", "4 4 1 7"),
        ("choice:/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
        ("cpus:/proc/irq/default_smp_affinity", "2-3,32"),
        ("cpus:/sys/devices/system/cpu/isolated", "2-3"),
        ("file:/sys/devices/system/cpu/cpufreq/boost", "007"),
        ("file:/sys/none", "absent"),
        (
            "each:/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: performance, \
             /sys/devices/system/cpu/cpu10/cpufreq/scaling_governor: powersave",
        ),
        (
            "each:/sys/devices/system/cpu/cpu{isolated}/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: performance",
        ),
        ("each:/sys/class/net/*/threaded", "absent"),
    ] {
        assert_eq!(reading(&survey, name), value, "{name}");
    }
    assert_eq!(survey.read("config:HZ").value, Fact::Value(Value::Number(250)));
    assert_eq!(survey.read("config:HZ").from, ["CONFIG_HZ in /boot/config-6.1.0-rt"]);
    assert_eq!(survey.read("boot:isolcpus").from, ["/proc/cmdline, which has isolcpus 2 times"]);
}

#[test]
fn names_are_known_or_not() {
    let good = [
        "config:HZ",
        "boot:isolcpus",
        "boot:rcutree.use_softirq",
        "file:/proc/x",
        "each:/sys/*/y",
        "kernel",
        "smt",
    ];
    assert!(good.into_iter().all(Survey::known));
    let bad = [
        "config:CONFIG_HZ",
        "config:",
        "boot:a=b",
        "file:x",
        "file:/a/*",
        "each:/a",
        "sysctl:a/b",
        "colour",
        ":",
        "",
    ];
    assert_eq!(bad.into_iter().find(|name| Survey::known(name)), None);
    let mut names: Vec<_> = named_facts().map(|fact| fact.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

/// A configuration that cannot be found says nothing, not even that a symbol is absent.
#[test]
fn no_configuration_is_not_an_empty_one() {
    let (_tree, survey) = survey(&[("/proc/sys/kernel/osrelease", "6.1.0")]);
    assert_eq!(survey.read("config:KASAN").value, Fact::Unreadable(Errno::NOENT.raw_os_error()));
    assert_eq!(survey.read("config.source").value, Fact::Absent);
}

/// In a machine's tree as in a file of its own: kconfig writes its header above what is whole.
#[test]
fn what_a_configuration_without_its_head_leaves_out_is_unknown() {
    let release = ("/proc/sys/kernel/osrelease", "6.1.0-rt");
    let of = |config: &str| {
        let tree = FakeTree::new(&[release, ("/boot/config-6.1.0-rt", config)]);
        let survey = Survey::new(tree.root.clone(), CpuList::new());
        (survey.read("config:SMP").value, survey.read("config-on:KCSAN,KMSAN").value)
    };
    let unknown = (Fact::Unsupported, Fact::Unsupported);
    assert_eq!(of("CONFIG_HZ=250\n# CONFIG_KCSAN is not set\n"), unknown);
    let whole = "# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_HZ=250\n# end of Kernel hacking\n";
    assert_eq!(of(whole), (Fact::Absent, Fact::Value(Value::List(Vec::new()))));
}

#[test]
fn what_was_given_is_all_that_is_known() {
    let text = "# Linux/arm64 6.12.5 Kernel Configuration\nCONFIG_PREEMPT_RT=y\n# end of Kernel hacking\n";
    let given = Given {
        config: Some(("debian.config".into(), text.into())),
        command_line: Some("quiet".into()),
        architecture: None,
        version: None,
        ..Given::default()
    };
    let survey = Survey::of(given, CpuList::new());
    for (name, value) in [
        ("architecture", "aarch64"),
        ("architecture.family", "arm64"),
        ("kernel", "6.12.5"),
        ("preemption", "rt"),
        ("config:PREEMPT_RT", "y"),
        ("boot:quiet", ""),
        ("lockdown", "none"),
        ("sysctl:kernel.watchdog", "unknown"),
        ("guest", "unknown"),
        ("smt", "unknown"),
        ("cpus.online", "unknown"),
        ("battery", "unknown"),
        ("container", "unknown"),
        ("cgroup", "unknown"),
        ("init", "unknown"),
        ("form", "unknown"),
        ("vendor", "unknown"),
        ("bootloader", "unknown"),
    ] {
        assert_eq!(reading(&survey, name), value, "{name}");
    }
    assert_eq!(survey.read("architecture").from, ["debian.config"]);
}

#[test]
fn the_machine_at_hand_answers_from_memory_as_it_did_live() {
    let live = Survey::new(SysRoot::live(), CpuList::new());
    let names = ["config:HZ", "boot:quiet", "sysctl:kernel.printk", "cpus:/proc/irq/default_smp_affinity"];
    let names: Vec<&str> = named_facts().map(|fact| fact.name).chain(names).collect();
    let answers: Vec<Reading> = names.iter().map(|name| live.read(name)).collect();
    let captured = Survey::new(SysRoot::of(live.root().remembered()), CpuList::new());
    for (name, answer) in names.iter().zip(answers) {
        assert_eq!(captured.read(name), answer, "{name}");
    }
    assert!(live.read("cpus.online").value.value().is_some());
    assert!(live.read("architecture").value.value().is_some());
}

/// What a line and a configuration say of a machine follows from them alone: lists that are empty because nothing was read
/// are not clean ones.
#[test]
fn nothing_else_is_known_of_a_machine_of_which_papers_were_given() {
    let line = || Given { command_line: Some("isolcpus=2-3".into()), ..Given::default() };
    let config = "# Linux/arm64 6.12.5 Kernel Configuration\nCONFIG_PREEMPT_RT=y\n# end of Kernel hacking\n";
    let both = Given { config: Some((".config".into(), config.into())), ..line() };
    let known = |given: Given| -> Vec<&str> {
        let survey = Survey::of(given, "2-3".parse().unwrap());
        let is_known = |fact: &&NamedFact| survey.read(fact.name).value != Fact::Unsupported;
        named_facts().filter(is_known).map(|fact| fact.name).collect()
    };
    assert_eq!(known(Given::default()), Vec::<&str>::new());
    let of_line = [
        "cpus.isolated",
        "cpus.nohz_full",
        "boot.unknown",
        "boot.odd",
        "boot.repeated",
        "boot.refused",
        "boot.isolcpus.unknown",
    ];
    assert_eq!(known(line()), of_line);
    let of_both = ["architecture", "architecture.family", "kernel", "preemption", "config.source", "evl"];
    let of_both: Vec<&str> = of_both
        .into_iter()
        .chain(["lockdown", "cpus.rcu_nocbs", "boot.dead", "boot.room", "kstack.offset"])
        .chain(of_line)
        .collect();
    let mut known = known(both);
    known.sort_unstable_by_key(|name| of_both.iter().position(|of| of == name));
    assert_eq!(known, of_both);
}

/// Where no machine is at hand, the line says which CPUs it will set apart.
#[test]
fn a_command_line_alone_sets_cpus_apart() {
    let shown = |line: &str, fact: &str| {
        let given = Given { command_line: Some(line.into()), ..Given::default() };
        reading(&Survey::of(given, CpuList::new()), fact)
    };
    for (line, isolated, tickless) in [
        ("isolcpus=1 nohz_full=1 rcu_nocbs=1", "1", "1"),
        ("isolcpus=managed_irq,domain,2-3 quiet", "2-3", ""),
        ("isolcpus=nohz,2-3", "", "2-3"),
        ("isolcpus=managed_irq,2-3", "", ""),
        ("isolcpus=1-N nohz_full=all", "unknown", "unknown"),
        ("isolcpus=x", "", ""),
        ("quiet", "", ""),
    ] {
        let found = ["cpus.isolated", "cpus.nohz_full"].map(|fact| shown(line, fact));
        assert_eq!(found, [isolated, tickless], "{line}");
    }
}

/// A tree of /etc alone is that of no running machine.
#[test]
fn a_tree_without_proc_and_sys_says_nothing_of_what_runs() {
    let (_tree, survey) = survey(&[("/etc/hostname", "board")]);
    let survey = Survey::new(survey.root().clone(), "2-3".parse().unwrap());
    for name in ["cpus.housekeeping", "cpus.open", "cpus.separated", "daemons.rivals", "boot:rcu_nocbs"] {
        assert_eq!(survey.read(name).value, Fact::Unsupported, "{name}");
    }
}
