//! Events of the kernel's trace, as far as they say what a CPU did.

use record::{ThreadState, TraceEvent};
use trace::Symbols;
use units::{CpuId, CpuList, Nanos};

/// An event that an explanation wants.
#[derive(Clone, Copy, Debug)]
pub struct Optional {
    /// `system/name`.
    pub event: &'static str,
    /// What is not seen without it.
    pub without: &'static str,
}

const fn event(event: &'static str, without: &'static str) -> Optional {
    Optional { event, without }
}

/// All of them. Which of them a kernel has differs by version, architecture and configuration.
pub const EVENTS: [Optional; 47] = [
    event("sched/sched_switch", "which thread runs"),
    event("sched/sched_waking", "when and by what threads are woken"),
    event("sched/sched_migrate_task", "threads that move to another CPU"),
    event("sched/sched_stat_runtime", "time that a hypervisor took"),
    event("irq/irq_handler_entry", "interrupts of devices"),
    event("irq/irq_handler_exit", "interrupts of devices"),
    event("irq/softirq_entry", "softirqs"),
    event("irq/softirq_exit", "softirqs"),
    event("irq_vectors/local_timer_entry", "when the timer's interrupt begins"),
    event("irq_vectors/local_timer_exit", "when the timer's interrupt begins"),
    event("irq_vectors/reschedule_entry", "IPIs"),
    event("irq_vectors/reschedule_exit", "IPIs"),
    event("irq_vectors/call_function_entry", "IPIs"),
    event("irq_vectors/call_function_exit", "IPIs"),
    event("irq_vectors/call_function_single_entry", "IPIs"),
    event("irq_vectors/call_function_single_exit", "IPIs"),
    event("irq_vectors/irq_work_entry", "interrupt work"),
    event("irq_vectors/irq_work_exit", "interrupt work"),
    event("irq_vectors/thermal_apic_entry", "thermal interrupts"),
    event("irq_vectors/thermal_apic_exit", "thermal interrupts"),
    event("irq_vectors/error_apic_entry", "APIC errors"),
    event("irq_vectors/error_apic_exit", "APIC errors"),
    event("irq_vectors/spurious_apic_entry", "spurious interrupts"),
    event("irq_vectors/spurious_apic_exit", "spurious interrupts"),
    event("irq_vectors/x86_platform_ipi_entry", "platform IPIs"),
    event("irq_vectors/x86_platform_ipi_exit", "platform IPIs"),
    event("irq_vectors/threshold_apic_entry", "machine-check thresholds"),
    event("irq_vectors/threshold_apic_exit", "machine-check thresholds"),
    event("irq_vectors/deferred_error_apic_entry", "deferred machine-check errors"),
    event("irq_vectors/deferred_error_apic_exit", "deferred machine-check errors"),
    event("ipi/ipi_entry", "IPIs of this architecture"),
    event("ipi/ipi_exit", "IPIs of this architecture"),
    event("ipi/ipi_send_cpu", "who sends IPIs"),
    event("ipi/ipi_send_cpumask", "who sends IPIs"),
    event("csd/csd_queue_cpu", "who calls functions of other CPUs"),
    event("csd/csd_function_entry", "functions called by other CPUs"),
    event("csd/csd_function_exit", "functions called by other CPUs"),
    event("timer/hrtimer_expire_entry", "functions of timers"),
    event("timer/hrtimer_expire_exit", "functions of timers"),
    event("timer/timer_expire_entry", "functions of timers"),
    event("timer/timer_expire_exit", "functions of timers"),
    event("workqueue/workqueue_execute_start", "work items"),
    event("workqueue/workqueue_execute_end", "work items"),
    event("power/cpu_idle", "whether an idle CPU sleeps"),
    event("nmi/nmi_handler", "non-maskable interrupts"),
    event("exceptions/page_fault_user", "page faults"),
    event("exceptions/page_fault_kernel", "page faults"),
];

