//! Callers from calls and returns: where a call leaves its return in a register, a function without a frame of its own has the stack
//! pointer of its caller. Exceptions come between any two blocks.

use std::collections::HashMap;

use super::{Frame, Function, Stacks, Start};
use crate::machine::{KERNEL, Kind, Vectors};
use crate::symbols::Symbols;

/// Kernel stacks are as large and aligned to it, in powers of two (THREAD_SIZE). An empty one's pointer is that of its end.
const STACK: u32 = 14;

/// Names that an architecture has.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Tables of the code that exceptions begin with.
    pub vectors: &'a Vectors,
    /// Functions that call the handler of an interrupt's device.
    pub callers_of_handlers: &'a [&'a str],
    /// Where a new thread begins.
    pub beginning: &'a str,
    /// The function that switches to another thread's stack.
    pub switch: &'a str,
}

/// A frame on a stack.
#[derive(Clone, Copy, Debug)]
struct Live {
    frame: usize,
    /// It is an exception's, which came behind an instruction of this kind: a call or a return, or anything else.
    exception: Option<Kind>,
}

/// Plays blocks back.
pub struct Walk<'a> {
    symbols: &'a Symbols,
    names: Names<'a>,
    all: Stacks,
    /// The frames on each stack, the innermost last.
    live: HashMap<u64, Vec<Live>>,
    /// Frames by those that went on in them, whose callers are theirs.
    before: HashMap<usize, usize>,
    last: Option<Start>,
}

/// A start of the kernel's with what its address is.
struct Step<'a> {
    start: Start,
    function: Function,
    begins: bool,
    name: &'a str,
    stack: u64,
    /// The start before it and its frame, if it was the kernel's.
    before: Option<(Start, usize)>,
    /// The start before it was a program's.
    is_from_program: bool,
}

impl Step<'_> {
    /// The instruction before.
    fn last(&self) -> Kind {
        self.before.map_or(Kind::Other, |(before, _)| if before.is_whole { before.last } else { Kind::Other })
    }

    fn is_on_another_stack(&self) -> bool {
        self.before.is_some_and(|(before, _)| stack_of(before.stack) != self.stack)
    }
}

fn stack_of(pointer: u64) -> u64 {
    pointer.wrapping_sub(1) >> STACK
}

impl<'a> Walk<'a> {
    /// With nothing known yet.
    pub fn new(symbols: &'a Symbols, names: Names<'a>) -> Self {
        Self {
            symbols,
            names,
            all: Stacks::default(),
            live: HashMap::new(),
            before: HashMap::new(),
            last: None,
        }
    }

    /// Whose code each start is.
    pub fn play(mut self, starts: &[Start]) -> Stacks {
        for &start in starts {
            let before = self.last.replace(start);
            let came_from = self.all.of_record.last().copied();
            let before = before.zip(came_from);
            let frame =
                if start.address < KERNEL { self.program(before) } else { self.kernel(start, before) };
            self.all.of_record.push(frame);
        }
        self.all
    }

    fn program(&mut self, before: Option<(Start, usize)>) -> usize {
        let same = before.filter(|(before, _)| before.address < KERNEL);
        same.map_or_else(|| self.push(Function::Program, None, None), |(_, frame)| frame)
    }

    fn kernel(&mut self, start: Start, before: Option<(Start, usize)>) -> usize {
        let found = self.symbols.function(start.address);
        let step = Step {
            start,
            function: found.map_or(Function::Unknown, |(number, _)| Function::Kernel(number)),
            begins: found.is_some_and(|(_, begins)| begins),
            name: found.and_then(|(number, _)| self.symbols.name(number)).unwrap_or_default(),
            stack: stack_of(start.stack),
            before: before.filter(|(before, _)| before.address >= KERNEL),
            is_from_program: before.is_some_and(|(before, _)| before.address < KERNEL),
        };
        if self.names.vectors.tables.contains(&step.name) {
            return self.vector(&step);
        }
        if step.name == self.names.beginning {
            self.live.remove(&step.stack);
        }
        let (last, step) = match step.last() {
            // What the exception came behind is done now.
            Kind::Exit => (self.leave_exception(&step), Step { before: None, ..step }),
            last => (last, step),
        };
        match last {
            Kind::Call => self.call(&step),
            Kind::Return => {
                let returned = self.leave(&step);
                self.go_back(&step, returned)
            }
            _ => self.go_on(&step),
        }
    }

