//! A ring of the last blocks, written out around each wake-up that is found; and the sections of whole stretches of time.

use core::ptr::NonNull;

use crate::allocate;
use crate::arguments::{Arguments, Range, Wanted};
use crate::guest::{Clock, Guest};
use crate::layout::{self, Trouble};
use crate::machine::{Counter, KERNEL, Kind, Machine};
use crate::output::Output;
use crate::block::Block;
use crate::sections::{Section, Sections, Start};

/// Recording begins when the next wake-up is so near, in nanoseconds: several ticks, and far more than a ring holds.
const LEAD: u64 = 64_000_000;
/// The same before a stretch of instructions, in instructions.
const LEAD_OF_STRETCH: u64 = 4_000_000;
/// So many blocks after a wake-up are kept too: they show who had called what ran.
const AFTER: u64 = 20_000;
/// So many before its window, at least, and no more where no program ran among them.
const BEFORE: (u64, u64) = (1 << 13, 1 << 18);
/// At most before a stretch: of its beginning the callers are asked, nothing else.
const BEFORE_STRETCH: u64 = 1 << 15;
/// How far vectors are from each other, in bytes.
const VECTOR: u64 = 0x80;
/// Places that turn interrupts or preemption off, each under each load.
const SECTIONS: usize = 1 << 15;
/// Blocks in the ring: the least and the most.
const RING: (u64, u64) = (1 << 20, 1 << 23);
/// Threads whose names are remembered to be written.
const NAMES: usize = 256;

#[derive(Clone, Copy)]
struct Record {
    count: u64,
    stack: u64,
    task: u64,
    note: u64,
    flags: u32,
    preempt: u32,
    kind: u32,
    block: *mut Block,
}

pub struct Recorder {
    arguments: Arguments,
    guest: Guest,
    output: Output,
    /// Instructions that have begun: QEMU adds to it.
    counter: NonNull<u64>,
    ring: NonNull<Record>,
    mask: u64,
    /// Records that were made.
    made: u64,
    blocks: u32,
    /// Of `arguments.wanted`: the next that is looked for, and the next that is written.
    next: usize,
    written: usize,
    /// The last block read the counter; it was of a program.
    has_read: Option<Counter>,
    is_of_user: bool,
    is_armed: bool,
    trouble: Option<Trouble>,
    sections: Sections<'static>,
    /// The one of `arguments.ranges` that it is now, and how many instructions have begun when it is over at the latest: nobody may read the
    /// clock then.
    range: Option<(u32, u64)>,
}

impl Recorder {
    /// None where there is no memory, or the stream cannot be opened.
    pub fn new(machine: &'static Machine, arguments: Arguments) -> Option<Self> {
        let longest = arguments.wanted.iter().map(|wanted| wanted.latency).max().unwrap_or(0);
        let blocks = (longest / 2 + BEFORE.1 + AFTER).clamp(RING.0, RING.1).next_power_of_two();
        let mut output = Output::open(arguments.out)?;
        output.put(&[layout::MAGIC, layout::MACHINE, machine.number]);
        Some(Self {
            guest: Guest::new(machine, arguments.memory, arguments.image, arguments.init),
            output,
            counter: allocate(1)?,
            ring: allocate(blocks as usize)?,
            mask: blocks - 1,
            made: 0,
            blocks: 0,
            next: 0,
            written: 0,
            has_read: None,
            is_of_user: false,
            is_armed: false,
            trouble: None,
            sections: Sections::new(table(if arguments.ranges.is_empty() { 0 } else { SECTIONS })?),
            range: None,
            arguments,
        })
    }

    pub fn counter(&self) -> *mut u64 {
        self.counter.as_ptr()
    }

    pub fn new_id(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks
    }

    pub fn note_of(&self, address: u64) -> u32 {
        match address {
            0 => 0,
            address if address == self.arguments.wake => layout::ARGUMENT,
            address if address == self.arguments.fault => layout::ERROR_CODE,
            _ => 0,
        }
    }

    /// Whether an interrupt begins there, by a table of vectors.
    pub fn is_entry(&self, address: u64) -> bool {
        self.arguments.entries.iter().any(|entry| (entry.from..entry.until).contains(&address))
            && address % VECTOR == 0
    }

    /// What an instruction is.
    pub fn kind(&self, instruction: &[u8]) -> Kind {
        (self.guest.machine().kind)(instruction)
    }

    pub fn learn(&mut self, address: u64, host: *const u8) {
        self.guest.learn(address, host);
    }

    /// A block could not be kept.
    pub fn lost(&mut self) {
        self.trouble = Some(Trouble::NoMemory);
    }

