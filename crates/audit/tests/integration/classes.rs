//! Each class of misses and false findings that a review of `check` named, with words of its own: tests/README.md has the list.
#![allow(clippy::unwrap_used)]

use audit::Severity;
use audit::recipe::{Examination, Target, examine};

fn examined(text: &str) -> Examination {
    examine(text, Target { version: "6.12".parse().ok(), preempt_rt: Some(true), processors: Some(8) })
}

/// Each of the texts has something in it that is no mere note.
#[track_caller]
fn wrong(texts: &[&str]) {
    let passed: Vec<_> = texts
        .iter()
        .filter(|text| examined(text).remarks.iter().all(|remark| remark.severity == Severity::Note))
        .collect();
    assert!(passed.is_empty(), "passed: {passed:#?}");
}

/// Each of the texts is understood, and nothing in it is wrong.
#[track_caller]
fn right(texts: &[&str]) {
    let grave = |text: &str| -> Vec<String> {
        let remarks = examined(text).remarks.into_iter();
        let grave = remarks.filter(|remark| remark.severity != Severity::Note);
        grave.map(|remark| format!("{}: {}", remark.excerpt, remark.message)).collect()
    };
    let accused: Vec<_> =
        texts.iter().map(|text| (text, grave(text))).filter(|(_, grave)| !grave.is_empty()).collect();
    assert!(accused.is_empty(), "accused: {accused:#?}");
    let unread: Vec<_> = texts.iter().filter(|text| !examined(text).is_understood()).collect();
    assert!(unread.is_empty(), "not understood: {unread:#?}");
}

#[test]
fn values_that_a_parameter_does_not_take_are_found() {
    wrong(&[
        "quiet clocksource=rdtsc",
        "tsc=stable",
        "audit=none",
        "intel_iommu=yes",
        "workqueue.power_efficient=hot",
        "pcie_aspm=performance",
        "cpufreq.default_governor=fast",
        "threadirqs=all skew_tick=on",
        "rcupdate.rcu_normal_after_boot=later",
        "elevator=none isolcpus=cpu3",
        "lockdown=full",
        "nosoftlockup=0",
        "intel_idle.max_cstate=C1",
        "psi=disable",
    ]);
    right(&[
        "quiet clocksource=hpet",
        "tsc=reliable",
        "audit=off",
        "workqueue.power_efficient=0",
        "pcie_aspm.policy=performance",
        "cpufreq.default_governor=performance",
        "skew_tick=1 threadirqs",
        "lockdown=integrity",
        "intel_idle.max_cstate=1",
    ]);
}

#[test]
fn flags_behind_the_list_cost_the_whole_list() {
    wrong(&["isolcpus=4-7,nohz", "isolcpus=6,domain,7", "isolcpus=5,managed_irq,domain"]);
    right(&["isolcpus=nohz,4-7", "isolcpus=domain,managed_irq,6,7"]);
}

#[test]
fn switches_that_any_value_turns_on_are_not_turned_off() {
    wrong(&[
        "threadirqs=0",
        "nosmap=0 nosmt=0",
        "rcu_nocb_poll=off",
        "noirqbalance=0",
        "nohlt=off",
        "nokaslr=0",
    ]);
    right(&["threadirqs", "nosmt", "rcu_nocb_poll", "quiet nosmt"]);
}

#[test]
fn words_that_exclude_each_other_are_found() {
    wrong(&[
        "nohz=off isolcpus=3 nohz_full=3",
        "highres=off nohz_full=6-7",
        "maxcpus=4 isolcpus=5-6",
        "nr_cpus=2 nohz_full=4",
        "nohz_full=0-7 quiet",
        "isolcpus=0-7",
        "nosmp nohz_full=2",
    ]);
    right(&["nohz=on nohz_full=6-7 isolcpus=6-7", "maxcpus=8 isolcpus=5-6", "nohz_full=1-7"]);
}

#[test]
fn words_behind_two_dashes_are_not_the_kernels() {
    wrong(&["quiet splash -- isolcpus=6-7", "root=/dev/sda2 -- threadirqs nohz_full=3"]);
    right(&["isolcpus=6-7 -- single", "quiet threadirqs nohz_full=3 -- -v"]);
}

#[test]
fn a_redirection_is_the_shells_and_not_sudos() {
    wrong(&[
        "sudo echo 3 > /proc/sys/vm/stat_interval",
        "sudo cat mask >> /proc/irq/default_smp_affinity",
        "sudo printf never > /sys/kernel/mm/transparent_hugepage/enabled",
    ]);
    right(&[
        "sudo sh -c 'echo 3 > /proc/sys/vm/stat_interval'",
        "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        "sudo sysctl -w vm.stat_interval=3",
    ]);
}

