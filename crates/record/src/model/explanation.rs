//! Why the worst wake-ups were late, as the kernel's trace showed it in a repetition of a scenario.

use serde::{Deserialize, Serialize};
use units::{Bytes, CpuId, Nanos};

use super::{Overview, Scenario};

/// A scenario measured once more, traced, and its worst wake-ups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The place in [`super::Record::scenarios`] of the scenario that was measured without tracing.
    pub of: u32,
    /// The repetition. Its latencies contain what tracing costs: no limit is judged by them.
    pub scenario: Scenario,
    /// What was traced, and what it missed.
    pub tracing: Tracing,
    /// The worst wake-ups, the worst first.
    pub hits: Vec<Hit>,
    /// All traced activations, and what ran beside them.
    #[serde(default)]
    pub overview: Overview,
}

/// What was traced, and what it missed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tracing {
    /// Events that were recorded, `system/name`.
    pub events: Vec<String>,
    /// Events that this kernel does not have or would not record.
    pub absent: Vec<String>,
    /// Size of each CPU's ring buffer.
    pub buffer: Bytes,
    /// The latency from which the first hits were kept; it rises to that of the worst ones.
    pub threshold: Nanos,
    /// How often the ring buffers were frozen and read; never where they are read while the kernel records.
    pub freezes: u64,
    /// Wake-ups above the threshold that no trace has: they came while the buffers were read, or their events were overwritten.
    pub blind: u64,
    /// Wake-ups that are left out because recording the trace made more than half of their latency.
    #[serde(default)]
    pub own: u64,
    /// Why nothing, or no more, could be traced; none where all went well.
    pub failure: Option<String>,
}

/// What `explain --live` has watched, and what of it is not known: the end of its output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchSummary {
    /// How long wake-ups were watched.
    pub seconds: f64,
    /// The latency from which wake-ups are late.
    pub threshold: Nanos,
    /// Wake-ups whose latency is known.
    pub wake_ups: u64,
    /// Those of them that were late and are explained.
    pub late: u64,
    /// More wake-ups, whose latency is not known: the trace lacks their end.
    pub unknown: u64,
    /// CPUs whose events were overwritten before they were read: wake-ups meanwhile are not counted.
    pub lost: Vec<LostEvents>,
    /// Late wake-ups that are left out because recording and reading the trace made more than half of their latency.
    pub own: u64,
    /// Late wake-ups without an explanation: their CPU has no events.
    pub blind: u64,
    /// Events that this kernel does not have or would not record, and what else is not to be had.
    pub absent: Vec<String>,
}

/// Events of a CPU that were overwritten before they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostEvents {
    /// Which.
    pub cpu: CpuId,
    /// How often.
    pub times: u64,
    /// For how long, all times together.
    pub length: Nanos,
}

/// A wake-up that its thread has marked in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateWakeUp {
    /// The thread.
    pub tid: i32,
    /// The CPU on which it woke up.
    pub cpu: CpuId,
    /// Number of the activation.
    pub activation: u64,
    /// When it was due, on `CLOCK_MONOTONIC`.
    pub due: Nanos,
    /// When it came.
    pub woke: Nanos,
    /// Its period.
    pub interval: Nanos,
    /// Until when its timer slack let the kernel wait with the timer; none where it has none, or it is not known.
    pub slack_until: Option<Nanos>,
}

impl LateWakeUp {
    /// How late it was.
    pub fn latency(&self) -> Nanos {
        Nanos(self.woke.0.saturating_sub(self.due.0))
    }
}

/// A late wake-up and its account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hit {
    /// The CPU that the thread is pinned to.
    pub cpu: CpuId,
    /// The thread.
    pub tid: i32,
    /// Number of the activation.
    pub activation: u64,
    /// When it was due, on `CLOCK_MONOTONIC`.
    pub due: Nanos,
    /// How late it was.
    pub latency: Nanos,
    /// `[due, due + latency]` in pieces, in order of time. They sum to the latency.
    pub pieces: Vec<Piece>,
    /// What the pieces come to; they sum to the latency too, the largest first.
    pub causes: Vec<Cause>,
    /// Callers where the wake-up was announced (`sched_waking`), innermost first: the interrupt, and below it what it
    /// interrupted.
    pub waking_stack: Vec<String>,
    /// Callers where the thread that ran before gave way (`sched_switch`), innermost first.
    pub switch_stack: Vec<String>,
    /// Events of this CPU from shortly before `due` to the wake-up, and those of others that led to them.
    pub events: Vec<TraceEvent>,
    /// Events of that time that are left out here; the account has them.
    pub left_out: u64,
}

