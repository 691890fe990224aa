//! What all traced activations took part by part, and everything that interrupted or ran beside threads.

use histogram::Histogram;
use serde::{Deserialize, Serialize};
use units::{CpuId, Nanos};

/// Of a traced repetition, as far as its events were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overview {
    /// Activations of measuring threads that the trace has from the timer to the return.
    pub activations: u64,
    /// Activations that something else than the thread's own timer began, or that the trace has not whole.
    pub others: u64,
    /// Their parts, in the order in which they come. They sum to the time from `due` to the thread's next act.
    pub parts: Vec<PathLengths>,
    /// Time of CPUs whose events were read, all CPUs together.
    pub watched: Nanos,
    /// Everything that ran in that time and is no thread, the longest first.
    pub handlers: Vec<Handler>,
    /// Shorter ones that are left out here.
    pub left_out: u64,
}

/// A part of each activation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathLengths {
    /// Which.
    pub name: PathPart,
    /// How long it took.
    pub lengths: Histogram,
}

/// Parts of the way from a timer to its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PathPart {
    /// From the time at which the timer was due to the interrupt.
    TimerLate,
    /// From there to the timer's function.
    InterruptEntry,
    /// From there to the waking of the thread.
    TimerFunction,
    /// From there to the end of the interrupt.
    WakeUp,
    /// From there to the switch to the thread.
    Scheduling,
    /// From there to the thread's next act that the trace has: the return to user space, and what the thread does there first.
    Return,
}

impl PathPart {
    /// All, in the order in which they come.
    pub const ALL: [Self; 6] = [
        Self::TimerLate,
        Self::InterruptEntry,
        Self::TimerFunction,
        Self::WakeUp,
        Self::Scheduling,
        Self::Return,
    ];

    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::TimerLate => "timer late",
            Self::InterruptEntry => "interrupt entry",
            Self::TimerFunction => "timer function",
            Self::WakeUp => "wake-up, interrupt exit",
            Self::Scheduling => "scheduling",
            Self::Return => "switch and return",
        }
    }
}

/// Something that ran and is no thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handler {
    /// The sort.
    pub kind: HandlerKind,
    /// Its name, or that of its function.
    pub name: String,
    /// The number of a device's interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<u32>,
    /// How often it ran.
    pub count: u64,
    /// How long it ran in all, without what interrupted it.
    pub time: Nanos,
    /// The longest time that it ran at once, without what interrupted it.
    pub longest: Nanos,
    /// Where that was.
    pub longest_on: CpuId,
}

/// Sorts of what runs and is no thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HandlerKind {
    /// The handler of a device's interrupt.
    Interrupt,
    /// An interrupt of the CPU itself: its timer, IPIs, machine checks.
    Vector,
    /// A softirq.
    Softirq,
    /// A function that another CPU had called here.
    Call,
    /// The function of a kernel timer.
    Timer,
    /// An item of a workqueue: it runs in a thread.
    Work,
    /// A non-maskable interrupt.
    Nmi,
}

impl HandlerKind {
    /// In a word or two.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Vector => "CPU interrupt",
            Self::Softirq => "softirq",
            Self::Call => "call",
            Self::Timer => "timer",
            Self::Work => "work item",
            Self::Nmi => "NMI",
        }
    }
}

impl Overview {
    /// The worst of each part, laid end to end. No activation took so long, and a worse one may come: it is no bound.
    pub fn end_to_end(&self) -> Option<Nanos> {
        let worst: Option<Vec<Nanos>> =
            self.parts.iter().map(|part| part.lengths.summary().maximum()).collect();
        worst
            .filter(|worst| !worst.is_empty())
            .map(|worst| worst.iter().fold(Nanos::ZERO, |sum, one| sum + *one))
    }
}
