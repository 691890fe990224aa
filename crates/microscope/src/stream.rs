//! The plugin's stream, read.

use std::collections::HashMap;

use plugin::layout::{self, Trouble};
use plugin::sections::{Section, WORDS};
use units::Nanos;

use crate::machine::{AMD64, ARM64, Machine};

/// What the plugin has written.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The guest's architecture.
    pub(crate) machine: &'static Machine,
    /// The kernel counts what keeps preemption off, as far as is known.
    pub counts_preemption: bool,
    /// Blocks by their id.
    pub blocks: HashMap<u32, Block>,
    /// The wake-ups that were found, in order of time.
    pub windows: Vec<Window>,
    /// Places that turned interrupts or preemption off, where they were asked for.
    pub sections: Vec<Section>,
    /// How many sections there was no room for.
    pub lost_sections: u64,
    /// Instructions that were counted in all.
    pub instructions: u64,
}

/// Instructions that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Of the first.
    pub address: u64,
    /// Bytes of each.
    pub sizes: Vec<u8>,
    /// All of them.
    pub bytes: Vec<u8>,
}

/// A wake-up and what the CPU did before it; or a stretch of instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When it came, on the guest's `CLOCK_MONOTONIC`; of a stretch, instructions that had begun at its end.
    pub at: Nanos,
    /// How late it was; of a stretch, how many instructions it is.
    pub latency: Nanos,
    /// The place in `records` of the one at whose start the time had been read, or the stretch had ended.
    pub found: usize,
    /// Names of threads by their `task_struct`, as they were at its end: another thread can have the same one later.
    pub names: HashMap<u64, String>,
    /// Starts of blocks, in order of time.
    pub records: Vec<Record>,
}

/// The start of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Instructions that had begun before.
    pub count: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The thread's `task_struct`.
    pub task: u64,
    /// Which block.
    pub block: u32,
    /// EFLAGS, without those of arithmetic; of other architectures that bit of it that says whether interrupts are on.
    pub flags: u32,
    /// `preempt_count`, as it stands in memory.
    pub preempt: u32,
    /// What else was seen.
    pub note: Note,
}

/// What was seen at the start of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Note {
    /// Nothing of interest.
    #[default]
    Nothing,
    /// The counter of time that the instruction before has read.
    Reading(u64),
    /// The first argument of the function that begins here.
    Argument(u64),
    /// The error code of the exception that begins here.
    ErrorCode(u64),
}

/// Why bytes are not a whole stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Something else.
    #[error("the plugin has written nothing, or not what it writes")]
    Foreign,
    /// It ends early.
    #[error("the plugin's stream ends after {0} words, before its last item")]
    Short(usize),
    /// A word makes no sense.
    #[error("the plugin's stream is damaged at word {0}")]
    Damaged(usize),
    /// This QEMU does not export what the plugin needs.
    #[error("this QEMU does not export the functions that read a guest's registers")]
    NoFunctions,
    /// Registers were not where they are in QEMU 7.2.
    #[error("the guest's registers were not found in this QEMU")]
    NoRegisters,
    /// Memory was not where it is in QEMU 7.2, or there was none left for the plugin.
    #[error("the guest's memory was not found, or there was none left for what is recorded")]
    NoMemory,
    /// `tk_core` is not as it is in Linux 5.0 to 6.17.
    #[error("the guest kernel's clock was not found (tk_core)")]
    NoClock,
    /// The preemption count was not found.
    #[error("the guest kernel's preemption count was not found")]
    NoCount,
    /// The file could not be written.
    #[error("the plugin could not write all of its stream: is there memory?")]
    NotWritten,
}

impl Stream {
    fn new() -> Self {
        Self {
            machine: &AMD64,
            counts_preemption: true,
            blocks: HashMap::new(),
            windows: Vec::new(),
            sections: Vec::new(),
            lost_sections: 0,
            instructions: 0,
        }
    }

    /// Reads a stream. Its memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// Where it is not whole, or the plugin says what it could not do.
    pub fn parse(bytes: &[u8]) -> Result<Self, StreamError> {
        let mut words = Words { bytes, place: 0 };
        if words.next() != Ok(layout::MAGIC) {
            return Err(StreamError::Foreign);
        }
        let mut stream = Self::new();
        let mut names = HashMap::new();
        loop {
            match words.next()? {
                layout::MACHINE => {
                    stream.machine = match words.next()? {
                        layout::AMD64 => &AMD64,
                        layout::ARM64 => &ARM64,
                        _ => return Err(words.damaged()),
                    };
                }
                layout::UNCOUNTED => stream.counts_preemption = false,
                layout::BLOCK => stream.take_block(&mut words)?,
                layout::NAME => {
                    let (task, name) = (words.next()?, words.bytes(16)?);
                    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                    names.insert(task, String::from_utf8_lossy(name).into_owned());
                }
                layout::WINDOW => {
                    let window = stream.window(&mut words)?;
                    stream.windows.push(Window { names: std::mem::take(&mut names), ..window });
                }
                layout::SECTIONS => stream.take_sections(&mut words)?,
                layout::END => {
                    stream.instructions = words.next()?;
                    return trouble(words.next()?).map_or(Ok(stream), Err);
                }
                _ => return Err(words.damaged()),
            }
        }
    }

