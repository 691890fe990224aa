//! Where what disturbs a CPU comes from, and what keeps it away (Documentation/admin-guide/kernel-per-CPU-kthreads.rst,
//! Documentation/timers/no_hz.rst).

use machine::activity::{Kind, Residue};
use serde::Serialize;

/// Where something comes from, and what keeps it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Origin {
    /// Who makes it.
    pub source: &'static str,
    /// What could be done.
    pub remedy: &'static str,
}

/// A sort of thing, the names of its members (`*` at the end, or around a part), source and remedy. The first that fits counts.
type Row = (Kind, &'static str, &'static str, &'static str);

const TICK: &str = "the timer tick, and timers of what runs here";
const NO_TICK: &str = "boot with nohz_full= for these CPUs, and leave one runnable thread on each";

const ORIGINS: &[Row] = &[
    (Kind::Interrupt, "LOC", TICK, NO_TICK),
    (Kind::Interrupt, "arch_timer", TICK, NO_TICK),
    (
        Kind::Interrupt,
        "RES",
        "another CPU woke a thread here",
        "keep partners of threads here on these CPUs, or wake them by shared memory",
    ),
    (
        Kind::Interrupt,
        "CAL",
        "another CPU had a function run here: memory barriers, cache and code changes, perf",
        "no module loading, tracing, perf or membarrier(2) while it counts",
    ),
    (
        Kind::Interrupt,
        "TLB",
        "a thread elsewhere shares memory with one here and unmapped some",
        "one process per partition; no munmap or mprotect in its threads outside",
    ),
    (Kind::Interrupt, "IWI", "work that an interrupt left: printk, perf, RCU", "a quiet console; no perf"),
    (Kind::Interrupt, "NMI", "the hard lockup detector or perf", "kernel.nmi_watchdog=0"),
    (Kind::Interrupt, "PMI", "performance counters", "kernel.nmi_watchdog=0; no perf"),
    (
        Kind::Interrupt,
        "MC*",
        "machine checks",
        "/sys/devices/system/machinecheck/machinecheck0/check_interval to 0; mce=ignore_ce",
    ),
    (Kind::Interrupt, "TRM", "the CPU is hot", "cooling, or a lower frequency"),
    (Kind::Interrupt, "THR", "a counter of machine checks ran over", "mce=ignore_ce"),
    (Kind::Interrupt, "HYP", "the hypervisor", "on its host"),
    (
        Kind::Interrupt,
        "IPI*",
        "another CPU asked for something",
        "keep partners of threads here on these CPUs",
    ),
    (
        Kind::Interrupt,
        "*",
        "a device, or a source of the CPU's own",
        "worstcase tune apply moves those of devices; managed ones need fewer queues or isolcpus=managed_irq",
    ),
    (
        Kind::Softirq,
        "TIMER",
        "timers that were set on this CPU",
        "boot with nohz_full=; timers stay until they have run out once",
    ),
    (
        Kind::Softirq,
        "HRTIMER",
        "precise timers that were set on this CPU",
        "threads with precise timers elsewhere",
    ),
    (Kind::Softirq, "RCU", "callbacks of RCU", "boot with rcu_nocbs= for these CPUs"),
    (
        Kind::Softirq,
        "SCHED",
        "balancing of load, at the tick",
        "a partition of its own (worstcase partition create), or isolcpus=domain",
    ),
    (Kind::Softirq, "NET_*", "network packets", "interrupts of the network and rps_cpus on other CPUs"),
    (
        Kind::Softirq,
        "BLOCK",
        "input and output of disks that was asked for here",
        "/sys/block/*/queue/rq_affinity to 1, interrupts of disks on other CPUs",
    ),
    (
        Kind::Softirq,
        "*",
        "work that an interrupt or a driver left",
        "the interrupt of its device on other CPUs",
    ),
    (
        Kind::KernelThread,
        "kworker/u*",
        "work that may be done on any CPU",
        "worstcase tune apply --only rn-wq-cpumask moves it",
    ),
    (
        Kind::KernelThread,
        "kworker/*",
        "work that was asked for on this CPU, often statistics of memory",
        "vm.stat_interval; the work of drivers follows their interrupts",
    ),
    (
        Kind::KernelThread,
        "ksoftirqd/*",
        "softirqs that could not be done at once",
        "see the softirqs of this CPU",
    ),
    (Kind::KernelThread, "ktimers/*", "timers of a PREEMPT_RT kernel", "boot with nohz_full="),
    (
        Kind::KernelThread,
        "migration/*",
        "a thread was moved off or on, or all CPUs were stopped",
        "no hotplug, module loading or changes of affinity while it counts",
    ),
    (Kind::KernelThread, "cpuhp/*", "a CPU goes on or off", "no hotplug while it counts"),
    (Kind::KernelThread, "rcuc/*", "callbacks of RCU on PREEMPT_RT", "boot with rcu_nocbs= for these CPUs"),
    (
        Kind::KernelThread,
        "rcu*",
        "RCU",
        "worstcase tune apply --only rn-rcu-kthreads moves those that can be moved",
    ),
    (Kind::KernelThread, "irq/*", "the handler of an interrupt", "its interrupt on other CPUs"),
    (
        Kind::KernelThread,
        "watchdog*",
        "the lockup detector",
        "worstcase tune apply --only rn-watchdog moves it",
    ),
    (
        Kind::KernelThread,
        "*",
        "a thread of the kernel",
        "worstcase tune apply --only rn-kthread-affinity moves those that can be moved",
    ),
    (Kind::Stranger, "*", "a program that may run anywhere", "worstcase partition create, or taskset -p"),
    (
        Kind::Resident,
        "*",
        "bound to these CPUs: what they are for, else a stray",
        "a stray goes with taskset -p",
    ),
    (
        Kind::PageFault,
        "*",
        "memory that was not there at first touch",
        "mlockall(2), and touch everything before the work begins",
    ),
    (
        Kind::Unseen,
        "*",
        "threads that ended or passed by between two looks",
        "start nothing on these CPUs; --trace names them",
    ),
    (Kind::Passing, "*", "a thread that was given the CPU", "what its name stands for above"),
    (
        Kind::Call,
        "dl_task_timer",
        "the fair server begins its time for ordinary threads, or a deadline thread its period",
        "see worstcase check rn-fair-server; one runnable thread on each CPU",
    ),
    (
        Kind::Call,
        "irq_work_queue_on",
        "another CPU queued work for this one: as a rule to have the tick of nohz_full judged anew",
        "no POSIX CPU timers, perf events or changes of policy for threads here",
    ),
    (
        Kind::Call,
        "reschedule",
        "another CPU woke a thread here",
        "keep partners of threads here on these CPUs, or wake them by shared memory",
    ),
    (
        Kind::Call,
        "sched_ttwu_pending",
        "another CPU woke a thread here",
        "keep partners of threads here on these CPUs, or wake them by shared memory",
    ),
    (
        Kind::Call,
        "nohz_full_kick_func",
        "the kernel has the tick of nohz_full judged anew",
        "no POSIX CPU timers, perf events or changes of policy for threads here",
    ),
    (
        Kind::Call,
        "nohz_csd_func",
        "balancing of load with this CPU",
        "a partition of its own, or isolcpus=domain; nohz_full",
    ),
    (
        Kind::Call,
        "flush_tlb_func",
        "a thread elsewhere shares memory with one here and unmapped some, or the kernel's own mappings went",
        "one process per partition; no munmap or mprotect in its threads outside; no module loading",
    ),
    (
        Kind::Call,
        "do_flush_tlb_all",
        "the kernel gave back memory that it had mapped for itself: BPF, modules, ended stacks",
        "no BPF programs or modules loaded while it counts",
    ),
    (
        Kind::Call,
        "do_kernel_range_flush",
        "the kernel gave back memory that it had mapped for itself",
        "no BPF programs or modules loaded while it counts",
    ),
    (
        Kind::Call,
        "do_sync_core",
        "the kernel changed its own code: static keys, tracing, BPF, modules",
        "no tracing, kprobes, BPF or module loading while it counts",
    ),
    (
        Kind::Call,
        "text_poke_*",
        "the kernel changed its own code",
        "no tracing, kprobes, BPF or module loading while it counts",
    ),
    (
        Kind::Call,
        "ipi_mb",
        "a program called membarrier(2)",
        "no private expedited membarrier in processes with threads here",
    ),
    (
        Kind::Call,
        "ipi_*",
        "a program called membarrier(2)",
        "no membarrier(2) by processes with threads here",
    ),
    (
        Kind::Call,
        "rcu_exp_handler",
        "somebody waits for RCU in a hurry",
        "rcupdate.rcu_normal_after_boot=1; on nohz_full CPUs an idle or user CPU is not asked",
    ),
    (
        Kind::Call,
        "rcu_barrier_handler",
        "a module or file system goes and waits for all callbacks of RCU",
        "boot with rcu_nocbs= for these CPUs; no unmounting while it counts",
    ),
    (
        Kind::Call,
        "*drain*",
        "the kernel collects memory kept per CPU",
        "no memory hotplug, compaction or cgroup removal while it counts",
    ),
    (
        Kind::Call,
        "*",
        "another CPU had this function run here",
        "what calls it on other CPUs, named beside it",
    ),
    (
        Kind::Work,
        "vmstat_update",
        "statistics of memory, gathered after this CPU took or gave back pages",
        "vm.stat_interval raised; no memory taken or given back by threads here",
    ),
    (
        Kind::Work,
        "vmstat_shepherd",
        "who looks which CPUs have statistics of memory to gather",
        "vm.stat_interval raised; on other CPUs by the mask of unbound work",
    ),
    (
        Kind::Work,
        "lru_add_drain_per_cpu",
        "somebody moves pages and has each CPU give up those it keeps",
        "no compaction, memory hotplug or mlock of others while it counts",
    ),
    (Kind::Work, "mce_timer_fn", "polling for machine checks", "check_interval to 0; mce=ignore_ce"),
    (
        Kind::Work,
        "clocksource_watchdog_work",
        "the clock source was found unstable",
        "tsc=reliable where it is; see worstcase check bt-tsc",
    ),
    (
        Kind::Work,
        "kfree_rcu_*",
        "memory that waited for RCU is given back",
        "boot with rcu_nocbs= for these CPUs; fewer closed files and sockets here",
    ),
    (
        Kind::Work,
        "*",
        "work that was asked for on this CPU",
        "what asks for it: a driver, a file system or a program here",
    ),
    (Kind::Timer, "tick_*", TICK, NO_TICK),
    (
        Kind::Timer,
        "hrtimer_wakeup",
        "a thread that sleeps for a time wakes up",
        "what the CPUs are for may; others elsewhere",
    ),
    (
        Kind::Timer,
        "watchdog_timer_fn",
        "the lockup detector",
        "worstcase tune apply --only rn-watchdog moves it",
    ),
    (
        Kind::Timer,
        "delayed_work_timer_fn",
        "work that was asked for later",
        "see which work functions ran: they follow who asked for them here",
    ),
    (
        Kind::Timer,
        "clocksource_watchdog",
        "the clock source is compared with another one, on each CPU in turn",
        "tsc=reliable or clocksource.verify_n_cpus=0 where it is good; see worstcase check bt-tsc",
    ),
    (Kind::Timer, "mce_timer_fn", "polling for machine checks", "check_interval to 0; mce=ignore_ce"),
    (
        Kind::Timer,
        "process_timeout",
        "a thread of the kernel or a program that waited with a limit",
        "its thread elsewhere",
    ),
    (
        Kind::Timer,
        "sched_rt_period_timer",
        "throttling of real time",
        "kernel.sched_rt_runtime_us=-1, and threads that sleep",
    ),
    (
        Kind::Timer,
        "*",
        "a timer that was set on this CPU",
        "what set it runs here, or ran: timers stay until they have run out once",
    ),
    (Kind::Tick, "SCHED", "more than one thread could run", "one runnable thread on each CPU"),
    (
        Kind::Tick,
        "POSIX_TIMER",
        "a timer on CPU time (setitimer, timer_create, RLIMIT_CPU, RLIMIT_RTTIME)",
        "no CPU timers for threads here",
    ),
    (
        Kind::Tick,
        "PERF_EVENTS",
        "a performance counter that rotates or has a frequency",
        "no perf while it counts",
    ),
    (
        Kind::Tick,
        "CLOCK_UNSTABLE",
        "the clock is not taken for stable",
        "a stable clock source: tsc=reliable where it is",
    ),
    (Kind::Tick, "RCU*", "RCU needs this CPU", "boot with rcu_nocbs= for these CPUs"),
    (Kind::Tick, "*", "the kernel kept the tick", "Documentation/timers/no_hz.rst: known issues"),
    (Kind::SystemCall, "*", "a program that runs here", "worstcase partition create, or taskset -p"),
];

/// Where a residue comes from.
pub fn origin(residue: &Residue) -> Origin {
    // Rows with a number are known by their handler, calls by their sender too: the last of the words.
    let handler = residue.words.rsplit(' ').next();
    let fits = |row: &&Row| row.0 == residue.kind && (fits(row.1, &residue.name) || handler == Some(row.1));
    let row = ORIGINS.iter().find(fits);
    row.map_or(Origin { source: "", remedy: "" }, |&(_, _, source, remedy)| Origin { source, remedy })
}

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(middle), Some(_)) if !middle.is_empty() => name.contains(&middle[1..]),
        (Some(start), _) => name.starts_with(start),
        (None, _) => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{CpuId, Nanos};

    fn of(kind: Kind, name: &str) -> Origin {
        let (name, words) = (name.to_owned(), String::new());
        origin(&Residue { cpu: CpuId(1), kind, name, words, events: 1, time: Nanos::ZERO })
    }

    #[test]
    fn every_sort_of_thing_has_a_source_and_a_remedy() {
        use Kind::*;
        let counted = [Interrupt, Softirq, KernelThread, Stranger, Resident, PageFault, Unseen];
        let traced = [Passing, Call, Work, Timer, Tick, SystemCall];
        for kind in counted.into_iter().chain(traced) {
            let origin = of(kind, "nobody knows it");
            assert!(!origin.source.is_empty() && !origin.remedy.is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn the_particular_goes_before_the_general() {
        assert!(of(Kind::KernelThread, "kworker/u4:1").remedy.contains("rn-wq-cpumask"));
        assert!(of(Kind::KernelThread, "kworker/1:2").remedy.contains("stat_interval"));
        assert!(of(Kind::Interrupt, "LOC").remedy.contains("nohz_full"));
        assert!(of(Kind::Softirq, "RCU").remedy.contains("rcu_nocbs"));
    }

    #[test]
    fn a_row_with_a_number_is_known_by_its_handler() {
        let words = "GICv3 27 Level arch_timer".to_owned();
        let (cpu, name) = (CpuId(1), "11".to_owned());
        let row = Residue { cpu, kind: Kind::Interrupt, name, words, events: 1, time: Nanos::ZERO };
        assert!(origin(&row).remedy.contains("nohz_full"));
    }

    #[test]
    fn no_row_is_hidden_by_an_earlier_one() {
        for (place, (kind, pattern, ..)) in ORIGINS.iter().enumerate() {
            let hidden = ORIGINS[..place].iter().any(|row| row.0 == *kind && fits(row.1, pattern));
            assert!(!hidden, "{kind:?} {pattern}");
        }
    }
}