#[test]
fn a_request_that_ends_with_its_writer_does_not_last() {
    wrong(&[
        "printf '\\0\\0\\0\\0' > /dev/cpu_dma_latency",
        "echo 0 | sudo tee /dev/cpu_dma_latency > /dev/null",
    ]);
    right(&["exec 9<> /dev/cpu_dma_latency\nprintf '\\0\\0\\0\\0' >&9\n./plc"]);
}

#[test]
fn masks_and_lists_are_not_taken_for_each_other() {
    wrong(&[
        "echo 0x30 > /proc/irq/41/smp_affinity_list",
        "echo 4-5 > /proc/irq/41/smp_affinity",
        "echo 4-7 > /sys/devices/virtual/workqueue/cpumask",
        "echo 0xf0 > /sys/fs/cgroup/drives/cpuset.cpus",
        "taskset -c 0xf0 ./plc",
        "taskset 4-7 ./plc",
    ]);
    right(&[
        "echo 30 > /proc/irq/41/smp_affinity",
        "echo 4-5 > /proc/irq/41/smp_affinity_list",
        "echo f0 > /sys/devices/virtual/workqueue/cpumask",
        "taskset f0 ./plc",
        "taskset -c 4-7 ./plc",
    ]);
}

#[test]
fn files_that_moved_or_are_gone_are_found() {
    wrong(&[
        "echo 500000 > /proc/sys/kernel/sched_migration_cost_ns",
        "sysctl -w kernel.sched_wakeup_granularity_ns=15000000",
        "sysctl kernel.sched_tunable_scaling=0",
        "echo NO_TTWU_QUEUE > /sys/kernel/debug/sched_features",
        "echo 3000000 > /sys/kernel/debug/sched/min_granularity_ns",
        "kernel.softlockup_thresh = 30",
        "echo 1 > /sys/fs/cgroup/rt/cpuset.cpu_exclusive",
        "echo 0-5 > /proc/irq/default_smp_affinity_list",
    ]);
    right(&[
        "echo 500000 > /sys/kernel/debug/sched/migration_cost_ns",
        "echo NO_TTWU_QUEUE > /sys/kernel/debug/sched/features",
        "echo 3000000 > /sys/kernel/debug/sched/base_slice_ns",
        "kernel.watchdog_thresh = 30",
        "echo isolated > /sys/fs/cgroup/rt/cpuset.cpus.partition",
    ]);
}

#[test]
fn values_beyond_their_range_or_beside_each_other_are_found() {
    wrong(&[
        "sysctl -w kernel.sched_rt_period_us=500000 kernel.sched_rt_runtime_us=600000",
        "kernel.sched_rt_runtime_us = 1200000",
        "sysctl -w vm.swappiness=300",
        "vm.overcommit_memory = 4",
        "sysctl kernel.watchdog_thresh=120",
        "chrt -f 100 ./plc",
        "echo 70000 500 > /sys/fs/cgroup/rt/cpu.max",
    ]);
    right(&[
        "sysctl -w kernel.sched_rt_runtime_us=400000 kernel.sched_rt_period_us=500000",
        "kernel.sched_rt_runtime_us = -1",
        "vm.overcommit_memory = 2",
        "chrt -f 99 ./plc",
        "echo 70000 100000 > /sys/fs/cgroup/rt/cpu.max",
    ]);
}

#[test]
fn misspelt_settings_are_found() {
    wrong(&[
        "kernel.sched_rt_runtime = -1",
        "sysctl -w vm.swapiness=1",
        "kernel.nmi-watchdog = 0",
        "net.core.busypoll = 50",
        "echo 0 > /proc/sys/kernel/numa_balance",
        "isolcpu=6",
        "nohzfull=6",
        "rcu_nocb=6",
        "irqafinity=0-5",
    ]);
    right(&["vm.swappiness = 1", "net.core.busy_poll = 50", "irqaffinity=0-5", "rcu_nocbs=6"]);
}

#[test]
fn a_sign_that_ends_a_statement_elsewhere_is_part_of_a_value() {
    wrong(&["vm.stat_interval = 10;", "kernel.timer_migration=0;", "CONFIG_HZ=1000;", "nohz_full=6;"]);
    right(&["vm.stat_interval = 10", "sysctl -w vm.stat_interval=10; sysctl -w kernel.timer_migration=0"]);
}

