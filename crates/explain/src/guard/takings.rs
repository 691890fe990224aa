//! What took the CPU from a thread, one after the other.

use std::collections::BTreeMap;

use trace::{Symbols, Value};
use units::{CpuId, Nanos};

use crate::event::{Event, Frame, Kind, Task};

/// Functions of the tick's timer, by which no interrupt is named.
const TICK: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

/// What took the CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Another thread: its name and id.
    Thread(String, i32),
    /// No thread, though this one was ready: the kernel throttled it.
    Throttled,
    /// A system call of the thread itself, by its number, and whether it slept in it.
    Call(i64, bool),
    /// A page fault. Its end is in no trace: a length is that of its sleep, if there was one.
    Fault,
    /// It slept, outside of system calls and page faults that the trace has.
    Asleep,
    /// An interrupt, and what it did where that is known.
    Interrupt(String),
    /// A softirq on the interrupted thread.
    Softirq(String),
    /// A non-maskable interrupt.
    Nmi(String),
    /// Something whose beginning is not in the trace.
    Unseen,
    /// It was not on the CPU when the looking began, and from then on.
    Before,
}

/// Something that took the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    /// From the thread at this place of those that are watched.
    pub core: usize,
    /// From when.
    pub from: Nanos,
    /// Until when.
    pub to: Nanos,
    /// What of it is its own: without what came on top of it.
    pub own: Nanos,
    /// What.
    pub what: What,
}

/// Something that has begun.
#[derive(Debug)]
struct Open {
    what: What,
    since: Nanos,
    others: u64,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Thread {
    tid: i32,
    /// Where it ran last.
    cpu: Option<CpuId>,
    /// Whether it is on the CPU; none while that is unknown.
    runs: Option<bool>,
    /// Whether it waits for nothing.
    ready: bool,
    /// Whether an event named it.
    is_seen: bool,
    open: Vec<Open>,
    /// When its last page fault was, if nothing came after it.
    fault: Option<Nanos>,
}

/// Plays the events of all CPUs back, in order of time, for some threads.
#[derive(Debug, Default)]
pub struct Takings {
    threads: Vec<Thread>,
    /// When the looking began.
    began: Nanos,
    /// Who runs on a CPU.
    running: BTreeMap<CpuId, Task>,
    /// Names of system calls, by number.
    calls: BTreeMap<i64, String>,
    done: Vec<Taking>,
    /// The last event of each CPU, and since when events are missing there.
    last: BTreeMap<CpuId, Nanos>,
    missing: BTreeMap<CpuId, Nanos>,
    gaps: Vec<(CpuId, Nanos, Nanos)>,
    unseen: u64,
}

impl Takings {
    /// Of these threads.
    pub fn of(tids: &[i32]) -> Self {
        let threads = tids.iter().map(|tid| Thread { tid: *tid, ..Thread::default() }).collect();
        Self { threads, ..Self::default() }
    }

    /// The looking begins.
    pub fn begin(&mut self, at: Nanos) {
        self.began = at;
    }

    /// The looking ends: what has no end yet is counted up to now. A thread that no event named was off the CPU all the time if
    /// `is_off` says so; else it ran.
    pub fn finish(&mut self, at: Nanos, is_off: impl Fn(i32) -> bool) {
        for core in 0..self.threads.len() {
            let Thread { tid, is_seen, runs, .. } = self.threads[core];
            if !is_seen && is_off(tid) {
                self.push_before(core, at);
            }
            // What was on top of a thread when its events were lost is not known.
            while runs.is_some() && !self.threads[core].open.is_empty() {
                self.end_at(core, at, |_| true);
            }
        }
    }

    fn push_before(&mut self, core: usize, at: Nanos) {
        let (from, own) = (self.began, Nanos(at.0.saturating_sub(self.began.0)));
        self.done.push(Taking { core, from, to: at, own, what: What::Before });
    }

    /// Whether a thread ran on a CPU last.
    pub fn is_on(&self, cpu: CpuId) -> bool {
        self.threads.iter().any(|thread| thread.cpu == Some(cpu))
    }

