//! What a tracer has measured.

use std::fmt;

use units::{CpuId, Nanos};

use crate::event::Event;

/// At which place timerlat compares the clock with the time at which its timer was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// In the timer's interrupt.
    Interrupt,
    /// In the thread of the kernel that the interrupt wakes, or of a program where that reads `timerlat_fd`.
    Thread,
    /// In user space, when that program asks for the next period.
    User,
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupt",
            Self::Thread => "thread",
            Self::User => "user space",
        })
    }
}

/// A sample of a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// How late timerlat's timer was noticed.
    Timerlat {
        /// Where.
        cpu: CpuId,
        /// When, on `CLOCK_MONOTONIC`.
        at: Nanos,
        /// The timer's period: samples of one have the same.
        number: u64,
        /// At which place.
        context: Context,
        /// How late.
        latency: Nanos,
    },
    /// What was taken from osnoise's thread in a period. The kernel gives microseconds.
    Osnoise {
        /// Where.
        cpu: CpuId,
        /// When the period was over, on `CLOCK_MONOTONIC`.
        at: Nanos,
        /// How long the thread looked.
        runtime: Nanos,
        /// How much of that was taken.
        noise: Nanos,
        /// The longest part that was taken at once.
        worst: Nanos,
        /// How often something else than NMIs, interrupts, softirqs and threads took it: the machine below the kernel.
        hardware: u64,
        /// How many NMIs, interrupts, softirqs and threads took it.
        by_kernel: [u64; 4],
    },
    /// What was taken from hwlat's thread, which keeps interrupts off. The kernel gives microseconds.
    Hwlat {
        /// Where.
        cpu: CpuId,
        /// When, on `CLOCK_MONOTONIC`.
        at: Nanos,
        /// The longest time between two readings of the clock, or between the end of one pair and the next.
        worst: Nanos,
        /// How often in this window something was taken; none where the kernel does not count (before 5.6).
        count: Option<u64>,
        /// NMIs in this time.
        nmis: u64,
    },
}

/// As the tracers give them.
const MICROSECOND: u64 = 1000;

impl Sample {
    /// None for another event, and for one without the fields of a sample.
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let micros = |field| event.unsigned(field)?.checked_mul(MICROSECOND).map(Nanos);
        let (cpu, at) = (event.cpu, event.time);
        match event.name() {
            "timerlat" => {
                let context = match event.signed("context")? {
                    0 => Context::Interrupt,
                    1 => Context::Thread,
                    2 => Context::User,
                    _ => return None,
                };
                let latency = Nanos(event.unsigned("timer_latency")?);
                Some(Self::Timerlat { cpu, at, number: event.unsigned("seqnum")?, context, latency })
            }
            "osnoise" => {
                let count = |field| event.unsigned(field);
                Some(Self::Osnoise {
                    cpu,
                    at,
                    runtime: micros("runtime")?,
                    noise: micros("noise")?,
                    worst: micros("max_sample")?,
                    hardware: count("hw_count")?,
                    by_kernel: [
                        count("nmi_count")?,
                        count("irq_count")?,
                        count("softirq_count")?,
                        count("thread_count")?,
                    ],
                })
            }
            "hwlat" => Some(Self::Hwlat {
                cpu,
                at,
                worst: micros("duration")?.max(micros("outer_duration")?),
                count: event.unsigned("count"),
                nmis: event.unsigned("nmi_count")?,
            }),
            _ => None,
        }
    }
}