#[test]
fn options_of_measuring_tools_mean_what_their_versions_say() {
    wrong(&[
        "cyclictest --prio=100 -m -D 24h",
        "cyclictest -m -p 95 -i 0.5 -D 24h",
        "cyclictest --mlockall --policy=fast -p 80 -D 24h",
        "hwlatdetect --duration=1d --threshold=ten",
        "rtla timerlat hist -P x:95 -d 12h",
    ]);
    right(&[
        "cyclictest --mlockall --policy=fifo -p 80 -i 500 -D 24h",
        "rtla timerlat hist -d 12h",
        "hwlatdetect --duration=12h",
    ]);
}

#[test]
fn symbols_that_kconfig_does_not_take_are_found() {
    wrong(&[
        "CONFIG_HIGH_RES_TIMERS=Y",
        "CONFIG_NO_HZ_FULL=yes",
        "CONFIG_HIGHRES_TIMERS=y",
        "CONFIG_RCU_NOCBS_CPU=y",
        "CONFIG_HZ=1000y",
        "CONFIG_CPU_ISOLATION=m",
        "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_NONE=y",
        "CONFIG_HZ_250=y\nCONFIG_HZ_1000=y",
        "CONFIG_HZ_1000=y\nCONFIG_HZ=300",
    ]);
    right(&[
        "CONFIG_HIGH_RES_TIMERS=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_CPU_ISOLATION=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_HZ_1000=y\nCONFIG_HZ=1000",
    ]);
}

#[test]
fn units_of_systemd_are_read() {
    let service = |line: &str| {
        format!("[Unit]\nDescription=Axis control\n\n[Service]\nExecStart=/opt/axis/run\n{line}\n")
    };
    for line in [
        "CPUSchedulingPolicy=realtime",
        "CPUSchedulingPriority=120",
        "LimitRTPRIO=high",
        "CpuAffinity=5",
        "LimitMEMLOCK=lots",
        "CPUAffinity=0x20",
    ] {
        wrong(&[&service(line)]);
    }
    for line in [
        "CPUSchedulingPolicy=fifo\nCPUSchedulingPriority=70",
        "CPUAffinity=5 6",
        "LimitMEMLOCK=infinity",
        "LimitRTPRIO=90",
        "AllowedCPUs=4-7",
    ] {
        right(&[&service(line)]);
    }
}

#[test]
fn limits_of_pam_are_read() {
    wrong(&[
        "# /etc/security/limits.d/axis.conf\n@axis - rtprio 120\n",
        "# /etc/security/limits.d/axis.conf\n@axis - memlock unlimted\n",
        "# /etc/security/limits.conf\n@axis both rtprio 90\n",
    ]);
    right(&[
        "# /etc/security/limits.d/axis.conf\n@axis - rtprio 90\n@axis - memlock unlimited\n@axis hard nice -15\n",
    ]);
}

#[test]
fn rules_of_udev_are_read() {
    wrong(&[
        "# /etc/udev/rules.d/60-axis.rules\nKERNEL=\"cpu_dma_latency\", GROUP=\"axis\", MODE=\"0660\"\n",
        "# /etc/udev/rules.d/60-axis.rules\nKERNEL==\"cpu_dma_latency\", GROUP==\"axis\"\n",
    ]);
    right(&[
        "# /etc/udev/rules.d/60-axis.rules\nKERNEL==\"cpu_dma_latency\", GROUP=\"axis\", MODE=\"0660\"\n",
    ]);
}

#[test]
fn containers_and_clusters_are_read() {
    wrong(&[
        "docker run --cpuset-cpus=0x30 --cap-add=SYS_NICE axis/run",
        "podman run --ulimit rtprio=high --cap-add=SYS_NICE axis/run",
        "docker run --cap-add=SYS_NISE axis/run",
        "services:\n  axis:\n    image: axis/run\n    cap_add: [SYS_NICE]\n    cpuset: 0x30\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: axis}\nspec:\n  containers:\n  - name: axis\n    image: axis/run\n    securityContext:\n      capabilities: {add: [SYS_NISE]}\n",
    ]);
    right(&[
        "docker run --cpuset-cpus=4,5 --ulimit rtprio=90 --ulimit memlock=-1 --cap-add=SYS_NICE axis/run",
        "services:\n  axis:\n    image: axis/run\n    cap_add: [SYS_NICE]\n    cpuset: \"4,5\"\n    ulimits:\n      rtprio: 90\n      memlock: -1\n",
    ]);
}