    /// Goes on by one event.
    pub fn see(&mut self, event: &trace::Event<'_>, symbols: &Symbols) {
        let name = event.name();
        let (at, cpu) = (event.time, event.cpu);
        self.last.insert(cpu, at);
        if let Some(from) = self.missing.remove(&cpu) {
            self.gaps.push((cpu, from, at));
        }
        if let Some((call, number)) = name.strip_prefix("sys_enter_").zip(event.signed("__syscall_nr")) {
            self.calls.entry(number).or_insert_with(|| call.to_owned());
            return;
        }
        let is_switch = name == "sched_switch";
        self.place(event.task, cpu, at, is_switch);
        match name {
            "sys_enter" => {
                let number = event.signed("id").unwrap_or(-1);
                self.on_thread(event.task, |thread, _| {
                    // One that never returns, as rt_sigreturn, has no end.
                    thread.forget_call();
                    thread.begin(What::Call(number, false), at);
                });
            }
            "sys_exit" => self.end(event.task, at, |what| matches!(what, What::Call(..))),
            "sched_migrate_task" => {
                let number = |field| event.signed(field).and_then(|number| i32::try_from(number).ok());
                if let Some((tid, cpu)) = number("pid").zip(number("dest_cpu")) {
                    self.migrate(tid, u32::try_from(cpu).ok().map(CpuId), at);
                }
            }
            _ => {
                let known = Event::of(event, symbols);
                let slept = is_switch && sleeps(event);
                self.see_kind(known, slept);
            }
        }
    }

    fn see_kind(&mut self, Event { at, cpu, task, kind, .. }: Event, slept: bool) {
        match kind {
            Kind::Switch { previous, next } => self.switch(cpu, at, (previous, slept), next),
            Kind::Waking(woken) => self.wake(woken.tid, at),
            Kind::PageFault => {
                let on = |thread: &mut Thread, done: &mut Vec<(Nanos, Nanos, u64, What)>| {
                    thread.fault = Some(at);
                    done.push((at, at, 0, What::Fault));
                };
                self.on_thread(task, on);
            }
            Kind::Nmi { handler, length } => {
                let on = |thread: &mut Thread, done: &mut Vec<(Nanos, Nanos, u64, What)>| {
                    if let Some(below) = thread.open.last_mut() {
                        below.others += length.0;
                    }
                    done.push((Nanos(at.0.saturating_sub(length.0)), at, length.0, What::Nmi(handler)));
                };
                self.on_thread(task, on);
            }
            Kind::Enter(frame) => self.enter(task, at, frame),
            Kind::Leave(frame) => match what_of(&frame) {
                Some(What::Interrupt(name)) if matches!(frame, Frame::Handler(..)) => {
                    self.end(task, at, |what| matches!(what, What::Interrupt(own) if number_of(own) == name));
                }
                Some(end) => self.end(task, at, |what| is_same(what, &end)),
                None => {}
            },
            _ => {}
        }
    }

    /// Something begins on top of a thread, or says what the interrupt on top of it does.
    fn enter(&mut self, task: i32, at: Nanos, frame: Frame) {
        let begun = what_of(&frame);
        self.on_thread(task, |thread, _| match (begun, frame) {
            (Some(what), _) => thread.begin(what, at),
            (None, Frame::Timer(function, _) | Frame::Call(function)) if !TICK.contains(&&*function) => {
                let Some(Open { what: What::Interrupt(name) | What::Softirq(name), .. }) =
                    thread.open.last_mut()
                else {
                    return;
                };
                if !function.is_empty() && !name.contains('(') {
                    name.push_str(&format!(" ({function})"));
                }
            }
            _ => {}
        });
    }

    /// Where the threads are, as far as an event says it by naming who ran.
    fn place(&mut self, task: i32, cpu: CpuId, at: Nanos, is_switch: bool) {
        for core in 0..self.threads.len() {
            let thread = &mut self.threads[core];
            if thread.tid == task {
                // It is back, and the switch to it is missing; or this is the first that is seen of it.
                if thread.runs == Some(false) {
                    self.unseen += 1;
                    self.back(core, at);
                }
                let thread = &mut self.threads[core];
                (thread.cpu, thread.runs, thread.ready) = (Some(cpu), Some(true), true);
                thread.is_seen = true;
            } else if thread.runs == Some(true) && thread.cpu == Some(cpu) && !is_switch {
                // Another one runs where this one was: the switch is missing.
                self.unseen += 1;
                thread.runs = Some(false);
                thread.begin(What::Unseen, at);
            }
        }
    }

