//! What the seed documents recommend, each with the rules that stand for it, or with why none does.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeSet;

use audit::Rules;

/// What stands for a recommendation.
enum Answer {
    /// Rules, of which at least one names the seed.
    Rules(&'static [&'static str]),
    /// It is no setting of a machine: where it is done instead, or why it is obsolete or wrong.
    Elsewhere(&'static str),
}

use Answer::{Elsewhere, Rules as By};

type Recommendation = (&'static str, &'static str, Answer);

/// Enea, appendix A: optimizing the P2041 board.
const S0: &[Recommendation] = &[
    ("S0", "a kernel with full preemption (CONFIG_PREEMPT)", By(&["kc-preempt-model", "bt-preempt"])),
    ("S0", "PREEMPT_RT as the last step", By(&["kc-preempt-rt"])),
    (
        "S0",
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
        "S0",
        "no kprobes, oprofile, LTTng, SystemTap, KGDB",
        By(&["kc-probes-debuggers-off", "kc-prove-locking-off", "kc-lock-checks-off", "kc-debug-misc-off"]),
    ),
    (
        "S0",
        "no powertop support (timer and scheduler statistics)",
        By(&["kc-schedstats-off", "rn-schedstats", "rn-delayacct"]),
    ),
    ("S0", "CONFIG_HIGHMEM off", By(&["kc-highmem-off"])),
    ("S0", "workarounds A_004801 and A_005337 off where the silicon is fixed", By(&["fw-silicon-errata"])),
    ("S0", "CONFIG_HZ_1000", By(&["kc-hz"])),
    ("S0", "CONFIG_JUMP_LABEL", By(&["kc-jump-label"])),
    ("S0", "DEBUG_PREEMPT off", By(&["kc-debug-preempt-off"])),
    ("S0", "DEBUG_SHIRQ off", By(&["kc-debug-shirq-off"])),
    ("S0", "RCU_TRACE off", By(&["kc-rcu-trace-off"])),
    ("S0", "TREE_RCU_TRACE off", Elsewhere("obsolete: gone with 4.12; check --recipe says so")),
    ("S0", "RCU_BOOST", By(&["kc-rcu-boost"])),
    (
        "S0",
        "RCU_BOOST_PRIO=1",
        Elsewhere("obsolete: rcutree.kthread_prio= since 3.20; check --recipe says so"),
    ),
    ("S0", "RCU_BOOST_DELAY=500", By(&["kc-rcu-boost-delay"])),
    ("S0", "RCU_NOCB_CPU, callbacks in threads", By(&["kc-rcu-nocb", "rn-rcu-kthreads", "bt-rcu-nocbs"])),
    ("S0", "threadirqs", By(&["kc-irq-forced-threading", "bt-threadirqs"])),
    ("S0", "cyclictest -S -m -p99: memory locked", By(&["pr-mlock"])),
    (
        "S0",
        "cyclictest at priority 99",
        Elsewhere("contradicted by S1: rn-threads-99 and pr-prio-98 ask for 98 at most"),
    ),
    ("S0", "loads cpu, io, vm, hdd, full with four workers", Elsewhere("the loads of bench; preset s0")),
];