    /// Code that exceptions begin with.
    fn vector(&mut self, step: &Step<'_>) -> usize {
        if step.start.address % self.names.vectors.step != 0 {
            // In between the stack pointer is used for something else.
            let frame = self.all.of_record.last().copied();
            return frame.unwrap_or_else(|| self.push(step.function, None, None));
        }
        let mut caller = None;
        if step.is_from_program {
            self.live.remove(&step.stack);
        } else {
            let frame = step.before.map(|(_, frame)| frame);
            let has_returned = step.last() == Kind::Return;
            let left = frame.filter(|_| has_returned).and_then(|frame| self.all.frames[frame].caller);
            caller = left.or(frame);
        }
        let entry = self.symbols.address(self.names.vectors.entry(step.start.address));
        let entry = entry.and_then(|entry| self.symbols.function(entry));
        let function = entry.map_or(step.function, |(number, _)| Function::Kernel(number));
        let frame = self.push(function, Some(step.start.stack), caller);
        self.all.frames[frame].is_exception = true;
        let exception = Some(step.last());
        self.live.entry(step.stack).or_default().push(Live { frame, exception });
        frame
    }

    fn top(&self, stack: u64) -> Option<Live> {
        self.live.get(&stack)?.last().copied()
    }

    fn call(&mut self, step: &Step<'_>) -> usize {
        if step.is_on_another_stack() {
            self.live.remove(&step.stack);
        } else {
            self.leave_deeper(step);
        }
        let before = step.before.map(|(_, frame)| frame);
        let caller = before.or(self.top(step.stack).map(|top| top.frame));
        self.name_exception(step, caller);
        self.enter(step, Some(step.start.stack), caller)
    }

    /// The handler of a device says which interrupt it is.
    fn name_exception(&mut self, step: &Step<'_>, caller: Option<usize>) {
        let Some(Function::Kernel(number)) = caller.map(|caller| self.all.frames[caller].function) else {
            return;
        };
        let name = self.symbols.name(number).unwrap_or_default();
        if !self.names.callers_of_handlers.contains(&name) {
            return;
        }
        let caller = caller.and_then(|caller| self.all.frames.get(caller));
        let up = |frame: &&Frame| frame.caller.and_then(|caller| self.all.frames.get(caller));
        let since = std::iter::successors(caller, up)
            .take(super::DEEPEST)
            .find(|frame| frame.is_exception)
            .map(|frame| frame.since);
        if let Some(since) = since {
            self.all.handlers.entry(since).or_insert(step.function);
        }
    }

    /// Takes away what is deeper than the stack pointer is now.
    fn leave_deeper(&mut self, step: &Step<'_>) {
        let Some(frames) = self.live.get_mut(&step.stack) else { return };
        while let Some(top) = frames.last() {
            if self.all.frames[top.frame].entry.is_none_or(|entry| entry >= step.start.stack) {
                return;
            }
            frames.pop();
        }
    }

    /// Takes away the frame that has returned, and gives it.
    fn leave(&mut self, step: &Step<'_>) -> Option<usize> {
        self.leave_deeper(step);
        let frames = self.live.get_mut(&step.stack)?;
        let top = frames.last()?;
        let entry = self.all.frames[top.frame].entry;
        let has_returned = top.exception.is_none() && entry.is_none_or(|entry| entry == step.start.stack);
        if has_returned { frames.pop().map(|top| top.frame) } else { None }
    }

