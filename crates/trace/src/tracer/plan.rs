//! What a tracer is asked to do, and the files by which it is asked.

use std::fmt;

use units::{CpuList, Nanos};

/// A tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A timer on each CPU, and the thread that it wakes (Linux 5.14).
    Timerlat,
    /// A thread that reads the clock without pause, with interrupts on (Linux 5.14).
    Osnoise,
    /// A thread that reads the clock without pause, with interrupts off (Linux 4.9).
    Hwlat,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 3] = [Self::Timerlat, Self::Osnoise, Self::Hwlat];

    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timerlat => "timerlat",
            Self::Osnoise => "osnoise",
            Self::Hwlat => "hwlat",
        }
    }

    /// What a kernel needs to have it.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Timerlat => "it needs CONFIG_TIMERLAT_TRACER (Debian: the rt kernels)",
            Self::Osnoise => "it needs CONFIG_OSNOISE_TRACER (Debian: the rt kernels)",
            Self::Hwlat => "it needs CONFIG_HWLAT_TRACER (Debian: the rt kernels)",
        }
    }

    /// Which settings the kernel takes.
    pub(super) fn limits(self) -> &'static str {
        match self {
            Self::Timerlat => "the kernel takes periods from 100 us to 1 s",
            Self::Osnoise => "the kernel takes periods up to 1 s, and run times up to the period",
            Self::Hwlat => "the kernel takes a width below the window",
        }
    }

    /// The event in which its samples are.
    pub(super) fn event(self) -> &'static str {
        self.name()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What timerlat does. Times are rounded down to microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timerlat {
    /// Where.
    pub cpus: CpuList,
    /// Of its timers: 100 us to 1 s.
    pub period: Nanos,
    /// A latency at the timer's interrupt beyond which the kernel stops recording.
    pub stop_at_interrupt: Option<Nanos>,
    /// The same for the thread.
    pub stop_at_thread: Option<Nanos>,
}

impl Timerlat {
    /// Without a threshold.
    pub fn every(cpus: CpuList, period: Nanos) -> Self {
        Self { cpus, period, stop_at_interrupt: None, stop_at_thread: None }
    }
}

/// What osnoise does. Times are rounded down to microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Osnoise {
    /// Where.
    pub cpus: CpuList,
    /// From one stretch to the next: 1 s at most.
    pub period: Nanos,
    /// How long it looks in each period.
    pub runtime: Nanos,
}

/// What hwlat does. Times are rounded down to microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hwlat {
    /// Where: one CPU after the other.
    pub cpus: CpuList,
    /// From one stretch to the next.
    pub window: Nanos,
    /// How long it looks in each window, with interrupts off.
    pub width: Nanos,
}

/// Which tracer is to do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Samples: latency of interrupt and thread, each period.
    Timerlat(Timerlat),
    /// Samples: what a CPU was taken from its thread, each period.
    Osnoise(Osnoise),
    /// Samples: what neither interrupts nor threads can have taken, where it was 10 us or more.
    Hwlat(Hwlat),
}

impl Plan {
    /// A plan with the kernel's usual times.
    pub fn usual(kind: Kind, cpus: CpuList) -> Self {
        const MS: u64 = 1_000_000;
        match kind {
            Kind::Timerlat => Self::Timerlat(Timerlat::every(cpus, Nanos(MS))),
            Kind::Osnoise => {
                // 5 % of the time is left to others: the kernel throttles real-time threads that leave less.
                Self::Osnoise(Osnoise { cpus, period: Nanos(1_000 * MS), runtime: Nanos(900 * MS) })
            }
            Kind::Hwlat => Self::Hwlat(Hwlat { cpus, window: Nanos(1_000 * MS), width: Nanos(500 * MS) }),
        }
    }

    /// Of which tracer it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Timerlat(_) => Kind::Timerlat,
            Self::Osnoise(_) => Kind::Osnoise,
            Self::Hwlat(_) => Kind::Hwlat,
        }
    }

    /// The files of the machine below the place of tracefs, with what is written to them.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        let micros = |time: Nanos| (time.0 / 1000).to_string();
        let stop = |at: Option<Nanos>| micros(at.unwrap_or_default());
        match self {
            Self::Timerlat(plan) => vec![
                ("osnoise/cpus", plan.cpus.to_string()),
                ("osnoise/timerlat_period_us", micros(plan.period)),
                ("osnoise/stop_tracing_us", stop(plan.stop_at_interrupt)),
                ("osnoise/stop_tracing_total_us", stop(plan.stop_at_thread)),
            ],
            Self::Osnoise(plan) => vec![
                ("osnoise/cpus", plan.cpus.to_string()),
                ("osnoise/period_us", micros(plan.period)),
                ("osnoise/runtime_us", micros(plan.runtime)),
                ("osnoise/stop_tracing_us", stop(None)),
                ("osnoise/stop_tracing_total_us", stop(None)),
            ],
            Self::Hwlat(plan) => {
                vec![
                    ("hwlat_detector/window", micros(plan.window)),
                    ("hwlat_detector/width", micros(plan.width)),
                ]
            }
        }
    }

    /// The CPUs, where the instance has them and no file of the machine.
    pub(super) fn mask(&self) -> Option<&CpuList> {
        match self {
            Self::Hwlat(plan) => Some(&plan.cpus),
            Self::Timerlat(_) | Self::Osnoise(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_in_microseconds_and_no_threshold_is_zero() {
        let cpus: CpuList = "1,3".parse().unwrap();
        let plan = Timerlat { stop_at_thread: Some(Nanos(77_500)), ..Timerlat::every(cpus, Nanos(250_000)) };
        let written = [("cpus", "1,3"), ("timerlat_period_us", "250"), ("stop_tracing_us", "0")];
        let written = written.into_iter().chain([("stop_tracing_total_us", "77")]);
        let written = written.map(|(file, value)| (format!("osnoise/{file}"), value.to_owned()));
        let files = Plan::Timerlat(plan).files().into_iter().map(|(file, value)| (file.to_owned(), value));
        assert!(files.eq(written));
    }
}