/// EVL (Xenomai 4): how to benchmark.
const S1: &[Recommendation] = &[
    (
        "S1",
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
        "S1",
        "governor performance, or no CPU_FREQ",
        By(&["kc-cpufreq", "kc-cpufreq-gov", "rn-governor", "fw-rpi-clock"]),
    ),
    ("S1", "no GPU driver that causes peaks", By(&["fw-igpu-llc", "fw-gpu-nvidia"])),
    ("S1", "bulk DMA keeps the CPU off the bus", By(&["fw-dma-burst"])),
    (
        "S1",
        "a CPU isolated for the test (isolcpus=)",
        By(&["rn-cpuset-partition", "rn-systemd-slices", "rn-tasks-on-iso"]),
    ),
    ("S1", "evl.oob_cpus= equal to isolcpus=", By(&["bt-evl-oob-cpus"])),
    ("S1", "evl.oobcpus= (as its text has it)", By(&["bt-evl-typo", "bt-unknown-params"])),
    ("S1", "check the kernel's configuration (evl check)", By(&["kc-evl", "kc-evl-debug", "kc-readable"])),
    ("S1", "maximum preemption (PREEMPT_RT_FULL, PREEMPT_RT since 5.4)", By(&["kc-preempt-rt"])),
    ("S1", "GPIOLIB and GPIOLIB_OOB for the GPIO test", By(&["kc-evl-gpio"])),
    ("S1", "CONFIG_EVL_LATMUS", By(&["kc-evl-latmus"])),
    ("S1", "no EVL_DEBUG", By(&["kc-evl-debug"])),
    (
        "S1",
        "the thread of the tested interrupt above the others",
        By(&["rn-irq-thread-prio", "pr-irq-vs-app-order"]),
    ),
    ("S1", "the interrupt on the thread's CPU or on another", By(&["rn-irq-affinity"])),
    ("S1", "threads of interrupts bound to chosen CPUs", By(&["rn-irq-affinity"])),
    ("S1", "no ordinary thread at the responder's priority", By(&["pr-prio-unique", "rn-equal-priorities"])),
    ("S1", "SCHED_FIFO", By(&["pr-policy"])),
    ("S1", "priority 98, not 99", By(&["pr-prio-98", "rn-threads-99"])),
    ("S1", "the responder runs on an isolated CPU (no -noisol)", By(&["pr-affinity"])),
    ("S1", "the responder is bound to one CPU", By(&["pr-pinned"])),
    ("S1", "no serial terminal", By(&["bt-serial-console"])),
    ("S1", "a quiet console", By(&["rn-printk"])),
    ("S1", "nmi_watchdog=0", By(&["rn-nmi-watchdog", "rn-watchdog", "kc-lockup-detector-off"])),
    ("S1", "C-states restricted to the shallowest", By(&["rn-cstate-per-cpu"])),
    ("S1", "a clock read without a system call", By(&["bt-clocksource", "kc-evl-vdso"])),
    ("S1", "no loading on demand, no copy-on-write (mlock)", By(&["pr-mlock", "pr-prefault"])),
    ("S1", "CONFIG_MEMORY_FAILURE off under stress-ng", By(&["kc-memory-failure-off"])),
    ("S1", "look after heat before any stress", By(&["fw-thermal", "fw-rpi-throttled"])),
    ("S1", "caches are shared, isolation or not", By(&["fw-cache-contention"])),
    (
        "S1",
        "stress stays off the measured CPU and SCHED_OTHER",
        Elsewhere("bench places its loads and proves it"),
    ),
    (
        "S1",
        "24 hours under hackbench and dd bs=128M",
        Elsewhere("bench --duration 24h, load scary-grinder; its verdict says for how long it speaks"),
    ),
    ("S1", "slower loops meet colder caches", Elsewhere("bench --interval 100us,1ms,10ms")),
];

/// Enea: four ways to better performance, the part on settings.
const S2: &[Recommendation] = &[
    ("S2", "PREEMPT_RT, at a price in throughput", By(&["kc-preempt-rt"])),
    ("S2", "processes bound to cores, others kept off them", By(&["rn-systemd-slices", "rn-tasks-on-iso"])),
    ("S2", "a real-time partition (shielded cores)", By(&["rn-cpuset-partition", "kc-cpusets"])),
    ("S2", "interrupts bound to cores", By(&["rn-irq-affinity"])),
    ("S2", "no unnecessary threads of the kernel there", By(&["rn-kthread-affinity"])),
    ("S2", "no timers there", By(&["rn-timer-migration", "rn-stat-interval"])),
    ("S2", "NO_HZ_FULL", By(&["kc-nohz-full", "bt-nohz-full"])),
    ("S2", "a user-space runtime, an event machine, a hypervisor", Elsewhere("software, no setting")),
];

