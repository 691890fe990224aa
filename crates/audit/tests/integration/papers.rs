//! What the papers recommend, each with the rules that stand for it, or with why none does.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeSet;

use audit::Rules;

/// What stands for a recommendation.
enum Answer {
    /// Rules, of which at least one names the paper.
    Rules(&'static [&'static str]),
    /// It is no setting of a machine: where it is done instead, or why it is obsolete or wrong.
    Elsewhere(&'static str),
}

use Answer::{Elsewhere, Rules as By};

type Recommendation = (&'static str, &'static str, Answer);

/// Enea, appendix A: optimizing the P2041 board.
const ENEA: &[Recommendation] = &[
    ("Enea", "a kernel with full preemption (CONFIG_PREEMPT)", By(&["kc-preempt-model", "bt-preempt"])),
    ("Enea", "PREEMPT_RT as the last step", By(&["kc-preempt-rt"])),
    (
        "Enea",
        "no ftrace, no stack tracer, no perf events",
        By(&[
            "kc-stack-tracer-off",
            "kc-tracing-present",
            "kc-latencytop-off",
            "kc-branch-profiling-off",
            "rn-tracing-idle",
        ]),
    ),
    (
        "Enea",
        "no kprobes, oprofile, LTTng, SystemTap, KGDB",
        By(&["kc-probes-debuggers-off", "kc-prove-locking-off", "kc-lock-checks-off", "kc-debug-misc-off"]),
    ),
    (
        "Enea",
        "no powertop support (timer and scheduler statistics)",
        By(&["kc-schedstats-off", "rn-schedstats", "rn-delayacct"]),
    ),
    ("Enea", "CONFIG_HIGHMEM off", By(&["kc-highmem-off"])),
    ("Enea", "workarounds A_004801 and A_005337 off where the silicon is fixed", By(&["fw-silicon-errata"])),
    ("Enea", "CONFIG_HZ_1000", By(&["kc-hz"])),
    ("Enea", "CONFIG_JUMP_LABEL", By(&["kc-jump-label"])),
    ("Enea", "DEBUG_PREEMPT off", By(&["kc-debug-preempt-off"])),
    ("Enea", "DEBUG_SHIRQ off", By(&["kc-debug-shirq-off"])),
    ("Enea", "RCU_TRACE off", By(&["kc-rcu-trace-off"])),
    ("Enea", "TREE_RCU_TRACE off", Elsewhere("obsolete: gone with 4.12; check --recipe says so")),
    ("Enea", "RCU_BOOST", By(&["kc-rcu-boost"])),
    (
        "Enea",
        "RCU_BOOST_PRIO=1",
        Elsewhere("obsolete: rcutree.kthread_prio= since 3.20; check --recipe says so"),
    ),
    ("Enea", "RCU_BOOST_DELAY=500", By(&["kc-rcu-boost-delay"])),
    ("Enea", "RCU_NOCB_CPU, callbacks in threads", By(&["kc-rcu-nocb", "rn-rcu-kthreads", "bt-rcu-nocbs"])),
    ("Enea", "threadirqs", By(&["kc-irq-forced-threading", "bt-threadirqs"])),
    ("Enea", "cyclictest -S -m -p99: memory locked", By(&["pr-mlock"])),
    (
        "Enea",
        "cyclictest at priority 99",
        Elsewhere("contradicted by EVL: rn-threads-99 and pr-prio-98 ask for 98 at most"),
    ),
    ("Enea", "loads cpu, io, vm, hdd, full with four workers", Elsewhere("the loads of bench; preset s0")),
];