    fn switch(&mut self, cpu: CpuId, at: Nanos, (previous, slept): (Task, bool), next: Task) {
        for core in 0..self.threads.len() {
            let thread = &mut self.threads[core];
            thread.rename(&previous);
            if thread.tid == previous.tid {
                if thread.runs == Some(false) {
                    self.unseen += 1;
                    self.back(core, at);
                }
                let thread = &mut self.threads[core];
                (thread.runs, thread.ready, thread.is_seen) = (Some(false), !slept, true);
                let call = thread.open.iter_mut().rfind(|open| matches!(open.what, What::Call(..)));
                match (slept, call) {
                    (false, _) => thread.begin(other(&next), at),
                    (true, Some(Open { what: What::Call(_, slept), .. })) => *slept = true,
                    (true, _) => {
                        let fault = thread.fault.take();
                        let what = if fault.is_some() { What::Fault } else { What::Asleep };
                        thread.begin(what, fault.unwrap_or(at));
                    }
                }
            } else if thread.tid == next.tid {
                if thread.runs == Some(false) {
                    self.back(core, at);
                } else if !thread.is_seen {
                    self.push_before(core, at);
                }
                let thread = &mut self.threads[core];
                (thread.cpu, thread.runs, thread.ready) = (Some(cpu), Some(true), true);
                thread.is_seen = true;
            } else if thread.runs == Some(false) && thread.cpu == Some(cpu) && thread.ready {
                self.end_at(core, at, is_other);
                self.threads[core].begin(other(&next), at);
            } else if thread.runs == Some(true) && thread.cpu == Some(cpu) {
                // Two others change places where this one ran.
                self.unseen += 1;
                thread.runs = Some(false);
                thread.begin(What::Unseen, at);
            }
        }
        self.running.insert(cpu, next);
    }

    /// A thread that slept is ready: from now on it waits for who runs where it ran.
    fn wake(&mut self, tid: i32, at: Nanos) {
        for thread in self.threads.iter_mut().filter(|thread| thread.tid == tid) {
            let runs = thread.cpu.and_then(|cpu| self.running.get(&cpu));
            if thread.runs == Some(false) && !thread.ready {
                thread.ready = true;
                if let Some(task) = runs.filter(|task| task.tid != 0) {
                    thread.begin(other(task), at);
                }
            }
        }
    }

    /// A thread that does not run goes to another CPU: from now on it waits for who runs there.
    fn migrate(&mut self, tid: i32, cpu: Option<CpuId>, at: Nanos) {
        for core in 0..self.threads.len() {
            if self.threads[core].tid != tid || self.threads[core].runs != Some(false) {
                continue;
            }
            self.end_at(core, at, is_other);
            let there = cpu.and_then(|cpu| self.running.get(&cpu)).filter(|task| task.tid != 0).map(other);
            let thread = &mut self.threads[core];
            thread.cpu = cpu;
            if let Some(other) = there.filter(|_| thread.ready) {
                thread.begin(other, at);
            }
        }
    }

    /// A thread has its CPU again: who had it, and a sleep outside of system calls, are over.
    fn back(&mut self, core: usize, at: Nanos) {
        self.end_at(core, at, is_other);
        self.end_at(core, at, |what| matches!(what, What::Fault | What::Asleep | What::Unseen));
    }

    fn on_thread(&mut self, tid: i32, work: impl FnOnce(&mut Thread, &mut Vec<(Nanos, Nanos, u64, What)>)) {
        let found = self.threads.iter_mut().enumerate().find(|(_, thread)| thread.tid == tid);
        let Some((core, thread)) = found.filter(|(_, thread)| thread.runs == Some(true)) else { return };
        thread.fault = None;
        let mut done = Vec::new();
        work(thread, &mut done);
        let taking = |(from, to, own, what)| Taking { core, from, to, own: Nanos(own), what };
        self.done.extend(done.into_iter().map(taking));
    }

    fn end(&mut self, tid: i32, at: Nanos, is_it: impl Fn(&What) -> bool) {
        if let Some(core) = self.threads.iter().position(|thread| thread.tid == tid) {
            self.end_at(core, at, is_it);
        }
    }

    /// Ends the innermost that `is_it`; what began on top of it and has no end is not counted.
    fn end_at(&mut self, core: usize, at: Nanos, is_it: impl Fn(&What) -> bool) {
        let thread = &mut self.threads[core];
        thread.fault = None;
        let Some(place) = thread.open.iter().rposition(|open| is_it(&open.what)) else { return };
        let mut ended = thread.open.split_off(place);
        let Open { what, since, others } = ended.swap_remove(0);
        // What ended on top of what is not counted was not its own either.
        let others = ended.iter().fold(others, |sum, open| sum.saturating_add(open.others));
        let all = at.0.saturating_sub(since.0);
        if let Some(below) = thread.open.last_mut() {
            below.others += all;
        }
        self.done.push(Taking { core, from: since, to: at, own: Nanos(all.saturating_sub(others)), what });
    }

