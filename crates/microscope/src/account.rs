//! The account of one late wake-up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use plugin::sections::{HARD_INTERRUPT, INTERRUPTS_ON, NMI, NOT_WANTED, SERVING_SOFTIRQ};
use record::{Class, Stage};
use serde::Serialize;
use units::{InOrder, Nanos};

use crate::code::{self, Shape};
use crate::context::{Context, State, class};
use crate::machine::{Faults, KERNEL, Kind, Machine};
use crate::stacks::{Function, Stacks, Start};
use crate::stream::{Note, Record, Stream, Window};
use crate::symbols::Symbols;
use crate::tree::Tree;

/// The page fault was of fetching the instruction: it had not begun.
const OF_FETCH: u64 = 1 << 4;
/// So many records behind the beginning of an exception the function that serves it has begun.
const UNTIL_SERVED: usize = 64;
/// So many records before a halt the clock has been read, if ever.
const UNTIL_READ: usize = 4096;
/// What the functions of the scheduler's switch are called by.
const SCHEDULE: [&str; 3] = ["__schedule", "schedule", "preempt_schedule_irq"];

/// What a late wake-up consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// When it came, on the guest's `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// How late it was: in instruction time also the number of instructions, and of nanoseconds that the CPU halted.
    pub latency: Nanos,
    /// In order of time. They sum to the latency.
    pub pieces: Vec<Piece>,
    /// What brought it about. They sum to the latency too, the largest first.
    pub causes: Vec<Cause>,
    /// The calls of all of it, below the thread that they ran in.
    pub calls: Tree,
    /// Readings of the guest's clock within the latency that lie where the count of instructions says, and all of them.
    pub readings: (u32, u32),
    /// The most at one time with interrupts off, from the first instruction without to the first with them.
    pub interrupts_off: Nanos,
    /// The same with preemption off, interrupts included. None where the kernel does not count it.
    pub preemption_off: Option<Nanos>,
    /// A reschedule was wanted, and neither interrupts nor the count kept it off: full preemption would have done it. None
    /// where the kernel does not count.
    pub allowed_by_nothing: Option<Nanos>,
}

/// A stretch of time in which nothing of this changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// How long.
    pub length: Nanos,
    /// How far the wake-up had come.
    pub stage: Stage,
    /// What the CPU was in.
    pub context: Context,
    /// Interrupts were off.
    pub interrupts_off: bool,
    /// The preemption count, interrupts and softirqs included.
    pub preempt_count: u32,
    /// A reschedule was wanted.
    pub is_wanted: bool,
    /// The deepest function under which more than half of it ran.
    pub function: String,
}

/// A part of a late wake-up and what brought it about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The sort.
    pub class: Class,
    /// The context.
    pub context: Context,
    /// The deepest function under which more than half of it ran, and its callers; the outermost first.
    pub path: Vec<String>,
    /// How long.
    pub length: Nanos,
}

impl Cause {
    /// The function, or what is known instead.
    pub fn culprit(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

/// The account of `window`, one of `stream`'s.
pub fn account(stream: &Stream, window: &Window, symbols: &Symbols) -> Account {
    Playback::new(stream, window, symbols).account()
}

/// A block, or a part of one, within the latency.
struct Part {
    record: usize,
    length: u64,
    interrupts_off: bool,
}

pub(crate) struct Playback<'a> {
    stream: &'a Stream,
    window: &'a Window,
    symbols: &'a Symbols,
    machine: &'static Machine,
    shapes: HashMap<u32, Shape>,
    stacks: Stacks,
    /// Instructions of each record that ended.
    retired: Vec<u64>,
    marks: Marks,
}

/// Records at which the wake-up came a step further.
#[derive(Clone, Copy)]
struct Marks {
    interrupt: usize,
    woken: usize,
    running: usize,
}

impl<'a> Playback<'a> {
    pub(crate) fn new(stream: &'a Stream, window: &'a Window, symbols: &'a Symbols) -> Self {
        let machine = stream.machine;
        let mut shapes = HashMap::new();
        let mut starts = Vec::with_capacity(window.records.len());
        let next = window.records.iter().skip(1).map(|next| next.count);
        for (record, next) in window.records.iter().zip(next.chain([u64::MAX])) {
            let Some(block) = stream.blocks.get(&record.block) else { continue };
            let shape = *shapes.entry(record.block).or_insert_with(|| code::shape(block, machine.kind));
            let is_whole = next.saturating_sub(record.count) >= shape.count as u64;
            starts.push(Start { address: block.address, stack: record.stack, last: shape.last, is_whole });
        }
        let stacks = Stacks::of(&starts, symbols, machine);
        let mut playback = Self {
            stream,
            window,
            symbols,
            machine,
            shapes,
            stacks,
            retired: Vec::new(),
            marks: Marks { interrupt: 0, woken: 0, running: 0 },
        };
        playback.retired = playback.count();
        playback
    }

