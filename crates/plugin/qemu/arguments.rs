//! What the plugin is asked for: `name=value`, numbers in hexadecimal, lists with colons.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::NonNull;

use crate::allocate;

/// More wake-ups are not looked for.
pub const MOST_WANTED: usize = 4096;

/// A wake-up that is looked for, or a stretch of instructions.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// When it came, in nanoseconds of `CLOCK_MONOTONIC`; of a stretch, instructions that have begun at its end.
    pub at: u64,
    /// How late it was, in nanoseconds; of a stretch, how many instructions it is.
    pub latency: u64,
    /// The number of the record that it was found at, and one; 0: not found.
    pub found: u64,
}

/// A stretch of time whose sections are looked for, in nanoseconds of `CLOCK_MONOTONIC`; or of addresses.
#[derive(Clone, Copy)]
pub struct Range {
    pub from: u64,
    pub until: u64,
}

/// Addresses in the guest are those of its symbols; 0: there is none.
pub struct Arguments {
    /// Where the stream goes: a path.
    pub out: *const c_char,
    /// In order of time.
    pub wanted: &'static mut [Wanted],
    /// They are stretches of instructions.
    pub are_stretches: bool,
    /// Apart, in order of time.
    pub ranges: &'static [Range],
    /// Where interrupts of the kernel begin, on architectures that can take one before the first instruction with interrupts on.
    pub entries: &'static [Range],
    /// Bytes of the guest's memory.
    pub memory: u64,
    /// Where the kernel's image begins; 0: where the architecture has it.
    pub image: u64,
    /// `tk_core`; 0: where the code of `ktime_get` reads it.
    pub clock: u64,
    /// `ktime_get`.
    pub ktime: u64,
    /// `__per_cpu_offset`.
    pub areas: u64,
    /// `preempt_count` and `current_task` in the area of a CPU, where they are there.
    pub preempt: u64,
    pub task: u64,
    /// `init_task`, whose name is known; 0: the thread that the CPU begins with.
    pub init: u64,
    /// `try_to_wake_up`.
    pub wake: u64,
    /// The entry of page faults, where the stack has an error code then.
    pub fault: u64,
}

impl Arguments {
    /// None where one of them is not understood.
    ///
    /// # Safety
    /// `all` has `count` strings that end with a zero and stay.
    pub unsafe fn read(count: c_int, all: *const *const c_char) -> Option<Self> {
        let mut arguments = Self {
            out: core::ptr::null(),
            wanted: &mut [],
            are_stretches: false,
            ranges: &[],
            entries: &[],
            memory: 0,
            image: 0,
            clock: 0,
            ktime: 0,
            areas: 0,
            preempt: 0,
            task: 0,
            init: 0,
            wake: 0,
            fault: 0,
        };
        for number in 0..usize::try_from(count).ok()? {
            // SAFETY: the caller says so.
            let argument = unsafe { CStr::from_ptr(*all.add(number)) };
            arguments.take(argument)?;
        }
        (!arguments.out.is_null()).then_some(arguments)
    }

    fn take(&mut self, argument: &CStr) -> Option<()> {
        let bytes = argument.to_bytes();
        let end = bytes.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&bytes[..end], &bytes[end + 1..]);
        let place = match name {
            b"out" => {
                let path = argument.to_bytes_with_nul()[end + 1..].as_ptr().cast();
                self.out = keep(path, value.len() + 1)?;
                return Some(());
            }
            b"wanted" | b"stretches" => {
                self.wanted = pairs(value, |at, latency| Wanted { at, latency, found: 0 })?;
                self.are_stretches = name == b"stretches";
                return Some(());
            }
            b"ranges" => {
                self.ranges = pairs(value, |from, until| Range { from, until })?;
                return Some(());
            }
            b"entries" => {
                self.entries = pairs(value, |from, until| Range { from, until })?;
                return Some(());
            }
            b"memory" => &mut self.memory,
            b"image" => &mut self.image,
            b"clock" => &mut self.clock,
            b"ktime" => &mut self.ktime,
            b"areas" => &mut self.areas,
            b"preempt" => &mut self.preempt,
            b"task" => &mut self.task,
            b"init" => &mut self.init,
            b"wake" => &mut self.wake,
            b"fault" => &mut self.fault,
            _ => return None,
        };
        *place = number(value)?;
        Some(())
    }
}

/// A copy that stays: QEMU frees its strings.
fn keep(text: *const c_char, length: usize) -> Option<*const c_char> {
    let copy: NonNull<c_char> = allocate(length)?;
    // SAFETY: both are so long, and the copy is new.
    unsafe { core::ptr::copy_nonoverlapping(text, copy.as_ptr(), length) };
    Some(copy.as_ptr())
}

/// `A-B:A-B`, each made by `new`.
fn pairs<T>(text: &[u8], new: impl Fn(u64, u64) -> T) -> Option<&'static mut [T]> {
    let count = text.split(|&byte| byte == b':').count();
    let memory = (count <= MOST_WANTED).then(|| allocate::<T>(count)).flatten()?;
    for (place, one) in text.split(|&byte| byte == b':').enumerate() {
        let dash = one.iter().position(|&byte| byte == b'-')?;
        // SAFETY: so many were allocated, and nobody else has them.
        unsafe { memory.add(place).write(new(number(&one[..dash])?, number(&one[dash + 1..])?)) };
    }
    // SAFETY: each of them was written.
    Some(unsafe { core::slice::from_raw_parts_mut(memory.as_ptr(), count) })
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    let add = |sum: u64, byte: &u8| sum.checked_mul(16)?.checked_add(u64::from(digit(byte)?));
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}
