//! Who called whom, from stack pointers: at the start of a function the stack pointer is deeper than at that of its caller,
//! and when it has returned it is above.

mod links;

use std::collections::HashMap;

use crate::machine::{Callers, KERNEL, Kind, Machine, begins};
use crate::symbols::Symbols;

/// Kernel stacks are as large and aligned to it, in powers of two (THREAD_SIZE on amd64).
const STACK: u32 = 14;
/// A chain of callers is followed so far.
const DEEPEST: usize = 96;

/// A function, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// A program's own code.
    Program,
    /// One of the kernel's.
    Kernel(u32),
    /// An address without a name.
    Unknown,
}

/// The start of a block, as far as stacks ask.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub address: u64,
    pub stack: u64,
    /// The last instruction of the block.
    pub last: Kind,
    /// All instructions of the block have begun.
    pub is_whole: bool,
}

/// One activation of a function.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: Function,
    /// The stack pointer where it began; none where that was before the first record.
    entry: Option<u64>,
    caller: Option<usize>,
    /// The record at which it was first seen.
    since: usize,
    /// It is an exception's or an interrupt's, where these are known by it.
    is_exception: bool,
}

/// Whose code each record is.
#[derive(Debug, Default)]
pub struct Stacks {
    frames: Vec<Frame>,
    of_record: Vec<usize>,
    /// Of exceptions by the record at which they began: the handler of the interrupt, where that is known by it.
    handlers: HashMap<usize, Function>,
}

impl Stacks {
    /// Plays `starts` back.
    pub fn of(starts: &[Start], symbols: &Symbols, machine: &Machine) -> Self {
        let return_thunks = match &machine.callers {
            Callers::Stack { return_thunks } => return_thunks,
            Callers::Links { vectors, callers_of_handlers, beginning, switch } => {
                let names = links::Names { vectors, callers_of_handlers, beginning, switch };
                return links::Walk::new(symbols, names).play(starts);
            }
        };
        let (all, live) = (Self::default(), HashMap::new());
        let mut walk = Walk { symbols, machine, return_thunks, all, live, last: None };
        for start in starts {
            walk.step(*start);
        }
        walk.all
    }

    /// The function of a record and its callers, innermost first.
    pub fn path(&self, record: usize) -> Vec<Function> {
        self.frames_of(record).map(|frame| frame.function).collect()
    }

    /// The record at which the innermost activation of one of `functions` began that record `of` is in.
    pub fn since(&self, of: usize, is_wanted: impl Fn(Function) -> bool) -> Option<(usize, Function)> {
        let found = self.frames_of(of).find(|frame| is_wanted(frame.function))?;
        Some((found.since, found.function))
    }

    /// The handler of the interrupt that began at a record.
    pub fn handler(&self, since: usize) -> Option<Function> {
        self.handlers.get(&since).copied()
    }

    /// A number for the chain of callers: records with the same one have the same path.
    pub fn id(&self, record: usize) -> usize {
        self.of_record.get(record).copied().unwrap_or_default()
    }

    fn frames_of(&self, record: usize) -> impl Iterator<Item = &Frame> {
        let innermost = self.of_record.get(record).and_then(|&number| self.frames.get(number));
        let caller = |frame: &&Frame| frame.caller.and_then(|number| self.frames.get(number));
        std::iter::successors(innermost, caller).take(DEEPEST)
    }
}

struct Walk<'a> {
    symbols: &'a Symbols,
    machine: &'a Machine,
    return_thunks: &'a [&'a str],
    all: Stacks,
    /// The frames on each stack, the innermost last.
    live: HashMap<u64, Vec<usize>>,
    last: Option<Start>,
}

/// A start with what its address is.
struct Step<'a> {
    start: Start,
    function: Function,
    /// It is the function's first instruction.
    begins: bool,
    name: &'a str,
    /// The start before it, if it was the kernel's.
    before: Option<Start>,
    stack: u64,
}

impl<'a> Walk<'a> {
    fn step(&mut self, start: Start) {
        let before = self.last.replace(start);
        let frame = if start.address < KERNEL {
            self.push_new(Function::Program, Some(start.stack), None)
        } else {
            self.kernel(&self.look(start, before))
        };
        self.all.of_record.push(frame);
    }

