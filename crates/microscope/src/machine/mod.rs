//! What differs between guests of two architectures, as data.

mod amd64;
mod arm64;

pub use amd64::AMD64;
pub use arm64::{ARM64, entries_on_arm64};

/// Programs have no address so high, and the kernel none below.
pub const KERNEL: u64 = 1 << 63;

/// An instruction, as far as an account asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A return.
    Return,
    /// A call, where the architecture's calls are followed by their instructions.
    Call,
    /// The end of an exception or an interrupt, where they are.
    Exit,
    /// The CPU halts.
    Halt,
    /// Interrupts are off behind it.
    Off,
    /// Any other.
    Other,
}

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
    /// Functions that turn something off for their caller, beside those that all architectures have: beginnings of their names.
    pub for_callers: &'static [&'static str],
    /// Functions that serve page faults.
    pub page_faults: &'static [&'static str],
    /// The CPU passes an instruction that halts where an interrupt waits that is masked.
    pub passes_halts: bool,
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
        /// Tables of the code that exceptions begin with.
        vectors: &'static Vectors,
        /// Functions that call the handler of an interrupt's device.
        callers_of_handlers: &'static [&'static str],
        /// Where a new thread begins.
        beginning: &'static str,
        /// The function that switches to another thread's stack.
        switch: &'static str,
    },
}

/// Tables of the code that exceptions begin with. Within that code the stack pointer is not one.
#[derive(Debug)]
pub struct Vectors {
    /// Their names.
    pub tables: &'static [&'static str],
    /// How far the beginnings are from each other, in bytes.
    pub step: u64,
    /// The functions that they lead to, in their order.
    pub entries: [&'static str; 16],
    /// Those of them that interrupts of the kernel begin with: the first, and the one behind the last.
    pub of_kernel: (u64, u64),
}

impl Vectors {
    /// The function that the beginning at `address` leads to.
    pub fn entry(&self, address: u64) -> &'static str {
        self.entries[(address / self.step) as usize % self.entries.len()]
    }
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
        vectors: &'static Vectors,
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

    /// What the code at `address` with that name is a part of: one table of vectors has the beginnings of several functions.
    pub fn owner<'a>(&self, name: &'a str, address: u64) -> &'a str {
        match &self.callers {
            Callers::Links { vectors, .. } if vectors.tables.contains(&name) => vectors.entry(address),
            _ => name,
        }
    }

    /// Whether an interrupt of the kernel begins at `address`, in code with that name, by a table of vectors.
    pub fn is_interrupt(&self, name: &str, address: u64) -> bool {
        let Callers::Links { vectors, .. } = &self.callers else { return false };
        let place = address / vectors.step % vectors.entries.len() as u64;
        let (first, end) = vectors.of_kernel;
        vectors.tables.contains(&name) && address % vectors.step == 0 && (first..end).contains(&place)
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
