//! The process that is asked about: `check --pid`. Everything here is unsupported without one.
//!
//! Nothing is read that takes the process's memory lock (smaps, maps, numa_maps).

mod about;
mod limits;
mod memory;
mod sleeping;
#[cfg(test)]
mod tests;
mod threads;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value};

pub(super) use limits::OWN_FACTS;

pub(super) const FACTS: &[NamedFact] = &[
    fact("process", "name and id of the process that is asked about", name),
    fact("process.real-time-threads", "how many of its threads are real-time ones", threads::count),
    fact("process.top-priority", "the highest priority of its threads", threads::top_priority),
    fact(
        "process.equals",
        "other threads with the priority of one of its own on the same CPU",
        threads::equals,
    ),
    fact(
        "process.off-isolated",
        "its real-time threads that may run on CPUs not set apart",
        threads::off_isolated,
    ),
    fact("process.wandering", "its real-time threads that may run on several CPUs", threads::wandering),
    fact("process.real-time-children", "real-time threads of programs that it started", threads::children),
    fact(
        "process.devices-behind",
        "devices whose interrupts' threads do not go before its own",
        threads::before_interrupt_threads,
    ),
    fact(
        "process.behind-ktimers",
        "its threads whose timers expire behind another thread",
        threads::behind_ktimers,
    ),
    fact("process.unlocked-kib", "memory that it uses and has not locked", memory::unlocked),
    fact("process.swapped-kib", "memory that was written to swap", memory::swapped),
    fact(
        "process.major-faults",
        "its real-time threads that waited for a disk, each with how often",
        memory::major_faults,
    ),
    fact(
        "process.run-time-limit",
        "microseconds that a real-time thread may run without sleeping, or unlimited",
        limits::run_time,
    ),
    fact("process.may-be-real-time", "whether it may choose a real-time policy", limits::may_be_real_time),
    fact("process.may-lock-memory", "whether it may lock all that it will ever use", limits::may_lock_memory),
    fact(
        "process.may-ask-for-latency",
        "whether it may open /dev/cpu_dma_latency to ask for short exit latencies",
        limits::may_ask_for_latency,
    ),
    fact("process.cpu-quotas", "control groups above it with a limit on CPU time", limits::cpu_quotas),
    fact("process.tracer", "the process that traces it, 0 for none", limits::tracer),
    fact(
        "process.timer-slack",
        "nanoseconds by which its sleeps may be delayed; absent with real-time threads",
        sleeping::timer_slack,
    ),
    fact(
        "process.relative-sleeps",
        "its real-time threads that sleep for a time, not until one",
        sleeping::relative,
    ),
    fact(
        "process.settable-clock",
        "its real-time threads that sleep by the clock that can be set",
        sleeping::settable_clock,
    ),
];

fn name(survey: &Survey) -> Reading {
    about::about(survey, "comm", |pid| {
        survey.root.read(&format!("/proc/{pid}/comm")).map(|name| Value::Text(format!("{name} ({pid})")))
    })
}