/// T. Flatscher: real-time optimizations.
const S3: &[Recommendation] = &[
    ("S3", "no laptop", By(&["fw-chassis-type"])),
    ("S3", "on mains power", By(&["fw-on-mains"])),
    (
        "S3",
        "irrelevant debugging off",
        By(&["kc-debug-misc-off", "kc-prove-locking-off", "kc-lock-checks-off", "kc-sanitizers-off"]),
    ),
    ("S3", "HZ 1000", By(&["kc-hz"])),
    ("S3", "NO_HZ_IDLE", By(&["kc-nohz-idle"])),
    ("S3", "NO_HZ_FULL and nohz_full=", By(&["kc-nohz-full", "bt-nohz-full"])),
    ("S3", "NO_HZ_FULL_ALL", Elsewhere("obsolete: gone with 4.17; check --recipe says so")),
    ("S3", "RCU_NOCB_CPU and rcu_nocbs=", By(&["kc-rcu-nocb", "bt-rcu-nocbs", "rn-rcu-kthreads"])),
    ("S3", "governor performance", By(&["rn-governor", "kc-cpufreq-gov"])),
    ("S3", "set it in the BIOS and in the system", By(&["fw-power-profile"])),
    ("S3", "Turbo Boost off", By(&["fw-turbo-off", "fw-boost-off"])),
    ("S3", "Hyper-Threading off", By(&["fw-smt-off"])),
    (
        "S3",
        "C-states off: intel_idle.max_cstate=0, processor.max_cstate=0",
        By(&["bt-intel-idle-zero", "rn-cstate-per-cpu"]),
    ),
    ("S3", "idle=poll", By(&["bt-idle-poll"])),
    ("S3", "/dev/cpu_dma_latency held open", By(&["rn-cstate-per-cpu"])),
    ("S3", "states disabled for each CPU", By(&["rn-cstate-per-cpu"])),
    ("S3", "cyclictest --latency, or it hides the idle states", By(&["rn-cpu-dma-latency"])),
    ("S3", "cyclictest with -p", By(&["pr-policy"])),
    ("S3", "i7z shows which states were entered", Elsewhere("bench records entries into idle states")),
    ("S3", "hwlatdetect for SMIs", By(&["fw-smi", "kc-hwlat-tracer"])),
    ("S3", "isolcpus=", By(&["rn-cpuset-partition", "rn-systemd-slices", "rn-tasks-on-iso"])),
    ("S3", "the sibling of an isolated CPU is isolated too", By(&["bt-isolcpus-include-sibling"])),
    ("S3", "irqbalance off", By(&["rn-irqbalance", "rn-irqbalance-rt"])),
    ("S3", "interrupts moved (echo CPU > smp_affinity)", By(&["rn-irq-affinity", "rn-irq-allowed"])),
    ("S3", "the process bound to a CPU", By(&["pr-affinity", "pr-pinned"])),
    ("S3", "curly quotes in the GRUB line", By(&["bt-quotes"])),
    ("S3", "limits for real time in a container", By(&["pr-rlimit-rtprio"])),
    ("S3", "five minutes of cyclictest", Elsewhere("too short, as it says itself; check --recipe says so")),
];

/// M. Chevallier: measuring the impacts of PREEMPT_RT.
const S4: &[Recommendation] = &[
    ("S4", "PREEMPT_RT, and see that it runs", By(&["kc-preempt-rt", "kc-debug-preempt-off"])),
    ("S4", "high-resolution timers", By(&["kc-high-res-timers", "bt-highres"])),
    ("S4", "threads of interrupts given priorities", By(&["rn-irq-thread-prio"])),
    ("S4", "real-time policies: FIFO, RR, DEADLINE", By(&["pr-policy"])),
    ("S4", "idle states: polling or C1", By(&["rn-cstate-per-cpu"])),
    ("S4", "a fixed frequency", By(&["rn-governor", "kc-cpufreq-gov", "fw-turbo-off", "fw-boost-off"])),
    ("S4", "Hyper-Threading off", By(&["fw-smt-off"])),
    (
        "S4",
        "futexes with priority inheritance; pipes and FIFOs cost more",
        Elsewhere("the program's source: no file of /proc tells"),
    ),
    (
        "S4",
        "powertop, mpstat, pidstat, perf to look",
        Elsewhere("tools, no setting; check --recipe corrects mpstat -w"),
    ),
];

const SEEDS: [&[Recommendation]; 5] = [S0, S1, S2, S3, S4];

#[test]
fn every_recommendation_of_the_seeds_has_a_rule_or_a_reason() {
    let rules = Rules::built_in().unwrap();
    let mut faults = Vec::new();
    for (seed, what, answer) in SEEDS.iter().copied().flatten() {
        let fault = match answer {
            Elsewhere(reason) => reason.is_empty().then(|| "no reason".to_owned()),
            By(ids) => {
                let unknown: Vec<_> = ids.iter().filter(|id| rules.get(id).is_none()).collect();
                let named = ids
                    .iter()
                    .filter_map(|id| rules.get(id))
                    .any(|rule| rule.seeds.iter().any(|own| own == seed));
                match (unknown.is_empty(), named) {
                    (false, _) => Some(format!("no such rules: {unknown:?}")),
                    (true, false) => Some(format!("none of {ids:?} names {seed}")),
                    (true, true) => None,
                }
            }
        };
        faults.extend(fault.map(|fault| format!("{seed}, {what}: {fault}")));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_rules_say_of_seeds_stands_in_the_table() {
    let rules = Rules::built_in().unwrap();
    let mut cured: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (seed, _, answer) in SEEDS.iter().copied().flatten() {
        if let By(ids) = answer {
            cured.extend(ids.iter().map(|id| (*seed, *id)));
        }
    }
    let said =
        rules.all().iter().flat_map(|rule| rule.seeds.iter().map(|seed| (seed.as_str(), rule.id.as_str())));
    let lacking: Vec<_> = said.filter(|pair| !cured.contains(pair)).collect();
    assert!(
        lacking.is_empty(),
        "{} rules name a seed that the table does not give them: {lacking:?}",
        lacking.len()
    );
}