/// A part of a late wake-up in which nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Piece {
    /// How long.
    pub length: Nanos,
    /// How far the wake-up had come.
    pub stage: Stage,
    /// What the CPU did.
    pub activity: Activity,
}

/// How far a wake-up has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The timer is due, and its interrupt has not begun.
    BeforeInterrupt,
    /// In the timer's interrupt, and the thread is not woken yet.
    InInterrupt,
    /// The thread is woken and waits for a CPU.
    Runnable,
    /// It has the CPU, and is on its way to its own code.
    Running,
    /// How far it was is not known: the trace does not have it.
    Unknown,
}

impl Stage {
    /// In a word or two, as reports and exports name it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::BeforeInterrupt => "timer due",
            Self::InInterrupt => "interrupt",
            Self::Runnable => "runnable",
            Self::Running => "running",
            Self::Unknown => "not known",
        }
    }
}

/// What a CPU did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Activity {
    /// The idle thread.
    Idle {
        /// Whether the CPU slept in an idle state.
        asleep: bool,
    },
    /// A thread.
    Thread {
        /// Its id.
        tid: i32,
        /// Its name.
        name: String,
        /// The kernel's priority: 0 to 98 real time, 100 and above others; the lower the sooner. None where it is unknown.
        priority: Option<i32>,
        /// The workqueue function that it carries out.
        work: Option<String>,
    },
    /// A non-maskable interrupt.
    Nmi {
        /// Its handler.
        name: String,
    },
    /// A hard interrupt, outside of functions that have events of their own.
    Interrupt {
        /// Its handler's or vector's name.
        name: String,
    },
    /// A softirq, outside of functions that have events of their own.
    Softirq {
        /// `NET_RX`, `TIMER`, ...
        name: String,
    },
    /// The function of a timer of the kernel.
    Timer {
        /// Its name.
        function: String,
    },
    /// A function that another CPU had called here (`smp_call_function`).
    Call {
        /// Its name.
        function: String,
    },
    /// Recording a stack for the trace.
    Tracing,
    /// The trace does not say.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Activity {
    /// In a few words, as reports and exports name it. Names are those of the kernel and of programs: not fit for a terminal.
    pub fn words(&self) -> String {
        match self {
            Self::Idle { asleep: true } => "idle, asleep".to_owned(),
            Self::Idle { asleep: false } => "idle".to_owned(),
            Self::Thread { tid, name, work: Some(work), .. } => format!("{name} [{tid}], work {work}"),
            Self::Thread { tid, name, .. } => format!("{name} [{tid}]"),
            Self::Nmi { name } => format!("NMI {name}"),
            Self::Interrupt { name } => format!("interrupt {name}"),
            Self::Softirq { name } => format!("softirq {name}"),
            Self::Timer { function } => format!("timer {function}"),
            Self::Call { function } => format!("called by another CPU: {function}"),
            Self::Tracing => "recording a stack".to_owned(),
            Self::Unknown { why } => format!("unknown: {why}"),
        }
    }
}

/// A part of a late wake-up and what brought it about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// The sort.
    pub class: Class,
    /// The function, thread, interrupt or program; empty where the class says all.
    pub culprit: String,
    /// How long.
    pub length: Nanos,
    /// How sure that is.
    pub certainty: Certainty,
    /// What shows it.
    pub witness: String,
}

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Nothing in the trace shows it.
    Unknown,
    /// A stack, or what is usual there, says so.
    Likely,
    /// Events bound it.
    Sure,
}

