//! A block of instructions.

use crate::machine::{Counter, KERNEL};

/// A block of instructions. It is never freed: translated code has its address.
pub struct Block {
    pub id: u32,
    pub address: u64,
    /// What its last instruction reads the counter into, if it does.
    pub counter: Option<Counter>,
    /// It ends with a call.
    pub is_call: bool,
    /// Instructions up to the first that turns interrupts off, with it; 0: it has none.
    pub until_off: u32,
    /// An interrupt begins with it.
    pub is_entry: bool,
    /// What is noted at its start.
    pub note: u32,
    /// It stands in the stream.
    pub is_written: bool,
    pub instructions: u32,
    pub length: u32,
    /// The length of each instruction, and behind them their bytes.
    pub text: *mut u8,
}

impl Block {
    pub fn is_of_user(&self) -> bool {
        self.address < KERNEL
    }
}