    /// At the start of each block.
    #[inline]
    pub fn started(&mut self, block: &mut Block) {
        self.guest.follow();
        let has_read = core::mem::replace(&mut self.has_read, block.counter);
        let reading = has_read.and_then(|counter| self.read(counter));
        if block.counter.is_some() {
            self.is_of_user = block.is_of_user();
        }
        if self.arguments.are_stretches {
            self.approach();
        }
        if let Some((range, end)) = self.range {
            let start = self.start_of(block);
            if start.count <= end {
                self.sections.step(start, range);
            } else {
                self.leave_range();
            }
        }
        if self.is_armed {
            self.record(block, reading);
        }
    }

    /// Instructions that have begun.
    fn count(&self) -> u64 {
        // SAFETY: it was allocated for good, and is written by translated code of this very thread.
        unsafe { self.counter.read_volatile() }
    }

    fn start_of(&self, block: &Block) -> Start {
        Start {
            count: self.count(),
            address: block.address,
            flags: self.guest.flags(),
            preempt: self.guest.preempt(),
            is_idle: self.guest.task() == self.guest.first,
            until_off: block.until_off,
            is_call: block.is_call,
            is_entry: block.is_entry,
        }
    }

    /// Is one of the stretches that are looked for near, or does it end here?
    #[inline]
    fn approach(&mut self) {
        let now = self.count();
        let next = self.arguments.wanted.get(self.next).map(|wanted| (wanted.at, wanted.latency));
        let (at, length) = next.unwrap_or((u64::MAX, 0));
        if now >= at {
            self.end_stretches(now);
        }
        if at.saturating_sub(now) < LEAD_OF_STRETCH.saturating_add(length) || self.is_armed {
            self.arm(now);
        }
    }

    #[cold]
    fn end_stretches(&mut self, now: u64) {
        while let Some(wanted) = self.arguments.wanted.get_mut(self.next).filter(|wanted| wanted.at <= now) {
            if self.is_armed && wanted.at == now {
                wanted.found = self.made + 1;
            }
            self.next += 1;
        }
    }

    /// A reading of the counter has ended: is it one of those that are looked for, and is one near?
    #[cold]
    fn read(&mut self, counter: Counter) -> Option<u64> {
        if self.arguments.are_stretches {
            // Where the thread is in a register, it is followed from the boot on.
            let _ = self.guest.find();
            return None;
        }
        if self.is_over() {
            return None;
        }
        if let Err(trouble) = self.guest.find() {
            self.trouble = Some(trouble);
            return None;
        }
        let reading = self.guest.reading(counter);
        if self.arguments.clock == 0 {
            self.arguments.clock = self.guest.clock(self.arguments.ktime).unwrap_or(0);
        }
        let Some(clock) = Clock::read(&self.guest, self.arguments.clock) else {
            self.trouble = Some(Trouble::NoClock);
            return Some(reading);
        };
        self.trouble = self.trouble.filter(|trouble| *trouble == Trouble::NotWritten);
        let now = clock.time(reading);
        // During the boot the kernel changes from one clock to another, and readings have nothing to do with its figures.
        let last = self.arguments.wanted.last().map_or(0, |wanted| wanted.at);
        if now <= last + LEAD {
            self.look(now);
            self.arm(now);
        }
        if self.is_of_user {
            self.enter_range(now);
        }
        Some(reading)
    }

    fn is_over(&self) -> bool {
        self.written == self.arguments.wanted.len() && self.arguments.ranges.is_empty()
    }

    fn enter_range(&mut self, now: u64) {
        let is_now = |range: &Range| (range.from..=range.until).contains(&now);
        let number = self.arguments.ranges.iter().position(is_now);
        if number.map(|number| number as u32) != self.range.map(|(number, _)| number) {
            self.leave_range();
        }
        let number = number.filter(|_| self.range.is_some() || self.locate());
        // An instruction is a nanosecond, and a halt takes none.
        let left = |number: usize| self.arguments.ranges[number].until.saturating_sub(now);
        self.range = number.map(|number| (number as u32, self.count().saturating_add(left(number))));
    }

    fn leave_range(&mut self) {
        self.sections.begin();
        self.range = None;
    }

    fn look(&mut self, now: u64) {
        while let Some(wanted) = self.arguments.wanted.get_mut(self.next) {
            // A nanosecond more or less is rounding: two readings are never so near.
            if self.is_of_user && self.is_armed && now.abs_diff(wanted.at) <= 1 {
                wanted.found = self.made + 1;
            } else if now <= wanted.at + 1 {
                return;
            }
            self.next += 1;
        }
    }