    fn look(&self, start: Start, before: Option<Start>) -> Step<'a> {
        let found = self.symbols.function(start.address);
        let name = found.and_then(|(number, _)| self.symbols.name(number)).unwrap_or_default();
        Step {
            start,
            function: found.map_or(Function::Unknown, |(number, _)| Function::Kernel(number)),
            begins: found.is_some_and(|(_, begins)| begins),
            name,
            before: before.filter(|before| before.address >= KERNEL),
            stack: start.stack >> STACK,
        }
    }

    fn kernel(&mut self, step: &Step<'_>) -> usize {
        let came_from = self.all.of_record.last().copied();
        let comes_from_program = step.before.is_none() && came_from.is_some();
        let changed = step.before.is_some_and(|before| before.stack >> STACK != step.stack);
        if comes_from_program {
            self.live.remove(&step.stack);
        }
        let left = self.leave(step);
        let top = self.live.get(&step.stack).and_then(|frames| frames.last().copied());
        let is_entry = self.machine.is_entry(step.name) && step.before.is_some();
        if is_entry && self.is_new_entry(step, top) {
            return self.enter(step, came_from);
        }
        // A function changes to the stack of interrupts and back, calling others there.
        let function_of = |frame: usize| self.all.frames[frame].function;
        let is_back = changed && top.is_some_and(|top| came_from.map(function_of) == Some(function_of(top)));
        if is_back {
            step.before.map(|before| self.live.remove(&(before.stack >> STACK)));
        } else if changed && step.begins && !step.name.starts_with("__switch_to") {
            // A switch of threads begins no function.
            self.live.remove(&step.stack);
            return self.enter(step, came_from);
        }
        let called_there =
            left.filter(|_| top.is_none() && !changed).and_then(|left| self.all.frames[left].caller);
        if let Some(caller) = called_there.filter(|caller| function_of(*caller) == step.function) {
            return self.enter(step, self.all.frames[caller].caller);
        }
        let Some(top) = top else {
            let base = self.enter(step, None);
            if let Some(left) = left.filter(|_| !comes_from_program && !changed) {
                self.all.frames[left].caller = self.all.frames[left].caller.or(Some(base));
            }
            return base;
        };
        if self.is_call(step, top) {
            return self.enter(step, Some(top));
        }
        self.go_on(step, top)
    }

    /// A stub of interrupts goes on at its handler's entry, which is deeper and a frame of its own.
    fn is_new_entry(&self, step: &Step<'_>, top: Option<usize>) -> bool {
        top.is_none_or(|top| self.all.frames[top].function != step.function || step.begins)
    }

    /// Takes away the frames that have returned. The outermost, if all have.
    fn leave(&mut self, step: &Step<'_>) -> Option<usize> {
        let frames = self.live.get_mut(&step.stack)?;
        let mut outermost = None;
        while let Some(&top) = frames.last() {
            let frame = &self.all.frames[top];
            let is_gone = match frame.entry {
                Some(entry) => step.start.stack > entry,
                // Where it began is not known: it has returned where a return leads into another function.
                None => {
                    let returned = step.before.is_some_and(|before| {
                        before.last == Kind::Return && before.stack >> STACK == step.stack
                    });
                    returned && !step.begins && frame.function != step.function
                }
            };
            if !is_gone {
                return None;
            }
            outermost = frames.pop();
        }
        outermost
    }

    fn is_call(&self, step: &Step<'_>, top: usize) -> bool {
        let deeper = |than: u64| step.start.stack < than;
        let before = step.before.filter(|before| before.stack >> STACK == step.stack);
        let entry = self.all.frames[top].entry.or(before.map(|before| before.stack));
        step.begins && entry.is_some_and(deeper)
    }

    /// In the same frame; where the name is another, it was a jump to another function or to a part that lies apart.
    fn go_on(&mut self, step: &Step<'_>, top: usize) -> usize {
        let frame = self.all.frames[top];
        if frame.function == step.function || begins(step.name, self.return_thunks) {
            return top;
        }
        let new = self.push_new(step.function, frame.entry, frame.caller);
        if let Some(place) = self.live.get_mut(&step.stack).and_then(|frames| frames.last_mut()) {
            *place = new;
        }
        new
    }

    fn enter(&mut self, step: &Step<'_>, caller: Option<usize>) -> usize {
        let entry = step.begins.then_some(step.start.stack);
        let new = self.push_new(step.function, entry, caller);
        self.live.entry(step.stack).or_default().push(new);
        new
    }

    fn push_new(&mut self, function: Function, entry: Option<u64>, caller: Option<usize>) -> usize {
        self.all.frames.push(Frame {
            function,
            entry,
            caller,
            since: self.all.of_record.len(),
            is_exception: false,
        });
        self.all.frames.len() - 1
    }
}