    /// What there was of the latency before its first record.
    fn before(&self, first: usize) -> (Context, Stage, &'static str) {
        if first.checked_sub(1).is_some_and(|last| self.halts(last)) {
            (Context::Halted, Stage::BeforeInterrupt, "[halted]")
        } else {
            (Context::NotRecorded, Stage::Unknown, "[not recorded]")
        }
    }

    fn record(&self, number: usize) -> Record {
        self.window.records.get(number).copied().unwrap_or_default()
    }

    fn address(&self, number: usize) -> u64 {
        self.stream.blocks.get(&self.record(number).block).map_or(0, |block| block.address)
    }

    fn name_at(&self, number: usize) -> &str {
        let found = self.symbols.function(self.address(number));
        found.and_then(|(number, _)| self.symbols.name(number)).unwrap_or_default()
    }

    fn shape(&self, number: usize) -> Shape {
        let shape = self.shapes.get(&self.record(number).block);
        shape.copied().unwrap_or(Shape { last: Kind::Other, until_off: None, count: 0 })
    }

    fn name(&self, function: Function) -> &str {
        match function {
            Function::Program => "[program]",
            Function::Kernel(number) => self.symbols.name(number).unwrap_or("[unknown]"),
            Function::Unknown => "[unknown]",
        }
    }

    /// Instructions that ended in each record: those that began, less one where a fault kept it from ending.
    fn count(&self) -> Vec<u64> {
        let is_fault: Box<dyn Fn(usize) -> bool> = match &self.machine.faults {
            Faults::Entries { page_fault, others } => {
                let page_fault = self.symbols.address(page_fault);
                let faults: Vec<u64> = others.iter().filter_map(|name| self.symbols.address(name)).collect();
                Box::new(move |next| match self.record(next).note {
                    Note::ErrorCode(code) => Some(self.address(next)) == page_fault && code & OF_FETCH == 0,
                    _ => faults.contains(&self.address(next)),
                })
            }
            Faults::Functions { vectors, functions, others } => {
                let of = |names: &[&str]| -> Vec<u64> {
                    names.iter().filter_map(|name| self.symbols.address(name)).collect()
                };
                let (faults, others) = (of(functions), of(others));
                let is_exception = |next| {
                    let found = self.symbols.function(self.address(next));
                    found
                        .and_then(|(number, _)| self.symbols.name(number))
                        .is_some_and(|name| vectors.tables.contains(&name))
                };
                Box::new(move |next| {
                    if !is_exception(next) || next.checked_sub(1).is_none_or(&is_exception) {
                        return false;
                    }
                    let (last, next_count) = (self.record(next - 1), self.record(next).count);
                    if next_count.saturating_sub(last.count) < self.shape(next - 1).count as u64 {
                        return true;
                    }
                    let served = (next..next + UNTIL_SERVED).map(|record| self.address(record));
                    let mut served =
                        served.filter(|address| faults.contains(address) || others.contains(address));
                    served.next().is_some_and(|address| faults.contains(&address))
                })
            }
        };
        let pairs = self.window.records.windows(2).enumerate();
        let counted = pairs.map(|(number, pair)| {
            let began = pair[1].count.saturating_sub(pair[0].count);
            began.saturating_sub(u64::from(is_fault(number + 1)))
        });
        counted.collect()
    }