    /// Records where the next is near, or one that was found is not written yet.
    fn arm(&mut self, now: u64) {
        self.skip_missed();
        let lead = if self.arguments.are_stretches { LEAD_OF_STRETCH } else { LEAD };
        let is_near = |wanted: &Wanted| wanted.at.saturating_sub(now) < lead.saturating_add(wanted.latency);
        let is_wanted = self.written < self.next || self.arguments.wanted.get(self.next).is_some_and(is_near);
        if is_wanted && !self.is_armed {
            match self.guest.find() {
                Ok(()) => self.is_armed = self.locate(),
                Err(trouble) => self.trouble = Some(trouble),
            }
        } else if !is_wanted {
            self.is_armed = false;
        }
    }

    fn skip_missed(&mut self) {
        while self.written < self.next && self.arguments.wanted[self.written].found == 0 {
            self.written += 1;
        }
    }

    /// Where this CPU's words are: its area is moved during the boot.
    fn locate(&mut self) -> bool {
        let Arguments { areas, preempt, task, .. } = self.arguments;
        let located = self.guest.locate(areas, preempt, task);
        let others = self.trouble.filter(|trouble| *trouble != Trouble::NoCount);
        self.trouble = others.or(located.err());
        located.is_ok()
    }

    fn record(&mut self, block: &mut Block, reading: Option<u64>) {
        let (kind, note) = match (reading, block.note) {
            (Some(reading), _) => (layout::READING, reading),
            (None, layout::ARGUMENT) => (layout::ARGUMENT, self.guest.first_argument()),
            (None, layout::ERROR_CODE) => (layout::ERROR_CODE, self.guest.top_of_stack()),
            _ => (0, 0),
        };
        // SAFETY: the place in the ring is below its size.
        unsafe {
            let record = Record {
                count: self.count(),
                stack: self.guest.stack(),
                task: self.guest.task(),
                note,
                flags: self.guest.flags(),
                preempt: self.guest.preempt(),
                kind,
                block,
            };
            self.ring.add((self.made & self.mask) as usize).write(record);
        }
        self.made += 1;
        if self.written < self.next {
            self.write_due(self.made);
        }
    }

    fn at(&self, number: u64) -> Record {
        // SAFETY: the place is below the ring's size; callers ask for numbers of records that were made and are still there.
        unsafe { self.ring.add((number & self.mask) as usize).read() }
    }

    /// Writes those whose blocks after them have run by `now`.
    fn write_due(&mut self, now: u64) {
        while self.written < self.next {
            let wanted = self.arguments.wanted[self.written];
            if wanted.found != 0 {
                if wanted.found + AFTER > now {
                    return;
                }
                self.write(wanted);
            }
            self.written += 1;
        }
    }

    /// What is written for a wake-up.
    fn extent(&self, found: u64, latency: u64) -> Extent {
        let oldest = self.made.saturating_sub(self.mask);
        let end = self.at(found).count;
        let mut window = found;
        while window > oldest && end - self.at(window).count <= latency {
            window -= 1;
        }
        let most = if self.arguments.are_stretches { BEFORE_STRETCH } else { BEFORE.1 };
        let mut whole = window;
        while whole > oldest && window - whole < most {
            if window - whole >= BEFORE.0 && self.is_of_user(whole) {
                break;
            }
            whole -= 1;
        }
        let thread = self.at(window).task;
        // A thread may have been preempted long ago: others have come to their programs since. On arm64 callers follow from calls and
        // returns without a gap.
        let mut first = whole;
        let is_asked = !self.arguments.are_stretches
            && self.guest.machine().number == layout::AMD64
            && !self.is_idle(thread)
            && !self.has_program(thread, whole, window);
        if is_asked {
            let mut of_thread = 0;
            while first > oldest && of_thread < most && !self.has_program(thread, first, first + 1) {
                of_thread += u64::from(self.at(first).task == thread);
                first -= 1;
            }
            // The kernel's own threads have no program.
            if !self.has_program(thread, first, first + 1) {
                first = whole;
            }
        }
        Extent { first, whole, thread }
    }

    /// Whether it is a CPU's idle thread. At low addresses it has run the boot's first code, which is no program.
    fn is_idle(&self, thread: u64) -> bool {
        let name = self.guest.name_offset().and_then(|offset| self.guest.name(thread, offset));
        name.is_some_and(|[first, _]| first.to_le_bytes() == *b"swapper/")
    }

    fn is_of_user(&self, number: u64) -> bool {
        // SAFETY: a record's block stays for good.
        unsafe { &*self.at(number).block }.is_of_user()
    }