#[test]
fn profiles_of_tuned_are_read() {
    wrong(&[
        "[main]\nsummary=Axes\n[cpu]\ngovernor=fastest\n",
        "[main]\nsummary=Axes\n[sysctl]\nvm.swappiness=300\n",
        "[main]\nsummary=Axes\n[bootloader]\ncmdline=isolcpus=6,domain\n",
    ]);
    right(&[
        "[main]\nsummary=Axes\ninclude=latency-performance\n[cpu]\ngovernor=performance\nforce_latency=1\n[vm]\ntransparent_hugepages=never\n[sysctl]\nvm.stat_interval=10\n",
    ]);
}

#[test]
fn rules_for_command_lines_hold_in_recipes() {
    wrong(&["quiet slub_debug=FZP highres=off", "ro quiet nolapic_timer=1 nohz_full=3 highres=off"]);
}

#[test]
fn lists_of_cpus_have_the_kernels_grammar() {
    right(&[
        "isolcpus=4-N",
        "nohz_full=2-N,",
        "rcu_nocbs=all",
        "isolcpus=0-7:1/4",
        "nohz_full=,6,,7",
        "rcu_nocbs=N",
    ]);
}

#[test]
fn names_in_prose_and_code_are_not_commands() {
    right(&[
        "Set `nohz_full` to the CPUs of the axes, then `isolcpus=6`.\n\n    isolcpus=6 nohz_full=6\n",
        "The parameter irqaffinity= names those for interrupts: irqaffinity=0-5.",
        "APPEND:append = \" isolcpus=6 nohz_full=6\"",
        "setenv bootargs ${bootargs} isolcpus=3; boot",
        "ISOLCPUS=6-7\necho $ISOLCPUS > /sys/fs/cgroup/axes/cpuset.cpus",
        "GRUB_CMDLINE_LINUX=\"quiet ${AXES:+isolcpus=$AXES}\"",
    ]);
}

#[test]
fn options_that_look_like_parameters_are_their_programs() {
    right(&[
        "docker run --ulimit memlock=-1:-1 --ulimit rtprio=80 --cap-add SYS_NICE axis/run",
        "exec 7<>/dev/cpu_dma_latency",
        "qemu-system-x86_64 -smp 4 -append 'console=ttyS0 isolcpus=3'",
    ]);
}

#[test]
fn parameters_of_other_subsystems_are_left_alone() {
    right(&[
        "pci=nomsi mce=ignore_ce quiet isolcpus=6",
        "crashkernel=256M-:128M acpi_osi=Linux quiet",
        "initrd=\\amd-ucode.img initrd=\\initramfs-linux.img root=LABEL=os rw isolcpus=6",
        "linux /boot/vmlinuz-6.12 root=/dev/nvme0n1p2 ro isolcpus=6",
        "video=HDMI-A-1:1920x1080@60 drm.edid_firmware=edid/1920x1080.bin isolcpus=3",
    ]);
}

#[test]
fn a_request_that_a_group_or_a_shell_keeps_open_lasts() {
    for text in [
        "{ printf '\\0\\0\\0\\0'; sleep infinity; } > /dev/cpu_dma_latency &",
        "exec 6> /dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&6",
    ] {
        assert!(!messages(text).contains("the request lasts"), "{text}: {}", messages(text));
    }
}

fn messages(text: &str) -> String {
    examined(text).remarks.into_iter().map(|remark| remark.message + "\n").collect()
}

#[test]
fn a_syntax_is_answered_with_the_syntax() {
    for text in ["isolcpus=5-", "nohz_full=4..7", "rcu_nocbs=6--7", "irqaffinity=0:5"] {
        let messages = messages(text);
        assert!(messages.contains("is no CPU, range or stride"), "{text}: {messages}");
        assert!(
            !messages.contains("count from 0") && !messages.contains("does not exist"),
            "{text}: {messages}"
        );
    }
}

#[test]
fn a_driver_kept_away_is_fine_where_the_next_one_is_bound_too() {
    assert!(messages("intel_idle.max_cstate=0 quiet").contains("acpi_idle takes over"));
    assert!(
        !messages("quiet processor.max_cstate=1 intel_idle.max_cstate=0").contains("acpi_idle takes over")
    );
}

#[test]
fn words_that_may_stand_several_times_are_the_same_everywhere() {
    right(&[
        "console=tty0 console=ttyS1,115200 earlycon isolcpus=6",
        "hugepagesz=2M hugepages=64 hugepagesz=1G hugepages=2",
    ]);
    assert!(messages("isolcpus=5 quiet isolcpus=6").contains("isolcpus"), "the last one counts");
}
