//! Stretches in which interrupts, or preemption, were off: of each place that turned them off the longest.
//!
//! The plugin calls [`Sections::step`] at the start of each block. Nothing here asks the emulator, so that it can be tested
//! without one.

/// EFLAGS: interrupts are on.
pub const INTERRUPTS_ON: u32 = 1 << 9;
/// `preempt_count`: bit 31 is clear where a reschedule is wanted, the others count.
pub const NOT_WANTED: u32 = 1 << 31;
/// A softirq is served.
pub const SERVING_SOFTIRQ: u32 = 0x100;
/// A hard interrupt is.
pub const HARD_INTERRUPT: u32 = 0xf_0000;
/// An NMI is.
pub const NMI: u32 = 0xf0_0000;

/// How far above threads the CPU is by its `preempt_count`: 0 a thread, 1 a softirq, 2 a hard interrupt, 3 an NMI.
pub fn level(preempt: u32) -> u32 {
    match preempt {
        _ if preempt & NMI != 0 => 3,
        _ if preempt & HARD_INTERRUPT != 0 => OF_INTERRUPTS,
        _ => u32::from(preempt & SERVING_SOFTIRQ != 0),
    }
}

/// The level of hard interrupts.
const OF_INTERRUPTS: u32 = 2;

/// What was off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Off {
    /// Interrupts.
    Interrupts = 0,
    /// Preemption: the count was not zero, or interrupts were off.
    Preemption = 1,
}

/// All of them, in the order of their numbers.
pub const OFF: [Off; 2] = [Off::Interrupts, Off::Preemption];

/// The start of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Instructions that had begun before.
    pub count: u64,
    /// Of the block.
    pub address: u64,
    /// EFLAGS.
    pub flags: u32,
    /// `preempt_count`, as it stands in memory.
    pub preempt: u32,
    /// The CPU's idle thread runs. It has a count of one for good, and gives the CPU away all the same.
    pub is_idle: bool,
    /// Instructions of the block up to the first `cli`, with it; 0: it has none.
    pub until_off: u32,
    /// The block ends with a call.
    pub is_call: bool,
    /// An interrupt begins with it: they were on, even if no block has begun meanwhile.
    pub is_entry: bool,
}

impl Start {
    fn interrupts_are_off(&self) -> bool {
        self.flags & INTERRUPTS_ON == 0
    }

    fn is_counted(&self) -> bool {
        self.preempt & !NOT_WANTED > u32::from(self.is_idle)
    }

    /// An interrupt shows that it was not off for a moment.
    fn lets(&self, off: Off) -> bool {
        self.is_entry && (off == Off::Interrupts || !self.is_counted())
    }

    fn is(&self, off: Off) -> bool {
        self.interrupts_are_off() || off == Off::Preemption && self.is_counted()
    }
}

/// A place that turns something off, and the longest of what it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// An [`Off`].
    pub off: u32,
    /// The [`level`] at which it began. What came above it is not counted.
    pub level: u32,
    /// The number of the stretch of time in which it was.
    pub range: u32,
    /// The block that turned it off; where an interrupt or an exception did, the first of its entry.
    pub address: u64,
    /// The block with the last call before that.
    pub call: u64,
    /// The block at whose start the longest had ended.
    pub end: u64,
    /// Instructions that had begun before the longest.
    pub count: u64,
    /// Instructions from there until the longest ended.
    pub span: u64,
    /// Those of them that are its own: without what interrupted it.
    pub length: u64,
    /// How many there were; 0: this place of the table is free.
    pub times: u64,
    /// Instructions of all, without what interrupted them.
    pub sum: u64,
}

/// Words of a [`Section`] in the stream.
pub const WORDS: usize = 9;

impl Section {
    /// As it stands in the stream.
    pub fn words(&self) -> [u64; WORDS] {
        let kind = u64::from(self.off) | u64::from(self.level) << 8 | u64::from(self.range) << 32;
        let Self { address, call, end, count, span, length, times, sum, .. } = *self;
        [kind, address, call, end, count, span, length, times, sum]
    }

