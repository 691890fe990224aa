//! What the kernel's trace said of a late wake-up, beside what its instructions were.

use std::collections::HashMap;

use record::{Activity, Cause as TraceCause, Class, Hit, Role};
use serde::Serialize;
use units::{InOrder, Nanos};

use crate::account::{Account, Cause, Playback};
use crate::context::Context;
use crate::machine::begins;
use crate::stream::{Stream, Window};
use crate::symbols::Symbols;

/// Events are recorded a way before or behind what they report: on the way into an interrupt and out of it, and before a switch that
/// takes a thousand instructions more. A piece that is shorter than this may lie wholly on such a way.
pub const SHORT: Nanos = Nanos(2_000);

/// So far from the beginning or the end of a piece its event may be from what it reports.
const EDGE: u64 = 1_000;

/// Beginnings of names of functions that record the trace.
const RECORDING: [&str; 11] = [
    "__ftrace_",
    "__trace_",
    "__traceiter_",
    "arch_stack_walk",
    "ftrace_",
    "ring_buffer_",
    "rb_",
    "stack_trace_",
    "trace_",
    "tracing_",
    "unwind_",
];

/// The functions by which softirqs are known, on kernels of several versions (include/linux/interrupt.h).
const SOFTIRQS: [(&str, &[&str]); 10] = [
    ("HI", &["tasklet_hi_action"]),
    ("TIMER", &["run_timer_softirq"]),
    ("NET_TX", &["net_tx_action"]),
    ("NET_RX", &["net_rx_action"]),
    ("BLOCK", &["blk_done_softirq"]),
    ("IRQ_POLL", &["irq_poll_softirq"]),
    ("TASKLET", &["tasklet_action"]),
    ("SCHED", &["run_rebalance_domains", "sched_balance_softirq"]),
    ("HRTIMER", &["hrtimer_run_softirq"]),
    ("RCU", &["rcu_core", "rcu_core_si"]),
];

/// What calls the functions of softirqs.
const SERVE_SOFTIRQS: [&str; 2] = ["__do_softirq", "handle_softirqs"];

/// A late wake-up by its trace and by its instructions. `same`, `edges`, `recording`, `unknown` and `other` sum to the latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// How late it was.
    pub latency: Nanos,
    /// The main cause by the trace: the largest that is not part of each wake-up.
    pub by_trace: Named,
    /// The main cause by instructions, without those that recorded the trace. What the trace's cannot tell apart counts as one; the
    /// largest of them is named.
    pub by_instructions: Named,
    /// Whether these are the same thing by class and culprit.
    pub agrees: bool,
    /// Time in which the trace names what ran.
    pub same: Nanos,
    /// Time in which the piece beside names what ran, up to a thousand instructions from it: an event came too early or too late.
    pub edges: Nanos,
    /// Time in which the trace was recorded, whatever it names.
    pub recording: Nanos,
    /// Time in which the trace, or the microscope, does not know what ran.
    pub unknown: Nanos,
    /// Time in which the trace names something that did not run.
    pub other: Nanos,
    /// Pieces of the trace's account with [`SHORT`] or more that name something.
    pub pieces: u32,
    /// Those of them that name something that did not run for most of their time, recording left out.
    pub contradicted: Vec<Contradiction>,
    /// Readings of the guest's clock within the latency that lie where the count of instructions says, and all of them.
    pub readings: (u32, u32),
}

impl Comparison {
    /// What is above `median`, that of wake-ups that were not traced, without what recorded the trace.
    pub fn above(&self, median: Nanos) -> Nanos {
        Nanos(self.latency.0.saturating_sub(median.0).saturating_sub(self.recording.0))
    }

    /// How much of that the trace names rightly. All that it does not know or names wrongly counts as above the median.
    pub fn named_above(&self, median: Nanos) -> Nanos {
        let missing = self.unknown.0.saturating_add(self.other.0);
        Nanos(self.above(median).0.saturating_sub(missing))
    }
}