    /// Calls `see` with each part of the latency in order of time: when it begins after the wake-up was due and how long it is, in
    /// nanoseconds, what the CPU was in, the thread and the functions, the outermost first.
    pub(crate) fn each(&self, mut see: impl FnMut(u64, u64, &Context, &[String])) {
        let (first, parts, rest) = self.parts();
        if rest > 0 {
            see(0, rest, &self.before(first).0, &[]);
        }
        let mut known: HashMap<usize, Vec<String>> = HashMap::new();
        let mut at = rest;
        for part in &parts {
            let path = known.entry(self.stacks.id(part.record)).or_insert_with(|| self.path(part.record));
            see(at, part.length, &self.context_of(part.record), path);
            at += part.length;
        }
    }

    pub(crate) fn account(mut self) -> Account {
        let latency = self.window.latency.0;
        let (first, parts, rest) = self.parts();
        self.marks = self.find_marks(first);
        let mut account = Account { at: self.window.at, latency: self.window.latency, ..Account::default() };
        let mut pieces = Pieces::default();
        if rest > 0 {
            let (context, stage, name) = self.before(first);
            let path = ["".to_owned(), name.to_owned()];
            pieces.add((stage, context, false, 0, false), &path, rest, false, false);
        }
        let mut known: HashMap<usize, Vec<String>> = HashMap::new();
        let mut last = None;
        for part in &parts {
            let first_of_record = last.replace(part.record) != Some(part.record);
            let path = match known.entry(self.stacks.id(part.record)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.path(part.record)),
            };
            let is_switch = path.iter().any(|name| SCHEDULE.contains(&name.as_str()));
            if first_of_record
                && self.machine.is_interrupt(self.name_at(part.record), self.address(part.record))
            {
                pieces.let_in(self.record(part.record).preempt & !NOT_WANTED);
            }
            let is_fault = path.iter().any(|name| self.machine.page_faults.contains(&name.as_str()));
            pieces.add(self.state(part), path, part.length, is_fault, is_switch);
        }
        account.readings = self.readings(first);
        debug_assert_eq!(rest + parts.iter().map(|part| part.length).sum::<u64>(), latency);
        let account = pieces.finish(account);
        if self.stream.counts_preemption {
            account
        } else {
            Account { preemption_off: None, allowed_by_nothing: None, ..account }
        }
    }

    /// The records within the latency: the first, what of them is within, and what is left before them.
    fn parts(&self) -> (usize, Vec<Part>, u64) {
        let mut left = self.window.latency.0;
        let mut first = self.window.found;
        let mut parts = Vec::new();
        while left > 0 && first > 0 && !self.halts(first - 1) {
            first -= 1;
            for (length, interrupts_off) in self.split(first).into_iter().rev() {
                let length = length.min(left);
                left -= length;
                if length > 0 {
                    parts.push(Part { record: first, length, interrupts_off });
                }
            }
        }
        parts.reverse();
        (first, parts, left)
    }

    /// Whether the CPU halted at the end of a record.
    fn halts(&self, record: usize) -> bool {
        self.shape(record).last == Kind::Halt && !(self.machine.passes_halts && self.went_on(record))
    }

    /// Whether no time has passed at a record's end but that of instructions, by the readings before and after it.
    fn went_on(&self, record: usize) -> bool {
        let reading = |record: usize| match self.record(record).note {
            Note::Reading(reading) => Some((record, reading)),
            _ => None,
        };
        let before = (record.saturating_sub(UNTIL_READ)..=record).rev().find_map(reading);
        let after = (record + 1..=self.window.found).find_map(reading);
        let Some(((first, before), (last, after))) = before.zip(after) else { return false };
        let passed = self.retired.get(first..last).map_or(0, |all| all.iter().sum::<u64>());
        self.is_as_long(after.wrapping_sub(before), passed)
    }