/// EVL (Xenomai 4): how to benchmark.
const EVL: &[Recommendation] = &[
    (
        "EVL",
        "all debug features and tracers off",
        By(&[
            "kc-debug-misc-off",
            "rn-tracing-idle",
            "kc-prove-locking-off",
            "kc-lock-checks-off",
            "kc-sanitizers-off",
            "kc-hard-locks-debug",
            "kc-evl-ftrace-off",
        ]),
    ),
    (
        "EVL",
        "governor performance, or no CPU_FREQ",
        By(&["kc-cpufreq", "kc-cpufreq-gov", "rn-governor", "fw-rpi-clock"]),
    ),
    ("EVL", "no GPU driver that causes peaks", By(&["fw-igpu-llc", "fw-gpu-nvidia"])),
    ("EVL", "bulk DMA keeps the CPU off the bus", By(&["fw-dma-burst"])),
    (
        "EVL",
        "a CPU isolated for the test (isolcpus=)",
        By(&["rn-cpuset-partition", "rn-systemd-slices", "rn-tasks-on-iso"]),
    ),
    ("EVL", "evl.oobcpus= equal to isolcpus=", By(&["bt-evl-oob-cpus"])),
    ("EVL", "evl.oob_cpus= (as its kernel command line has it)", By(&["bt-evl-typo", "bt-unknown-params"])),
    ("EVL", "check the kernel's configuration (evl check)", By(&["kc-evl", "kc-evl-debug", "kc-readable"])),
    ("EVL", "maximum preemption (PREEMPT_RT_FULL, PREEMPT_RT since 5.4)", By(&["kc-preempt-rt"])),
    ("EVL", "GPIOLIB and GPIOLIB_OOB for the GPIO test", By(&["kc-evl-gpio"])),
    ("EVL", "CONFIG_EVL_LATMUS", By(&["kc-evl-latmus"])),
    ("EVL", "no EVL_DEBUG", By(&["kc-evl-debug"])),
    (
        "EVL",
        "the thread of the tested interrupt above the others",
        By(&["rn-irq-thread-prio", "pr-irq-vs-app-order"]),
    ),
    ("EVL", "the interrupt on the thread's CPU or on another", By(&["rn-irq-affinity"])),
    ("EVL", "threads of interrupts bound to chosen CPUs", By(&["rn-irq-affinity"])),
    ("EVL", "no ordinary thread at the responder's priority", By(&["pr-prio-unique", "rn-equal-priorities"])),
    ("EVL", "SCHED_FIFO", By(&["pr-policy"])),
    ("EVL", "priority 98, not 99", By(&["pr-prio-98", "rn-threads-99"])),
    ("EVL", "the responder runs on an isolated CPU (no -noisol)", By(&["pr-affinity"])),
    ("EVL", "the responder is bound to one CPU", By(&["pr-pinned"])),
    ("EVL", "no serial terminal", By(&["bt-serial-console"])),
    ("EVL", "a quiet console", By(&["rn-printk"])),
    ("EVL", "nmi_watchdog=0", By(&["rn-nmi-watchdog", "rn-watchdog", "kc-lockup-detector-off"])),
    ("EVL", "C-states restricted to the shallowest", By(&["rn-cstate-per-cpu"])),
    ("EVL", "a clock read without a system call", By(&["bt-clocksource", "kc-evl-vdso"])),
    ("EVL", "no loading on demand, no copy-on-write (mlock)", By(&["pr-mlock", "pr-prefault"])),
    ("EVL", "CONFIG_MEMORY_FAILURE off under stress-ng", By(&["kc-memory-failure-off"])),
    ("EVL", "look after heat before any stress", By(&["fw-thermal", "fw-rpi-throttled"])),
    ("EVL", "caches are shared, isolation or not", By(&["fw-cache-contention"])),
    (
        "EVL",
        "stress stays off the measured CPU and SCHED_OTHER",
        Elsewhere("bench places its loads and proves it"),
    ),
    (
        "EVL",
        "24 hours under hackbench and dd bs=128M",
        Elsewhere("bench --duration 24h, load scary-grinder; its verdict says for how long it speaks"),
    ),
    ("EVL", "slower loops meet colder caches", Elsewhere("bench --interval 100us,1ms,10ms")),
];

/// Enea: four ways to better performance, the part on settings.
const ENEA_2013: &[Recommendation] = &[
    ("Enea 2013", "PREEMPT_RT, at a price in throughput", By(&["kc-preempt-rt"])),
    (
        "Enea 2013",
        "processes bound to cores, others kept off them",
        By(&["rn-systemd-slices", "rn-tasks-on-iso"]),
    ),
    ("Enea 2013", "a real-time partition (shielded cores)", By(&["rn-cpuset-partition", "kc-cpusets"])),
    ("Enea 2013", "interrupts bound to cores", By(&["rn-irq-affinity"])),
    ("Enea 2013", "no unnecessary threads of the kernel there", By(&["rn-kthread-affinity"])),
    ("Enea 2013", "no timers there", By(&["rn-timer-migration", "rn-stat-interval"])),
    ("Enea 2013", "NO_HZ_FULL", By(&["kc-nohz-full", "bt-nohz-full"])),
    ("Enea 2013", "a user-space runtime, an event machine, a hypervisor", Elsewhere("software, no setting")),
];