/// An event, and who ran where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// Where.
    pub cpu: CpuId,
    /// The thread that ran there; 0 is the idle thread.
    pub task: i32,
    /// Whether the scheduler was to choose anew there (`TIF_NEED_RESCHED`), where the event says so.
    pub is_wanted: Option<bool>,
    /// What happened.
    pub kind: Kind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another thread runs from now on.
    Switch {
        /// The one that gave way: id, name, priority.
        previous: Task,
        /// The one that runs.
        next: Task,
    },
    /// A thread is to run.
    Waking(Task),
    /// A thread goes to another CPU.
    Migrate {
        /// Which.
        tid: i32,
        /// From this one.
        from: CpuId,
        /// To this one.
        to: CpuId,
    },
    /// A thread has had so much of the CPU since it was last said.
    Runtime {
        /// Which.
        tid: i32,
        /// How much, by a clock that does not count what a hypervisor took, where the kernel has one.
        length: Nanos,
    },
    /// Something begins on top of what runs.
    Enter(Frame),
    /// It ends.
    Leave(Frame),
    /// The thread that runs has itself woken by a timer: its address, and when it is due, on the timer's own clock.
    Arm {
        /// The timer's address.
        timer: u64,
        /// When.
        due: Nanos,
        /// Until when the thread's timer slack lets it come.
        latest: Nanos,
    },
    /// A non-maskable interrupt was handled, and took so long.
    Nmi {
        /// Its handler.
        handler: String,
        /// How long.
        length: Nanos,
    },
    /// A kworker begins with this function, or ends one.
    Work(Option<String>),
    /// The CPU goes to sleep, or wakes up.
    Sleep(bool),
    /// An IPI is sent.
    Ipi {
        /// To these CPUs.
        to: CpuList,
        /// From this function.
        from: String,
        /// To have this one run.
        function: String,
    },
    /// A function is queued for another CPU to run.
    Queue {
        /// For this CPU.
        cpu: CpuId,
        /// By this function.
        from: String,
        /// Which.
        function: String,
    },
    /// Callers, innermost first: of the event before, on the same CPU.
    Stack(Vec<String>),
    /// What a thread writes into the trace: the measuring one when it was late.
    Mark(String),
    /// A page fault.
    PageFault,
    /// Events were lost before this one.
    Lost,
    /// The kernel records again. Who runs then is the thread that the next event names.
    Resumed,
    /// Anything else: it witnesses who ran.
    Other,
}

/// A thread in an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: Option<i32>,
    /// Of one that gives way; none where the event does not say it.
    pub state: Option<ThreadState>,
}

/// What runs on top of a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frame {
    /// An interrupt's vector or an IPI.
    Vector(String),
    /// The handler of a device's interrupt; its number.
    Handler(String, i64),
    /// A softirq.
    Softirq(String),
    /// A timer's function; the timer's address, which alone its end names.
    Timer(String, u64),
    /// A function that another CPU called.
    Call(String),
}

impl Frame {
    /// Whether `end` ends this one: ends of handlers and timers have no name.
    pub fn ends_by(&self, end: &Self) -> bool {
        match (self, end) {
            (Self::Handler(_, number), Self::Handler(_, other)) => number == other,
            (Self::Timer(_, address), Self::Timer(_, other)) => address == other,
            (Self::Call(_), Self::Call(_)) => true,
            (one, other) => one == other,
        }
    }
}

/// Softirqs by number (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Event {
    /// What an explanation wants to know of an event.
    pub fn of(event: &trace::Event<'_>, symbols: &Symbols) -> Self {
        const NEED_RESCHED: u64 = 0x04; // TRACE_FLAG_NEED_RESCHED (include/linux/trace_events.h)
        let is_wanted = event.unsigned("common_flags").map(|flags| flags & NEED_RESCHED != 0);
        let kind = kind(event, symbols);
        Self { at: event.time, cpu: event.cpu, task: event.task, is_wanted, kind }
    }

    /// As a record keeps it, at its distance from `due`.
    pub fn kept(&self, due: Nanos) -> TraceEvent {
        let at = i128::from(self.at.0) - i128::from(due.0);
        let (name, text) = self.kind.words();
        TraceEvent {
            at: i64::try_from(at).unwrap_or(if at < 0 { i64::MIN } else { i64::MAX }),
            cpu: self.cpu,
            task: self.task,
            name: name.to_owned(),
            text,
        }
    }
}