/// A cause in few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The sort.
    pub class: Class,
    /// Thread, function, interrupt.
    pub culprit: String,
    /// How long.
    pub length: Nanos,
}

/// A piece of the trace's account that the instructions contradict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// When it begins, after the wake-up was due.
    pub at: Nanos,
    /// How long it is.
    pub length: Nanos,
    /// What the trace names.
    pub by_trace: String,
    /// Where most of the time was instead: the context and the function.
    pub by_instructions: String,
}

/// The account of `window`, one of `stream`'s, beside the trace's of the same wake-up.
pub fn compare(stream: &Stream, window: &Window, symbols: &Symbols, hit: &Hit) -> Comparison {
    let playback = Playback::new(stream, window, symbols);
    let pieces = pieces(hit);
    let mut found: Vec<Found> = pieces.iter().map(|_| Found::default()).collect();
    let mut place = 0;
    playback.each(|from, length, context, path| {
        let (mut at, end) = (from, from + length);
        while at < end {
            while place + 1 < pieces.len() && pieces[place].end <= at {
                place += 1;
            }
            let Some((piece, found)) = pieces.get(place).zip(found.get_mut(place)) else { return };
            let until = end.min(piece.end);
            let at_edge = |place: Option<usize>, time: std::ops::Range<u64>| {
                let is_it = place.and_then(|place| pieces.get(place));
                let is_it = is_it.is_some_and(|beside| is_named(beside.activity, context, path));
                if is_it { until.min(time.end).saturating_sub(at.max(time.start)) } else { 0 }
            };
            let edge = at_edge(place.checked_sub(1), piece.from..piece.from.saturating_add(EDGE))
                + at_edge(Some(place + 1), piece.end.saturating_sub(EDGE)..piece.end);
            found.add(piece.activity, context, path, until - at, edge);
            at = until;
        }
    });
    let sum = |of: fn(&Found) -> u64| Nanos(found.iter().map(of).sum());
    let judged = || pieces.iter().zip(&found).filter(|(piece, _)| piece.is_judged());
    let contradicted = judged().filter_map(|(piece, found)| found.contradicts(piece)).collect();
    let account = playback.account();
    let by_trace = hit.main_cause();
    let by_instructions = main_cause(&account, by_trace.map(|cause| cause.class));
    Comparison {
        latency: hit.latency,
        agrees: by_trace.zip(by_instructions).is_some_and(|(trace, seen)| is_same(trace, seen)),
        by_trace: by_trace.map_or_else(Named::nothing, |cause| Named {
            class: cause.class,
            culprit: cause.culprit.clone(),
            length: cause.length,
        }),
        by_instructions: by_instructions.map_or_else(Named::nothing, |cause| Named {
            class: cause.class,
            culprit: format!("{} in {}", cause.culprit(), name(&cause.context)),
            length: cause.length,
        }),
        same: sum(|found| found.same),
        edges: sum(|found| found.edges),
        recording: sum(|found| found.recording),
        unknown: sum(|found| found.unknown),
        other: sum(|found| found.other),
        pieces: judged().count() as u32,
        contradicted,
        readings: account.readings,
    }
}

impl Named {
    fn nothing() -> Self {
        Self { class: Class::Unknown, culprit: String::new(), length: Nanos::ZERO }
    }
}

/// A piece of the trace's account, in nanoseconds after the wake-up was due.
struct Piece<'a> {
    from: u64,
    end: u64,
    activity: &'a Activity,
}

impl Piece<'_> {
    fn is_judged(&self) -> bool {
        self.end - self.from >= SHORT.0 && !matches!(self.activity, Activity::Unknown { .. })
    }
}

/// What no piece reaches is not known: a record may have been edited.
static NOT_SAID: Activity = Activity::Unknown { why: String::new() };