    /// Events of a CPU were lost, or of one that is not known: what goes on there is unknown until its next event.
    pub fn lose(&mut self, cpu: Option<CpuId>) {
        let lost = |one: CpuId| cpu.is_none_or(|cpu| cpu == one);
        for thread in self.threads.iter_mut().filter(|thread| thread.cpu.is_some_and(lost)) {
            (thread.runs, thread.fault) = (None, None);
            thread.open.clear();
        }
        self.running.retain(|one, _| !lost(*one));
        let cpus: Vec<CpuId> = cpu.map_or_else(|| self.last.keys().copied().collect(), |cpu| vec![cpu]);
        for cpu in cpus {
            let from = self.last.get(&cpu).copied().unwrap_or(Nanos::ZERO);
            self.missing.entry(cpu).or_insert(from);
        }
    }

    /// What has ended since the last call.
    pub fn take(&mut self) -> Vec<Taking> {
        std::mem::take(&mut self.done)
    }

    /// The times without events since the last call, because they were lost.
    pub fn gaps(&mut self) -> Vec<(CpuId, Nanos, Nanos)> {
        std::mem::take(&mut self.gaps)
    }

    /// The CPU that a thread ran on last.
    pub fn cpu(&self, core: usize) -> Option<CpuId> {
        self.threads.get(core)?.cpu
    }

    /// Switches that the trace does not have.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// What it is called.
    pub fn name(&self, what: &What) -> String {
        match what {
            What::Thread(name, tid) => format!("thread {name} [{tid}]"),
            What::Throttled => "nothing ran: throttled".to_owned(),
            What::Call(number, slept) => {
                let name = self.calls.get(number).cloned().unwrap_or_else(|| number.to_string());
                format!("system call {name}{}", if *slept { ", slept" } else { "" })
            }
            What::Fault => "page fault".to_owned(),
            What::Asleep => "slept".to_owned(),
            What::Interrupt(name) => format!("interrupt {name}"),
            What::Softirq(name) => format!("softirq {name}"),
            What::Nmi(handler) => format!("NMI {handler}"),
            What::Unseen => "not in the trace".to_owned(),
            What::Before => "off the CPU since before the guard".to_owned(),
        }
    }
}

impl Thread {
    /// A thread that had the CPU has the name with which it gives way: it may have executed another program meanwhile.
    fn rename(&mut self, task: &Task) {
        for open in &mut self.open {
            match &mut open.what {
                What::Thread(name, tid) if *tid == task.tid => name.clone_from(&task.name),
                _ => {}
            }
        }
    }

    fn forget_call(&mut self) {
        let Some(place) = self.open.iter().rposition(|open| matches!(open.what, What::Call(..))) else {
            return;
        };
        let call = self.open.remove(place);
        if let Some(below) = place.checked_sub(1).and_then(|below| self.open.get_mut(below)) {
            below.others += call.others;
        }
    }

    fn begin(&mut self, what: What, since: Nanos) {
        self.open.push(Open { what, since, others: 0 });
    }
}

fn other(task: &Task) -> What {
    if task.tid == 0 { What::Throttled } else { What::Thread(task.name.clone(), task.tid) }
}

fn is_other(what: &What) -> bool {
    matches!(what, What::Thread(..) | What::Throttled)
}

/// What begins with a frame of its own; timers' functions and calls are part of the interrupt that they run in.
fn what_of(frame: &Frame) -> Option<What> {
    match frame {
        Frame::Vector(name) => Some(What::Interrupt(name.clone())),
        Frame::Handler(name, number) => Some(What::Interrupt(format!("{name} {number}").trim().to_owned())),
        Frame::Softirq(name) => Some(What::Softirq(name.clone())),
        Frame::Timer(..) | Frame::Call(_) => None,
    }
}

/// The number in the name of a device's interrupt, which alone its end names.
fn number_of(name: &str) -> &str {
    let name = name.split(" (").next().unwrap_or_default();
    name.rsplit(' ').next().unwrap_or_default()
}

/// Whether an end is this one's, which has learned more of its name meanwhile.
fn is_same(what: &What, end: &What) -> bool {
    let begins = |name: &str, end: &str| {
        name == end || name.strip_prefix(end).is_some_and(|rest| rest.starts_with(" ("))
    };
    match (what, end) {
        (What::Interrupt(name), What::Interrupt(end)) | (What::Softirq(name), What::Softirq(end)) => {
            begins(name, end)
        }
        _ => false,
    }
}

/// Whether the thread that gives way sleeps: one that was preempted or could go on is in no other state, and `+` says so.
fn sleeps(event: &trace::Event<'_>) -> bool {
    match event.value("prev_state") {
        Some(Value::Text(letters)) => !letters.starts_with('R') && !letters.ends_with('+'),
        _ => event.unsigned("prev_state").is_some_and(|state| state & 0xff != 0 && state & 0xff00 == 0),
    }
}