fn kind(event: &trace::Event<'_>, symbols: &Symbols) -> Kind {
    let name = event.name();
    let id = |field: &str| event.signed(field).and_then(|id| i32::try_from(id).ok());
    let text = |field: &str| event.text(field).map(|text| text.trim_end().to_owned()).unwrap_or_default();
    let function =
        |field: &str| event.function(field, symbols).map(|name| name.into_owned()).unwrap_or_default();
    let cpu = |field: &str| event.unsigned(field).and_then(|cpu| u32::try_from(cpu).ok()).map(CpuId);
    let time = |field: &str| Nanos(event.unsigned(field).unwrap_or_default());
    let address = |field: &str| event.unsigned(field).unwrap_or_default();
    let softirq = || {
        let number = event.unsigned("vec").and_then(|vec| usize::try_from(vec).ok());
        let name = number.and_then(|number| SOFTIRQS.get(number).copied());
        Frame::Softirq(name.unwrap_or("?").to_owned())
    };
    let thread = |which: &str| {
        let field = |what: &str| format!("{which}_{what}");
        let state = if which == "prev" { state(event) } else { None };
        Some(Task {
            tid: id(&field("pid"))?,
            name: text(&field("comm")),
            priority: id(&field("prio")),
            state,
        })
    };
    let known = match name {
        "sched_switch" => {
            thread("prev").zip(thread("next")).map(|(previous, next)| Kind::Switch { previous, next })
        }
        "sched_waking" => {
            let of = |tid| Task { tid, name: text("comm"), priority: id("prio"), state: None };
            id("pid").map(|tid| Kind::Waking(of(tid)))
        }
        "sched_migrate_task" => {
            let (from, to) = (cpu("orig_cpu"), cpu("dest_cpu"));
            id("pid").zip(from.zip(to)).map(|(tid, (from, to))| Kind::Migrate { tid, from, to })
        }
        "sched_stat_runtime" => id("pid").map(|tid| Kind::Runtime { tid, length: time("runtime") }),
        "irq_handler_entry" => {
            Some(Kind::Enter(Frame::Handler(text("name"), event.signed("irq").unwrap_or(-1))))
        }
        "irq_handler_exit" => {
            Some(Kind::Leave(Frame::Handler(String::new(), event.signed("irq").unwrap_or(-1))))
        }
        "softirq_entry" => Some(Kind::Enter(softirq())),
        "softirq_exit" => Some(Kind::Leave(softirq())),
        "hrtimer_expire_entry" => Some(Kind::Enter(Frame::Timer(function("function"), address("hrtimer")))),
        "hrtimer_expire_exit" => Some(Kind::Leave(Frame::Timer(String::new(), address("hrtimer")))),
        "hrtimer_start" => wakes_its_owner(&function("function"))
            .then(|| armed(address("hrtimer"), time("softexpires"), time("expires"))),
        "timer_expire_entry" => Some(Kind::Enter(Frame::Timer(function("function"), address("timer")))),
        "timer_expire_exit" => Some(Kind::Leave(Frame::Timer(String::new(), address("timer")))),
        "csd_function_entry" => Some(Kind::Enter(Frame::Call(function("func")))),
        "csd_function_exit" => Some(Kind::Leave(Frame::Call(String::new()))),
        "workqueue_execute_start" => Some(Kind::Work(Some(function("function")))),
        "workqueue_execute_end" => Some(Kind::Work(None)),
        "cpu_idle" => Some(Kind::Sleep(event.unsigned("state") != Some(u64::from(u32::MAX)))),
        "nmi_handler" => Some(Kind::Nmi { handler: function("handler"), length: time("delta_ns") }),
        "csd_queue_cpu" => {
            cpu("cpu").map(|cpu| Kind::Queue { cpu, from: function("callsite"), function: function("func") })
        }
        "ipi_send_cpu" => Some(Kind::Ipi {
            to: cpu("cpu").into_iter().collect(),
            from: function("callsite"),
            function: function("callback"),
        }),
        "ipi_send_cpumask" => Some(Kind::Ipi {
            to: event.cpus("cpumask").unwrap_or_default(),
            from: function("callsite"),
            function: function("callback"),
        }),
        "ipi_entry" => Some(Kind::Enter(Frame::Vector("ipi".to_owned()))),
        "ipi_exit" => Some(Kind::Leave(Frame::Vector("ipi".to_owned()))),
        "kernel_stack" => Some(Kind::Stack(callers(event, symbols))),
        "print" => Some(Kind::Mark(event.text("buf").unwrap_or_default().into_owned())),
        "page_fault_user" | "page_fault_kernel" => Some(Kind::PageFault),
        _ => vector(name),
    };
    known.unwrap_or(Kind::Other)
}

