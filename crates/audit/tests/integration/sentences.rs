//! What a recipe says around what is to be typed, and the places that it is for.

use audit::Severity;
use audit::recipe::{Target, examine};

/// How many errors and warnings a text gets.
fn faults(text: &str) -> Vec<String> {
    let target = Target { version: "6.12".parse().ok(), ..Target::default() };
    let examination = examine(text, target);
    assert!(examination.is_understood(), "not understood: {text}");
    let remarks = examination.remarks.into_iter().filter(|remark| remark.severity != Severity::Note);
    remarks.map(|remark| format!("{}: {}", remark.excerpt, remark.message)).collect()
}

#[track_caller]
fn judge(fine: &[&str], wrong: &[&str]) {
    for text in fine {
        assert_eq!(faults(text), Vec::<String>::new(), "{text}");
    }
    for text in wrong {
        assert!(!faults(text).is_empty(), "passed: {text}");
    }
}

#[test]
fn words_for_the_kernel_in_sentences_are_judged() {
    judge(
        &[
            "For a guest: nohz=off is enough",
            "The kernel does not know preempt=rt, so write preempt=full",
            "Keep interrupts away from the rest:  irqaffinity=0-1",
        ],
        &[
            "Stop the tick: nohz=tickless",
            "Add `mitigations=none` and reboot, every system call is faster then",
            "Interrupts on the first two cores:  irqaffinity=0b11",
            "Before the next boot: echo yes > /sys/module/intel_idle/parameters/max_cstate",
        ],
    );
}

#[test]
fn what_a_sentence_above_a_block_says_is_meant_of_it() {
    judge(
        &[
            "Every 250 microseconds, for an hour:\n\n    cyclictest -m -p 90 -i 250 -D 1h\n",
            "Two cores of its own (static manager):\n\n    resources:\n      limits: {cpu: \"2\", memory: 1Gi}\n",
        ],
        &[
            "Every 250 milliseconds, for an hour:\n\n    cyclictest -m -p 90 -i 250 -D 1h\n",
            "Half a core of its own (static manager):\n\n    resources:\n      limits: {cpu: \"500m\", memory: 1Gi}\n",
        ],
    );
}

#[test]
fn what_does_the_opposite_of_its_sentence_is_wrong() {
    judge(
        &[
            "Disable boost for good:\necho 0 > /sys/devices/system/cpu/cpufreq/boost\n",
            "Interrupts of the drives to CPU 3:\necho 8 > /proc/irq/40/smp_affinity\n",
            "Keep managed interrupts away:\nisolcpus=managed_irq,2-3\n",
            "chrt -f -p 80 $(pidof -s plc)\n",
        ],
        &[
            "Disable boost for good:\necho 1 > /sys/devices/system/cpu/cpufreq/boost\n",
            "Interrupts of the drives to CPU 3:\necho 3 > /proc/irq/40/smp_affinity\n",
            "The scheduler is to leave these alone:\nisolcpus=managed_irq,2-3\n",
            "chrt -f -p $(pgrep -x plc) 80\n",
            "cyclictest -m -p 80 -a 0x3 -t 2 -D 1h\n",
            "perf record -e sched:sched_switch -p plc sleep 5\n",
        ],
    );
}

#[test]
fn files_are_judged_by_where_they_go() {
    judge(
        &[
            "# /etc/systemd/system/plc.service.d/10-rt.conf\n[Service]\nCPUAffinity=3\n",
            "# /etc/sysctl.d/50-rt.conf\nvm.swappiness = 10   # keep what is used\n",
            "# /etc/chrony/conf.d/ptp.conf\nrefclock PHC /dev/ptp1 poll 0\nlock_all\n",
            "# /boot/config.txt\ndtoverlay=disable-bt\n",
        ],
        &[
            "# /etc/systemd/system/plc.service.d/10-rt.conf\n[Service]\nExecStart=/usr/bin/plc --fast\n",
            "echo 'vm.swapiness = 10' | sudo tee /etc/sysctl.d/50-rt.conf\n",
            "$ sudo printf 'x' > /etc/udev/rules.d/90-rt.rules\n",
            "# /boot/config.txt\ndtoverlay=disable-bt\nnohz_full=3\n",
            "# /etc/modprobe.d/idle.conf\noptions rcutree kthread_prio=10\n",
        ],
    );
}

#[test]
fn containers_and_clusters_are_judged_by_their_keys() {
    let spec = |line: &str| {
        format!(
            "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nspec:\n  cpu: {{isolated: \"1-3\", reserved: \"0\"}}\n  {line}\n"
        )
    };
    let service = |line: &str| format!("services:\n  plc:\n    image: plc:1\n    {line}\n");
    let kubelet = |value: &str| {
        format!(
            "kind: KubeletConfiguration\ncpuManagerPolicy: static\nreservedSystemCPUs: \"0\"\ncpuManagerPolicyOptions:\n  distribute-cpus-across-numa: {value}\n"
        )
    };
    judge(
        &[
            &spec("numa: {topologyPolicy: single-numa-node}"),
            &service("pids_limit: 200"),
            &service("ulimits: {rtprio: {soft: 80, hard: 80}}"),
            &kubelet("\"true\""),
            "FROM debian:12\nRUN apt-get update\nCMD [\"chrt\", \"-f\", \"50\", \"/x\"]\n",
        ],
        &[
            &spec("realTimeKernels: {enabled: true}"),
            &service("cpu_set: \"1\""),
            &service("ulimits: {rtprio: {hard: 80}}"),
            &service("deploy: {resources: {limits: {cpu_ids: \"1\"}}}"),
            &kubelet("true"),
            "FROM debian:12\nRUN echo '* - memlock unlimited' >> /etc/security/limits.d/x.conf\n",
            "docker run --rm --ulimit memlock=-1:65536 plc",
        ],
    );
}

#[test]
fn what_the_machine_does_not_have_is_refused() {
    judge(
        &[
            "# arm64 board\nsetenv bootargs \"${bootargs} nohz=off\"\n",
            "echo 1 > /sys/devices/system/cpu/cpu2/cpuidle/state2/disable\n",
            "echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages\n",
            "exec 5>/dev/cpu_dma_latency\nprintf '\\0\\0\\0\\0' >&5\n",
        ],
        &[
            "# aarch64 gateway\nsetenv bootargs \"${bootargs} idle=poll\"\n",
            "echo 1 > /sys/devices/system/cpu/cpuidle/state2/disable\n",
            "echo 2 > /sys/kernel/mm/hugepages/hugepages-2M/nr_hugepages\n",
            "exec 5>/dev/cpu_dma_latency\necho 200 >&5\n",
            "echo 1000000000 > /proc/irq/24/smp_affinity\n",
            "taskset -cp 1 $(pidof ktimers/2)\n",
        ],
    );
}