fn pieces(hit: &Hit) -> Vec<Piece<'_>> {
    let mut end = 0_u64;
    let mut until = |length: u64| {
        let from = end;
        end = end.saturating_add(length);
        (from, end)
    };
    let piece = |piece| {
        let record::Piece { length, activity, .. }: &record::Piece = piece;
        let (from, end) = until(length.0);
        Piece { from, end, activity }
    };
    let mut pieces: Vec<Piece<'_>> = hit.pieces.iter().map(piece).collect();
    pieces.push(Piece { from: end, end: u64::MAX, activity: &NOT_SAID });
    pieces
}

/// What ran during a piece.
#[derive(Default)]
struct Found {
    same: u64,
    edges: u64,
    recording: u64,
    unknown: u64,
    other: u64,
    /// What it was instead, and for how long.
    instead: HashMap<String, u64>,
}

impl Found {
    /// Of the length so much is near a piece that names it.
    fn add(&mut self, activity: &Activity, context: &Context, path: &[String], length: u64, edge: u64) {
        let records = path.iter().skip(1).any(|function| begins(function, &RECORDING));
        let of = match activity {
            _ if records => &mut self.recording,
            Activity::Unknown { .. } => &mut self.unknown,
            _ if *context == Context::NotRecorded => &mut self.unknown,
            _ if is_named(activity, context, path) => &mut self.same,
            // The way into a stack's recording and out of it.
            Activity::Tracing => &mut self.recording,
            _ => return self.add_other(context, path, length, edge.min(length)),
        };
        *of += length;
    }

    fn add_other(&mut self, context: &Context, path: &[String], length: u64, edge: u64) {
        self.edges += edge;
        self.other += length - edge;
        if length > edge {
            let function = path.last().map_or("", String::as_str);
            *self.instead.entry(format!("{function} in {}", name(context))).or_default() += length - edge;
        }
    }

    fn contradicts(&self, piece: &Piece<'_>) -> Option<Contradiction> {
        // Less than that lies on the way to an event: a softirq wakes up the next one's thread behind its own.
        if self.other <= self.same + self.edges || self.other < SHORT.0 {
            return None;
        }
        let most = self.instead.iter().max_by_key(|(name, length)| (**length, std::cmp::Reverse(*name)));
        Some(Contradiction {
            at: Nanos(piece.from),
            length: Nanos(piece.end - piece.from),
            by_trace: piece.activity.words(),
            by_instructions: most.map_or_else(String::new, |(name, _)| name.clone()),
        })
    }
}

/// Whether what the trace names is what ran.
fn is_named(activity: &Activity, context: &Context, path: &[String]) -> bool {
    let calls = |function: &str| path.iter().skip(1).any(|called| called == function);
    match activity {
        Activity::Idle { .. } => is_idle(context),
        Activity::Thread { name, .. } => thread(context) == Some(name),
        Activity::Nmi { .. } => *context == Context::Nmi,
        Activity::Interrupt { .. } => matches!(context, Context::Interrupt { .. }),
        Activity::Softirq { name } => *context == Context::Softirq || is_softirq(name, path),
        Activity::Timer { function } | Activity::Call { function } => calls(function),
        Activity::Tracing | Activity::Unknown { .. } => false,
    }
}

fn is_idle(context: &Context) -> bool {
    *context == Context::Halted || thread(context).is_some_and(|name| name.starts_with("swapper/"))
}

fn thread(context: &Context) -> Option<&String> {
    match context {
        Context::Thread { name } | Context::Program { name } => Some(name),
        _ => None,
    }
}

fn is_softirq(name: &str, path: &[String]) -> bool {
    let calls = |functions: &[&str]| path.iter().any(|called| functions.contains(&called.as_str()));
    let mut known = SOFTIRQS.iter().filter(|(_, functions)| calls(functions)).peekable();
    match known.peek() {
        Some(_) => known.any(|(known, _)| *known == name),
        // Between the event and the softirq's own function.
        None => calls(&SERVE_SOFTIRQS),
    }
}