fn armed(timer: u64, due: Nanos, latest: Nanos) -> Kind {
    Kind::Arm { timer, due, latest }
}

/// Callers of a stack, innermost first: by name, or by address where it has none.
fn callers(event: &trace::Event<'_>, symbols: &Symbols) -> Vec<String> {
    let name = |address| {
        symbols.function(address).map_or_else(|| format!("{address:#x}"), |(name, _)| name.to_owned())
    };
    event.addresses("caller").into_iter().map(name).collect()
}

fn state(event: &trace::Event<'_>) -> Option<ThreadState> {
    match event.value("prev_state") {
        Some(trace::Value::Text(text)) => text.trim().parse().ok(),
        _ => event.unsigned("prev_state").map(ThreadState::of_bits),
    }
}

/// Whether it is the function of a timer that a thread sets to have itself woken: sleeps and timeouts, and timerlat's.
pub(crate) fn wakes_its_owner(function: &str) -> bool {
    matches!(function, "hrtimer_wakeup" | "timerlat_irq")
}

/// `local_timer_entry`, `call_function_single_exit`, ...
fn vector(name: &str) -> Option<Kind> {
    const VECTORS: [&str; 11] = [
        "local_timer",
        "reschedule",
        "call_function",
        "call_function_single",
        "irq_work",
        "thermal_apic",
        "error_apic",
        "spurious_apic",
        "x86_platform_ipi",
        "threshold_apic",
        "deferred_error_apic",
    ];
    let known = |name: &str| VECTORS.contains(&name).then(|| Frame::Vector(name.to_owned()));
    let enters = name.strip_suffix("_entry").and_then(known).map(Kind::Enter);
    enters.or_else(|| name.strip_suffix("_exit").and_then(known).map(Kind::Leave))
}

impl Kind {
    /// Its name, and what it says.
    fn words(&self) -> (&'static str, String) {
        match self {
            Self::Switch { previous, next } => {
                ("switch", format!("{} -> {}", previous.words(), next.words()))
            }
            Self::Waking(task) => ("waking", task.words()),
            Self::Migrate { tid, from, to } => ("migrate", format!("{tid} from {from} to {to}")),
            Self::Runtime { tid, length } => ("runtime", format!("{tid} {}", length.0)),
            Self::Enter(frame) => ("enter", frame.to_string()),
            Self::Leave(frame) => ("leave", frame.to_string()),
            Self::Arm { due, .. } => ("arm", due.0.to_string()),
            Self::Nmi { handler, length } => ("nmi", format!("{handler} {}", length.0)),
            Self::Work(function) => ("work", function.clone().unwrap_or_default()),
            Self::Sleep(begins) => ("idle", if *begins { "sleeps" } else { "wakes up" }.to_owned()),
            Self::Ipi { to, from, function } => ("ipi", format!("to {to} from {from} for {function}")),
            Self::Queue { cpu, from, function } => ("queue", format!("to {cpu} from {from} for {function}")),
            Self::Stack(callers) => ("stack", callers.join(" < ")),
            Self::Mark(_) => ("mark", String::new()),
            Self::PageFault => ("page-fault", String::new()),
            Self::Lost => ("lost", String::new()),
            Self::Resumed => ("resumed", String::new()),
            Self::Other => ("other", String::new()),
        }
    }
}

impl Task {
    fn words(&self) -> String {
        let priority = self.priority.map_or(String::new(), |priority| format!(" priority {priority}"));
        let state = self.state.map_or(String::new(), |state| format!(" state {state}"));
        format!("{} [{}]{priority}{state}", self.name, self.tid)
    }
}

impl std::fmt::Display for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vector(name) => write!(f, "interrupt {name}"),
            Self::Handler(name, number) => write!(f, "interrupt {number} {name}"),
            Self::Softirq(name) => write!(f, "softirq {name}"),
            Self::Timer(function, _) => write!(f, "timer {function}"),
            Self::Call(function) => write!(f, "call {function}"),
        }
    }
}