/// T. Flatscher: real-time optimizations.
const FLATSCHER: &[Recommendation] = &[
    ("Flatscher", "no laptop", By(&["fw-chassis-type"])),
    ("Flatscher", "on mains power", By(&["fw-on-mains"])),
    (
        "Flatscher",
        "irrelevant debugging off",
        By(&["kc-debug-misc-off", "kc-prove-locking-off", "kc-lock-checks-off", "kc-sanitizers-off"]),
    ),
    ("Flatscher", "HZ 1000", By(&["kc-hz"])),
    ("Flatscher", "NO_HZ_IDLE", By(&["kc-nohz-idle"])),
    ("Flatscher", "NO_HZ_FULL and nohz_full=", By(&["kc-nohz-full", "bt-nohz-full"])),
    ("Flatscher", "NO_HZ_FULL_ALL", Elsewhere("obsolete: gone with 4.17; check --recipe says so")),
    ("Flatscher", "RCU_NOCB_CPU and rcu_nocbs=", By(&["kc-rcu-nocb", "bt-rcu-nocbs", "rn-rcu-kthreads"])),
    ("Flatscher", "governor performance", By(&["rn-governor", "kc-cpufreq-gov"])),
    ("Flatscher", "set it in the BIOS and in the system", By(&["fw-power-profile"])),
    ("Flatscher", "Turbo Boost off", By(&["fw-turbo-off", "fw-boost-off"])),
    ("Flatscher", "Hyper-Threading off", By(&["fw-smt-off"])),
    (
        "Flatscher",
        "C-states off: intel_idle.max_cstate=0, processor.max_cstate=0",
        By(&["bt-intel-idle-zero", "rn-cstate-per-cpu"]),
    ),
    ("Flatscher", "idle=poll", By(&["bt-idle-poll"])),
    ("Flatscher", "/dev/cpu_dma_latency held open", By(&["rn-cstate-per-cpu"])),
    ("Flatscher", "states disabled for each CPU", By(&["rn-cstate-per-cpu"])),
    ("Flatscher", "cyclictest --latency, or it hides the idle states", By(&["rn-cpu-dma-latency"])),
    ("Flatscher", "cyclictest with -p", By(&["pr-policy"])),
    ("Flatscher", "i7z shows which states were entered", Elsewhere("bench records entries into idle states")),
    ("Flatscher", "hwlatdetect for SMIs", By(&["fw-smi", "kc-hwlat-tracer"])),
    ("Flatscher", "isolcpus=", By(&["rn-cpuset-partition", "rn-systemd-slices", "rn-tasks-on-iso"])),
    ("Flatscher", "the sibling of an isolated CPU is isolated too", By(&["bt-isolcpus-include-sibling"])),
    ("Flatscher", "irqbalance off", By(&["rn-irqbalance", "rn-irqbalance-rt"])),
    ("Flatscher", "interrupts moved (echo CPU > smp_affinity)", By(&["rn-irq-affinity", "rn-irq-allowed"])),
    ("Flatscher", "the process bound to a CPU", By(&["pr-affinity", "pr-pinned"])),
    ("Flatscher", "curly quotes in the GRUB line", By(&["bt-quotes"])),
    ("Flatscher", "limits for real time in a container", By(&["pr-rlimit-rtprio"])),
    (
        "Flatscher",
        "five minutes of cyclictest",
        Elsewhere("too short, as it says itself; check --recipe says so"),
    ),
];

/// M. Chevallier: measuring the impacts of PREEMPT_RT.
const CHEVALLIER: &[Recommendation] = &[
    ("Chevallier", "PREEMPT_RT, and see that it runs", By(&["kc-preempt-rt", "kc-debug-preempt-off"])),
    ("Chevallier", "high-resolution timers", By(&["kc-high-res-timers", "bt-highres"])),
    ("Chevallier", "threads of interrupts given priorities", By(&["rn-irq-thread-prio"])),
    ("Chevallier", "real-time policies: FIFO, RR, DEADLINE", By(&["pr-policy"])),
    ("Chevallier", "idle states: polling or C1", By(&["rn-cstate-per-cpu"])),
    (
        "Chevallier",
        "a fixed frequency",
        By(&["rn-governor", "kc-cpufreq-gov", "fw-turbo-off", "fw-boost-off"]),
    ),
    ("Chevallier", "Hyper-Threading off", By(&["fw-smt-off"])),
    (
        "Chevallier",
        "futexes with priority inheritance; pipes and FIFOs cost more",
        Elsewhere("the program's source: no file of /proc tells"),
    ),
    (
        "Chevallier",
        "powertop, mpstat, pidstat, perf to look",
        Elsewhere("tools, no setting; check --recipe corrects mpstat -w"),
    ),
];

const PAPERS: [&[Recommendation]; 5] = [ENEA, EVL, ENEA_2013, FLATSCHER, CHEVALLIER];

#[test]
fn every_recommendation_of_the_papers_has_a_rule_or_a_reason() {
    let rules = Rules::built_in().unwrap();
    let mut faults = Vec::new();
    for (paper, what, answer) in PAPERS.iter().copied().flatten() {
        let fault = match answer {
            Elsewhere(reason) => reason.is_empty().then(|| "no reason".to_owned()),
            By(ids) => {
                let unknown: Vec<_> = ids.iter().filter(|id| rules.get(id).is_none()).collect();
                let named = ids
                    .iter()
                    .filter_map(|id| rules.get(id))
                    .any(|rule| rule.papers.iter().any(|own| own == paper));
                match (unknown.is_empty(), named) {
                    (false, _) => Some(format!("no such rules: {unknown:?}")),
                    (true, false) => Some(format!("none of {ids:?} names {paper}")),
                    (true, true) => None,
                }
            }
        };
        faults.extend(fault.map(|fault| format!("{paper}, {what}: {fault}")));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_rules_say_of_papers_stands_in_the_table() {
    let rules = Rules::built_in().unwrap();
    let mut cured: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (paper, _, answer) in PAPERS.iter().copied().flatten() {
        if let By(ids) = answer {
            cured.extend(ids.iter().map(|id| (*paper, *id)));
        }
    }
    let said = rules
        .all()
        .iter()
        .flat_map(|rule| rule.papers.iter().map(|paper| (paper.as_str(), rule.id.as_str())));
    let lacking: Vec<_> = said.filter(|pair| !cured.contains(pair)).collect();
    assert!(
        lacking.is_empty(),
        "{} rules name a paper that the table does not give them: {lacking:?}",
        lacking.len()
    );
}
