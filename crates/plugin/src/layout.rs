//! The stream that the plugin writes: words of 64 bits, little-endian. A stream is [`MAGIC`] and items; an item is its kind and
//! what that kind has. [`END`] is the last one.

/// The first word: `wcscope1`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"wcscope1");

/// A block of instructions: id, address, how many instructions, how many bytes; then a byte with the length of each
/// instruction, and their bytes, each of the two filled up to a word.
pub const BLOCK: u64 = 1;
/// A thread's name: its `task_struct`, and 16 bytes.
pub const NAME: u64 = 2;
/// A wake-up that was looked for: nanoseconds at which it came, how late it was, the place of the record at whose start the
/// time had been read, how many records; then the records. Or a stretch of instructions: how many had begun at its end, how many
/// it is, the place of the record with which it ended, and the same.
pub const WINDOW: u64 = 3;
/// The end: instructions that were counted, and why no more came (one of [`Trouble`], 0: none).
pub const END: u64 = 4;
/// Sections ([`crate::sections::Section`]): how many, how many more there was no room for, and the words of each.
pub const SECTIONS: u64 = 5;
/// The guest's architecture, before anything else: one of the two. Where it is missing, it is the first.
pub const MACHINE: u64 = 6;
/// The kernel does not count what keeps preemption off (`CONFIG_PREEMPT_COUNT=n`): interrupts only.
pub const UNCOUNTED: u64 = 7;

/// The number of amd64.
pub const AMD64: u64 = 0;
/// Of arm64.
pub const ARM64: u64 = 1;

/// Words of a record, which describes the start of a block.
pub const RECORD: usize = 6;
/// In a record: instructions that had begun before.
pub const COUNT: usize = 0;
/// The stack pointer.
pub const STACK: usize = 1;
/// The `task_struct` of the thread.
pub const TASK: usize = 2;
/// The note: what its kind says.
pub const NOTE: usize = 3;
/// The block's id, and in the upper half EFLAGS; of other architectures that bit of it that says whether interrupts are on.
pub const BLOCK_AND_FLAGS: usize = 4;
/// `preempt_count`, and the note's kind in the upper half.
pub const PREEMPT_AND_KIND: usize = 5;

/// The note is a reading of the CPU's counter of time that has just ended.
pub const READING: u32 = 1;
/// The note is the first argument of a function that is watched.
pub const ARGUMENT: u32 = 2;
/// The note is the error code of an exception.
pub const ERROR_CODE: u32 = 3;

/// Instructions of a block, at most: a plugin sees no longer one.
pub const LONGEST_BLOCK: usize = 4096;

/// Why a plugin could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Trouble {
    /// This QEMU does not export the functions that read registers and memory.
    NoFunctions = 1,
    /// The CPU's registers were not found in its memory.
    NoRegisters = 2,
    /// The guest's memory was not found.
    NoMemory = 3,
    /// The kernel's clock was not found.
    NoClock = 4,
    /// The stream could not be written.
    NotWritten = 5,
    /// The preemption count was not found.
    NoCount = 6,
}
