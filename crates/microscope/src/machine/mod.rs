//! What differs between guests of two architectures, as data.

mod amd64;
mod arm64;

use crate::code::Kind;

pub use amd64::AMD64;
pub use arm64::ARM64;

/// Programs have no address so high, and the kernel none below.
pub const KERNEL: u64 = 1 << 63;

/// An architecture of guests.
#[derive(Debug)]
pub struct Machine {
    /// What an instruction is.
    pub kind: fn(&[u8]) -> Kind,
    /// How callers are found.
    pub callers: Callers,
    /// Names of the code that interrupts and exceptions begin with: their beginnings.
    pub entries: &'static [&'static str],
    /// The ending of names that begin so and are none.
    pub no_entry: Option<&'static str>,
    /// What an entry's name begins with, and says nothing.
    pub prefix: &'static str,
    /// Interrupts' handlers that run on another stack than their entry: beginnings of their names.
    pub handlers: &'static [&'static str],
    /// A whole name of one.
    pub handler: Option<&'static str>,
    /// The function in which the timer's interrupt is first known as such.
    pub timer: &'static str,
    /// How it is known that an instruction has begun and not ended.
    pub faults: Faults,
    /// Functions that serve page faults.
    pub page_faults: &'static [&'static str],
    /// Nanoseconds of a step of the counter that the guest's clock is made of.
    pub tick: u64,
}

/// How callers are found.
#[derive(Debug)]
pub enum Callers {
    /// From stack pointers: calls push.
    Stack {
        /// Beginnings of names of code through which a function returns: it is still that function.
        return_thunks: &'static [&'static str],
    },
    /// From calls and returns, which leave the stack pointer as it is.
    Links {
        /// Tables of the code that exceptions begin with, in steps of 128 bytes. The stack pointer is not one in between.
        vectors: &'static [&'static str],
        /// Functions that call the handler of an interrupt's device.
        callers_of_handlers: &'static [&'static str],
        /// Where a new thread begins.
        beginning: &'static str,
        /// The function that switches to another thread's stack.
        switch: &'static str,
    },
}

/// How it is known that an instruction has begun and not ended.
#[derive(Debug)]
pub enum Faults {
    /// By the exception's entry.
    Entries {
        /// Page faults have an error code, which says whether the fault was of fetching the instruction: then it had not begun.
        page_fault: &'static str,
        /// Exceptions of an instruction that has begun and does not end.
        others: &'static [&'static str],
    },
    /// An exception came in the middle of a block, or behind its last instruction and the function that serves it is one of
    /// `functions`, which all exceptions of a table come by.
    Functions {
        /// Tables of the code that exceptions begin with.
        vectors: &'static [&'static str],
        /// Functions that serve exceptions of an instruction that has begun and does not end.
        functions: &'static [&'static str],
        /// Of any other.
        others: &'static [&'static str],
    },
}

impl Machine {
    /// Whether interrupts and exceptions begin with the code of that name.
    pub fn is_entry(&self, name: &str) -> bool {
        begins(name, self.entries) && !self.no_entry.is_some_and(|ending| name.ends_with(ending))
    }

    /// Whether it is the handler of an interrupt on another stack than its entry.
    pub fn is_handler(&self, name: &str) -> bool {
        begins(name, self.handlers) || self.handler == Some(name)
    }
}

/// Whether a name has one of these beginnings.
pub fn begins(name: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}