    /// From the stream. None where the words are no section.
    pub fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let [kind, address, call, end, count, span, length, times, sum] = words;
        let (off, level, range) = (kind as u32 & 0xff, kind as u32 >> 8, (kind >> 32) as u32);
        let is_one = (off as usize) < OFF.len() && times > 0 && length <= sum && length <= span;
        let is_whole = is_one && count.checked_add(span).is_some();
        is_whole.then_some(Self { off, level, range, address, call, end, count, span, length, times, sum })
    }

    fn is_of(&self, other: &Self) -> bool {
        (self.off, self.range, self.address, self.call) == (other.off, other.range, other.address, other.call)
    }
}

/// One that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    address: u64,
    call: u64,
    count: u64,
    level: u32,
    /// Instructions of what interrupted it.
    taken: u64,
}

/// What is off now, and what was.
pub struct Sections<'a> {
    table: &'a mut [Section],
    open: [Option<Open>; OFF.len()],
    last: Option<Start>,
    call: u64,
    /// Sections that the table had no room for.
    pub lost: u64,
}

impl<'a> Sections<'a> {
    /// With a table that is free.
    pub fn new(table: &'a mut [Section]) -> Self {
        Self { table, open: [None; OFF.len()], last: None, call: 0, lost: 0 }
    }

    /// What came before is not known: nothing that is off now has a beginning.
    pub fn begin(&mut self) {
        self.open = [None; OFF.len()];
        self.last = None;
        self.call = 0;
    }

    /// A block starts, in the stretch of time with the number `range`.
    #[inline]
    pub fn step(&mut self, start: Start, range: u32) {
        let Some(last) = self.last.replace(start) else { return };
        if last.is_call {
            self.call = last.address;
        }
        let (above, passed) = (level(last.preempt), start.count.saturating_sub(last.count));
        for open in self.open.iter_mut().flatten().filter(|open| above > open.level) {
            open.taken += passed;
        }
        for (off, open) in OFF.into_iter().zip(0..) {
            let was = last.is(off) && !start.lets(off);
            match (was, start.is(off)) {
                _ if last.is(off) && start.lets(off) => {
                    if let Some(ended) = self.open[open].take() {
                        self.close(off, range, ended, &start);
                    }
                    self.open[open] = Some(begun(&last, &start, self.call));
                }
                (false, true) => self.open[open] = Some(begun(&last, &start, self.call)),
                (true, false) => {
                    if let Some(ended) = self.open[open].take() {
                        self.close(off, range, ended, &start);
                    }
                }
                _ => {}
            }
        }
    }

    fn close(&mut self, off: Off, range: u32, open: Open, start: &Start) {
        let Open { address, call, count, level, taken } = open;
        let span = start.count.saturating_sub(count);
        let length = span.saturating_sub(taken);
        let (off, end) = (off as u32, start.address);
        let new =
            Section { off, level, range, address, call, end, count, span, length, times: 1, sum: length };
        let Some(place) = self.place(&new) else {
            self.lost += 1;
            return;
        };
        let known = &mut self.table[place];
        if known.times == 0 {
            *known = new;
            return;
        }
        known.times += 1;
        known.sum += length;
        if length > known.length {
            (known.length, known.span, known.count, known.end) = (length, span, count, end);
        }
    }

    /// Where it stands in the table, or could.
    fn place(&self, new: &Section) -> Option<usize> {
        let size = self.table.len();
        let number =
            new.address.rotate_left(24) ^ new.call ^ u64::from(new.off) << 1 ^ u64::from(new.range) << 8;
        let first = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let places = (0..size).map(|next| first.wrapping_add(next) % size);
        places.into_iter().find(|&place| self.table[place].times == 0 || self.table[place].is_of(new))
    }

    /// What was found.
    pub fn found(&self) -> impl Iterator<Item = &Section> {
        self.table.iter().filter(|section| section.times > 0)
    }
}