    /// Whether so many steps of the counter are so many instructions.
    fn is_as_long(&self, steps: u64, instructions: u64) -> bool {
        steps.wrapping_mul(self.machine.tick).abs_diff(instructions) < self.machine.tick
    }

    /// A record's instructions before and after it turned interrupts off.
    fn split(&self, record: usize) -> [(u64, bool); 2] {
        let all = self.retired.get(record).copied().unwrap_or(0);
        let is_off = self.record(record).flags & INTERRUPTS_ON == 0;
        let before = self.shape(record).until_off.map_or(all, |count| all.min(count as u64));
        [(before, is_off), (all - before, true)]
    }

    fn find_marks(&self, first: usize) -> Marks {
        let found = self.window.found;
        let task = self.record(found).task;
        let runs = |number: &usize| self.record(*number).task != task;
        let running = (first..found).rev().find(runs).map_or(first, |last| last + 1);
        let is_wake_up = |number: &usize| self.record(*number).note == Note::Argument(task);
        let woken = (first..running).rev().find(is_wake_up).unwrap_or(first);
        let is_entry = |function| self.machine.is_entry(self.name(function));
        let entered = self.stacks.since(woken, is_entry).map(|(since, _)| since);
        // Woken by a thread for timers: the timer's interrupt is the first of its kind.
        let is_timer = |number: &usize| Some(self.address(*number)) == self.timer();
        let timer = (first..woken).find(is_timer);
        let timer = timer.map(|known| self.stacks.since(known, is_entry).map_or(known, |(since, _)| since));
        let interrupt = entered.or(timer).unwrap_or(first);
        Marks { interrupt, woken, running }
    }

    fn timer(&self) -> Option<u64> {
        self.symbols.address(self.machine.timer)
    }

    fn stage(&self, record: usize) -> Stage {
        let Marks { interrupt, woken, running } = self.marks;
        match record {
            _ if record >= running => Stage::Running,
            _ if record >= woken => Stage::Runnable,
            _ if record >= interrupt => Stage::InInterrupt,
            _ => Stage::BeforeInterrupt,
        }
    }

    fn state(&self, part: &Part) -> State {
        let Record { preempt, .. } = self.record(part.record);
        let count = preempt & !NOT_WANTED;
        let context = self.context(part.record, count);
        (self.stage(part.record), context, part.interrupts_off, count, preempt & NOT_WANTED == 0)
    }

    /// A number for the chain of callers of a record.
    pub(crate) fn chain(&self, record: usize) -> usize {
        self.stacks.id(record)
    }

    /// What the CPU was in.
    pub(crate) fn context_of(&self, record: usize) -> Context {
        self.context(record, self.record(record).preempt & !NOT_WANTED)
    }

    fn context(&self, record: usize, count: u32) -> Context {
        if count & NMI != 0 {
            return Context::Nmi;
        }
        if count & HARD_INTERRUPT != 0 {
            let is_of_interrupt = |function| {
                let name = self.name(function);
                self.machine.is_entry(name) || self.machine.is_handler(name)
            };
            let entry = self.stacks.since(record, is_of_interrupt);
            let function = entry.map(|(since, entry)| self.stacks.handler(since).unwrap_or(entry));
            let name = function.map_or("[unknown]", |function| self.name(function));
            return Context::Interrupt { name: name.trim_start_matches(self.machine.prefix).to_owned() };
        }
        if count & SERVING_SOFTIRQ != 0 {
            return Context::Softirq;
        }
        let name = self.thread(record);
        if self.address(record) < KERNEL { Context::Program { name } } else { Context::Thread { name } }
    }