/// Sorts of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The host or firmware had the CPU.
    Host,
    /// The kernel had interrupts off.
    InterruptsOff,
    /// The kernel had preemption off.
    PreemptionOff,
    /// Kernel code that is never preempted under this preemption model ran to its next resched point.
    NoPreemption,
    /// A hard interrupt.
    Interrupt,
    /// A function that another CPU had called here.
    Call,
    /// A softirq.
    Softirq,
    /// A timer's function.
    Timer,
    /// A non-maskable interrupt.
    Nmi,
    /// A thread of the same or a higher priority.
    Rival,
    /// Real-time throttling.
    Throttling,
    /// The CPU left an idle state, or was idle.
    IdleExit,
    /// The thread moved to another CPU.
    Migration,
    /// A page fault of the thread.
    PageFault,
    /// The thread's timer slack (prctl(2), `PR_SET_TIMERSLACK`).
    TimerSlack,
    /// Parts that each wake-up has, of usual length: interrupt entry, wake-up, switch, return.
    Usual,
    /// Recording the trace.
    Tracing,
    /// Not explained.
    Unknown,
}

impl Class {
    /// In a few words, the kernel's terms.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Host => "the hypervisor or the firmware had the CPU",
            Self::InterruptsOff => "interrupts off",
            Self::PreemptionOff => "preemption off",
            Self::NoPreemption => "kernel code without a preemption point",
            Self::Interrupt => "a hard interrupt",
            Self::Call => "a function called by another CPU (IPI)",
            Self::Softirq => "a softirq",
            Self::Timer => "a kernel timer",
            Self::Nmi => "a non-maskable interrupt",
            Self::Rival => "a thread of the same or a higher priority",
            Self::Throttling => "throttling or the fair server",
            Self::IdleExit => "leaving an idle state",
            Self::Migration => "moving to another CPU",
            Self::PageFault => "a page fault of the thread",
            Self::TimerSlack => "timer slack of the thread",
            Self::Usual => "what each wake-up takes",
            Self::Tracing => "recording the trace",
            Self::Unknown => "not explained",
        }
    }
}

/// An event of the kernel's trace, as kept in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceEvent {
    /// After `due`, in nanoseconds; negative before it.
    pub at: i64,
    /// On which CPU.
    pub cpu: CpuId,
    /// The thread that ran there.
    pub task: i32,
    /// `sched_switch`, ...
    pub name: String,
    /// Its fields that matter, `name=value`.
    pub text: String,
}

impl Hit {
    /// When the thread ran its own code again, on `CLOCK_MONOTONIC`.
    pub fn woke(&self) -> Nanos {
        Nanos(self.due.0.saturating_add(self.latency.0))
    }

    /// What recording the trace took of the latency.
    pub fn recording(&self) -> Nanos {
        let own = self.causes.iter().filter(|cause| cause.role() == Role::Recording);
        own.fold(Nanos::ZERO, |sum, cause| sum + cause.length)
    }

    /// The [`main_cause`] of its own; recording where that took all of it.
    pub fn main_cause(&self) -> Option<&Cause> {
        let of = |cause: &Cause| (cause.length, cause.role());
        main_cause(self.latency, &self.causes, of).or(self.causes.first())
    }
}

impl Cause {
    fn role(&self) -> Role {
        match self.class {
            Class::Tracing => Role::Recording,
            Class::Usual => Role::Usual,
            _ => Role::Delay,
        }
    }
}

/// What a cause is to the wake-up that it was part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is there because the wake-up was recorded.
    Recording,
    /// It is part of each wake-up.
    Usual,
    /// It made this one late.
    Delay,
}

/// Of causes of a late wake-up, the largest first, the first that is a delay and made a tenth of what recording did not make; else
/// the first but recording. `of` says how long a cause took and what it is.
pub fn main_cause<C>(latency: Nanos, causes: &[C], of: impl Fn(&C) -> (Nanos, Role)) -> Option<&C> {
    let others =
        || causes.iter().map(|cause| (cause, of(cause))).filter(|(_, (_, role))| *role != Role::Recording);
    let own = causes.iter().map(&of).filter(|(_, role)| *role == Role::Recording);
    let rest = latency.0.saturating_sub(own.fold(0, |sum, (length, _)| sum + length.0));
    let is_main = |(length, role): (Nanos, Role)| role == Role::Delay && length.0 >= rest / 10;
    let main = others().find(|(_, of)| is_main(*of)).or_else(|| others().next());
    main.map(|(cause, _)| cause)
}