    /// Whether the program of a thread ran from one record to another.
    fn has_program(&self, thread: u64, from: u64, to: u64) -> bool {
        (from..to).any(|number| self.at(number).task == thread && self.is_of_user(number))
    }

    #[cold]
    fn write(&mut self, wanted: Wanted) {
        let found = wanted.found - 1;
        let (extent, end) = (self.extent(found, wanted.latency), self.made);
        let mut names = Names::new();
        let offset = self.guest.name_offset();
        let mut skipped = 0;
        for number in extent.first..end {
            let record = self.at(number);
            if !extent.has(number, &record) {
                skipped += 1;
                continue;
            }
            // SAFETY: a record's block stays for good, and nothing else looks at it now.
            self.write_block(unsafe { &mut *record.block });
            if names.is_new(record.task) {
                let name = offset.and_then(|offset| self.guest.name(record.task, offset));
                let [first, second] = name.unwrap_or_default();
                self.output.put(&[layout::NAME, record.task, first, second]);
            }
        }
        let written = |end: u64| end - extent.first - skipped;
        self.output.put(&[layout::WINDOW, wanted.at, wanted.latency, written(found), written(end)]);
        for number in extent.first..end {
            let record = self.at(number);
            if extent.has(number, &record) {
                self.write_record(record);
            }
        }
    }

    fn write_record(&mut self, record: Record) {
        let mut words = [0; layout::RECORD];
        words[layout::COUNT] = record.count;
        words[layout::STACK] = record.stack;
        words[layout::TASK] = record.task;
        words[layout::NOTE] = record.note;
        // SAFETY: a record's block stays for good.
        words[layout::BLOCK_AND_FLAGS] =
            u64::from(unsafe { (*record.block).id }) | u64::from(record.flags) << 32;
        words[layout::PREEMPT_AND_KIND] = u64::from(record.preempt) | u64::from(record.kind) << 32;
        self.output.put(&words);
    }

    fn write_block(&mut self, block: &mut Block) {
        if core::mem::replace(&mut block.is_written, true) {
            return;
        }
        let (count, length) = (block.instructions as usize, block.length as usize);
        let counts = [u64::from(block.instructions), u64::from(block.length)];
        self.output.put(&[layout::BLOCK, u64::from(block.id), block.address, counts[0], counts[1]]);
        // SAFETY: `keep` has filled so many bytes.
        let text = unsafe { core::slice::from_raw_parts(block.text, count + length) };
        self.output.put_bytes(&text[..count]);
        self.output.put_bytes(&text[count..]);
    }

    /// The guest has ended.
    pub fn finish(&mut self) {
        self.next = self.arguments.wanted.len();
        if self.made > 0 {
            self.write_due(u64::MAX);
        }
        if !self.arguments.ranges.is_empty() {
            self.output.put(&[layout::SECTIONS, self.sections.found().count() as u64, self.sections.lost]);
            for section in self.sections.found() {
                self.output.put(&section.words());
            }
        }
        if !self.guest.counts() {
            self.output.put(&[layout::UNCOUNTED]);
        }
        let trouble = self.trouble.map_or(0, |trouble| trouble as u64);
        self.output.put(&[layout::END, self.count(), trouble]);
        self.output.flush();
    }
}

/// A table of sections that is free.
fn table(count: usize) -> Option<&'static mut [Section]> {
    let memory: NonNull<Section> = allocate(count.max(1))?;
    // SAFETY: so many were allocated for good, zero is a value of each field, and nobody else has them.
    Some(unsafe { core::slice::from_raw_parts_mut(memory.as_ptr(), count) })
}

/// The records that are written for a wake-up: all from `whole` on, and those of the thread that ran when it was due from `first` on,
/// which say who had called what that did.
struct Extent {
    first: u64,
    whole: u64,
    thread: u64,
}

impl Extent {
    fn has(&self, number: u64, record: &Record) -> bool {
        number >= self.whole || record.task == self.thread
    }
}

/// The threads of a window.
struct Names {
    all: [u64; NAMES],
    count: usize,
}

impl Names {
    fn new() -> Self {
        Self { all: [0; NAMES], count: 0 }
    }

    /// Whether it is a thread that was not met yet: most records are of the last one that was.
    fn is_new(&mut self, task: u64) -> bool {
        if task < KERNEL || self.all[..self.count].iter().rev().any(|&known| known == task) {
            return false;
        }
        if self.count < NAMES {
            self.all[self.count] = task;
            self.count += 1;
        }
        true
    }
}