    fn thread(&self, record: usize) -> String {
        let name = self.window.names.get(&self.record(record).task).filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| "[unknown]".to_owned())
    }

    /// The thread and the functions of a record, the outermost first.
    pub(crate) fn path(&self, record: usize) -> Vec<String> {
        let functions = self.stacks.path(record);
        let names = functions.iter().rev().map(|function| self.name(*function).to_owned());
        std::iter::once(self.thread(record)).chain(names).collect()
    }

    /// Readings that differ from the last one by as much as instructions have ended between them, and all.
    fn readings(&self, first: usize) -> (u32, u32) {
        let Note::Reading(last) = self.record(self.window.found).note else { return (0, 1) };
        let (mut right, mut all, mut passed) = (0, 0, 0);
        for record in (first..self.window.found).rev() {
            passed += self.retired.get(record).copied().unwrap_or(0);
            if let Note::Reading(reading) = self.record(record).note {
                all += 1;
                right += u32::from(self.is_as_long(last.wrapping_sub(reading), passed));
            }
        }
        (right, all)
    }
}

/// Parts, put together.
#[derive(Default)]
struct Pieces {
    pieces: Vec<(State, Tree)>,
    causes: HashMap<(Class, Context), Tree>,
    calls: Tree,
    /// At one time: interrupts off, preemption off.
    off: [u64; 2],
    most_off: [u64; 2],
    allowed_by_nothing: u64,
}

impl Pieces {
    /// An interrupt shows that interrupts were on for a moment, and preemption where nothing counts.
    fn let_in(&mut self, count: u32) {
        self.off[0] = 0;
        if count == 0 {
            self.off[1] = 0;
        }
    }

    fn add(&mut self, state: State, path: &[String], length: u64, is_fault: bool, is_switch: bool) {
        let names = || path.iter().map(String::as_str);
        let (_, _, interrupts_off, count, is_wanted) = state;
        for (place, is_off) in [interrupts_off, interrupts_off || count > 0].into_iter().enumerate() {
            self.off[place] = if is_off { self.off[place] + length } else { 0 };
            self.most_off[place] = self.most_off[place].max(self.off[place]);
        }
        let class = class(&state, path, is_fault, is_switch);
        if is_wanted && !interrupts_off && count == 0 && !is_switch {
            self.allowed_by_nothing += length;
        }
        self.calls.add(names().filter(|name| !name.is_empty()), length);
        self.causes.entry((class, state.1.clone())).or_default().add(names().skip(1), length);
        match self.pieces.last_mut().filter(|(last, _)| *last == state) {
            Some((_, calls)) => calls.add(names().skip(1), length),
            None => {
                let mut calls = Tree::default();
                calls.add(names().skip(1), length);
                self.pieces.push((state, calls));
            }
        }
    }

    fn finish(self, account: Account) -> Account {
        let owned = |calls: &Tree| calls.heaviest_path().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let piece =
            |((stage, context, interrupts_off, preempt_count, is_wanted), calls): (State, Tree)| Piece {
                length: Nanos(calls.total),
                stage,
                context,
                interrupts_off,
                preempt_count,
                is_wanted,
                function: owned(&calls).pop().unwrap_or_default(),
            };
        let cause = |((class, context), calls): ((Class, Context), Tree)| Cause {
            class,
            context,
            path: owned(&calls),
            length: Nanos(calls.total),
        };
        let mut causes: Vec<Cause> = self.causes.into_iter().map(cause).collect();
        causes.order_by(|a, b| {
            b.length.cmp(&a.length).then_with(|| (a.class, &a.context).cmp(&(b.class, &b.context)))
        });
        Account {
            pieces: self.pieces.into_iter().map(piece).collect(),
            causes,
            calls: self.calls,
            interrupts_off: Nanos(self.most_off[0]),
            preemption_off: Some(Nanos(self.most_off[1])),
            allowed_by_nothing: Some(Nanos(self.allowed_by_nothing)),
            ..account
        }
    }
}