    fn take_block(&mut self, words: &mut Words<'_>) -> Result<(), StreamError> {
        let (id, address) = (words.small()?, words.next()?);
        let (count, length) = (words.small()? as usize, words.small()? as usize);
        let (sizes, bytes) = (words.bytes(count)?.to_vec(), words.bytes(length)?.to_vec());
        let sum: usize = sizes.iter().map(|&size| usize::from(size)).sum();
        if count == 0 || sum != length {
            return Err(words.damaged());
        }
        self.blocks.insert(id, Block { address, sizes, bytes });
        Ok(())
    }

    fn take_sections(&mut self, words: &mut Words<'_>) -> Result<(), StreamError> {
        let count = words.small()?;
        self.lost_sections = words.next()?;
        for _ in 0..count {
            let mut all = [0; WORDS];
            for word in &mut all {
                *word = words.next()?;
            }
            self.sections.push(Section::from_words(all).ok_or_else(|| words.damaged())?);
        }
        Ok(())
    }

    fn window(&self, words: &mut Words<'_>) -> Result<Window, StreamError> {
        let (at, latency) = (Nanos(words.next()?), Nanos(words.next()?));
        let (found, count) = (words.small()? as usize, words.small()? as usize);
        let mut window = Window { at, latency, found, ..Window::default() };
        if found >= count || words.left() / layout::RECORD < count {
            return Err(words.damaged());
        }
        for _ in 0..count {
            let record = record(words)?;
            let is_in_order = window.records.last().is_none_or(|last: &Record| last.count <= record.count);
            if !is_in_order || !self.blocks.contains_key(&record.block) {
                return Err(words.damaged());
            }
            window.records.push(record);
        }
        Ok(window)
    }
}

fn record(words: &mut Words<'_>) -> Result<Record, StreamError> {
    let mut all = [0; layout::RECORD];
    for word in &mut all {
        *word = words.next()?;
    }
    let (block, flags) = halves(all[layout::BLOCK_AND_FLAGS]);
    let (preempt, kind) = halves(all[layout::PREEMPT_AND_KIND]);
    let note = match kind {
        0 => Note::Nothing,
        layout::READING => Note::Reading(all[layout::NOTE]),
        layout::ARGUMENT => Note::Argument(all[layout::NOTE]),
        layout::ERROR_CODE => Note::ErrorCode(all[layout::NOTE]),
        _ => return Err(words.damaged()),
    };
    let (count, stack, task) = (all[layout::COUNT], all[layout::STACK], all[layout::TASK]);
    Ok(Record { count, stack, task, block, flags, preempt, note })
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn trouble(word: u64) -> Option<StreamError> {
    let is = |trouble: Trouble| word == trouble as u64;
    Some(match word {
        0 => return None,
        _ if is(Trouble::NoFunctions) => StreamError::NoFunctions,
        _ if is(Trouble::NoRegisters) => StreamError::NoRegisters,
        _ if is(Trouble::NoClock) => StreamError::NoClock,
        _ if is(Trouble::NotWritten) => StreamError::NotWritten,
        _ if is(Trouble::NoCount) => StreamError::NoCount,
        _ => StreamError::NoMemory,
    })
}

struct Words<'a> {
    bytes: &'a [u8],
    /// Words that were read.
    place: usize,
}

impl<'a> Words<'a> {
    fn left(&self) -> usize {
        self.bytes.len() / 8
    }

    fn damaged(&self) -> StreamError {
        StreamError::Damaged(self.place)
    }

    fn next(&mut self) -> Result<u64, StreamError> {
        let (word, rest) = self.bytes.split_first_chunk().ok_or(StreamError::Short(self.place))?;
        self.bytes = rest;
        self.place += 1;
        Ok(u64::from_le_bytes(*word))
    }

    fn small(&mut self) -> Result<u32, StreamError> {
        self.next()?.try_into().map_err(|_| self.damaged())
    }

    /// So many bytes, without those that fill up the last word.
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], StreamError> {
        let words = count.div_ceil(8);
        if words > self.left() {
            return Err(StreamError::Short(self.place));
        }
        let (taken, rest) = self.bytes.split_at(words * 8);
        self.bytes = rest;
        self.place += words;
        Ok(&taken[..count])
    }
}