/// Where it was turned off between the starts of two blocks. The count changes somewhere in the first of them: the section then begins
/// with that block, and is too long by a few instructions at most.
fn begun(last: &Start, start: &Start, call: u64) -> Open {
    let by_interrupts = start.interrupts_are_off() && (!last.interrupts_are_off() || start.is_entry);
    let of_thread = level(last.preempt);
    let (address, count, level) = match last.until_off {
        _ if !by_interrupts => (last.address, last.count, of_thread),
        _ if start.is_entry => (start.address, start.count, of_thread.max(OF_INTERRUPTS)),
        // An interrupt's entry: the interrupt is its own, and not yet counted.
        0 => (start.address, start.count, of_thread.max(OF_INTERRUPTS)),
        until_off => (last.address, last.count + u64::from(until_off), of_thread),
    };
    Open { address, call, count, level, taken: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ON: u32 = INTERRUPTS_ON;

    fn start(count: u64, address: u64, flags: u32, preempt: u32) -> Start {
        Start { count, address, flags, preempt: preempt | NOT_WANTED, ..Start::default() }
    }

    fn found(starts: &[Start], room: usize) -> (Vec<Section>, u64) {
        let mut table = vec![Section::default(); room];
        let mut sections = Sections::new(&mut table);
        for start in starts {
            sections.step(*start, 3);
        }
        let mut found: Vec<Section> = sections.found().copied().collect();
        found.sort_by_key(|section| (section.off, section.count));
        (found, sections.lost)
    }

    #[test]
    fn a_section_begins_behind_cli_and_ends_where_interrupts_are_on() {
        let call = Start { is_call: true, ..start(90, 0x10, ON, 0) };
        let starts = [
            call,
            Start { until_off: 4, ..start(100, 0x20, ON, 0) },
            start(110, 0x30, 0, 0),
            start(150, 0x40, ON, 0),
        ];
        let one = Section {
            off: Off::Interrupts as u32,
            level: 0,
            range: 3,
            address: 0x20,
            call: 0x10,
            end: 0x40,
            count: 104,
            span: 46,
            length: 46,
            times: 1,
            sum: 46,
        };
        let two = Section { off: Off::Preemption as u32, ..one };
        assert_eq!(found(&starts, 8), (vec![one, two], 0));
    }

    #[test]
    fn a_section_that_an_interrupt_begins_is_that_interrupts() {
        let starts = [
            start(100, 0x20, ON, 0),
            start(110, 0x90, 0, 0),
            start(130, 0x90, 0, 1 << 16),
            start(150, 0x20, ON, 0),
        ];
        let (all, _) = found(&starts, 8);
        let of = |section: &Section| (section.off, section.address, section.count, section.length);
        assert_eq!(all.iter().map(of).collect::<Vec<_>>(), [(0, 0x90, 110, 40), (1, 0x90, 110, 40)]);
    }

    #[test]
    fn an_interrupt_that_waited_for_interrupts_ends_a_section_and_is_its_own() {
        let entry = |preempt| Start { is_entry: true, ..start(150, 0x90, 0, preempt) };
        for (preempt, sections) in [
            (0, vec![(0, 0x20, 103, 47), (0, 0x90, 150, 50), (1, 0x20, 103, 47), (1, 0x90, 150, 50)]),
            (1, vec![(0, 0x20, 103, 47), (0, 0x90, 150, 50), (1, 0x20, 103, 197)]),
        ] {
            let starts = [
                Start { until_off: 3, ..start(100, 0x20, ON, 0) },
                start(110, 0x30, 0, preempt),
                entry(preempt),
                start(200, 0x40, ON, preempt),
                start(300, 0x50, ON, 0),
            ];
            let (all, _) = found(&starts, 8);
            let of = |section: &Section| (section.off, section.address, section.count, section.length);
            assert_eq!(all.iter().map(of).collect::<Vec<_>>(), sections);
        }
    }

    #[test]
    fn preemption_is_off_across_interrupts_and_the_idle_thread_does_not_count() {
        let idle = |count, preempt| Start { is_idle: true, ..start(count, 0x20, ON, preempt) };
        let starts =
            [idle(0, 1), idle(100, 2), start(200, 0x30, 0, 2), start(300, 0x40, ON, 2), idle(400, 1)];
        let (all, _) = found(&starts, 8);
        let of = |section: &Section| (section.off, section.count, section.length);
        assert_eq!(all.iter().map(of).collect::<Vec<_>>(), [(0, 200, 100), (1, 0, 400)]);
    }

    #[test]
    fn an_interrupt_in_a_section_is_not_counted_in_it_and_is_one_of_its_own() {
        let hard = 1 << 16;
        let starts = [
            start(0, 0x20, ON, 0),
            start(10, 0x28, ON, 1),
            start(50, 0x90, 0, 1),
            start(60, 0x98, 0, 1 + hard),
            start(160, 0x9c, 0, 1),
            start(170, 0x2c, ON, 1),
            start(200, 0x30, ON, 0),
        ];
        let (all, _) = found(&starts, 8);
        let of = |section: &Section| (section.off, section.address, section.span, section.length);
        assert_eq!(all.iter().map(of).collect::<Vec<_>>(), [(0, 0x90, 120, 120), (1, 0x20, 200, 100)]);
    }

    #[test]
    fn what_was_off_from_the_beginning_has_no_length() {
        let starts = [start(0, 0x20, 0, 1), start(100, 0x20, ON, 1), start(200, 0x30, ON, 0)];
        assert_eq!(found(&starts, 8), (vec![], 0));
    }

    #[test]
    fn a_table_without_room_says_how_many_it_lost() {
        let pair = |at: u64| [start(at, at, ON, 0), start(at + 1, at, ON, 1)];
        let starts: Vec<Start> =
            (1..=5).flat_map(|number| pair(number * 10)).chain([start(99, 9, ON, 0)]).collect();
        let (all, lost) = found(&starts, 2);
        assert_eq!((all.len(), lost), (2, 3));
    }

    fn any_start() -> impl Strategy<Value = (u64, u64, bool, u32, bool, u32, bool)> {
        (0..50_u64, 0..6_u64, any::<bool>(), 0..3_u32, any::<bool>(), 0..3_u32, any::<bool>())
    }

    proptest! {
        #[test]
        fn any_blocks_have_the_sections_that_a_plain_look_at_them_has(all in prop::collection::vec(any_start(), 0..60)) {
            let mut count = 0;
            let starts: Vec<Start> = all.into_iter().map(|(length, address, on, preempt, is_idle, until_off, is_call)| {
                count += length + 3;
                let flags = if on { ON } else { 0 };
                Start { is_idle, until_off, is_call, ..start(count, address, flags, preempt) }
            }).collect();
            let (found, lost) = found(&starts, 4096);
            prop_assert_eq!(lost, 0);
            for off in OFF {
                // Stretches of blocks that are off, between two that are on.
                let is_off: Vec<bool> = starts.iter().map(|start| start.is(off)).collect();
                let stretches = (1..starts.len())
                    .filter(|&first| is_off[first] && !is_off[first - 1])
                    .filter_map(|first| Some((first, (first..starts.len()).find(|&place| !is_off[place])?)));
                let lengths: Vec<(u64, u64)> = stretches.map(|(first, end)| {
                    let (inner, outer) = (starts[end].count - starts[first].count, starts[end].count - starts[first - 1].count);
                    (inner, outer)
                }).collect();
                let of: Vec<&Section> = found.iter().filter(|section| section.off == off as u32).collect();
                prop_assert_eq!(of.iter().map(|section| section.times).sum::<u64>(), lengths.len() as u64);
                let sum: u64 = of.iter().map(|section| section.sum).sum();
                prop_assert!(lengths.iter().map(|(inner, _)| inner).sum::<u64>() <= sum);
                prop_assert!(sum <= lengths.iter().map(|(_, outer)| outer).sum::<u64>());
                let longest = of.iter().map(|section| section.length).max().unwrap_or(0);
                prop_assert!(lengths.iter().all(|(inner, _)| *inner <= longest));
                prop_assert!(of.iter().all(|section| Section::from_words(section.words()) == Some(**section)));
            }
        }
    }
}