    /// Takes away the exception that has ended, and says what it came behind.
    fn leave_exception(&mut self, step: &Step<'_>) -> Kind {
        self.leave_deeper(step);
        let Some(frames) = self.live.get_mut(&step.stack) else { return Kind::Other };
        let is_its = |top: &&Live| {
            top.exception.is_some() && self.all.frames[top.frame].entry == Some(step.start.stack)
        };
        let exception = frames.last().filter(is_its).and_then(|top| top.exception);
        if exception.is_some() {
            frames.pop();
        }
        exception.unwrap_or(Kind::Other)
    }

    /// Back in the caller of `returned`.
    fn go_back(&mut self, step: &Step<'_>, returned: Option<usize>) -> usize {
        let caller = returned.and_then(|returned| self.all.frames[returned].caller);
        let is_its = |frame: usize, function| self.all.frames[frame].function == function;
        if let Some(frames) = self.live.get_mut(&step.stack) {
            // What lies above it has returned without an instruction that says so.
            let own = frames.iter().rposition(|live| is_its(live.frame, step.function));
            if let Some(own) = own.filter(|_| !step.begins) {
                frames.truncate(own + 1);
            }
        }
        if self.top(step.stack).is_some() {
            return self.go_on(step);
        }
        // It was called on another stack, as those of interrupts are.
        if let Some(caller) = caller.filter(|&caller| is_its(caller, step.function)) {
            return caller;
        }
        let base = self.enter(step, None, None);
        let mut next = returned;
        while let Some(returned) = next {
            let frame = &mut self.all.frames[returned];
            frame.caller = frame.caller.or(Some(base));
            next = self.before.get(&returned).copied();
        }
        base
    }

    /// In the same frame; where the name is another, it was a jump to another function or to a part that lies apart.
    fn go_on(&mut self, step: &Step<'_>) -> usize {
        if let Some(frame) = self.moved(step) {
            return frame;
        }
        self.leave_deeper(step);
        let Some(top) = self.top(step.stack) else {
            let entry = step.begins.then_some(step.start.stack);
            return self.enter(step, entry, None);
        };
        let frame = self.all.frames[top.frame];
        if frame.function == step.function {
            return top.frame;
        }
        let new = self.push(step.function, frame.entry, frame.caller);
        self.before.insert(new, top.frame);
        if top.exception.is_some() {
            let new = &mut self.all.frames[new];
            (new.since, new.is_exception) = (frame.since, true);
        }
        if let Some(place) = self.live.get_mut(&step.stack).and_then(|frames| frames.last_mut()) {
            place.frame = new;
        }
        new
    }

    /// The frame of a function that has moved its stack pointer to another stack and not begun anew, as those do that call the
    /// handlers of interrupts there. A switch of threads goes on in the other thread's frame.
    fn moved(&mut self, step: &Step<'_>) -> Option<usize> {
        let (_, frame) = step.before.filter(|_| !step.begins && step.name != self.names.switch)?;
        if self.all.frames[frame].function != step.function {
            return None;
        }
        let is_live = |live: &Live| live.frame == frame;
        match self.live.get_mut(&step.stack) {
            Some(frames) if frames.iter().any(is_live) => None,
            Some(frames) if step.is_on_another_stack() => {
                frames.clear();
                Some(frame)
            }
            Some(frames) if !frames.is_empty() => None,
            _ => Some(frame),
        }
    }

    fn enter(&mut self, step: &Step<'_>, entry: Option<u64>, caller: Option<usize>) -> usize {
        let frame = self.push(step.function, entry, caller);
        self.live.entry(step.stack).or_default().push(Live { frame, exception: None });
        frame
    }

    fn push(&mut self, function: Function, entry: Option<u64>, caller: Option<usize>) -> usize {
        let since = self.all.of_record.len();
        self.all.frames.push(Frame { function, entry, caller, since, is_exception: false });
        self.all.frames.len() - 1
    }
}