/// Where the kernel's code is not preempted anyway, no event shows whether the count forbade it too, or interrupts were off.
const NOT_PREEMPTED: [Class; 3] = [Class::NoPreemption, Class::PreemptionOff, Class::InterruptsOff];

/// The one that [`Hit::main_cause`] would take, which took `by_trace`.
fn main_cause(account: &Account, by_trace: Option<Class>) -> Option<&Cause> {
    let is_alike = |one: &Cause, other: &Cause| {
        let are_not_preempted = [one, other].iter().all(|cause| NOT_PREEMPTED.contains(&cause.class));
        by_trace == Some(Class::NoPreemption) && are_not_preempted && one.context == other.context
    };
    let length = |cause: &Cause| {
        let alike = account.causes.iter().filter(|other| {
            std::ptr::eq(cause, *other) || is_alike(cause, other) && role(cause) == role(other)
        });
        alike.fold(Nanos::ZERO, |sum, cause| sum + cause.length)
    };
    let mut causes: Vec<&Cause> = account.causes.iter().collect();
    causes.order_by_key(|cause| std::cmp::Reverse((length(cause), cause.length)));
    record::main_cause(account.latency, &causes, |cause| (length(cause), role(cause))).copied()
}

/// What the instructions of a cause are to the wake-up, as a class says it of the trace's.
fn role(cause: &Cause) -> Role {
    if cause.path.iter().any(|function| begins(function, &RECORDING)) {
        Role::Recording
    } else if is_usual(cause) {
        Role::Usual
    } else {
        Role::Delay
    }
}

/// Part of each wake-up.
fn is_usual(cause: &Cause) -> bool {
    cause.class == Class::Usual
}

/// Whether both are the same thing.
fn is_same(trace: &TraceCause, seen: &Cause) -> bool {
    let culprit = trace.culprit.as_str();
    let calls = |function: &str| seen.path.iter().any(|called| called == function);
    // `F in THREAD [7]`, or `THREAD [7]`.
    let (function, of) =
        culprit.split_once(" in ").map_or((None, culprit), |(function, of)| (Some(function), of));
    let of = of.rsplit_once(" [").map_or(of, |(name, _)| name);
    let is_its_thread = || thread(&seen.context).is_some_and(|name| name == of);
    let is_it =
        || is_its_thread() && function.is_none_or(|function| is_entered(function, seen) || calls(function));
    match trace.class {
        Class::Usual => is_usual(seen),
        Class::Rival => seen.class == Class::Rival && is_its_thread(),
        Class::InterruptsOff | Class::PreemptionOff => seen.class == trace.class && is_it(),
        Class::NoPreemption => NOT_PREEMPTED.contains(&seen.class) && is_it(),
        Class::Softirq => is_softirq(culprit, &seen.path),
        Class::Timer | Class::Call => calls(culprit),
        Class::IdleExit => is_idle(&seen.context),
        Class::Interrupt | Class::Nmi | Class::PageFault => seen.class == trace.class,
        Class::Host
        | Class::Throttling
        | Class::Migration
        | Class::TimerSlack
        | Class::Tracing
        | Class::Unknown => false,
    }
}

/// What the trace says where a stack had no callers.
const ANY_CALL: &str = "a system call";
const ANY_CODE: &str = "the kernel";
/// What system calls come by.
const CALLS: [&str; 3] = ["do_syscall_64", "el0_svc", "invoke_syscall"];

fn is_entered(function: &str, seen: &Cause) -> bool {
    match function {
        ANY_CALL => seen.path.iter().any(|called| CALLS.contains(&called.as_str())),
        ANY_CODE => matches!(seen.context, Context::Thread { .. }),
        _ => false,
    }
}

fn name(context: &Context) -> &str {
    match context {
        Context::Halted => "halt",
        Context::Nmi => "NMI",
        Context::Interrupt { name } | Context::Thread { name } | Context::Program { name } => name,
        Context::Softirq => "softirq",
        Context::NotRecorded => "what is not recorded",
    }
}
